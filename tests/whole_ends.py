"""Notice how the answers of a model ended, on the wire, and refuse runs that count as completed all the same.

This looks past the product: at the bytes that its HTTP client reads while an activity asks a model.
"""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from temporalio import activity
from temporalio.client import Client, WorkflowExecutionStatus

WHOLE = frozenset({"stop", "tool_calls", "function_call"})
_REASON = re.compile(rb'"finish_reason"\s*:\s*(?:"([^"]*)"|null)')


class _Heard(httpx2.AsyncByteStream):
    """Pass a body on, and look at it when it is over."""

    def __init__(self, body: Any, ends: "WholeEnds", run: str) -> None:
        self._body = body
        self._ends = ends
        self._run = run

    async def __aiter__(self) -> AsyncIterator[bytes]:
        heard = bytearray()
        try:
            async for part in self._body:
                heard += part
                yield part
        finally:
            self._ends.note(self._run, bytes(heard))

    async def aclose(self) -> None:
        await self._body.aclose()


class WholeEnds:
    """Hold how the last answer of each run ended."""

    def __init__(self) -> None:
        self.last: dict[str, str] = {}
        """By workflow: the finish reason; empty where the answer has none."""

    def listen(self, clients: list[Any]) -> None:
        """Look at whatever these clients of model endpoints read."""
        for client in clients:
            client._client.event_hooks["response"].append(self._hear)  # no public way leads to it

    async def _hear(self, response: httpx2.Response) -> None:
        if activity.in_activity() and response.status_code < 400:
            response.stream = _Heard(response.stream, self, activity.info().workflow_id or "")

    def note(self, run: str, body: bytes) -> None:
        """Note how an answer ended; what is no completion says nothing."""
        if b'"choices"' in body:
            reasons = [reason.decode("utf-8", "replace") for reason in _REASON.findall(body)]
            self.last[run] = next(filter(None, reversed(reasons)), "")

    async def assert_none_is_taken_for_whole(self, client: Client) -> None:
        """Raise AssertionError for a run that completed though the last answer did not end as a whole one does."""
        for run, reason in self.last.items():
            if reason in WHOLE:
                continue
            handle = client.get_workflow_handle(run)
            if (await handle.describe()).status is not WorkflowExecutionStatus.COMPLETED:
                continue
            result = await handle.result()
            completed = isinstance(result, dict) and result.get("outcome") == "completed"
            assert not completed, f"{run} is completed, and the last answer ended with {reason or 'no reason'!r}"
