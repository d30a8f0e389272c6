"""Ask about the calls of a request in turn: to approve, reject or change each, in one decision."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from backstay.approvals.approval import RequestedCall
from backstay.approvals.view import call_view
from backstay.errors import DecisionRefused
from gateways.terminal.asking.editing import numbers_in
from gateways.terminal.render import call_lines
from gateways.terminal.terminal import Terminal

_WORDS = {"approve": "a", "reject": "r", "edit": "e", "change": "e", "back": "b"}


class CallsInTurn:
    """Remember what a person has said of each call, until there is an answer for each."""

    def __init__(
        self,
        terminal: Terminal,
        calls: Sequence[RequestedCall],
        edit: Callable[[RequestedCall], Awaitable[Any]] | None,
        *,
        of_plan: bool,
    ) -> None:
        """`edit` lets the person change a call; None where they cannot. `of_plan`: the calls are steps of a plan."""
        self._terminal = terminal
        self._calls = {call.index: call for call in calls}
        self._edit = edit
        self._of_plan = of_plan
        self._said: dict[int, Any] = {}
        """By call: whether it is approved, or what is changed of it."""
        self._before: list[int] = []
        """The calls that were asked about, to go back to."""
        self.notes: list[tuple[str, str]] = []
        """What is told with the next question."""

    async def entry(self, why: Callable[[], Awaitable[str]]) -> dict[str, Any]:
        """Return the answers as the fields of an entry; `why` asks for the reason where all calls are rejected.

        Of a plan other steps remain, which are allowed or which other people decide about.
        """
        left_out = [index for index, said in self._said.items() if said is False]
        edits = tuple(said for said in self._said.values() if not isinstance(said, bool))
        if len(left_out) == len(self._calls) and not self._of_plan:
            return {"choice": "reject", "comment": await why()}
        return {"choice": "modify" if edits else "approve", "edits": edits, "left_out": left_out}

    async def asked(self) -> bool:
        """Ask about one call after the other; return False where the person goes back to the other choices."""
        at = next(self._open, None)
        if at is None:
            # The answers were not accepted, so some of them must change.
            at = self._before.pop()
        shown = None
        while at is not None:
            call = self._calls[at]
            if shown != at:
                self._terminal.show(call_lines(call_view(call)))
                shown = at
            notes, self.notes = self.notes, []
            typed = await self._terminal.ask(f"[{at}] {call.tool}: {self._menu}?", notes)
            if typed is None:
                return False
            word = typed.lower()
            key = _WORDS.get(word, word)
            if key == "b" and not self._before:
                return False
            at = self._before.pop() if key == "b" else await self._next(call, key)
        return True

    async def _next(self, call: RequestedCall, key: str) -> int | None:
        """Take what was typed of a call; return which one is asked about next, or None where nothing is open."""
        match key:
            case "a" | "r":
                self._said[call.index] = key == "a"
            case "e" if self._edit is not None:
                try:
                    (self._said[call.index],) = await self._edit(call)
                except DecisionRefused as error:
                    self.notes = [(f"not accepted: {error}", "red")]
                    return call.index
            case "rest":
                self._said |= dict.fromkeys(self._open, True)
            case _ if key.isdecimal():
                try:
                    (found,) = numbers_in(key, list(self._calls), "call")
                except DecisionRefused:
                    self.notes = [(f"no call {key[:40]} waits for approval", "yellow")]
                    return call.index
                self._before.append(call.index)
                return found
            case _:
                self.notes = [("type one of the letters in brackets, or the number of a call", "yellow")]
                return call.index
        self._before.append(call.index)
        later = (index for index in self._open if index > call.index)
        return next(later, next(self._open, None))

    @property
    def _open(self) -> Iterator[int]:
        """Return the calls without an answer, in order."""
        return (index for index in self._calls if index not in self._said)

    @property
    def _menu(self) -> str:
        edit = ["[e]dit"] if self._edit is not None else []
        return ", ".join(["[a]pprove", "[r]eject", *edit, "approve all the [rest]", "[b]ack, or a number"])
