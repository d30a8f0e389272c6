"""Notice how the answers of a model ended, on the wire, and refuse runs that count as completed all the same.

This looks past the product: at the bytes that its HTTP client reads while an activity asks a model.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, NamedTuple

import httpx2
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

WHOLE: Mapping[str, frozenset[str]] = {
    "chat": frozenset({"stop", "tool_calls", "function_call"}),
    # https://platform.openai.com/docs/api-reference/responses/object
    "responses": frozenset({"completed"}),
    # https://docs.claude.com/en/api/handling-stop-reasons
    "anthropic": frozenset({"end_turn", "tool_use", "stop_sequence"}),
    # https://ai.google.dev/api/generate-content#FinishReason
    "gemini": frozenset({"STOP"}),
}
"""By API: the reasons for which a whole answer ends."""
_REASON = re.compile(rb'"finish_reason"\s*:\s*(?:"([^"]*)"|null)')


class Ended(NamedTuple):
    """How an answer ended: in which API, and for which reason; empty where it says none."""

    api: str
    reason: str


def ended(body: bytes) -> Ended | None:
    """Return how the answer in a body ended, whole or streamed; None where it is no answer of a model."""
    found: Ended | None = None
    for said in _said(body):
        if (end := _end_in(said)) is not None and (end.reason or found is None):
            found = end
    if found is None and b'"choices"' in body:  # in whatever is not quite JSON
        reasons = [reason.decode("utf-8", "replace") for reason in _REASON.findall(body)]
        found = Ended("chat", next(filter(None, reversed(reasons)), ""))
    return found


def _said(body: bytes) -> Iterator[dict[str, Any]]:
    text = body.decode("utf-8", "replace").strip()
    for line in [text] if text[:1] in {"{", "["} else re.split("\r\n|\r|\n", text):
        try:
            said = json.loads(line.removeprefix("data:"))
        except ValueError:
            continue
        if isinstance(said, dict):
            yield said


def _end_in(said: dict[str, Any]) -> Ended | None:
    response = said.get("response") if isinstance(said.get("response"), dict) else said
    match said:
        case {"choices": [{"finish_reason": reason, **choice}, *_]}:
            return Ended("chat", str(_refused(choice) or reason or ""))
        case {"candidates": [{**candidate}, *_]}:
            return Ended("gemini", str(candidate.get("finishReason") or ""))
        case {"promptFeedback": {"blockReason": reason}}:
            return Ended("gemini", str(reason))
        case {"type": "message", "stop_reason": reason} | {"type": "message_delta", "delta": {"stop_reason": reason}}:
            return Ended("anthropic", str(reason or ""))
        case _ if response.get("object") == "response":
            return Ended("responses", _status(response))
        case _:
            return None


def _refused(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    bare = message.get("refusal") and not message.get("content") and not message.get("tool_calls")
    return "refusal" if bare else ""


def _status(response: Mapping[str, Any]) -> str:
    parts = [part for item in response.get("output") or () for part in item.get("content") or ()]
    if any(part.get("type") == "refusal" for part in parts):
        return "refusal"
    status = str(response.get("status") or "")
    return "" if status in {"in_progress", "queued"} else status


class _Heard(httpx2.AsyncByteStream):
    """Pass a body on, and look at it when it is over."""

    def __init__(self, body: Any, ends: "WholeEnds", run: str, number: int) -> None:
        self._body = body
        self._ends = ends
        self._run = run
        self._number = number

    async def __aiter__(self) -> AsyncIterator[bytes]:
        heard = bytearray()
        try:
            async for part in self._body:
                heard += part
                yield part
        finally:
            self._ends.note(self._run, self._number, bytes(heard))

    async def aclose(self) -> None:
        await self._body.aclose()


class WholeEnds:
    """Hold how the last answer of each run ended."""

    def __init__(self) -> None:
        self.last: dict[str, Ended] = {}
        """By workflow."""
        self._answers = 0
        self._newest: dict[str, int] = {}

    async def listen(self, clients: list[Any]) -> None:
        """Look at whatever these clients of model endpoints read."""
        for client in clients:
            opened = await client.opened()
            opened._client.event_hooks["response"].append(self._hear)  # no public way leads to it

    async def _hear(self, response: httpx2.Response) -> None:
        if activity.in_activity() and response.status_code < 400:
            self._answers += 1
            response.stream = _Heard(response.stream, self, activity.info().workflow_id or "", self._answers)

    def note(self, run: str, number: int, body: bytes) -> None:
        """Note how an answer ended; what is not a completion says nothing.

        A body that nobody reads to its end is closed when it is collected, which may be after the next answer: what a
        later answer said stays.
        """
        if number < self._newest.get(run, 0) or (end := ended(body)) is None:
            return
        self._newest[run] = number
        self.last[run] = end

    async def assert_none_is_taken_for_whole(self, client: Client) -> None:
        """Raise AssertionError for a run that completed though the last answer did not end as a whole one does."""
        for run, (api, reason) in self.last.items():
            if reason in WHOLE[api]:
                continue
            handle = client.get_workflow_handle(run)
            if (await handle.describe()).status is not WorkflowExecutionStatus.COMPLETED:
                continue
            result = await handle.result()
            completed = isinstance(result, dict) and result.get("outcome") == "completed"
            assert not completed, f"{run} is completed, and the last answer ended with {reason or 'no reason'!r}"
