"""The extension `io.modelcontextprotocol/tasks`: offer it with calls that can be followed, and follow its tasks.

A server that was offered it may answer a call by a task, and is asked about that until it ends. Everything that it says
of a task is a stranger's word: an id, a time or a state that makes no sense has a bound or an error here.
"""

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, InputRequiredResult, Request, Result
from pydantic import ValidationError

from backstay.errors import OutcomeUnknown
from backstay.shown import message_line
from toolbox.mcp.connection import McpConnection
from toolbox.mcp.elicitation import elicit_results, input_required, readable_requests
from toolbox.mcp.errors import of_fault, of_protocol_error, worded
from toolbox.mcp.http_transport import HttpExchange, current
from toolbox.mcp.streams import FOLLOWS, WHOLE
from toolbox.providers.answer import Answer, TaskState, answer_of, refused
from toolbox.providers.elicitation import InputRequired
from toolbox.providers.server_tasks import TaskGone, TaskRequest, marks_of

MOST_ID = 2_000
"""Bytes of the id of a task, which goes out with each request about it."""
USUAL_POLL_S = 2.0
LEAST_POLL_S, MOST_POLL_S = 1.0, 300.0
_SAID = 200
_NOT_OFFERED = "the server asks for sampling or for roots, which are not available to servers"
_ENDS_ANEW = frozenset({"task", "input_required"})


class _TaskRequest(Request[dict[str, Any], str]):
    """Ask about one task; over HTTP its id is in a header too, by which it is routed."""

    name_param = "taskId"


def is_task(said: Any) -> bool:
    """Return whether the result of a call is a task instead of an answer."""
    return isinstance(said, dict) and said.get("resultType") == "task"


def task_of(said: Mapping[str, Any]) -> TaskState:
    """Return the task that a server has begun for a call; raises OutcomeUnknown for one that cannot be followed."""
    name = said.get("taskId")
    if not isinstance(name, str) or not name:
        raise OutcomeUnknown("the server answered by a task without an id")
    if (size := len(name.encode(errors="replace"))) > MOST_ID:
        raise OutcomeUnknown(f"the server answered by a task whose id has {size:,} bytes; {MOST_ID:,} are the most")
    return _state(name, said)


async def ask_about(connection: McpConnection, request: TaskRequest, *, over_http: bool) -> Answer:
    """Send one request about a task, and return the task, or what it came to.

    Raises TaskGone, and NotSent or OutcomeUnknown where another try may find out more.
    """
    params: dict[str, Any] = {"taskId": request.id, "_meta": {FOLLOWS: True}}
    if request.reply is not None:
        results = elicit_results(request.reply)
        params["inputResponses"] = {
            key: result.model_dump(mode="json", by_alias=True, exclude_none=True) for key, result in results.items()
        }
    ends = asyncio.get_running_loop().time() + request.deadline_s
    exchange = HttpExchange(ends=ends) if over_http else None
    token = current.set(exchange)
    try:
        async with asyncio.timeout_at(ends):
            asked = _TaskRequest(method=f"tasks/{request.action}", params=params)
            result = await connection.client.session.send_request(asked, Result, request.deadline_s + 1)
    except TimeoutError:
        raise OutcomeUnknown(f"no answer about the task within {request.deadline_s:g} s", timed_out=True) from None
    except MCPError as error:
        raise _refusal(error, exchange) from None
    except Exception as error:  # any other value is not an answer
        raise TaskGone(str(of_fault(error))) from None
    finally:
        current.reset(token)
    if request.action != "get":
        return Answer(success=False, task=TaskState(id=request.id, poll_s=LEAST_POLL_S))
    return _answer(request, (result.meta or {}).get(WHOLE))


def _refusal(error: MCPError, exchange: HttpExchange | None) -> Exception:
    """Return what the refusal of a request about a task means; a server's own "no" will not change."""
    try:
        of_protocol_error(error.code, worded(error), exchange)
    except Exception as passing:  # it may be another one the next time
        return passing
    said = f"the server says of its task: {message_line(error.message, _SAID)}"
    return OutcomeUnknown(said) if error.code == INTERNAL_ERROR else TaskGone(said)


def _answer(request: TaskRequest, said: Any) -> Answer:
    if not isinstance(said, dict):
        raise TaskGone("what the server says of its task cannot be used: it is not an object")
    if said.get("taskId", request.id) != request.id:
        raise TaskGone("asked about its task, the server answered about another one")
    match said.get("status"):
        case "working":
            return Answer(success=False, task=_state(request.id, said))
        case "input_required":
            return _asks(request, said)
        case "completed":
            return _completed(said.get("result"))
        case "failed":
            return _failed(said)
        case "cancelled":
            why = _words(said) or "it says no more"
            ended = refused(f"the server ended its task before it was done: {why}")
            return Answer(success=False, error=ended.error, reason=ended.reason, may_have_acted=True)
        case other:
            raise TaskGone(f"the server's task is in a state that is not known here: {message_line(str(other), 60)}")


def _completed(result: Any) -> Answer:
    if not isinstance(result, dict):
        raise TaskGone("the server's task has ended without a result")
    if result.get("resultType") in _ENDS_ANEW:
        raise TaskGone(f"the server's task has ended in {result['resultType']!r}, which is not an answer to a call")
    try:
        return answer_of(result)
    except Exception as error:  # a hostile value can make any reading fail
        raise TaskGone(str(of_fault(error))) from None


def _failed(said: Mapping[str, Any]) -> Answer:
    error = said.get("error")
    error = error if isinstance(error, dict) else {}
    code, told = error.get("code"), error.get("message")
    words = told if isinstance(told, str) and told else _words(said) or "its task failed without a reason"
    return of_protocol_error(code if type(code) is int else INTERNAL_ERROR, words, None)


def _asks(request: TaskRequest, said: Mapping[str, Any]) -> Answer:
    """Return what the server wants to know and was not told yet; where that is nothing, its task goes on."""
    state = _state(request.id, said)
    try:
        known = InputRequiredResult.model_validate(
            {"resultType": "input_required", "inputRequests": readable_requests(said.get("inputRequests"))},
            by_name=False,
        )
    except ValidationError as error:
        raise TaskGone(str(of_fault(error))) from None
    if not known.input_requests:
        return Answer(success=False, task=state)
    question = input_required(known)
    if question is None:
        return Answer(success=False, task=_state(request.id, said, refused=_NOT_OFFERED))
    new = tuple(asked for asked in question.requests if not marks_of([asked]) <= request.answered)
    return Answer(success=False, task=state, question=InputRequired(requests=new, flat=True) if new else None)


def _state(name: str, said: Mapping[str, Any], *, refused: str = "") -> TaskState:
    poll_s, ttl_s = _seconds(said.get("pollIntervalMs")), _seconds(said.get("ttlMs"))
    return TaskState(
        id=name,
        poll_s=USUAL_POLL_S if poll_s is None else min(max(poll_s, LEAST_POLL_S), MOST_POLL_S),
        ttl_s=None if ttl_s is None else max(0.0, ttl_s),
        said=_words(said),
        refused=refused,
    )


def _seconds(milliseconds: Any) -> float | None:
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        seconds = float(milliseconds) / 1000
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None


def _words(said: Mapping[str, Any]) -> str:
    words = said.get("statusMessage")
    return message_line(words, _SAID) if isinstance(words, str) else ""
