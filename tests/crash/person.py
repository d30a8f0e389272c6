"""A person who approves, and who looks into the mailbox before saying what became of a mail."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio.api.enums.v1 import EventType
from temporalio.client import (
    WorkflowHandle,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.service import RPCError

from backstay.client.failures import TRANSIENT_STATUSES
from tests.engine import Mailbox


class Person:
    """Answer the requests of one run until it ends."""

    def __init__(self, mailbox: Mailbox, timeout_s: float = 180) -> None:
        self.mailbox = mailbox
        self.timeout_s = timeout_s
        self.asked: dict[str, dict[str, Any]] = {}
        self.resent: Counter[str] = Counter()

    async def attend(self, handle: WorkflowHandle[Any, Any]) -> Any:
        """Return the run's Result."""
        ending, until = asyncio.create_task(self.result(handle)), time.monotonic() + self.timeout_s
        try:
            # No timeout around it: Temporal's client takes the cancellation of an update for a lost answer.
            while not ending.done():
                await asyncio.wait([ending], timeout=0.3)
                for request in [] if ending.done() else await self.pending(handle):
                    await self.decide(handle, request)
                assert ending.done() or time.monotonic() < until, await self.standstill(handle)
            return ending.result()
        finally:
            ending.cancel()

    async def standstill(self, handle: WorkflowHandle[Any, Any]) -> str:
        """Tell where a run stands that does not come to its end."""
        history = await handle.fetch_history()
        last = [EventType.Name(event.event_type).removeprefix("EVENT_TYPE_") for event in history.events[-30:]]
        return f"no end of {handle.id} in {self.timeout_s} s; asked: {self.asked}; the last events: {last}"

    async def result(self, handle: WorkflowHandle[Any, Any]) -> Any:
        """Wait for the Result, however long the server is away."""
        # Temporal's client gives up on a server that is away for ten seconds; one that starts again may take longer.
        while True:
            try:
                return await handle.result()
            except RPCError as error:
                if error.status not in TRANSIENT_STATUSES:
                    raise
            await asyncio.sleep(0.3)

    async def pending(self, handle: WorkflowHandle[Any, Any]) -> list[dict[str, Any]]:
        """Return the open requests, as far as anybody tells."""
        # While no worker lives nobody answers; that is no fault of the run.
        with suppress(RPCError, WorkflowQueryFailedError):
            return await handle.query("pending", rpc_timeout=timedelta(seconds=2))
        return []

    async def decide(self, handle: WorkflowHandle[Any, Any], request: dict[str, Any]) -> None:
        """Answer one request."""
        verdict = self._verdict(request)
        decision = {"request_id": request["id"], "verdict": verdict, "by": "ana", "event_id": f"{request['id']}-ana"}
        if verdict == "retry" and request["calls"] and request["id"] not in self.asked:
            self.resent[request["calls"][0]["arguments"]["to"]] += 1
        self.asked[request["id"]] = request
        # A killed worker says nothing: the next look shows whether the decision arrived.
        with suppress(RPCError, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError):
            await handle.execute_update("decide", decision, id=decision["event_id"], rpc_timeout=timedelta(seconds=5))

    def _verdict(self, request: dict[str, Any]) -> str:
        if request["kind"] != "outcome":
            return "approve"
        if not request["calls"]:
            return "retry"
        mail = request["calls"][0]["arguments"]
        query = "SELECT id FROM sent WHERE recipient = ? AND subject = ?"
        return "happened" if self.mailbox.rows(query, mail["to"], mail["subject"]) else "retry"
