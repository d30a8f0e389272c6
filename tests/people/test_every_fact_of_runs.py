"""Every fact that is known of a run is painted at every door, or left out by name with the reason."""

import dataclasses
import html
import json
import re
from types import SimpleNamespace
from unittest.mock import patch

import httpx2
import pytest
from rich.console import Console
from starlette.requests import Request

from backstay.approvals.approval import ApprovalRequest, RecordedDecision
from backstay.approvals.notice import Notice, NoticeKind
from backstay.budgets.budget import MICRO, Budget, Ledger
from backstay.budgets.usage import Usage
from backstay.client.executions import Execution
from backstay.effects.compensation import Undone
from backstay.effects.effect import Effect, EffectState
from backstay.errors import RunTerminated
from backstay.policies.policy import Policy
from backstay.responses import RunAbove
from backstay.settings import Settings
from backstay.task.event import Event
from backstay.task.result import Failure, Result
from backstay.task.status import Status
from backstay.task.task import Task
from gateways.engine_mcp.own_run import OwnRun
from gateways.engine_mcp.runs import EngineRuns
from gateways.links import Seals
from gateways.mail.mail import _message
from gateways.slack.drawing.request import request_blocks
from gateways.slack.drawing.run import ThreadHead, step_lines, told
from gateways.terminal.render import ending_lines, event_line, live_panel, request_lines, result_text
from gateways.terminal.show import fault_of, lines_of
from gateways.terminal.terminal import Terminal
from gateways.web.identity import ByLink, Visitor
from gateways.web.page import PageRoutes
from gateways.web.runs.showing import is_held, view_of
from gateways.webhooks import Webhook
from people.requests.posted import PostedRequest
from people.runs.finding import KnownRun
from people.runs.looking import RunView
from people.runs.wire import wire_of
from store.effects.types import EffectRow
from store.notices.outbox import _RESULT
from store.notices.requests import RequestRow
from store.runs.plans import KeptPlan
from store.runs.runs import RunRow
from tests.requirements import promise
from tests.slack_blocks import text_of
from workflows.state.state import RunState
from workflows.view import details

AT = "2033-04-05T16:17:18+00:00"
BUDGET = {"max_steps": 811, "max_tool_calls": 823, "max_llm_cost_usd": 827.5}
USAGE = {"steps": 311, "tool_calls": 313, "llm_cost_usd": 3.1714, "models": {"mark-asked-model": {"output_tokens": 1}}}
EVENTS = [
    Event(n=701, name="action.called", at="2031-02-03T14:15:16+00:00", step_index=617, mcp_name="mark-mcp-name",
          text="mark.tool -> mark-answer",
          data={"tool": "mark.tool", "arguments": {"mark_name": "mark-argument"}, "mark_data": "mark-data"}),
]  # fmt: skip
EFFECT = {
    "effect_id": "mark-workflow/mark-first/5", "run": "mark-workflow/mark-first", "n": 5, "undo": False,
    "tool": "mark.write", "args_digest": "mark-digest", "state": EffectState.APPLIED, "send": 1, "token": "",
    "lease": 0, "step": 617, "user_id": "mark-user", "outcome": "mark-outcome", "undo_shown": "mark-undo",
    "first_sent_at": 1.0, "updated_at": 1.0, "read_at": 1.0,
}  # fmt: skip
PREVIEW = {
    "effect": 6, "tool": "mark.previewed", "step": 619, "arguments": {"mark_of_undo": "mark-undone-argument"},
    "shown": "mark-would-be-undone", "unknown": True, "made_by": "mark-maker",
    "later": [{"workflow_id": "mark-later", "effect": 1, "tool": "mark.touch", "task": ""}],
}  # fmt: skip
REQUEST = {
    "id": "mark-request", "kind": "call", "question": "mark-question", "step": 1, "calls": [],
    "options": ["approve", "reject"], "created_at": "2031-02-03T04:05:06+00:00",
}  # fmt: skip
DECISION = RecordedDecision(
    n=1, at="2030-01-02T03:04:05+00:00", update="decide", by="mark-decider", verified=False, verdict="reject",
    request_id="mark-decided", comment="mark-comment",
)  # fmt: skip
UNDONE = Undone(
    effect=8081, tool="mark.undone", state="parked", arguments={"mark": "mark-parked-argument"}, shown="mark-by-hand",
    detail="mark-detail", later=[{"workflow_id": "mark-after-undo", "effect": 1, "tool": "mark.touch", "task": ""}],
)  # fmt: skip
STANDS = Effect(id="x/y/8", n=8, tool="mark.stands", args_digest="d", state=EffectState.APPLIED, undo="mark-undo")
RESULT = Result(
    outcome="failed", success=False, final_summary="mark-summary", raw_outputs={"mark": "mark-outputs"},
    output="mark-output", output_ref="mark-ref", usage=USAGE, budget=BUDGET, undone=(UNDONE,), ledger_head="mark-head",
    error=Failure(type="StepFailed", message="mark-error"), programs_unavailable="mark-programs", events_total=9973,
    effects=(STANDS,), effects_ref="mark-effects-ref", events_ref="mark-events-ref",
    events=(EVENTS[0].model_copy(update={"text": "mark-last-event"}),),
    workflow_id="mark-workflow", run_id="mark-first",
)  # fmt: skip
PLAN = {"id": "p41", "title": "mark-plan", "summary": "mark-plan-says", "steps": [{"tool": "mark.step"}]}
OPENED = {"task_line": "mark-text", "model": "mark-model", "started_by": "mark-starter"}


def row(name="mark-workflow", **more):
    known = {"run": f"{name}/mark-first", "workflow_id": name, "workflow_run_id": "mark-first", "user_id": "mark-user"}
    known |= {"text": f"text of {name}", "state": "open", "opened_at": 1.93e9, "opened": OPENED, "store": "s"}
    known |= {"follows": "mark-before/mark-first"}
    return RunRow.model_validate(known | more)


def run(row, *, is_open, **more):
    execution = Execution(
        workflow_id="mark-workflow", first_run_id="mark-first", run_id="mark-first", kind="RunTask", started_at=1.93e9,
        status="running" if is_open else "completed",
    )  # fmt: skip
    known = {"user_id": "mark-user", "session_id": "mark-session", "text": "mark-text", "execution": execution}
    return KnownRun("mark-workflow", "mark-first", row=row, **(known | more))


def views():
    pending = (ApprovalRequest.model_validate(REQUEST),)
    status = Status(
        state="waiting", paused="mark-paused", namespace="mark-namespace", workflow_id="mark-workflow",
        run_id="mark-first", step=617, pending=pending, usage=USAGE, last_events=EVENTS, refused=7717,
        task_progress=[{"step": 1, "tool": "mark-progress", "status": "ok"}],
    )  # fmt: skip
    begun = {"events": EVENTS, "effects": [EffectRow.model_validate(EFFECT)], "decisions": [DECISION]}
    nothing = {"count": 0, "effects": []}
    begun |= {"arguments": {5: {"mark_of_effect": "mark-effect-argument"}}}
    undo = {"count": 907, "effects": [PREVIEW]}
    asked = {"position": 1, "workflow_id": "mark-workflow", "run_id": "mark-first", "run": "mark-workflow/mark-first"}
    asked |= {"request_id": "r", "user_id": "u", "state": "open", "request": REQUEST, "opened_at": 1, "changed_at": 1}
    proposal = {"plan_id": "p41", "version": 1, "hash": "h", "title": "", "steps": []}
    kept = {"plan": PLAN, "state": "APPROVED", "created_at": 1, "proposal": proposal}
    closed = {"state": "closed", "closed_at": 1.94e9, "result": RESULT.plain()}
    family = {
        "before": [row("mark-before")], "after": [row("mark-after")], "subruns": [row("mark-subrun")],
        "above": [RunAbove(workflow_id="mark-above", run_id="x", task_line="task of mark-above")],
    }  # fmt: skip
    live = run(row(), is_open=True)
    silent = run(row(), is_open=True, fault="mark-fault")
    over = run(row(**closed), is_open=False)
    plans = [KeptPlan.model_validate(kept)]
    said = {"plan": PLAN | {"id": "p42", "title": "mark-told-plan"}, "state": "EXECUTING", "steps": [{"idx": 0}]}
    said |= {"reason": "", "review": None, "children": []}
    known = {"status": status, "budget": {"budget": BUDGET}, "undo": undo, "earlier_events": True}
    requests = [RequestRow.model_validate(asked)]
    ended = {"undo": undo, "parked": {5, 6}, "undoing": True, "result": RESULT.plain()}
    return {
        "open": RunView(live, **begun, **family, **known, kept_plans=plans),
        "told": RunView(live, undo=nothing, plans={"p42": said}),
        "silent": RunView(silent, **begun, undo=nothing, requests=requests, fault="mark-fault"),
        "ended": RunView(over, **begun, **ended),
        "failed": RunView(run(row(), is_open=False), undo=nothing, failure=RunTerminated("mark-failure")),
        "pruned": RunView(run(row(pruned_at=1.95e9), is_open=False), undo=nothing),
        "older": RunView(run(row(), is_open=False, is_older=True, execution=None), undo=nothing),
        "forgotten": RunView(run(row(**closed), is_open=False, execution=None), undo=nothing, result=RESULT.plain()),
    }


def page(seen):
    """Return what a person sees of the page."""
    seals = Seals(b"mark")
    shown = PageRoutes(
        Settings.load(None, approver_key="mark"), None, None, Policy(), identity=ByLink(seals), seals=seals
    )
    request = Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""})
    known = {"found": seen.found, "seen": seen, "held": is_held(seen), "now": 1.96e9, "newest": True, "once": ""}
    known |= {"may_go_on": True}
    answered = shown.render(request, Visitor(by="ana"), "runs/run.html", **known, **view_of(seen))
    text = answered.body.decode()
    links = re.findall(r'(?:href|datetime)="([^"]*)"', text)
    return html.unescape("\n".join([re.sub(r"<[^>]+>", " ", text), *links]))


def terminal(seen):
    return "\n".join([fault_of(seen), *lines_of(Terminal(), seen, wire_of(seen))])


def rest(seen):
    return json.dumps(wire_of(seen), ensure_ascii=False)


def slack(seen):
    """Return what the thread of a run says of it."""
    found, links = seen.found, {"page": "https://page.example/run"}
    head = ThreadHead(
        workflow_id=found.workflow_id, task=found.text, user_id=found.user_id, links=links, result=seen.result
    )
    said = [
        text_of([block.to_dict() for block in head.blocks()]),
        *step_lines(seen.events, left_out=seen.earlier_events),
    ]
    if seen.result is not None:
        named = {"workflow_id": found.workflow_id, "run_id": found.run_id, "result": seen.result}
        said.append(told(Notice(id="n", sequence=1, event=NoticeKind.ENDED, at=AT, **named)))
    for request in seen.pending:
        posted = PostedRequest(workflow_id=found.workflow_id, request=request)
        said.append(text_of([block.to_dict() for block in request_blocks(posted)]))
    return "\n".join(said)


def chat(seen):
    """Return what a turn of a chat shows of its run."""
    said = [event_line(event, width=200) for event in seen.events]
    said += [line for request in seen.pending for line, _ in request_lines(seen.found.workflow_id, request)]
    if seen.status is not None:
        with (console := Console(width=200)).capture() as drawn:
            console.print(live_panel(seen.status, seen.budget["budget"]))
        said.append(drawn.get())
    if seen.result is not None:
        result = Result.model_validate(seen.result)
        said += [result_text(result), *(line for line, _ in ending_lines(result))]
    return "\n".join([*said, str(seen.failure or "")])


async def mcp(seen):
    """Return what a caller of the engine's own MCP server is told of its run."""

    async def of_run(*_, **__):
        return seen.events

    store = SimpleNamespace(events=SimpleNamespace(of_run=of_run))
    runs = EngineRuns(SimpleNamespace(client=None, task_queue=""), store, Seals(b"mark"), trusted=(), signs=False)
    own = OwnRun(seen.found, seen.status, seen.result, seen.failure, seen.fault)
    return json.dumps([await runs._followed(own, 0), own.task()], ensure_ascii=False, default=str)


def mail(seen):
    """Return what is mailed while a run asks."""
    named = {"workflow_id": seen.found.workflow_id, "run_id": seen.found.run_id, "user_id": seen.found.user_id}
    named |= {"task": seen.found.text, "links": {"page": "https://page.example/"}}
    asked = [
        Notice(id="n", sequence=1, event=NoticeKind.ASKED, at=AT, request=each.plain(), **named)
        for each in seen.pending
    ]
    return "\n".join(_message(notice, "us@x.example", "you@x.example").get_content() for notice in asked)


async def webhook(seen):
    """Return what other programs are posted of a run: that it asks, and how it ended."""
    posted = []

    def receive(sent):
        posted.append(json.dumps(json.loads(sent.content)))
        return httpx2.Response(200)

    named = {"workflow_id": seen.found.workflow_id, "run_id": seen.found.run_id, "user_id": seen.found.user_id}
    named |= {"session_id": seen.found.session_id, "task": seen.found.text, "id": "n", "at": AT}
    named |= {"namespace": "mark-namespace"}
    told = [{"event": NoticeKind.ASKED, "request": each.plain()} for each in seen.pending]
    result = {name: value for name, value in (seen.result or {}).items() if name not in _RESULT}
    told += [{"event": NoticeKind.ENDED, "result": result}] if result else []
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(receive)) as client:
        for each in told:
            await Webhook(client, "http://127.0.0.1/", None).send(Notice(sequence=1, **named, **each))
    return "\n".join(posted)


def web_ui(seen):
    """Return the details of a run in Temporal's Web UI, which has the result itself beside them."""
    if seen.status is None:
        return ""
    used = Usage(steps=seen.status.step, tool_calls=USAGE["tool_calls"])
    state = RunState(
        run="mark-workflow/mark-first", task=Task(text=seen.found.text), state=seen.status.state, usage=used,
        paused=seen.status.paused, budget=Budget.model_validate(BUDGET),
        ledger=Ledger(ceiling=None, spent=round(USAGE["llm_cost_usd"] * MICRO)),
    )  # fmt: skip
    with patch("temporalio.workflow.info", return_value=SimpleNamespace(workflow_id=seen.found.workflow_id)):
        return details(state, seen.pending).replace("\\", "")


DOORS = {
    "page": page, "terminal": terminal, "rest": rest, "slack": slack, "chat": chat, "mcp": mcp, "mail": mail,
    "webhook": webhook, "web ui": web_ui,
}  # fmt: skip
FACTS = {
    "run.found": ("open", "mark-workflow"),
    "run.events": ("open", "mark-answer"),
    "run.earlier_events": ("open", 'Earlier events|before these are not shown|earlier_events": true'),
    "run.effects": ("open", r"mark\.write"),
    "run.arguments": ("open", "mark-effect-argument"),
    "run.parked": ("ended", 'not undone|undo of it has failed|"parked": true'),
    "run.requests": ("silent", "mark-question"),
    "run.decisions": ("open", "mark-decider"),
    "run.kept_plans": ("open", "mark-plan"),
    "run.before": ("open", "mark-before"),
    "run.after": ("open", "mark-after"),
    "run.above": ("open", "mark-above"),
    "run.subruns": ("open", "mark-subrun"),
    "run.status": ("open", "waiting"),
    "run.budget": ("open", "811"),
    "run.plans": ("told", "mark-told-plan"),
    "run.undo": ("open", "mark-would-be-undone"),
    "run.result": ("ended", "mark-summary"),
    "run.failure": ("failed", "mark-failure"),
    "run.undoing": ("ended", 'undoing|undo of it is under way|undoing": true'),
    "run.fault": ("silent", "mark-fault"),
    "found.workflow_id": ("open", "mark-workflow"),
    "found.run_id": ("open", "mark-first"),
    "found.user_id": ("open", "mark-user"),
    "found.session_id": ("open", "mark-session"),
    "found.text": ("open", "mark-text"),
    "found.row": ("pruned", 'Pruned|pruned 2031|pruned_at": 1'),
    "found.execution": ("forgotten", 'no longer knows|known_to_temporal": false'),
    "found.fault": ("silent", "mark-fault"),
    "found.is_older": ("older", 'earlier run|older": true'),
    "found.started_at": ("open", "2031-02-27|1930000000"),
    "found.ended_at": ("ended", "2031-06-23|took|1940000000"),
    "status.state": ("open", "waiting"),
    "status.paused": ("open", "mark-paused|Paused"),
    "status.step": ("open", 'step 617|step": 617'),
    "status.task_progress": ("open", "mark-progress"),
    "status.pending": ("open", "mark-question"),
    "status.usage": ("open", r"3\.17"),
    "status.last_events": ("open", "mark-answer"),
    "status.namespace": ("open", "mark-namespace"),
    "status.workflow_id": ("open", "mark-workflow"),
    "status.run_id": ("open", "mark-first"),
    "status.refused": ("open", "7717"),
    "event.n": ("open", "701"),
    "event.name": ("open", r"action\.called"),
    "event.at": ("open", "14:15:16"),
    "event.step_index": ("open", '[Ss]tep 617|step_index": 617'),
    "event.text": ("open", "mark-answer"),
    "event.data": ("open", "mark-argument"),
    "event.task_id": ("open", "mark-workflow"),
    "event.user_id": ("open", "mark-user"),
    "event.session_id": ("open", "mark-session"),
    "event.mcp_name": ("open", "mark-mcp-name"),
    "undone.effect": ("ended", 'effect": 8081'),
    "undone.tool": ("ended", r"mark\.undone"),
    "undone.state": ("ended", "parked|not undone"),
    "undone.arguments": ("ended", "mark-parked-argument"),
    "undone.shown": ("ended", "mark-by-hand"),
    "undone.detail": ("ended", "mark-detail"),
    "undone.later": ("ended", "mark-after-undo"),
    "result.outcome": ("ended", "failed"),
    "result.success": ("ended", "failed"),
    "result.final_summary": ("ended", "mark-summary"),
    "result.raw_outputs": ("ended", "mark-outputs"),
    "result.output": ("ended", "mark-output\\b"),
    "result.output_ref": ("ended", "mark-ref"),
    "result.usage": ("ended", r"3\.17"),
    "result.budget": ("ended", "811"),
    "result.effects": ("ended", r"mark\.stands"),
    "result.effects_ref": ("ended", "mark-effects-ref"),
    "result.undone": ("ended", r"mark\.undone"),
    "result.events": ("ended", "mark-last-event"),
    "result.events_total": ("ended", "9973"),
    "result.events_ref": ("ended", "mark-events-ref"),
    "result.error": ("ended", "mark-error"),
    "result.programs_unavailable": ("ended", "mark-programs"),
    "result.ledger_head": ("ended", "mark-head"),
    "result.workflow_id": ("ended", "mark-workflow"),
    "result.run_id": ("ended", "mark-first"),
}
"""Each fact, the case in which it is looked for, and what then stands there."""
OF_PROGRAMS = "names the run for programs and for what is signed; people read what it was about"
EVENTS_SAY = "each refusal, and each call, is an event of its own"
THE_LAST = "a part of what stands here whole: the effects and events of the run"
NUMBER = "people undo it by hand by its tool and its arguments; its number is for programs"
AT_ATTACH = "`backstay attach` tells the events of a run, and `backstay result --step` its calls, whole"
AT_RESULT = "`backstay result` reads it whole, and `backstay audit` the ledger"
A_THREAD = "a thread tells what happens, what waits and how it ended, with a link to the page, which says all of it"
A_TURN = "a turn is the run that somebody has just typed; `backstay show` says all of it"
A_CALLER = "a caller is told what its own run does and comes to; what people see and decide is not for its model"
A_NOTICE = "a notice tells one thing that happened; what the run is, and all it did, is read over REST"
FIVE_FACTS = "held to state, limits, question, counts and commands; the Web UI has the result and the times itself"
A_MAIL = "a mail is about one request, with a link; nothing of the run stands in it but its task"
_LEFT_OUT = {
    ("page", OF_PROGRAMS): "status.namespace event.mcp_name result.run_id",
    ("page", EVENTS_SAY): "status.task_progress status.refused",
    ("page", THE_LAST): """
        result.effects result.effects_ref result.events result.events_total result.events_ref
    """,
    ("page", NUMBER): "undone.effect",
    ("terminal", OF_PROGRAMS): "status.namespace event.mcp_name",
    ("terminal", EVENTS_SAY): "status.task_progress status.refused",
    ("terminal", THE_LAST): """
        result.effects result.effects_ref result.events result.events_total result.events_ref
    """,
    ("terminal", NUMBER): "undone.effect",
    ("terminal", AT_RESULT): "result.output_ref result.ledger_head",
    ("terminal", AT_ATTACH): """
        run.events run.earlier_events run.effects run.arguments status.last_events event.n event.name event.at
        event.text event.data
    """,
    ("slack", OF_PROGRAMS): """
        found.run_id status.namespace status.run_id event.mcp_name result.run_id
    """,
    ("slack", EVENTS_SAY): "status.task_progress status.refused",
    ("slack", THE_LAST): """
        result.effects result.effects_ref result.events result.events_total result.events_ref
    """,
    ("slack", NUMBER): "undone.effect",
    ("slack", A_THREAD): """
        run.effects run.arguments run.decisions run.kept_plans run.before run.after run.above run.subruns
        run.status run.budget run.plans run.undo run.failure run.undoing run.fault found.session_id found.row
        found.execution found.fault found.is_older found.started_at found.ended_at status.state status.paused
        status.usage event.n event.data event.session_id result.raw_outputs result.output result.output_ref
        result.budget result.programs_unavailable result.ledger_head
    """,
    ("chat", OF_PROGRAMS): """
        found.run_id status.namespace status.run_id event.mcp_name result.run_id
    """,
    ("chat", EVENTS_SAY): "status.task_progress status.refused",
    ("chat", THE_LAST): """
        result.effects result.effects_ref result.events result.events_total result.events_ref
    """,
    ("chat", NUMBER): "undone.effect",
    ("chat", AT_RESULT): "result.output_ref result.ledger_head",
    ("chat", A_TURN): """
        run.found run.earlier_events run.effects run.arguments run.decisions run.kept_plans
        run.before run.after run.above run.subruns run.plans run.undo run.undoing run.fault found.workflow_id
        found.user_id found.session_id found.text found.row found.execution found.fault found.is_older
        found.started_at found.ended_at status.workflow_id event.n event.name event.task_id event.user_id
        event.session_id
    """,
    ("mcp", OF_PROGRAMS): """
        found.run_id status.namespace status.run_id event.mcp_name result.run_id
    """,
    ("mcp", EVENTS_SAY): "status.task_progress status.refused",
    ("mcp", THE_LAST): "result.events result.events_total",
    ("mcp", A_CALLER): """
        run.earlier_events run.effects run.arguments run.parked run.requests run.decisions run.kept_plans
        run.before run.after run.above run.subruns run.budget run.plans run.undo run.undoing found.user_id
        found.session_id found.text found.row found.execution found.is_older status.usage event.step_index
        event.data event.user_id event.session_id result.budget
    """,
    ("webhook", EVENTS_SAY): "status.task_progress status.refused",
    ("webhook", THE_LAST): "result.effects result.events",
    ("webhook", A_NOTICE): """
        run.events run.earlier_events run.effects run.arguments run.parked run.decisions run.kept_plans
        run.before run.after run.above run.subruns run.status run.budget run.plans run.undo run.failure run.undoing
        run.fault found.row found.execution found.fault found.is_older found.started_at found.ended_at status.state
        status.paused status.step status.usage status.last_events event.n event.name event.at event.step_index
        event.text event.data event.mcp_name result.raw_outputs
    """,
    ("web ui", OF_PROGRAMS): "status.namespace status.run_id event.mcp_name result.run_id",
    ("web ui", EVENTS_SAY): "status.task_progress status.refused",
    ("web ui", FIVE_FACTS): """
        run.events run.earlier_events run.effects run.arguments run.parked run.requests run.decisions run.kept_plans
        run.before run.after run.above run.subruns run.plans run.undo run.result run.failure run.undoing run.fault
        found.run_id found.user_id found.session_id found.text found.row found.execution found.fault found.is_older
        found.started_at found.ended_at status.last_events event.n event.name event.at event.text event.data
        event.user_id event.session_id undone.effect undone.tool undone.state undone.arguments undone.shown
        undone.detail undone.later result.outcome result.success result.final_summary result.raw_outputs
        result.output result.output_ref result.usage result.budget result.effects result.effects_ref result.undone
        result.events result.events_total result.events_ref result.error result.programs_unavailable
        result.ledger_head result.workflow_id
    """,
    ("mail", A_MAIL): """
        run.found run.events run.earlier_events run.effects run.arguments run.parked run.decisions
        run.kept_plans run.before run.after run.above run.subruns run.status run.budget run.plans run.undo
        run.result run.failure run.undoing run.fault found.workflow_id found.run_id found.session_id found.row
        found.execution found.fault found.is_older found.started_at found.ended_at status.state status.paused
        status.step status.task_progress status.usage status.last_events status.namespace status.workflow_id
        status.run_id status.refused event.n event.name event.at event.step_index event.text event.data
        event.task_id event.session_id event.mcp_name undone.effect undone.tool undone.state undone.arguments
        undone.shown undone.detail undone.later result.outcome result.success result.final_summary
        result.raw_outputs result.output result.output_ref result.usage result.budget result.effects
        result.effects_ref result.undone result.events result.events_total result.events_ref result.error
        result.programs_unavailable result.ledger_head result.workflow_id result.run_id
    """,
}
"""What a door does not paint, by the door and why."""


def fields():
    """Return every field of what is known of a run."""
    walked = {"run": [each.name for each in dataclasses.fields(RunView)]}
    walked |= {"found": [*(each.name for each in dataclasses.fields(KnownRun)), "started_at", "ended_at"]}
    walked |= {"status": Status.model_fields, "event": Event.model_fields, "undone": Undone.model_fields}
    walked |= {"result": Result.model_fields}
    return {f"{kind}.{name}" for kind, names in walked.items() for name in names}


async def missing_at(door):
    """Return the facts that a door does not paint."""
    painted = {}
    for name, view in views().items():
        said = DOORS[door](view)
        painted[name] = said if isinstance(said, str) else await said
    return {name for name, (case, words) in FACTS.items() if not re.search(words, painted[case])}


@promise("clients:every-fact")
def test_the_table_of_facts_knows_every_fact_of_a_run_and_every_door():
    assert FACTS.keys() == fields()
    assert {door for door, _ in _LEFT_OUT} <= DOORS.keys()


@promise("clients:every-fact")
@pytest.mark.parametrize("door", DOORS)
async def test_a_door_paints_every_fact_of_a_run_or_names_it_as_left_out(door):
    named = [name for (known, _), names in _LEFT_OUT.items() if known == door for name in names.split()]
    missing = await missing_at(door)

    assert missing - set(named) == set()
    # A reason that holds no more would hide that a fact falls out again.
    assert set(named) - missing == set()
    assert len(named) == len(set(named))
