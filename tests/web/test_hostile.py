"""What is hostile in every field stays text: requests in every form, what became of them, and the runs that asked."""

import asyncio
import json
import uuid
from contextlib import asynccontextmanager, suppress
from urllib.parse import quote

import pytest
import pytest_asyncio
from pydantic import TypeAdapter, ValidationError
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from backstay.approvals.approval import ApprovalRequest, RecordedDecision, RequestedCall
from backstay.approvals.forecast import ForecastEntry
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.approvals.proposal import Proposal, ProposalPart, ProposedStep
from backstay.effects.effect import EffectState
from backstay.task.event import Event
from backstay.task.plan import Plan
from store.effects.types import BoundUndo, Intent
from tests.browser import assert_fits
from tests.engine import Scripts, engine
from tests.requirements import promise
from tests.sizes import FULL, sized
from tests.web.pages import behind_a_proxy, headers, served_page

ANA = "ana@example.com"
EVIL = "</textarea></title>'\"><img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}\u202e"
SEEN = EVIL.replace("\u202e", "<U+202E>")
"""How people see it."""


@workflow.defn(name="Hostile")
class Hostile:
    """Answer what a run is asked, with whatever it was given."""

    def __init__(self):
        self.asked = []

    @workflow.run
    async def run(self, asked: list):
        self.asked = asked
        await workflow.wait_condition(lambda: False)

    @workflow.query
    def pending(self) -> list:
        return self.asked

    @workflow.query
    def request(self, given: dict) -> dict:
        return {"text": json.dumps({EVIL: EVIL, "list": [EVIL]}), "next": None}


def evil(name):
    return f"{name} {EVIL}"


def call(number, tool):
    return {
        "index": number,
        "tool": evil(tool),
        "arguments": {evil("name"): evil("value"), "list": [evil("item")] * 3, "rows": [{evil("a"): evil("b")}] * 2},
        "safety": "restricted_write",
        "undoable": True,
        "undo_how": evil("undo"),
        "side_effects": [evil("effect")],
        "diff": f"+{evil('added')}\n-{evil('removed')}\n@@ {evil('place')}",
        "clipped": 3,
        "repeats": evil("repeats"),
        "args_digest": evil("digest"),
        "changed": [evil("~ changed")],
        "changed_by": evil("editor"),
        "sources": {
            f"/{evil('name')}": [{"kind": "tool", "tool": evil("tool"), "content": "others"}],
            "/list": [{"kind": "person", "by": evil("giver")}],
        },
        "minded": [f"/{evil('name')}"],
    }


def step(number):
    return {
        "idx": number,
        "action": evil("action"),
        "arguments": {evil("name"): evil("value")},
        "safety": "write_safe",
        "summary": evil("summary"),
        "diff_preview": evil("+diff"),
        "side_effects": [evil("effect")],
        "undo_how": evil("undo"),
        "undoable": True,
        "needs_approval": number == 0,
        "part": 0 if number == 0 else None,
    }


SCHEMA = {
    "type": "object",
    "required": [evil("field")],
    "properties": {
        evil("field"): {"type": "string", "title": evil("title"), "description": evil("told"), "default": evil("now")},
        evil("choice"): {"enum": [evil("one"), evil("two")], "enumNames": [evil("first"), evil("second")]},
        evil("choices"): {"type": "array", "items": {"enum": [evil("a"), evil("b")]}, "default": [evil("a")]},
        evil("json"): {"type": "object", "default": {evil("x"): evil("y")}},
        evil("number"): {"type": "integer", "default": evil("7"), "maximum": evil("8")},
        evil("short"): {"type": "string", "maxLength": 3, "title": [evil("no text")]},
    },
}


FORETOLD = {
    "idx": 0,
    "tool": evil("tool"),
    "arguments": {evil("name"): evil("value")},
    "digest": evil("digest"),
    "simulated": True,
}


def request(kind, **more):
    return {
        "id": kind,
        "kind": kind,
        "question": evil("question"),
        "task": evil("task"),
        "above": [evil("above")],
        "user_id": evil("user"),
        "session_id": evil("session"),
        "links": {"page": f"javascript:alert(1)//{EVIL}", "web_ui": f"javascript:alert(1)//{EVIL}"},
        "reason": evil("reason"),
        "rule": evil("rule"),
        "decided": [{"by": evil("by"), "verdict": evil("verdict"), "verified": True}],
        "quorum": 3,
        "created_at": evil("created"),
        "expires_at": evil("expires"),
        "namespace": evil("namespace"),
        "args_digest": evil("digest"),
        "digest": evil("digest"),
        "run_id": evil("run"),
        "escalated_to": [evil("other")],
        "forecast": [FORETOLD],
        **more,
    }


PROPOSAL = {
    "plan_id": evil("plan"),
    "version": 1,
    "hash": evil("hash"),
    "title": evil("title"),
    "summary": evil("summary"),
    "steps": [step(0), step(1)],
    "estimated_side_effects": [evil("effect")],
    "toggles": {"external_processes": True, "limits": {"timeout_s": 5}},
    "parts": [{"part": 0, "steps": [0], "rule": evil("rule"), "decided": [{"by": evil("by"), "rejected": [0]}]}],
    "alternatives": [evil("alternative")],
}
NAMED = {
    "part": 0,
    "steps": [0],
    "rule": evil("rule"),
    "approvers": [ANA, evil("approver"), evil("other")],
    "escalate_to": [evil("chief")],
    "quorum": 2,
    "decided": [{"by": evil("other"), "rejected": [0]}],
}
REQUESTS = [
    request("call", calls=[call(0, "tool")], options=["approve", "modify", "reject"], may_remember=["run", "never"]),
    request(
        "batch", calls=[call(0, "one"), call(1, "two")], options=["approve", "reject"], program=call(-1, "program")
    ),
    request("plan", calls=[call(0, "one")], options=["approve", "modify", "reject"], proposal=PROPOSAL),
    request("elicitation", options=["answer", "reject"], schema=SCHEMA),
    request("budget", options=["answer", "reject"], schema={"type": "object"}),
    request("outcome", calls=[call(0, "tool")], options=["happened", "did_not_happen", "retry"]),
    request("question", options=["answer", "reject"]),
    request("call", id="mine", calls=[call(0, "tool")], options=["approve"], approvers=[ANA, evil("approver")]),
    request(
        "call", id="theirs", calls=[call(2, "tool")], user_id=ANA, options=["reject"], approvers=[evil("approver")]
    ),
    request("plan", id="parts", calls=[call(0, "one")], options=["approve"], proposal=PROPOSAL | {"parts": [NAMED]}),
]
PROPOSALS = [asked["proposal"] for asked in REQUESTS if "proposal" in asked]
GIVEN = {
    ApprovalRequest: REQUESTS,
    RequestedCall: [call for asked in REQUESTS for call in asked.get("calls", ())],
    Proposal: PROPOSALS,
    ProposedStep: [step for proposal in PROPOSALS for step in proposal["steps"]],
    ProposalPart: [part for proposal in PROPOSALS for part in proposal["parts"]],
    ForecastEntry: [entry for asked in REQUESTS for entry in asked["forecast"]],
}
"""All that the requests hold, by its kind."""
TEXTLESS = {
    ApprovalRequest: {
        *("kind", "step", "quorum", "no_self_approval", "cost_so_far", "on_expiry", "verified", "sequence"),
        *("may_remember", "escalated"),
    },
    RequestedCall: {"index", "safety", "undoable", "clipped", "left_out"},
    Proposal: {"version", "more", "estimated_cost_usd", "approve_options", "toggles", "per_step", "dry_run"},
    ProposedStep: {"idx", "safety", "undoable", "depends_on", "limits", "needs_approval", "part"}
    | {"falls", "more_fall", "starts_process"},
    ProposalPart: {"part", "steps", "quorum", "no_self_approval", "verified"},
    ForecastEntry: {"idx", "simulated", "assumed"},
}
"""Numbers, flags and words of ours."""
SAID_ELSEWHERE = {"id", "options"}
"""An id is hostile below, in what became of requests; an option is only compared with words of ours."""


@promise("page:markup")
@pytest.mark.parametrize("kind", GIVEN)
def test_every_field_of_a_request_that_can_hold_text_is_hostile_here(kind):
    hostile = {name for given in GIVEN[kind] for name, value in given.items() if holds_evil(value)}
    fields = {field.alias or name: TypeAdapter(field.annotation) for name, field in kind.model_fields.items()}
    assert fields.keys() - hostile - SAID_ELSEWHERE == TEXTLESS[kind]
    for name in TEXTLESS[kind]:
        for text in (EVIL, [EVIL], {EVIL: EVIL}, [{EVIL: EVIL}]):
            with suppress(ValidationError):
                assert not holds_evil(fields[name].dump_python(fields[name].validate_python(text), mode="json")), name


def holds_evil(value):
    return EVIL[-40:] in json.dumps(value, ensure_ascii=False)


@pytest_asyncio.fixture
async def served(temporal, tmp_path):
    async with (
        engine(temporal, tmp_path, Scripts(), policy="", **behind_a_proxy()) as running,
        served_page(running) as page,
    ):
        yield page


@asynccontextmanager
async def asking(temporal: Client, served):
    """Have a workflow ask all of it, and the store know of it."""
    queue, name = f"hostile-{uuid.uuid4()}", f"hostile {EVIL[:40]}"
    async with Worker(temporal, task_queue=queue, workflows=[Hostile], workflow_runner=UnsandboxedWorkflowRunner()):
        handle = await temporal.start_workflow("Hostile", REQUESTS, id=name, task_queue=queue)
        named = {"workflow_id": name, "workflow_run_id": handle.first_execution_run_id, "user_id": evil("user")}
        await served.page.store.runs.opened(run="hostile/first", text=evil("text"), opened={}, **named)
        for number, given in enumerate(REQUESTS):
            asked = ApprovalRequest.model_validate({**given, "created_at": "", "expires_at": None})
            draft = NoticeDraft(
                sequence=number, event=NoticeKind.ASKED, at=f"2026-01-01T00:00:0{number}", request=asked
            )
            await served.page.store.outbox.write("hostile/first", name, evil("run"), [draft])
        try:
            yield name
        finally:
            await handle.terminate()


async def stays_text(page, place):
    """Assert that a page shows hostile text as text: none of it is markup, runs, or has signs that nobody sees."""
    async with asyncio.timeout(150):
        text = await page.locator("body").inner_text()
    assert "something is wrong with the page itself" not in text, place
    ours = "[src^='/static/']"
    assert await page.locator(f"img, script:not({ours}), main iframe, [onerror], [onload]").count() == 0, place
    assert await page.locator("a[href^='javascript:']").count() == 0, place
    assert "\u202e" not in await page.content(), place
    await assert_fits(page)
    return text


def may_be_changed(address):
    """Return whether the page of a request has forms in which it is changed; at full size all are asked for them."""
    names = {asked["id"] for asked in REQUESTS if FULL or "modify" in asked["options"]}
    return address.rpartition("/")[2] in names


@promise("page:markup")
async def test_no_field_of_a_request_becomes_markup(browser, temporal, served):
    async with asking(temporal, served) as name, browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        alerted = []
        page.on("dialog", lambda dialog: alerted.append(dialog.message))
        await page.locator(".row").first.wait_for()
        places = [served.url]
        for link in await page.locator("a.open").all():
            address = await link.get_attribute("href")
            places += [f"{served.url}{address}{more}" for more in ("", "?edit=0")[: 1 + may_be_changed(address)]]
        assert len(places) == 1 + len(REQUESTS) + sized(len(REQUESTS), 2)
        for place in places:
            await page.goto(place)
            text = await stays_text(page, place)
            assert "{{7*7}}" in text, place
            assert await page.locator("b").count() == 0, place
            if place.endswith(("/mine", "/theirs", "/parts")):
                assert f"approver {SEEN}" in text, place
        assert alerted == []
        assert name


GONE = [
    (NoticeKind.DECIDED, {"decision": DecisionNotice(verdict="reject", by=evil("judge"), comment=evil("verdict"))}),
    (NoticeKind.EXPIRED, {}),
    (NoticeKind.WITHDRAWN, {}),
]
RESULT = {
    "outcome": "failed",
    "success": False,
    "final_summary": evil("summary"),
    "raw_outputs": {evil("output"): evil("value")},
    "output": {evil("name"): [evil("value")]},
    "usage": {"models": {evil("model"): {"cost_usd": 1}}, "calls_by_tool": {evil("tool"): 1}},
    "budget": {"quotas": {evil("tool"): 2}},
    "undone": [
        {"effect": 1, "tool": evil("tool"), "state": "parked", "shown": evil("undo"), "detail": evil("detail")},
    ],
    "error": {"type": evil("Error"), "message": evil("message")},
    "programs_unavailable": evil("reason"),
}


async def past(served):
    """Have the store know of a run that has ended, with all that it did, and of what became of its requests."""
    store, run, name = served.page.store, f"{evil('ended')}/first", evil("ended")
    for number, (event, became) in enumerate(GONE):
        asked = ApprovalRequest.model_validate({**REQUESTS[0], "id": evil(f"gone {number}"), "expires_at": None})
        at = f"2026-01-01T00:01:0{number}"
        drafts = [
            NoticeDraft(sequence=2 * number, event=NoticeKind.ASKED, at=at, request=asked),
            NoticeDraft(sequence=2 * number + 1, event=event, at=at, request_id=asked.id, **became),
        ]
        await store.outbox.write(run, name, "first", drafts)
    opened = {"model": evil("model"), "started_by": evil("starter"), "web_ui": f"javascript:alert(1)//{EVIL}"}
    named = {"workflow_id": name, "workflow_run_id": "first", "user_id": evil("user"), "session_id": evil("session")}
    await store.runs.opened(run=run, text=evil("text"), opened=opened, **named)
    data = {"tool": evil("tool"), "arguments": {evil("a"): evil("b")}, "request": evil("request"), "effect": 1}
    data |= {"model": evil("model")}
    names = ("model.asked", "action.called", "action.failed", "approval.asked", "approval.decided", "run.ended")
    events = [
        Event(n=n, name=event, at=f"2026-01-01T00:00:0{n}", text=evil("text"), data={**data, evil("x"): [evil("y")]})
        for n, event in enumerate([*names, evil("event")], 1)
    ]
    await store.events.append(run, events)
    said = {"by": evil("by"), "verdict": evil("verdict"), "comment": evil("comment"), "request_id": evil("request")}
    await store.decisions.append(run, [RecordedDecision(n=1, at=evil("at"), update="decide", verified=False, **said)])
    steps = [{"tool": evil("tool"), "arguments": {evil("name"): evil("value")}, "summary": evil("step")}] * 2
    plan = {"id": evil("plan"), "title": evil("title"), "summary": evil("summary"), "steps": steps}
    await store.plans.keep(run, Plan.model_validate(plan), Proposal.model_validate(PROPOSAL))
    intent = {"effect_id": f"{run}/1", "run": run, "n": 1, "tool": evil("tool"), "args_digest": evil("digest")}
    intent = Intent(**intent, lease_s=5, user_id=evil("user"))
    begun = await store.effects.begin(intent, idempotency_ttl=None, attempt=1, epoch_differs=False)
    undo = BoundUndo(tool=evil("undo"), sealed_ref="0" * 40, shown=evil("undo"))
    await store.effects.settle(intent.effect_id, begun.token, EffectState.APPLIED, outcome=evil("outcome"), undo=undo)
    await store.runs.closed(run, RESULT)
    return name


@promise("page:markup")
@pytest.mark.thorough
async def test_nothing_of_what_was_decided_of_equal_requests_and_of_runs_becomes_markup(browser, temporal, served):
    name = await past(served)
    async with asking(temporal, served) as asks, browser.tab(extra_http_headers=headers(ANA)) as page:
        alerted = []
        page.on("dialog", lambda dialog: alerted.append(dialog.message))
        await page.goto(f"{served.url}/decided")
        text = await stays_text(page, "/decided")
        assert (f"by judge {SEEN[:40]}" in text, f"verdict {SEEN}" in text) == (True, True)
        links = [await link.get_attribute("href") for link in await page.locator("a.open").all()]
        assert len(links) == len(GONE)
        for link in links:
            await page.goto(f"{served.url}{link}")
            said = await stays_text(page, link)
            assert (f"by judge {SEEN}" in said) == (link == links[-1]), link
        for address in ("/runs", f"/runs/{quote(name, safe='')}", f"/runs/{quote(asks, safe='')}"):
            await page.goto(f"{served.url}{address}")
            await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
            text = await stays_text(page, address)
            assert SEEN in text, address
        await page.goto(f"{served.url}/runs/{quote(name, safe='')}")
        await page.get_by_text("Undo 1 effect").click()
        await page.get_by_role("button", name="Undo…").click()
        await page.get_by_role("heading", name="Undo this?").wait_for()
        assert f"undo {SEEN}" in await stays_text(page, "undo")
        await page.goto(served.url)
        # News may draw the list anew at any moment, also amid a click.
        together = await page.get_by_role("link", name="decide 3 equal calls at once").first.get_attribute("href")
        await page.goto(f"{served.url}{together}")
        assert SEEN in await stays_text(page, "alike")
        assert await page.get_by_role("button", name="Approve the ticked").count() == 0
        await page.get_by_role("button", name="Reject the ticked").click()
        await page.get_by_role("heading", name="0 of 3 requests rejected").wait_for()
        assert SEEN[:30] in await stays_text(page, "outcomes")
        assert alerted == []
