"""A request that is hostile in every field stays text: in the inbox, on its own page, in every form, in JSON."""

import asyncio
import json
import uuid
from contextlib import asynccontextmanager

import pytest_asyncio
from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import NoticeDraft, Told
from tests.browser import assert_fits
from tests.engine import Scripts, engine
from tests.web.pages import behind_a_proxy, headers, served_page

ANA = "ana@example.com"
EVIL = "</textarea></title>'\"><img src=x onerror=alert(1)><script>alert(1)</script>{{7*7}}\u202e"


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
        "sources": {f"/{evil('name')}": [{"kind": "tool", "tool": evil("tool"), "content": "others"}]},
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


def request(kind, **more):
    return {
        "id": kind,
        "kind": kind,
        "question": evil("question"),
        "task": evil("task"),
        "user_id": evil("user"),
        "session_id": evil("session"),
        "links": {"page": f"javascript:alert(1)//{EVIL}", "web_ui": f"javascript:alert(1)//{EVIL}"},
        "reason": evil("reason"),
        "rule": evil("rule"),
        "decided": [{"by": evil("by"), "verdict": evil("verdict"), "verified": True}],
        "quorum": 3,
        "created_at": evil("created"),
        "args_digest": evil("digest"),
        "digest": evil("digest"),
        "run_id": evil("run"),
        "escalated_to": [evil("other")],
        "forecast": [{"idx": 0, "tool": evil("tool"), "arguments": {evil("name"): evil("value")}, "simulated": True}],
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
REQUESTS = [
    request("call", calls=[call(0, "tool")], options=["approve", "modify", "reject"], may_remember=["run", "never"]),
    request("batch", calls=[call(0, "one"), call(1, "two")], options=["approve", "reject"]),
    request("plan", calls=[call(0, "one")], options=["approve", "modify", "reject"], proposal=PROPOSAL),
    request("elicitation", options=["answer", "reject"], schema=SCHEMA),
    request("budget", options=["answer", "reject"], schema={"type": "object"}),
    request("outcome", calls=[call(0, "tool")], options=["happened", "did_not_happen", "retry"]),
    request("question", options=["answer", "reject"]),
]


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
        for number, given in enumerate(REQUESTS):
            asked = ApprovalRequest.model_validate({**given, "created_at": "", "expires_at": None})
            draft = NoticeDraft(sequence=number, event=Told.ASKED, at=f"2026-01-01T00:00:0{number}", request=asked)
            await served.page.store.outbox.write("hostile/first", name, evil("run"), [draft])
        yield name
        await handle.terminate()


async def test_no_field_of_a_request_becomes_markup(browser, temporal, served):
    async with asking(temporal, served) as name, browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        alerted = []
        page.on("dialog", lambda dialog: alerted.append(dialog.message))
        await page.locator(".row").first.wait_for()
        places = [served.url, f"{served.url}/decided"]
        for link in await page.locator("a.open").all():
            address = await link.get_attribute("href")
            places += [f"{served.url}{address}", f"{served.url}{address}?edit=0"]
        assert len(places) == 2 + 2 * len(REQUESTS)
        for place in places:
            await page.goto(place)
            async with asyncio.timeout(20):
                text = await page.locator("body").inner_text()
            assert "something is wrong with the page itself" not in text, place
            assert await page.locator("img, main script, b, main iframe, [onerror]").count() == 0, place
            assert await page.locator("a[href^='javascript:']").count() == 0, place
            assert "{{7*7}}" in text or place.endswith("/decided"), place
            assert "\u202e" not in await page.content(), place
            await assert_fits(page)
        assert alerted == []
        assert name
