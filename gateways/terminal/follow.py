"""Follow a run at the terminal: its events, its budget and its requests."""

import asyncio
import contextlib
from collections.abc import Generator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.live import Live

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.verdicts import DECIDES_CALLS
from backstay.approvals.view import commands
from backstay.client import Run
from backstay.client.executions import UNDO
from backstay.client.workers import minded
from backstay.errors import BackstayError
from backstay.task.event import Event
from backstay.task.status import Status
from gateways.terminal.asking.prompt import Prompt
from gateways.terminal.render import event_line, live_panel, request_lines, style_of
from gateways.terminal.terminal import Terminal

_TICK_S = 0.5
_SAID_OTHERWISE = frozenset({"run.started", "search.run", "approval.asked", "run.ended"})


class RunFollower:
    """Show what happens in a run until it ends."""

    tick_s = _TICK_S

    def __init__(self, terminal: Terminal, run: Run, prompt: Prompt, *, yes: str = "", asks: bool = True) -> None:
        """Approve calls without asking for the reason `yes`; ask the person if there is one and `asks` is set."""
        self.terminal = terminal
        self.run = run
        self.prompt = prompt
        self.yes = yes
        self.asks = asks and terminal.interactive
        self.seen: set[str] = set()
        self.shown = 0
        self.status: Status | None = None
        self.budget: dict[str, Any] = {}
        self.live: Live | None = None

    async def follow(self) -> None:
        """Return when the run has ended.

        Raises Detached when the person detaches, Unreachable when Temporal does not come back.
        """
        events: asyncio.Queue[Event] = asyncio.Queue()
        feeding = asyncio.create_task(self._feed(events))
        try:
            with self._panel():
                async with minded(self.run.client, self.run.id, self._mind):
                    while not (feeding.done() and events.empty()):
                        await self._tick(events)
            await feeding
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)

    def _mind(self, why: str) -> None:
        self.terminal.say(why, "yellow")

    async def _feed(self, events: asyncio.Queue[Event]) -> None:
        async for event in self.run.events():
            events.put_nowait(event)

    async def _tick(self, events: asyncio.Queue[Event]) -> None:
        try:
            self._show(await asyncio.wait_for(events.get(), self.tick_s))
        except TimeoutError:
            await self._look()
        while not events.empty():
            self._show(events.get_nowait())

    async def _look(self) -> None:
        """Look at the status after all events so far are shown; requests come after the events that led to them."""
        try:
            self.status = await self.run.status()
            if not self.budget:
                self.budget = (await self.run.budget()).get("budget", {})
        except BackstayError:
            return  # the worker may be back at the next look
        if self.live is not None:
            self.live.update(self._drawn())
        if self.status.last_events and self.status.last_events[-1].n > self.shown:
            return  # those events are shown first
        for request in self.status.pending:
            # A request is shown again when it still lacks a verdict or was escalated.
            mark = f"{request.id} {len(request.decided)} {request.expires_at}"
            if mark not in self.seen:
                self.seen.add(mark)
                if not await self._meet(request, self.status.pending):
                    # The plans beside it are asked about again, also those that were left before.
                    self.seen = {mark}

    def _show(self, event: Event) -> None:
        if event.name == "budget.topped_up":
            self.budget = {}
        self.shown = event.n
        if self.asks and self._said_otherwise(event):
            return
        width = self.terminal.console.width - 1 if self.asks else None
        self.terminal.say(event_line(event, width=width), style_of(event))

    def _said_otherwise(self, event: Event) -> bool:
        """Return whether a person at this terminal reads of an event elsewhere: in a request, a call or the end."""
        if event.name == "model.asked":
            # The action that it decided on comes next; only an answer with which nothing could be done stands alone.
            return bool(event.data.get("actions"))
        if event.name == "undo.ran":
            # An undo names at its end all that it has undone, and by which call.
            return self.run.id.startswith(UNDO)
        decided_here = event.name == "approval.decided" and event.data.get("by") == self.prompt.by
        return decided_here or event.name in _SAID_OTHERWISE

    async def _meet(self, request: ApprovalRequest, pending: Sequence[ApprovalRequest]) -> bool:
        """Show a request, and have it decided if that is possible here; False when the person left it for another."""
        approvable = self.yes and request.kind in DECIDES_CALLS
        if self.asks and not approvable:
            with self._without_panel():
                return await self.prompt.decide(request, pending)
        self.terminal.show(request_lines(self.run.id, request, pending))
        if approvable:
            await self._approve(request)
        else:
            self.terminal.say("  waits for a person; decide with one of:")
            for command in commands(self.run.id, request):
                self.terminal.say(f"    {command}")
        return True

    async def _approve(self, request: ApprovalRequest) -> None:
        try:
            await self.run.approve(request.id, by=self.prompt.by, args_digest=request.args_digest or None)
        except BackstayError as error:
            self.terminal.say(f"not approved: {error}", "red")
        else:
            self.terminal.say(f"approved {request.id} without asking: {self.yes}", "yellow")

    def _drawn(self) -> RenderableType:
        """Return what is below the events."""
        return live_panel(self.status, self.budget)

    @contextlib.contextmanager
    def _without_panel(self) -> Generator[None]:
        """Take the panel away while a person is asked."""
        if self.live is None:
            yield
            return
        # At its next start, Rich erases that many lines above as the panel had last.
        self.live.update("", refresh=True)
        self.live.stop()
        try:
            yield
        finally:
            self.live.start()
            self.live.update(self._drawn())

    @contextlib.contextmanager
    def _panel(self) -> Generator[None]:
        if not self.terminal.console.is_terminal:
            yield
            return
        with Live(self._drawn(), console=self.terminal.console, refresh_per_second=4, transient=True) as live:
            self.live = live
            try:
                yield
            finally:
                self.live = None
