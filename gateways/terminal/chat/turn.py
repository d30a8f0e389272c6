"""Follow one turn of a chat: its steps, its words while they come, its requests, and what the person adds."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from backstay.approvals.approval import ApprovalRequest
from backstay.client import Run
from backstay.task.event import Event
from backstay.task.result import Result
from gateways.terminal.asking.prompt import Detached, Prompt
from gateways.terminal.chat.screen import ChatTerminal
from gateways.terminal.chat.spoken import Layout, LiveText
from gateways.terminal.follow import RunFollower
from gateways.terminal.terminal import safe

if TYPE_CHECKING:
    from store.deltas import Delta

_LOOK_S = 0.5


class Turn(RunFollower):
    """Show one turn until it ends; Esc steers it, Ctrl-C or Ctrl-D leaves it."""

    tick_s = 0.1

    def __init__(
        self,
        terminal: ChatTerminal,
        run: Run,
        prompt: Prompt,
        spoken: LiveText,
        steer: Callable[[Run], Awaitable[None]],
    ) -> None:
        """Call `steer` when the person wants to say something while the run works."""
        super().__init__(terminal, run, prompt)
        self.chat = terminal
        self._spoken = spoken
        self._steer = steer
        self._layout = Layout(terminal.console.width)
        self._said = ""
        self._stream = self._step = 0
        self._looked = 0.0

    async def follow(self) -> None:
        """Return when the run has ended; raises Detached when the person leaves."""
        with self.chat.listening():
            async with self._spoken.reading():
                await super().follow()
                await self._spoken.finish()
                self._take_pieces()
        self._end_line()

    def say_words(self, text: str) -> None:
        """Show words of the model behind the bar."""
        self._print([*self._layout.add(text), *self._layout.end()])

    def has_said(self, result: Result) -> bool:
        """Return whether the last words are what the run found, so that it need not be shown again."""
        summary = " ".join(result.final_summary.split())
        return bool(summary) and " ".join(self._said.split()).endswith(summary)

    async def _tick(self, events: asyncio.Queue[Event]) -> None:
        if self.chat.leaves.is_set():
            raise Detached
        if self.chat.steers.is_set():
            await self._listen_to_person()
        self._take_pieces()
        await super()._tick(events)

    async def _look(self) -> None:
        if time.monotonic() - self._looked >= _LOOK_S:
            self._looked = time.monotonic()
            await super()._look()

    def _show(self, event: Event) -> None:
        self._take_pieces()
        # Words come at once and events with the next look: one of an earlier step does not cut the line in two.
        if event.step_index >= self._step:
            self._end_line()
        super()._show(event)

    async def _meet(self, request: ApprovalRequest, pending: Sequence[ApprovalRequest]) -> bool:
        # The model said these words before it led to the request.
        self._take_pieces()
        self._end_line()
        return await super()._meet(request, pending)

    def _drawn(self) -> RenderableType:
        begun = self._layout.last
        return Group(safe(begun, "italic"), super()._drawn()) if self._layout.is_begun else super()._drawn()

    async def _listen_to_person(self) -> None:
        self.chat.steers.clear()
        self._end_line()
        with self._without_panel():
            await self._steer(self.run)

    def _take_pieces(self) -> None:
        if self._spoken.trouble:
            self.chat.say_once(f"no live text: {self._spoken.trouble}", "dim")
        while not self._spoken.pieces.empty():
            self._take(self._spoken.pieces.get_nowait())
        if self.live is not None:
            self.live.update(self._drawn())

    def _take(self, piece: "Delta") -> None:
        if piece.stream != self._stream:
            self._end_line()
            if piece.step == self._step and self._said:
                self.terminal.say("the model is asked again; what it said before does not count", "dim")
            self._stream, self._step, self._said = piece.stream, piece.step, ""
        self._said += piece.text
        self._print(self._layout.add(piece.text))

    def _end_line(self) -> None:
        self._print(self._layout.end())

    def _print(self, lines: list[str]) -> None:
        for line in lines:
            self.terminal.say(line, "italic")
