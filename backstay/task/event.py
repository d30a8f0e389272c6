"""The events of a run, in user words."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from pydantic import Field

from backstay.budgets.usage import ModelUsage
from backstay.frozen import Frozen
from backstay.provenance.source import ArgumentSources, sources_data
from backstay.shown import brief_arguments, one_line
from backstay.tools.tool import ToolResult

MCP_NAMES = {
    "search.run": "mcp.search.run",
    "action.called": "mcp.action.called",
    "action.failed": "mcp.action.called",
    "program.ended": "mcp.sandbox.run",
    "summary.created": "mcp.summary.created",
    "budget.exceeded": "mcp.budget.exceeded",
}
"""The names under which tool gateways that log MCP traffic know some of the events."""
MOST_DRAFTS = 2
"""How many events one activity leaves in the store at most."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SAID = 200
_OF_STEP = "step {}: "
_ANSWERED, _FAILED = " -> ", ": "
"""What stands between the tool of a call and how that ended."""


class EventDraft(Frozen):
    """Hold what happened, before the run gives it a number and a time.

    The activity that acts leaves it in the store, and the workflow makes the same one from the activity's answer.
    """

    name: str
    step_index: int = 0
    text: str = ""
    data: dict[str, Any] = Field(default_factory=dict)

    def under(self, draft: int) -> "Event":
        """Return it as an event that is kept under the number of a draft, which is below zero."""
        return Event(n=-draft, at="", **self.model_dump())


def as_drafts(happened: Sequence[EventDraft], draft: int) -> "list[Event]":
    """Return what happened as events that are kept under the numbers of drafts; none where there is no number."""
    return [made.under(draft + index) for index, made in enumerate(happened)] if draft else []


class Event(Frozen):
    """Record one thing that happened; payloads are minimal and redacted."""

    n: int
    """Position in the run's timeline, from 1."""
    name: str
    """One of the names in docs/reference-events.md, such as `approval.asked`."""
    at: str
    """ISO 8601, UTC, from the workflow's clock."""
    task_id: str = ""
    """The workflow id of the run."""
    user_id: str = ""
    session_id: str | None = None
    step_index: int = 0
    text: str = ""
    """One line for people."""
    data: dict[str, Any] = Field(default_factory=dict)
    mcp_name: str | None = None

    @property
    def said(self) -> str:
        """Return `text` without the tool of a call and the number of a step, which `data` and `step_index` tell."""
        text = self.text.removeprefix(_OF_STEP.format(self.step_index))
        if self.name.startswith("action.") and (tool := _tool_shown(str(self.data.get("tool", "")))):
            text = text.removeprefix(tool).removeprefix(_FAILED).removeprefix(_ANSWERED).lstrip()
        return text

    def of(self, run: str, user_id: str, session_id: str | None) -> "Event":
        """Return the whole event, with what all events of a run have in common."""
        return Event(
            n=self.n,
            name=self.name,
            at=self.at,
            task_id=run.rpartition("/")[0],
            user_id=user_id,
            session_id=session_id,
            step_index=self.step_index,
            text=self.text,
            data=self.data,
            mcp_name=MCP_NAMES.get(self.name),
        )


class NumberedDraft(NamedTuple):
    """Give the draft that an activity left in the store its place in the timeline."""

    n: int
    draft: int
    at_ms: int
    """Unix milliseconds."""


class Timeline(Frozen):
    """Answer the `timeline` query."""

    events: tuple[Event, ...] = ()
    first: int = 1
    """The number of the first event that there was."""
    first_kept: int = 1
    events_ref: str | None = None


def milliseconds(at: datetime) -> int:
    """Return a time in unix milliseconds."""
    return (at - _EPOCH) // timedelta(milliseconds=1)


def moment(at_ms: int) -> str:
    """Return a time as events hold it."""
    return (_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds")


def search_draft(query: str, step: int, *, hits: int, catalog: str) -> EventDraft:
    """Return the event of a search."""
    text = f"searched tools: {one_line(query, 60)} -> {hits} found"
    return EventDraft(name="search.run", step_index=step, text=text, data={"hits": hits, "catalog": catalog})


def model_draft(
    model: str, usage: ModelUsage, step: int, actions: list[str], context: str, *, learned: str = ""
) -> EventDraft:
    """Return the event of a model call, with what its endpoint has taught by what it refused."""
    data = {
        "context": context,
        "model": model,
        "input_cached_tokens": usage.input_cached_tokens,
        "input_new_tokens": usage.input_new_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_micro / 1e6,
        "actions": actions,
    }
    text = f"{_OF_STEP.format(step)}asked the model -> {', '.join(actions) or 'nothing that can be done'}"
    if learned:
        data["learned"] = learned
        text = f"{text}; its endpoint refused another form and is asked with {learned}"
    return EventDraft(name="model.asked", step_index=step, text=text, data=data)


def call_drafts(
    tool: str,
    arguments: dict[str, Any],
    result: ToolResult,
    *,
    effect: int | None,
    sources: ArgumentSources | None,
    step: int,
) -> tuple[EventDraft, ...]:
    """Return the events of a call: `action.called` with what came back, or `action.failed` with the reason."""
    brief = result.sent or brief_arguments(arguments)
    data: dict[str, Any] = {"provider": tool.partition(".")[0], "tool": tool, "arguments": brief.arguments}
    data |= {"clipped": True} if brief.clipped or brief.left_out else {}
    data |= {} if effect is None else {"effect": effect}
    data |= {} if result.ref is None else {"summary_ref": result.ref}
    data |= {"undo": result.undo} if effect is not None and result.undo is not None else {}
    data |= {"cached": True} if result.cached else {}
    data |= {} if result.used is None else {"used": result.used.plain()}
    data |= sources_data(sources)
    shown = _tool_shown(tool)
    if not result.success:
        text = f"{shown}{_FAILED}{one_line(result.error or 'it failed', _SAID)}"
        data["type"] = result.error_type or "ToolError"
        data |= {"by": result.rejected_by} if result.rejected_by else {}
        data |= {"timed_out": True} if result.timed_out else {}
        failed = EventDraft(name="action.failed", step_index=step, text=text, data=data)
        return (failed, *_network_drafts(tool, result, step))
    said = one_line(result.snippet or result.size or result.error or "", _SAID)
    text = f"{shown}{_ANSWERED}{said}" if said else shown
    if result.simulated:
        return (EventDraft(name="action.rehearsed", step_index=step, text=f"{text} (not made)", data=data),)
    called = EventDraft(name="action.called", step_index=step, text=text, data=data)
    return (called, *_network_drafts(tool, result, step), *summary_drafts(tool, result, step))


def _tool_shown(tool: str) -> str:
    return one_line(tool, 80)


def _network_drafts(tool: str, result: ToolResult, step: int) -> tuple[EventDraft, ...]:
    """Return an event for the hosts that a command reached, or was refused."""
    used = result.used
    if used is None or not (used.reached or used.refused):
        return ()
    words = [each.words for each in used.reached] + ([f"{used.refused} refused"] if used.refused else [])
    text = one_line(f"{tool} reached {', '.join(words)}" if used.reached else f"{tool}: {words[0]} by the proxy", _SAID)
    data = {"tool": tool, "reached": [each.plain() for each in used.reached], "refused": used.refused}
    return (EventDraft(name="network.reached", step_index=step, text=text, data=data),)


def summary_drafts(what: str, result: ToolResult, step: int) -> tuple[EventDraft, ...]:
    """Return an event when the model is shown a digest instead of a whole answer."""
    if not result.size:
        return ()
    text = f"{one_line(what, 80)}: the model is shown a digest of {result.size}"
    return (EventDraft(name="summary.created", step_index=step, text=text, data={"summary_ref": result.ref}),)
