"""What spans are called and what they say: the one place that knows OpenTelemetry's conventions for models and agents.

These conventions (`gen_ai.*`) are still in development, so they will change. Nothing here is what a tool is called with
or answers, or what a model is told or says.
"""

from typing import Any

from opentelemetry import trace

from backstay import calls
from backstay.budgets.budget import MICRO
from backstay.client.tracing import WORKFLOW_ID
from backstay.requests import OfRun
from backstay.task.decision import Decision
from backstay.task.event import Event
from backstay.tools.program import RUN_PROGRAM
from backstay.tools.tool import ToolResult

OPERATION = "gen_ai.operation.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
PROVIDER = "gen_ai.provider.name"
MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
TOOL = "gen_ai.tool.name"
ERROR = "error.type"
STEP = "backstay.step"
ATTEMPT = "backstay.attempt"
PURPOSE = "backstay.purpose"
OUTCOME = "backstay.outcome"
COST = "backstay.cost_usd"
EFFECT = "backstay.effect"
_OPENAI = "openai"
"""Whose interface every endpoint speaks."""
_TOLD = ("provider", "tool", "type", "state", "effect", "model", "cost_usd", "summary_ref", "cached")
"""What an event says beyond whom it is about."""

Said = dict[str, Any]


def run_name(workflow: str, task: Any) -> tuple[str, Said]:
    """Return what the span of a run, or of an undo, is called, and what it says from the beginning."""
    if workflow != "RunTask" or not isinstance(task, dict):
        return workflow, {}
    profile, session = task.get("profile"), task.get("session_id")
    named = {AGENT: profile} if isinstance(profile, str) else {}
    return "invoke_agent", {OPERATION: "invoke_agent", **named} | (
        {CONVERSATION: session} if isinstance(session, str) else {}
    )


def run_ended(result: Any) -> Said:
    """Return what a Result adds."""
    if not isinstance(result, dict):
        return {}
    usage = result.get("usage") or {}
    spent = usage.get("models", {}).values()
    said: Said = {OUTCOME: result.get("outcome", ""), COST: usage.get("llm_cost_usd", 0.0)}
    said[INPUT_TOKENS] = sum(model["input_cached_tokens"] + model["input_new_tokens"] for model in spent)
    return said | {OUTPUT_TOKENS: sum(model["output_tokens"] for model in spent)}


def call_began(name: str, ask: Any) -> tuple[str, Said]:
    """Return what the span of an activity is called, and what it says from the beginning."""
    match ask:
        case calls.AskModel():
            said: Said = {OPERATION: "chat", PROVIDER: _OPENAI, MODEL: ask.model, STEP: ask.step}
            said[PURPOSE] = ask.purpose
            called = f"chat {ask.model}"
        case calls.CallTool():
            said = {OPERATION: "execute_tool", TOOL: ask.tool, PURPOSE: ask.purpose, STEP: ask.step}
            said |= {} if ask.effect is None else {EFFECT: ask.effect}
            called = f"execute_tool {ask.tool}"
        case calls.FollowTask():
            said, called = {TOOL: ask.tool, PURPOSE: ask.purpose}, f"{name} {ask.tool}"
            said |= {} if ask.effect is None else {EFFECT: ask.effect}
        case calls.ResumeProgram() | calls.VerifyProgram():
            said, called = {OPERATION: "execute_tool", TOOL: RUN_PROGRAM.name}, f"execute_tool {RUN_PROGRAM.name}"
        case _:
            said, called = {}, name
    session = ask.session_id if isinstance(ask, OfRun) else None
    return called, said | ({CONVERSATION: session} if session is not None else {})


def call_ended(answer: Any) -> Said:
    """Return what the answer of an activity adds."""
    match answer:
        case Decision():
            used = answer.usage
            return {
                INPUT_TOKENS: used.input_cached_tokens + used.input_new_tokens,
                CACHED_TOKENS: used.input_cached_tokens,
                OUTPUT_TOKENS: used.output_tokens,
                COST: used.cost_micro / MICRO,
            }
        case ToolResult():
            said: Said = {OUTCOME: outcome_of(answer)}
            failed = not answer.success and answer.task is None
            return said | {ERROR: answer.error_type or "ToolError"} if failed else said
        case _:
            return {}


def outcome_of(answer: ToolResult) -> str:
    """Return how a call ended, in one of five words."""
    if answer.task is not None:
        return "working"
    if answer.question is not None:
        return "asked"
    if answer.success:
        return "succeeded"
    return "unknown" if answer.error_type in {"OutcomeUnknown", "AnswerDoubtful"} else "failed"


def note_event(event: Event) -> None:
    """Add an event of a run to the span under way, if there is one: who and what, and neither texts nor arguments."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    told: Said = {WORKFLOW_ID: event.task_id, "backstay.user_id": event.user_id, STEP: event.step_index}
    told |= {} if event.session_id is None else {CONVERSATION: event.session_id}
    told |= {
        f"backstay.{name}": event.data[name] for name in _TOLD if isinstance(event.data.get(name), str | int | float)
    }
    span.add_event(event.name, told)
