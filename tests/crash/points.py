"""The points at which a worker is killed: named, so that a report can say which were reached."""

from dataclasses import dataclass
from typing import Literal

When = Literal["before", "during", "after"]
Shape = Literal["reminders", "lost", "rollback", "undo_run", "plan", "tree"]
Transport = Literal["http", "stdio"]

PLACES = {
    "open_run": "activities.runs.runs:RunActivities.open_run",
    "search_tools": "activities.tools.searches:Searches.found",
    "read_result": "activities.tools.searches:Searches.read_result",
    "recall": "activities.runs.recalling:Recalling.recall",
    "ask_model": "activities.model.model:Model.asked",
    "check_call": "activities.tools.checks:Checks.check_call",
    "call_tool.read": "activities.tools.tools:Tools.performed",
    "call_tool.send": "activities.tools.tools:Tools.performed",
    "call_tool.verify": "activities.tools.tools:Tools.performed",
    "call_tool.undo": "activities.tools.tools:Tools.performed",
    "act_and_ask": "activities.steps:Steps.act_and_ask",
    "act_and_ask.model": "activities.steps:Steps._decided",
    "settle_effect": "activities.tools.outcomes:Outcomes.settle_effect",
    "load_effects": "activities.tools.outcomes:Outcomes.load_effects",
    "keep_plan": "activities.runs.runs:RunActivities.keep_plan",
    "review": "activities.tools.reviews:Reviews.review",
    "announce": "activities.runs.notifications:Notifications.announce",
    "remember_lines": "activities.runs.runs:RunActivities.remember_lines",
    "close_run": "activities.runs.runs:RunActivities.close_run",
    "carry_over": "activities.runs.runs:RunActivities.carry_over",
    "load_carried": "activities.runs.runs:RunActivities.load_carried",
    "effects.begin": "store.effects.effects:Effects.begin",
    "effects.settle": "store.effects.effects:Effects.settle",
    "effects.resolve": "store.effects.effects:Effects.resolve",
    "store.together": "store.database.waiting:Waiting.write",
    "runs.opened": "store.runs.runs:Runs.opened",
    "runs.add_execution": "store.runs.runs:Runs.add_execution",
    "runs.closed": "store.store:Store.close_run",
    "starts.reserve": "store.standing.starts:Starts.reserve",
    "starts.settle": "store.standing.starts:Starts.settle",
    "begin_subruns": "activities.runs.delegating:DelegationActivities.begin_subruns",
    "end_subruns": "activities.runs.delegating:DelegationActivities.end_subruns",
    "subruns.begin": "store.subruns:Subruns.begin",
    "subruns.opened": "store.subruns:Subruns.opened",
    "subruns.adopt": "store.subruns:Subruns.adopt",
    "events.append": "store.runs.events:Events.append",
    "accepted_lines.keep": "store.accepted_lines:AcceptedLines.keep",
    "outbox.write": "store.notices.outbox:Outbox.write",
    "webhook.send": "gateways.webhooks:Webhook.send",
    "outbox.sent": "store.notices.outbox:Outbox.sent",
    "blobs.put_json": "store.blobs.blobs:Blobs.put_json",
    "blobs.seal_json": "store.blobs.blobs:Blobs.seal_json",
    "records.keep.read": "activities.records:Records.keep",
    "records.keep.send": "activities.records:Records.keep",
    "transcripts.extend": "activities.model.transcript:Transcripts.extend",
    "provider.connect": "toolbox.mcp.provider:McpProvider._connected",
    "provider.request.read": "toolbox.mcp.tool_call:ToolCallRequest.answer",
    "provider.request.send": "toolbox.mcp.tool_call:ToolCallRequest.answer",
    "model.request": "activities.model.sending:complete",
    "workflow_task": "temporalio.worker._workflow:_WorkflowWorker._handle_activation",
    "workflow_task.continued": "temporalio.worker._workflow:_WorkflowWorker._handle_activation",
}


@dataclass(frozen=True)
class Point:
    """Name one moment in the life of a worker."""

    when: When
    place: str
    nth: int = 1
    shape: Shape = "reminders"
    transport: Transport = "http"

    @property
    def name(self) -> str:
        place = self.place if self.shape == "reminders" else f"{self.shape}:{self.place}"
        return f"{self.when}:{place}:{self.nth}{'' if self.transport == 'http' else ':stdio'}"

    @property
    def spec(self) -> str:
        return f"{self.when}:{self.place}:{self.nth}"


def _both(place: str, *numbers: int, shape: Shape = "reminders", transport: Transport = "http") -> list[Point]:
    return [Point(when, place, n, shape, transport) for n in numbers or (1,) for when in ("before", "after")]


POINTS = [
    # The send itself: before the intent, after its commit, immediately before the wire, under way, answered, settled.
    *_both("call_tool.send", 1),
    *_both("effects.begin", 1),
    Point("before", "provider.request.send", 2),
    Point("during", "provider.request.send", 1),
    Point("after", "provider.request.send", 1),
    *_both("records.keep.send", 1),
    *_both("effects.settle", 1),
    # The same where the server is a child of the worker and dies with it.
    Point("after", "effects.begin", 2, transport="stdio"),
    # The activity that makes calls and asks the model: before, between the two, with the decision, and after.
    *_both("act_and_ask", 2),
    *_both("act_and_ask.model", 2),
    # What an activity has kept back and writes in one transaction: before its commit, and after it.
    *_both("store.together", 4),
    # The model.
    *_both("ask_model", 3),
    Point("before", "model.request", 2),
    Point("during", "model.request", 3),
    # Everything else a run does.
    *_both("open_run"),
    Point("after", "search_tools"),
    Point("before", "call_tool.read"),
    Point("after", "events.append", 5),
    Point("before", "close_run"),
    Point("after", "runs.closed"),
    # Between workflow tasks.
    Point("after", "workflow_task", 5),
    # A lost answer is being cleared up.
    Point("before", "settle_effect", 1, shape="lost", transport="stdio"),
    *_both("effects.resolve", 1, shape="lost", transport="stdio"),
    # Effects are being undone.
    Point("before", "call_tool.undo", 2, shape="rollback"),
    Point("after", "provider.request.send", 5, shape="rollback"),
    Point("after", "load_effects", shape="undo_run"),
    Point("after", "effects.settle", 5, shape="undo_run"),
    # A plan.
    Point("before", "check_call", 2, shape="plan"),
    Point("after", "effects.begin", 2, shape="plan"),
]
POSTGRES_POINTS = [
    *_both("effects.begin", 1),
    Point("during", "provider.request.send", 1),
    Point("before", "effects.settle", 1),
    Point("before", "act_and_ask.model", 2),
    *_both("store.together", 4),
    Point("after", "events.append", 5),
    Point("after", "effects.settle", 5, shape="undo_run"),
]
"""Those at which the store matters most, which `make test` also tries on Postgres; `make soak` tries them all there."""
SWITCH_POINTS = [
    Point("after", "carry_over"),
    Point("before", "workflow_task.continued"),
    Point("after", "load_carried"),
    Point("before", "carry_over"),
    Point("after", "workflow_task.continued"),
    Point("before", "load_carried"),
    *_both("runs.add_execution"),
]
"""Those at which a run continues as a new execution."""
MORE_POINTS = [
    *_both("call_tool.send", 3),
    *_both("effects.begin", 3),
    *_both("effects.settle", 3),
    Point("before", "effects.begin", 2, transport="stdio"),
    Point("before", "provider.request.send", 1, transport="stdio"),
    Point("during", "provider.request.send", 3, transport="stdio"),
    Point("after", "provider.request.send", 2, transport="stdio"),
    *_both("effects.settle", 2, transport="stdio"),
    *_both("ask_model", 1),
    Point("after", "model.request", 4),
    *_both("transcripts.extend", 3),
    *_both("runs.opened"),
    Point("before", "search_tools"),
    Point("after", "call_tool.read"),
    Point("before", "provider.connect"),
    Point("before", "provider.request.read", 2),
    Point("after", "records.keep.read", 1),
    *_both("read_result"),
    *_both("announce"),
    Point("before", "blobs.put_json", 7),
    Point("after", "blobs.seal_json", 2),
    Point("after", "close_run"),
    Point("before", "runs.closed"),
    *_both("workflow_task", 1),
    Point("before", "workflow_task", 5),
    *_both("workflow_task", 9),
    Point("after", "settle_effect", 1, shape="lost", transport="stdio"),
    *_both("call_tool.verify", 1, shape="lost", transport="stdio"),
    Point("after", "call_tool.undo", 2, shape="rollback"),
    Point("after", "effects.begin", 5, shape="rollback"),
    Point("before", "load_effects", shape="undo_run"),
    Point("before", "call_tool.undo", 2, shape="undo_run"),
    Point("after", "check_call", 2, shape="plan"),
]
"""As good as the first ones, and left to `make soak` for their time."""
TREE_POINTS = [
    *_both("begin_subruns", 2, shape="tree"),
    *_both("end_subruns", 2, shape="tree"),
    *_both("subruns.adopt", 2, shape="tree"),
    *_both("subruns.begin", 1, shape="tree"),
    *_both("subruns.opened", 2, shape="tree"),
    *_both("effects.begin", 4, shape="tree"),
    Point("during", "provider.request.send", 3, shape="tree"),
    Point("after", "provider.request.send", 3, shape="tree"),
    *_both("effects.settle", 3, shape="tree"),
    *_both("act_and_ask", 3, shape="tree"),
    *_both("act_and_ask.model", 3, shape="tree"),
    *_both("store.together", 9, shape="tree"),
    *_both("ask_model", 3, shape="tree"),
    Point("before", "model.request", 6, shape="tree"),
    *_both("open_run", 3, shape="tree"),
    *_both("close_run", 2, shape="tree"),
    *_both("runs.closed", 2, shape="tree"),
    *_both("events.append", 9, shape="tree"),
    *_both("workflow_task", 9, shape="tree"),
    Point("after", "workflow_task", 21, shape="tree"),
    *_both("call_tool.undo", 2, shape="tree"),
    Point("after", "effects.settle", 8, shape="tree"),
]
"""Those at which a run dies that has delegated, one of its sub-runs, or the undo of their tree."""
