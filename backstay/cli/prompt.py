"""Ask the person at the terminal to decide a request."""

import asyncio
import json
from enum import Enum, auto
from typing import Any

from backstay.approvals.approval import ApprovalRequest, CallVerdict, RequestKind
from backstay.cli.edit import edited
from backstay.cli.render import request_lines
from backstay.cli.terminal import Terminal
from backstay.client import Run
from backstay.errors import BackstayError, Unreachable

_KEYS = {
    "approve": ("a", "[a]pprove"),
    "modify": ("e", "[e]dit"),
    "answer": ("a", "[a]nswer"),
    "happened": ("h", "it [h]appened"),
    "did_not_happen": ("n", "it did [n]ot happen"),
    "retry": ("y", "tr[y] again"),
    "reject": ("r", "[r]eject"),
}
_WATCH_S = 1.0


class Prompted(Enum):
    """Say how asking ended."""

    DECIDED = auto()
    GONE = auto()
    DETACH = auto()


class Prompt:
    """Show requests and send what the person decides."""

    def __init__(self, terminal: Terminal, run: Run, *, by: str, editor: str | None) -> None:
        """Decide about one run in one person's name."""
        self.terminal = terminal
        self.run = run
        self.by = by
        self.editor = editor

    async def decide(self, request: ApprovalRequest) -> Prompted:
        """Show a request and ask until it is decided, here or elsewhere."""
        self.show(request)
        watching = asyncio.create_task(self._watch(request.id))
        try:
            while True:
                asking = asyncio.create_task(self.terminal.ask(f"{self._menu(request)}?"))
                await asyncio.wait({asking, watching}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    asking.cancel()
                    self.terminal.say()
                    self.terminal.say(f"{request.id} was decided elsewhere, or is no longer needed", "yellow")
                    return Prompted.GONE
                typed = asking.result()
                if typed is None or typed.lower() == "d":
                    return Prompted.DETACH
                if await self._done(request, typed.lower()):
                    return Prompted.DECIDED
        finally:
            watching.cancel()

    def show(self, request: ApprovalRequest) -> None:
        """Show what is asked."""
        self.terminal.say()
        for line, style in request_lines(request):
            self.terminal.say(line, style)

    async def _done(self, request: ApprovalRequest, key: str) -> bool:
        try:
            answer = await self._sent(request, key)
        except BackstayError as error:
            self.terminal.say(f"not accepted: {error}", "red")
            return False
        if answer is None:
            return False
        self.terminal.say(f"{answer.get('state', 'decided')}: {answer.get('verdict')} by {self.by}", "green")
        return True

    async def _sent(self, request: ApprovalRequest, key: str) -> dict[str, Any] | None:
        options = {_KEYS[option][0]: option for option in request.options if option in _KEYS}
        match options.get(key):
            case "approve":
                return await self._approved(request)
            case "modify":
                changed = await edited(self.terminal, request, self.editor)
                return await self.run.modify(request.id, changed, by=self.by, args_digest=request.args_digest or None)
            case "answer":
                return await self._answered(request)
            case "happened" | "did_not_happen" | "retry" as verdict:
                return await self.run.settle(request.id, verdict, by=self.by)
            case "reject":
                return await self._rejected(request, stop=False)
            case _:
                return await self._more(request, key)

    async def _more(self, request: ApprovalRequest, key: str) -> dict[str, Any] | None:
        if key == "s" and request.calls and "reject" in request.options:
            return await self._rejected(request, stop=True)
        if key == "c" and len(request.calls) > 1 and "approve" in request.options:
            return await self._each(request)
        self.show(request) if key == "?" else self.terminal.say("choose one of the letters in brackets", "yellow")
        return None

    async def _approved(self, request: ApprovalRequest) -> dict[str, Any] | None:
        hidden = sum(call.clipped for call in request.calls)
        if hidden:
            typed = await self.terminal.ask(f"{hidden} characters are not shown; type yes to approve all the same:")
            if typed != "yes":
                return None
        return await self.run.approve(request.id, by=self.by, args_digest=request.args_digest or None)

    async def _rejected(self, request: ApprovalRequest, *, stop: bool) -> dict[str, Any]:
        comment = await self.terminal.ask("why? (the model reads it; Enter for nothing)") or ""
        return await self.run.reject(request.id, by=self.by, stop=stop, comment=comment)

    async def _each(self, request: ApprovalRequest) -> dict[str, Any] | None:
        verdicts: dict[int, CallVerdict] = {}
        for call in request.calls:
            typed = await self.terminal.ask(f"[{call.index}] {call.tool}: [a]pprove or [r]eject?")
            if typed not in {"a", "r"}:
                self.terminal.say("nothing was decided", "yellow")
                return None
            verdicts[call.index] = CallVerdict(verdict="approve" if typed == "a" else "reject")
        if all(verdict.verdict == "reject" for verdict in verdicts.values()):
            return await self._rejected(request, stop=False)
        return await self.run.approve(request.id, by=self.by, calls=verdicts, args_digest=request.args_digest or None)

    async def _answered(self, request: ApprovalRequest) -> dict[str, Any] | None:
        example = ' as JSON, such as {"max_steps": 5}' if request.kind is RequestKind.BUDGET else ""
        example = " as JSON that fits the form" if request.kind is RequestKind.ELICITATION else example
        typed = await self.terminal.ask(f"answer{example}:")
        return None if not typed else await self.run.answer(request.id, json_or_text(typed), by=self.by)

    def _menu(self, request: ApprovalRequest) -> str:
        shown = [_KEYS[option][1] for option in request.options if option in _KEYS]
        if request.calls and "reject" in request.options:
            shown.append("reject and [s]top the run")
        if len(request.calls) > 1 and "approve" in request.options:
            shown.append("[c]hoose for each call")
        return ", ".join([*shown, "[d]etach"])

    async def _watch(self, request_id: str) -> None:
        """Return when the request no longer waits."""
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                if all(request.id != request_id for request in await self.run.pending()):
                    return
            except Unreachable:
                continue
            except BackstayError:
                return


def json_or_text(typed: str) -> Any:
    """Return what was typed as JSON where it is JSON, else as text."""
    try:
        return json.loads(typed)
    except ValueError:
        return typed
