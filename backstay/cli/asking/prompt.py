"""Ask the person at the terminal to decide a request."""

import asyncio
import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from backstay.approvals.approval import ApprovalRequest, CallVerdict, RequestKind
from backstay.approvals.proposal import Proposal
from backstay.approvals.whole import unseen, with_all
from backstay.cli.asking.editing import Detached, edited
from backstay.cli.asking.form import fill_in
from backstay.cli.policy import accept_here
from backstay.cli.render import call_lines, remembered_lines, request_lines
from backstay.cli.terminal import Terminal
from backstay.client import Run
from backstay.errors import BackstayError, Unreachable
from backstay.policies.accepted import HOLDS, AcceptedLine
from backstay.settings import Settings
from backstay.shown import shell_words

_KEYS = {
    "approve": ("a", "[a]pprove"),
    "modify": ("e", "[e]dit"),
    "answer": ("a", "[a]nswer"),
    "happened": ("h", "it [h]appened"),
    "did_not_happen": ("n", "it did [n]ot happen"),
    "retry": ("y", "tr[y] again"),
    "reject": ("r", "[r]eject"),
}
_REMEMBERED: dict[str, tuple[str, str]] = {
    "run": ("u", "for this r[u]n"),
    "session": ("i", "for this sess[i]on"),
    "always": ("l", "a[l]ways"),
    "never": ("v", "ne[v]er"),
}
"""Keys that decide, and have the decision remembered."""
_LETS_GO = frozenset({"run", "session", "always"})
_WHOLE = ("w", "see the [w]hole of it before you approve")
_OF_PLAN = {"[a]pprove": "[a]pprove all of it", "[e]dit": "[e]dit a step"}
_WATCH_S = 1.0


class Prompt:
    """Show requests and send what the person decides."""

    def __init__(self, terminal: Terminal, run: Run, settings: Settings, *, by: str, editor: str | None) -> None:
        """Decide requests of one run in the name of one person."""
        self.settings = settings
        self.terminal = terminal
        self.run = run
        self.by = by
        self.editor = editor
        self.beside: Sequence[ApprovalRequest] = ()
        self._notes: list[tuple[str, str]] = []
        """What is said with the next question, and with its style."""
        self._whole: set[str] = set()
        """The digests of the requests of which all was shown here."""

    async def decide(self, request: ApprovalRequest, beside: Sequence[ApprovalRequest] = ()) -> bool:
        """Show a request and ask until it is decided, here or elsewhere; raises Detached when the person detaches.

        Return False when the person wants to see another of the plans that can be chosen. `beside`: the requests that
        are open, too.
        """
        self.beside = beside
        self.show(request)
        watching = asyncio.create_task(self._watch(request.id))
        try:
            while True:
                notes, self._notes = self._notes, []
                asking = asyncio.create_task(self.terminal.ask(f"{self._menu(request)}?", notes))
                await asyncio.wait({asking, watching}, return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    asking.cancel()
                    self.terminal.say()
                    self.terminal.say(f"{request.id} was decided elsewhere, or is no longer needed", "yellow")
                    return True
                typed = asking.result()
                if typed is None or typed.lower() == "d":
                    raise Detached
                if typed.lower() == "o" and _chooses(request):
                    return False
                if await self._decided(request, typed.lower()):
                    return True
        finally:
            watching.cancel()

    def show(self, request: ApprovalRequest) -> None:
        """Print the request."""
        self.terminal.say()
        self.terminal.show(request_lines(self.run.id, request, self.beside))

    def _note(self, text: str, style: str) -> None:
        self._notes.append((text, style))

    def _hides(self, request: ApprovalRequest) -> bool:
        """Return whether something of a request was not shown yet, so that nobody approves it here."""
        seen = f"{request.id} {request.digest}" in self._whole
        return "approve" in request.options and not seen and bool(unseen(request))

    async def _show_whole(self, request: ApprovalRequest) -> None:
        found = await self.run.whole(request)
        whole = with_all(request, found)
        self.terminal.say()
        self.terminal.show(request_lines(self.run.id, whole, self.beside))
        if left := unseen(whole, found):
            self.terminal.say(f"not all of it can be shown here: {left}", "red")
        else:
            self._whole.add(f"{request.id} {request.digest}")

    async def _decided(self, request: ApprovalRequest, key: str) -> bool:
        try:
            answer = await self._send(request, key)
        except Detached:
            raise
        except BackstayError as error:
            self._note(f"not accepted: {error}", "red")
            return False
        if answer is None:
            return False
        again = "; the change is not accepted yet: it is asked again with it, and nothing is sent before that"
        more = again if answer.get("asked_again") else ""
        self.terminal.say(f"{answer.get('state', 'decided')}: {answer.get('verdict')} by {self.by}{more}", "green")
        return True

    async def _send(self, request: ApprovalRequest, key: str) -> dict[str, Any] | None:
        options = {_KEYS[option][0]: option for option in request.options if option in _KEYS}
        if self._hides(request):
            if key == _WHOLE[0]:
                await self._show_whole(request)
                return None
            if options.get(key) == "approve" or key in {"c", *(_REMEMBERED[how][0] for how in _LETS_GO)}:
                self._note(f"not shown yet: {unseen(request)}; press {_WHOLE[0]} to see all of it", "yellow")
                return None
        match options.get(key):
            case "approve":
                return await self._approve(request)
            case "modify":
                return await self._change(request)
            case "answer":
                return await self._answer(request)
            case "happened" | "did_not_happen" | "retry" as verdict:
                return await self.run.settle(request.id, verdict, by=self.by)
            case "reject":
                return await self._reject(request, stop=False)
            case _:
                return await self._other(request, key)

    async def _change(self, request: ApprovalRequest) -> dict[str, Any]:
        """Have the request asked again with what the person changes; nothing is sent that they have not seen."""
        edit = await edited(self.terminal, self.run, request, self.editor)
        more: dict[str, Any] = {} if request.proposal is not None else {"ask_again": True}
        changed, without = {edit.call: edit.arguments}, {edit.call: edit.without}
        digest = request.args_digest or None
        return await self.run.modify(request.id, changed, by=self.by, without=without, args_digest=digest, **more)

    async def _other(self, request: ApprovalRequest, key: str) -> dict[str, Any] | None:
        if key == "s" and request.calls and "reject" in request.options:
            return await self._reject(request, stop=True)
        remembered = {_REMEMBERED[how][0]: how for how in request.may_remember}
        if key in remembered:
            return await self._remember(request, remembered[key])
        if key == "c" and len(request.calls) > 1 and "approve" in request.options:
            return await self._each(request)
        self.show(request) if key == "?" else self._note("type one of the letters in brackets", "yellow")
        return None

    async def _remember(self, request: ApprovalRequest, how: str) -> dict[str, Any] | None:
        tools = ", ".join(dict.fromkeys(call.tool for call in request.calls))
        typed = await self.terminal.ask(f"for a[n]y arguments of {tools}, or for [t]hese only?")
        if typed not in {"n", "t"}:
            self._note("nothing was decided", "yellow")
            return None
        more: dict[str, Any] = {"remember": how, "remember_arguments": "any" if typed == "n" else "these"}
        deciding = self._reject(request, stop=False, **more) if how == "never" else self._approve(request, **more)
        answer = await deciding
        if answer is not None:
            await self._show_remembered(answer.get("remembered", []), how, partial(self._agreed, request, more))
        return answer

    async def _show_remembered(
        self, lines: list[dict[str, Any]], how: str, agreed: Callable[[AcceptedLine], bool]
    ) -> None:
        """Say how far a decision is remembered; what waits for somebody who can write policy.yaml holds if this can."""
        waiting = [line["line"] for line in lines if line["waits"]]
        try:
            accepted = bool(waiting) and await accept_here(self.settings, waiting, self.by, agreed)
        except BackstayError as error:
            self.terminal.say(f"not accepted here: {error}", "yellow")
            accepted = False
        for line in lines:
            if accepted and line["waits"]:
                holds = f"accepted here, so it is remembered for {HOLDS[how]}"
                self.terminal.say(f"  {holds}: {line['tool']} (line {line['line']})", "green")
                self.terminal.say(f"    forget it with: backstay policy remove {shell_words(line['line'])}")
                continue
            for text, style in remembered_lines(line):
                self.terminal.say(text, style)

    def _agreed(self, request: ApprovalRequest, said: dict[str, str], line: AcceptedLine) -> bool:
        """Return whether a line says what this person has said about these calls."""
        never = said["remember"] == "never"
        exactly = said["remember_arguments"] == "these"
        shown = {(call.tool, call.args_digest if exactly else "") for call in request.calls}
        return (
            (line.tool, line.args_digest) in shown
            and (line.verdict, line.scope) == (("deny", "always") if never else ("allow", said["remember"]))
            and line.request == f"{self.run.id} {request.id}"
        )

    async def _approve(self, request: ApprovalRequest, **more: Any) -> dict[str, Any] | None:
        return await self.run.approve(request.id, by=self.by, args_digest=request.args_digest or None, **more)

    async def _reject(self, request: ApprovalRequest, *, stop: bool, **more: Any) -> dict[str, Any]:
        comment = await self.terminal.ask("why? (the model reads it; press Enter to give no reason)")
        if comment is None:
            raise Detached
        return await self.run.reject(request.id, by=self.by, stop=stop, comment=comment, **more)

    async def _each(self, request: ApprovalRequest) -> dict[str, Any] | None:
        verdicts: dict[int, CallVerdict] = {}
        calls = [
            call for call in request.calls if request.proposal is None or call.index in self._own(request.proposal)
        ]
        for call in calls:
            self.terminal.show(call_lines(call))
            typed = await self.terminal.ask(f"[{call.index}] {call.tool}: [a]pprove or [r]eject?")
            if typed not in {"a", "r"}:
                self._note("nothing was decided", "yellow")
                return None
            verdicts[call.index] = CallVerdict(verdict="approve" if typed == "a" else "reject")
        if all(verdict.verdict == "reject" for verdict in verdicts.values()):
            return await self._reject(request, stop=False)
        if request.proposal is not None:
            left_out = {index: verdict for index, verdict in verdicts.items() if verdict.verdict == "reject"}
            more = {"option": "approve_per_step", "calls": left_out} if left_out else {}
            return await self._approve(request, **more)
        return await self.run.approve(request.id, by=self.by, calls=verdicts, args_digest=request.args_digest or None)

    def _own(self, proposal: Proposal) -> frozenset[int]:
        """Return the steps that still wait, those of this person's own parts if there are some."""
        waiting = [part for part in proposal.parts if not part.complete]
        own = [part for part in waiting if self.by in part.approvers or not part.approvers] or waiting
        return frozenset(index for part in own for index in part.steps)

    async def _answer(self, request: ApprovalRequest) -> dict[str, Any] | None:
        if request.kind is RequestKind.ELICITATION and request.answer_schema is not None:
            filled = await fill_in(self.terminal, request.answer_schema)
            if filled is None:
                self._note("nothing was answered", "yellow")
                return None
            return await self.run.answer(request, filled, by=self.by)
        example = ' as JSON, such as {"max_steps": 5}' if request.kind is RequestKind.BUDGET else ""
        typed = await self.terminal.ask(f"answer{example}:")
        return None if not typed else await self.run.answer(request.id, json_or_text(typed), by=self.by)

    def _menu(self, request: ApprovalRequest) -> str:
        shown = [_KEYS[option][1] for option in request.options if option in _KEYS]
        if self._hides(request):
            shown = [_WHOLE[1], *(said for said in shown if said != _KEYS["approve"][1])]
        if (proposal := request.proposal) is not None:
            shown = [_OF_PLAN.get(said, said) for said in shown]
        if request.calls and "reject" in request.options:
            shown.append("reject and [s]top the run")
        if len(request.calls) > 1 and "approve" in request.options and not self._hides(request):
            shown.append("[c]hoose for each call" if proposal is None else "[c]hoose steps")
        remembered = [how for how in request.may_remember if how not in _LETS_GO or not self._hides(request)]
        shown += [_REMEMBERED[how][1] for how in remembered]
        shown += ["see the [o]ther plan"] if _chooses(request) else []
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


def _chooses(request: ApprovalRequest) -> bool:
    return request.proposal is not None and bool(request.proposal.alternatives)


def json_or_text(typed: str) -> Any:
    """Return the value of valid JSON, and anything else as text."""
    try:
        return json.loads(typed)
    except ValueError:
        return typed
