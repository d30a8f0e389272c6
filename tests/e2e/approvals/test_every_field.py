"""Every field of a request, of its calls and of what can be entered is painted at every door, or left out by name."""

import html
import json
import re
from types import SimpleNamespace

import httpx2
import pytest
from starlette.requests import Request

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import Notice
from backstay.approvals.view import CallView, RequestView
from backstay.canonical import canonical, digest_of
from backstay.policies.policy import Policy
from backstay.settings import Settings
from examples.teams_bot.card import painted
from gateways.engine_mcp.views import elicitation, questions_of, waiting_words, waits_for
from gateways.links import Seals
from gateways.mail.mail import _message
from gateways.slack.drawing.request import request_blocks
from gateways.slack.forms import answer, choose, edit, verdicts
from gateways.slack.place import ModalContext
from gateways.terminal.asking.prompt import Prompt
from gateways.terminal.render import request_lines
from gateways.terminal.terminal import Terminal
from gateways.web.identity import ByLink, Visitor
from gateways.web.page import PageRoutes
from gateways.web.requests import RequestPages
from gateways.webhooks import Webhook
from people.decide.looking import KnownRequest
from people.requests.form import DecisionForm
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest
from tests.requirements import promise
from tests.slack_blocks import text_of
from workflows.view import request_details

AT = "2030-01-02T03:04:05+00:00"
VISITOR = Visitor(by="mark-visitor@x.example")
CALL = {
    "index": 71,
    "tool": "mark.tool",
    "arguments": {"mark_name": "mark-argument", "key": "⟦secret:desk/token:1a2b3c⟧"},
    "safety": "restricted_write",
    "undoable": True,
    "undo_how": "mark-undo",
    "side_effects": ["mark-changes"],
    "diff": "+mark-diff",
    "clipped": 4321,
    "left_out": 3,
    "args_digest": "mark-digest-of-call",
    "repeats": "mark-repeats",
    "changed": ["mark-changed"],
    "changed_by": "mark-changer",
    "sources": {"/mark_name": [{"kind": "tool", "tool": "mark.origin", "content": "others"}]},
    "minded": ["/mark_name"],
}
OTHER = {"index": 72, "tool": "mark.second", "arguments": {}, "safety": "write_safe", "undoable": False}
COMMON = {
    "id": "mark-id",
    "question": "mark-question",
    "task": "mark-task",
    "above": ["mark-above"],
    "user_id": "mark-user",
    "session_id": "mark-session",
    "step": 617,
    "links": {"page": "https://page.example/mark-page", "web_ui": "https://ui.example/mark-ui"},
    "rule": "mark-rule",
    "cost_so_far": 8.1234,
    "created_at": "2031-02-03T04:05:06+00:00",
    "expires_at": "2032-03-04T05:06:07+00:00",
    "on_expiry": "fail",
    "args_digest": "mark-args-digest",
    "namespace": "mark-namespace",
    "run_id": "mark-run",
    "digest": "mark-digest-of-request",
    "sequence": 5393,
}
CALLS = COMMON | {
    "kind": "batch",
    "calls": [CALL, OTHER],
    "program": {**OTHER, "index": -1, "tool": "mark.program", "arguments": {"source": "mark-program"}},
    "options": ["approve", "modify", "reject"],
    "reason": "mark-reason",
    "approvers": ["mark-approver@x.example"],
    "quorum": 613,
    "no_self_approval": True,
    "verified": True,
    "decided": [{"by": "mark-voter", "verdict": "approve", "verified": True}],
    "escalated": True,
    "escalated_to": ["mark-escalated"],
    "may_remember": ["run", "session", "always", "never"],
    "forecast": [{"idx": 0, "tool": "mark.foretold", "arguments": {"to": "mark-foretold"}, "simulated": True}],
}
STEP = {"idx": 71, "action": "mark.tool", "arguments": {}, "safety": "write_safe", "summary": "mark-summary"}
PLAN = COMMON | {
    "kind": "plan",
    "calls": [CALL],
    "options": ["approve", "modify", "reject"],
    "reason": "mark-reason",
    "proposal": {
        "plan_id": "mark-plan",
        "version": 3,
        "hash": "mark-hash",
        "title": "mark-title",
        "steps": [{**STEP, "needs_approval": True, "starts_process": True, "falls": [72]}],
        "more": 5417,
        "parts": [{"part": 1, "steps": [71], "approvers": ["mark-part@x.example"]}],
        "toggles": {"external_processes": True, "limits": {"memory_mb": 511}},
    },
}
ALONE = {"mark_name": "mark-argument"}
ONE = COMMON | {
    "kind": "call",
    "calls": [
        {**CALL, "arguments": ALONE, "clipped": 0, "left_out": 0, "args_digest": digest_of(ALONE), "sources": {}},
    ],
    "options": ["approve", "modify", "reject"],
    "may_remember": ["run", "session", "always", "never"],
}
FORM = COMMON | {
    "kind": "elicitation",
    "verified": True,
    "options": ["answer", "reject"],
    "schema": {"type": "object", "properties": {"mark_field": {"type": "string", "description": "mark-described"}}},
}
GIVEN = {"calls": CALLS, "one": ONE, "plan": PLAN, "form": FORM}
CASES = {name: ApprovalRequest.model_validate(case) for name, case in GIVEN.items()}


class Screen(Terminal):
    """A terminal at which nobody types anything."""

    def __init__(self):
        super().__init__()
        self.said = []

    def say(self, text="", style=""):
        self.said.append(text)

    async def ask(self, question, before=()):
        self.said.append(question)
        return ""


async def terminal(case, request):
    screen = Screen()
    prompt = Prompt(screen, SimpleNamespace(id="mark-workflow"), None, by=VISITOR.by, editor=None)
    # What is offered once all of it was shown.
    prompt._whole.add(f"{request.id} {request.digest}")
    menu = [prompt._menu(request), *prompt._more(request)]
    if request.may_remember:
        await prompt._remember(request, "run")
    return "\n".join([*(line for line, _ in request_lines("mark-workflow", request)), *menu, *screen.said])


def request_pages(request):
    """Return the pages of a request, without a run behind them."""

    async def people(_):
        return {}

    async def look(*_):
        return None

    async def pending():
        return []

    async def whole(_):
        return {call.index: call for call in request.shown}

    store = SimpleNamespace(looks=SimpleNamespace(people=people, look=look))
    backstay = SimpleNamespace(run=lambda _: SimpleNamespace(pending=pending, whole=whole))
    seals = Seals(b"mark")
    settings = Settings.load(None, approver_key="mark")
    shown = PageRoutes(settings, backstay, store, Policy(), identity=ByLink(seals), seals=seals)
    asked = RequestPages(shown)

    async def as_it_is(_known, asked_for):
        return asked_for, ""

    asked._all_of = as_it_is
    return asked


async def page(case, request):
    """Return what a person sees of the page, without what its form carries unseen."""
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    by = Visitor(by={"calls": "mark-approver@x.example", "plan": "mark-part@x.example"}.get(case, VISITOR.by))
    known = KnownRequest("mark-workflow", request.id, None, request, run_id=request.run_id)
    answered = await request_pages(request)._shown(Request(scope), by, known)
    text = re.sub(r'<input type="hidden"[^>]*>', "", answered.body.decode())
    links = re.findall(r'href="(https?://[^"]*)"', text)
    values = re.findall(r'<(?:input|button|textarea)[^>]*(?:name|value)="([^"]*)"', text)
    return html.unescape("\n".join([re.sub(r"<[^>]+>", " ", text), *links, *values]))


def slack(case, request):
    place = ModalContext(key=RequestKey.of("mark-workflow", request), channel="C1")
    forms = [edit.which(request, place, "mark"), choose.form(request, place, "mark-part@x.example")]
    forms += [verdicts.reject_form(request, place), verdicts.remember_form(request, place)]
    if case == "form":
        forms = [answer.form(request, place)]
    blocks = [block.to_dict() for block in request_blocks(PostedRequest(workflow_id="mark-workflow", request=request))]
    # Its buttons carry ids, which nobody sees.
    told = [text_of(blocks), *(text_of(form.to_dict()["blocks"]) for form in forms)]
    buttons = [each["text"]["text"] for row in blocks if row["type"] == "actions" for each in row["elements"]]
    links = re.findall(r"<(https?://[^|>]*)", json.dumps(blocks))
    return "\n".join([*told, *buttons, *links])


def mail(_case, request):
    links = {"page": request.links.page}
    told = {
        "id": "n",
        "sequence": 1,
        "event": "asked",
        "at": "2030-01-02T03:04:05+00:00",
        "workflow_id": "mark-workflow",
        "run_id": "mark-run",
    }
    told |= {"task": request.task, "user_id": request.user_id, "request": request.plain(), "links": links}
    message = _message(Notice.model_validate(told), "us@x.example", "mark-approver@x.example")
    return f"{message['Subject']}\n{message.get_content()}"


def web_ui(_case, request):
    return request_details("mark-workflow", request).replace("\\", "")


def teams(_case, request):
    card, _ = painted(PostedRequest(workflow_id="mark-workflow", request=request))
    found = []

    def walk(value, name=""):
        match value:
            case dict():
                for key, item in value.items():
                    # What a button carries is seen by nobody.
                    walk(item, key) if key not in {"data", "id", "type"} else None
            case list():
                for item in value:
                    walk(item, "text" if name == "inlines" else name)
            case str() if name in {"text", "title", "label", "url", "value"}:
                found.append(value.replace("\u00a0", " "))

    walk(card)
    return "\n".join(found)


def rest(_case, request):
    known = KnownRequest("mark-workflow", request.id, None, request, run_id=request.run_id)
    return canonical(request_pages(request)._wire(known))


async def webhook(_case, request):
    """Return what is posted to another program."""
    posted = []

    def receive(sent):
        posted.append(sent.content.decode())
        return httpx2.Response(200)

    told = {
        "id": "n",
        "sequence": 1,
        "event": "asked",
        "at": "2030-01-02T03:04:05+00:00",
        "workflow_id": "mark-workflow",
        "run_id": "mark-run",
    }
    told |= {"task": request.task, "user_id": request.user_id, "request": request.plain(), "links": {}}
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(receive)) as client:
        await Webhook(client, "http://127.0.0.1/", None).send(Notice.model_validate(told))
    return "".join(posted)


def mcp(_case, request):
    """Return what a caller of the engine's own MCP server is told of a request of its run."""
    asked = (request,)
    return json.dumps([waits_for(asked), questions_of(asked), elicitation(request), waiting_words((), asked)])


DOORS = {
    "terminal": terminal, "page": page, "slack": slack, "mail": mail, "web ui": web_ui, "teams": teams,
    "rest": rest, "webhook": webhook, "mcp": mcp,
}  # fmt: skip
SAID = r"batch|call be made|calls be made"
FACTS = {
    "request.id": ("calls", "mark-id"),
    "request.kind": ("calls", SAID),
    "request.question": ("calls", "mark-question"),
    "request.task": ("calls", "mark-task"),
    "request.above": ("calls", "mark-above"),
    "request.user_id": ("calls", "mark-user"),
    "request.session_id": ("calls", "mark-session"),
    "request.step": ("calls", "step 617"),
    "request.links": ("calls", "mark-page|mark-ui"),
    "request.calls": ("calls", r"mark\.second"),
    "request.program": ("calls", "mark-program"),
    "request.answer_schema": ("form", "mark_field.*mark-described|mark-described"),
    "request.options": ("calls", "[Rr]eject"),
    "request.reason": ("calls", "mark-reason"),
    "request.rule": ("calls", "mark-rule"),
    "request.approvers": ("calls", "mark-approver@x"),
    "request.quorum": ("calls", "613"),
    "request.no_self_approval": ("calls", "not who started"),
    "request.decided": ("calls", "mark-voter"),
    "request.cost_so_far": ("calls", r"8\.12"),
    "request.created_at": ("calls", "2031"),
    "request.expires_at": ("calls", "2032"),
    "request.on_expiry": ("plan", "then: fail"),
    "request.args_digest": ("calls", "mark-args-digest"),
    "request.namespace": ("calls", "mark-namespace"),
    "request.run_id": ("calls", "mark-run"),
    "request.digest": ("calls", "mark-digest-of-request"),
    "request.verified": ("form", "any verified person"),
    "request.proposal": ("plan", "mark-plan"),
    "request.forecast": ("calls", "mark-foretold"),
    "request.sequence": ("calls", "5393"),
    "request.escalated": ("calls", "[Nn]obody ha[sd] decided"),
    "request.escalated_to": ("calls", "mark-escalated"),
    "request.may_remember": ("one", "[Rr]emember|for this r|a.l.ways"),
    "view.calls": ("calls", r"mark\.tool"),
    "view.program": ("calls", "mark-program"),
    "view.parts": ("plan", "mark-part"),
    "view.more": ("plan", "5,?417 more"),
    "view.form": ("form", "mark_field|mark-described"),
    "view.masked": ("calls", "Masked: "),
    "view.unseen": ("calls", "3 of 4 arguments not shown|not shown"),
    "view.who": ("calls", "needed: 613"),
    "view.plan": ("plan", "mark-title"),
    "view.votes": ("calls", "approved by mark-voter|mark-voter: approve"),
    "call.number": ("calls", r"\b71\b"),
    "call.tool": ("calls", r"mark\.tool"),
    "call.safety": ("calls", "restricted.write"),
    "call.arguments": ("calls", "mark-argument"),
    "call.undoable": ("calls", "CANNOT BE UNDONE|[Cc]annot be undone"),
    "call.undo_how": ("calls", "mark-undo"),
    "call.changes": ("calls", "mark-changes"),
    "call.diff": ("calls", "mark-diff"),
    "call.hidden": ("calls", "4,321 characters"),
    "call.marks": ("plan", "needs approval"),
    "call.summary": ("plan", "mark-summary"),
    "call.asked": ("calls", "include"),
    "call.args_digest": ("calls", "mark-digest-of-call"),
    "call.repeats": ("calls", "mark-repeats"),
    "call.changed": ("calls", "mark-changed\\b"),
    "call.changed_by": ("calls", "mark-changer"),
    "call.sources": ("calls", r"mark\.origin"),
    "form.kind": ("calls", SAID),
    "form.calls": ("calls", r"mark\.second"),
    "form.proposal": ("plan", "of it|the plan"),
    "form.choices": ("calls", "[Rr]eject"),
    "form.fields": ("form", "mark_field|mark-described"),
    "form.limits": ("plan", "511"),
    "form.processes": ("plan", "starts processes"),
    "form.alike": ("one", "no other argument"),
}
"""Each field, the case in which it is looked for, and what then stands there."""
AS_DATA = {
    "request.no_self_approval": ("calls", '"no_self_approval":true'),
    "request.escalated": ("calls", '"escalated":true'),
    "request.on_expiry": ("plan", '"on_expiry":"fail"'),
    "request.step": ("calls", '"step":617'),
    "request.verified": ("form", '"verified":true'),
    "view.masked": ("calls", "⟦secret:"),
    "view.more": ("plan", '"more":5417'),
    "view.unseen": ("calls", '"left_out":3'),
    "view.who": ("calls", '"quorum":613'),
    "view.votes": ("calls", '"by":"mark-voter"'),
    "call.hidden": ("calls", '"clipped":4321'),
    "call.marks": ("plan", '"needs_approval":true'),
    "call.undoable": ("calls", '"undoable":false'),
    "form.processes": ("plan", '"starts_process":true'),
    "form.proposal": ("plan", '"hash":"mark-hash"'),
}
"""What stands in its place where programs read the fields themselves."""
PROGRAMS = ("rest", "webhook")
OF_PROGRAMS = "names the request for programs and for what is signed; people decide by what they are shown"
ONE_REQUEST = "a message, or a page, is about one request only, which its link names"
WHEN = "who decides needs the time that is left; the page says how long it has waited"
TICK = "only where calls stand beside steps that nobody is asked about, and there their marks say so"
NO_LIKE = "its form offers these arguments or any; calls that are alike are remembered on the page or at a terminal"
A_PROGRAM = "no form is painted: a program compares the calls, and sends what its person says"
A_CALLER = "a caller's model is told that its run waits, and for what; people decide with what they see elsewhere"
A_LINK = "a mail is a link: it holds no arguments and no form, and nothing in it decides"
FIVE_FACTS = "the Web UI decides nothing; it is held to state, limits, question, counts and commands, with a link"
_BESIDE_A_LINK = """
call.args_digest call.arguments call.asked call.changed call.changed_by call.changes call.diff call.hidden
call.repeats call.summary call.undo_how form.alike form.choices form.fields form.kind form.limits form.processes
form.proposal request.answer_schema request.approvers request.args_digest request.cost_so_far request.created_at
request.decided request.digest request.escalated_to request.forecast request.id request.kind request.may_remember
request.namespace request.no_self_approval request.on_expiry request.options request.program request.proposal
request.quorum request.reason request.rule request.run_id request.sequence request.session_id request.step
request.verified view.form view.masked view.more view.parts view.plan view.program view.unseen view.votes view.who
"""
_BESIDE_FIVE_FACTS = """
call.args_digest call.arguments call.asked call.changed call.changed_by call.changes call.diff call.hidden call.marks
call.number call.repeats call.safety call.sources call.summary call.undo_how form.alike form.fields form.kind
form.limits form.processes request.above request.answer_schema request.approvers request.cost_so_far
request.created_at request.decided request.digest request.escalated request.escalated_to request.expires_at
request.forecast request.kind request.may_remember request.namespace request.no_self_approval request.on_expiry
request.program request.proposal request.quorum request.reason request.rule request.run_id request.sequence
request.session_id request.step request.task request.user_id request.verified view.form view.masked view.more
view.parts view.program view.unseen view.votes view.who
"""
_BESIDE_ITS_QUESTION = """
call.args_digest call.arguments call.asked call.changed call.changed_by call.changes call.diff call.hidden call.marks
call.number call.repeats call.safety call.sources call.summary call.tool call.undo_how call.undoable form.alike
form.calls form.choices form.fields form.limits form.processes form.proposal request.above request.answer_schema
request.approvers request.args_digest request.calls request.cost_so_far request.created_at request.decided
request.digest request.escalated request.escalated_to request.expires_at request.forecast request.may_remember
request.namespace request.no_self_approval request.on_expiry request.options request.program request.proposal
request.quorum request.reason request.rule request.run_id request.sequence request.session_id request.step request.task
request.user_id request.verified view.calls view.form view.masked view.more view.parts view.plan view.program
view.unseen view.votes view.who
"""
_CHATS = ("slack", "teams")
LEFT_OUT = {
    **{
        (door, f"request.{name}"): OF_PROGRAMS
        for door in ("terminal", "page", *_CHATS)
        for name in ("digest", "namespace", "run_id", "sequence", "args_digest")
    },
    **{(door, "request.id"): ONE_REQUEST for door in ("page", *_CHATS)},
    **{(door, "request.created_at"): WHEN for door in ("terminal", *_CHATS)},
    **{(door, "call.asked"): TICK for door in ("terminal", *_CHATS)},
    ("teams", "form.alike"): NO_LIKE,
    ("page", "call.args_digest"): OF_PROGRAMS,
    **{("mail", name): A_LINK for name in _BESIDE_A_LINK.split()},
    **{(door, name): A_PROGRAM for door in PROGRAMS for name in ("call.asked", "form.alike")},
    **{("mcp", name): A_CALLER for name in _BESIDE_ITS_QUESTION.split()},
    **{("web ui", name): FIVE_FACTS for name in _BESIDE_FIVE_FACTS.split()},
}
"""What a door does not paint, and why."""


def fields():
    """Return every field that a door may paint; `plan`, `votes`, `sources` and `alike` are made of several."""
    made = {"view.plan", "view.votes", "call.sources", "form.alike"}
    walked = {"request": ApprovalRequest.model_fields, "view": RequestView._fields, "call": CallView._fields}
    walked |= {"form": DecisionForm._fields}
    return {f"{kind}.{name}" for kind, names in walked.items() for name in names} - {"view.request"} | made


@promise("approvals:every-field")
def test_the_table_of_fields_knows_every_field_and_every_door():
    assert FACTS.keys() == fields()
    assert {door for door, _ in LEFT_OUT} <= DOORS.keys()
    assert {name for _, name in LEFT_OUT} <= FACTS.keys()


@promise("approvals:every-field")
@pytest.mark.parametrize("door", DOORS)
async def test_a_door_paints_every_field_or_names_it_as_left_out(door):
    painted_by = {}
    for name, request in CASES.items():
        said = DOORS[door](name, request)
        painted_by[name] = said if isinstance(said, str) else await said
    looked_for = FACTS | AS_DATA if door in PROGRAMS else FACTS
    missing = {name for name, (case, words) in looked_for.items() if not re.search(words, painted_by[case])}
    named = {name for known, name in LEFT_OUT if known == door}

    assert missing - named == set(), painted_by
    # A reason that holds no more would hide that a field falls out again.
    assert named - missing == set()
