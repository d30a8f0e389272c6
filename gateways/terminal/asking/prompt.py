"""Ask the person at the terminal to decide a request."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.whole import unseen, with_all
from backstay.client import Run
from backstay.errors import BackstayError, DecisionRefused, Unreachable
from backstay.policies.accepted import HOLDS, AcceptedLine
from backstay.policies.learning.alike import Alike
from backstay.settings import Settings
from backstay.shown import shell_words
from gateways.terminal.asking.deciding import decided, form_of, json_or_text
from gateways.terminal.asking.editing import Detached, edited, edits_of
from gateways.terminal.asking.form import fill_in
from gateways.terminal.asking.turns import CallsInTurn
from gateways.terminal.policy import accept_here
from gateways.terminal.render import remembered_lines, request_lines
from gateways.terminal.terminal import Terminal

_KEYS = {
    "approve": ("a", "[a]pprove"),
    "modify": ("e", "[e]dit"),
    "answer": ("a", "[a]nswer"),
    "happened": ("h", "it [h]appened"),
    "did_not_happen": ("o", "it did n[o]t happen"),
    "retry": ("t", "[t]ry again"),
    "reject": ("r", "[r]eject"),
    "reject_stop": ("s", "reject and [s]top the run"),
    "choose": ("c", "[c]hoose for each call"),
}
_REMEMBERED: dict[str, tuple[str, str]] = {
    "run": ("u", "for this r[u]n"),
    "session": ("i", "for this sess[i]on"),
    "always": ("l", "a[l]ways"),
    "never": ("v", "ne[v]er"),
}
"""Keys that decide, and have the decision remembered."""
_MAIN = ("approve", "answer", "happened", "did_not_happen", "retry", "modify", "reject", "choose")
"""What is offered first; the rest is behind a letter of its own."""
_FEW_MORE = 1
_MORE = ("m", "[m]ore choices")
_YES_OR_NO = frozenset({"y", "yes", "ok", "n", "no"})
"""What nobody is taken at their word for who is asked "did it happen, or is it to be sent again?"."""
_WORDS = {
    "y": "approve",
    "yes": "approve",
    "ok": "approve",
    "n": "reject",
    "no": "reject",
    "change": "modify",
    "edit": "modify",
    "stop": "reject_stop",
}
"""Other words for choices than their own, and than those of the menu."""
_OTHERS = {"detach": "d", "quit": "d", "exit": "d", "help": "?", "more": "m", "whole": "w", "other": "o"}
_LETS_GO = frozenset({"run", "session", "always"})
_WHOLE = ("w", "see the [w]hole of it before you approve")
_APPROVES = frozenset({"approve", "choose"})
_OF_PLAN = {"approve": "[a]pprove all of it", "modify": "[e]dit a step", "choose": "[c]hoose steps"}
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
        """The words for the next question, and with its style."""
        self._whole: set[str] = set()
        """The digests of the requests of which all was shown here."""

    async def decide(self, request: ApprovalRequest, beside: Sequence[ApprovalRequest] = ()) -> bool:
        """Show a request and ask until it is decided, here or elsewhere; raises Detached when the person detaches.

        Return False when the person wants to see another of the plans that can be chosen. `beside`: the requests that
        are open, too.
        """
        self.beside = beside
        self.show(request)
        self.terminal.ring()
        if request.kind is RequestKind.QUESTION and "answer" in request.options and await self._asks(request):
            return True
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
                key = "d" if typed is None else _key(request, typed.lower())
                if key == "d":
                    raise Detached
                if key == "o" and _chooses(request):
                    return False
                if await self._decided(request, key):
                    return True
        finally:
            watching.cancel()

    async def _asks(self, request: ApprovalRequest) -> bool:
        """Take the answer to a question at once; return False where the person wants to choose something else."""
        typed = await self.terminal.ask("your answer (press Enter alone for other choices):")
        if typed is None:
            raise Detached
        if not typed:
            return False
        return await self._sent(request, self._say(request, "answer", answer=_read(request, typed)))

    def show(self, request: ApprovalRequest) -> None:
        """Print the request."""
        self.terminal.say()
        self.terminal.show(request_lines(self.run.id, request, self.beside))

    def _note(self, text: str, style: str) -> None:
        self._notes.append((text, style))

    def _hides(self, request: ApprovalRequest) -> bool:
        """Return whether something of a request was not shown yet, so that nobody approves it here."""
        from people.decide.looking import not_shown

        return "approve" in request.options and bool(not_shown(request, self._whole))

    async def _show_whole(self, request: ApprovalRequest) -> None:
        found = await self.run.whole(request)
        whole = with_all(request, found)
        self.terminal.say()
        self.terminal.show(request_lines(self.run.id, whole, self.beside))
        if left := unseen(whole, found):
            self.terminal.say(f"not all of it can be shown here: {left}", "red")
        else:
            self._whole.add(request.digest)

    async def _decided(self, request: ApprovalRequest, key: str) -> bool:
        return await self._sent(request, self._send(request, key))

    async def _sent(self, request: ApprovalRequest, sending: Awaitable[dict[str, Any] | None]) -> bool:
        """Say what became of a decision that is sent; return whether there was one that was taken."""
        from people.decide.deciding import outcome_words

        try:
            answer = await sending
        except Detached:
            raise
        except BackstayError as error:
            self._note(f"not accepted: {error}", "red")
            return False
        if answer is None:
            return False
        said = outcome_words(answer, self.by)
        self.terminal.say("; ".join(said), "green")
        return True

    async def _send(self, request: ApprovalRequest, key: str) -> dict[str, Any] | None:
        choice = {_KEYS[choice][0]: choice for choice in _choices(request)}.get(key, "")
        remembered = {_REMEMBERED[how][0]: how for how in request.may_remember}.get(key, "")
        if self._hides(request):
            if key == _WHOLE[0]:
                await self._show_whole(request)
                return None
            if choice in _APPROVES or remembered in _LETS_GO:
                self._note(f"not shown yet: {unseen(request)}; press {_WHOLE[0]} to see all of it", "yellow")
                return None
        match choice:
            case "approve" | "happened" | "did_not_happen" | "retry":
                return await self._say(request, choice)
            case "reject" | "reject_stop":
                return await self._say(request, choice, comment=await self._why())
            case "modify":
                edits = await edited(self.terminal, self.run, request, self.editor)
                return await self._say(request, choice, edits=edits)
            case "answer":
                return await self._answer(request)
            case "choose":
                return await self._each(request)
            case _ if remembered:
                return await self._remember(request, remembered)
            case _ if key in {_MORE[0], "?"}:
                self.show(request) if key == "?" else None
                self._note(f"more: {', '.join(self._more(request))}", "")
                return None
            case _:
                unclear = "yes and no decide nothing here: " if key in _YES_OR_NO else ""
                letters = "type one of the letters in brackets, or its word; ? shows the request again"
                self._note(f"{unclear}{letters}", "yellow")
                return None

    async def _say(self, request: ApprovalRequest, choice: str, **entered: Any) -> dict[str, Any]:
        """Have a request decided as it was shown; nothing of a change is sent that the person has not seen."""
        return await decided(self.run, request, self.by, choice, shown_whole=self._whole, **entered)

    async def _why(self) -> str:
        comment = await self.terminal.ask("why? (the model reads it; press Enter to give no reason)")
        if comment is None:
            raise Detached
        return comment

    async def _remember(self, request: ApprovalRequest, how: str) -> dict[str, Any] | None:
        tools = ", ".join(dict.fromkeys(call.tool for call in request.calls))
        found = "" if how == "never" else form_of(request).alike
        if isinstance(found, Alike):
            self.terminal.say(f"[s]uch calls are those where {found.words}")
        typed = await self.terminal.ask(f"for a[n]y arguments of {tools}, or for [t]hese only?")
        which = {"n": "any", "t": "these"}.get(typed or "", "alike" if typed == "s" and found else "")
        if not which:
            self._note("nothing was decided", "yellow")
            return None
        if how == "never":
            answer = await self._say(request, "reject_never", comment=await self._why(), remember_arguments=which)
        else:
            answer = await self._say(request, "approve", remember=how, remember_arguments=which)
        from people.decide.deciding import is_remembered_so

        agreed = partial(is_remembered_so, self.run.id, request, how, which)
        await self._show_remembered(answer.get("remembered", []), how, agreed)
        return answer

    async def _show_remembered(
        self, lines: list[dict[str, Any]], how: str, agreed: Callable[[AcceptedLine], bool]
    ) -> None:
        """Say how far a decision is remembered; lines that wait for a writer of policy.yaml hold if this can write."""
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

    async def _each(self, request: ApprovalRequest) -> dict[str, Any] | None:
        """Ask about each call, and send one decision about all of them."""
        form = form_of(request)
        # A changed plan is proposed anew as a whole, so nothing can be said of its other steps beside a change.
        of_plan = request.proposal is not None
        edit = partial(self._edited, request) if "modify" in form.choices and not of_plan else None
        turns = CallsInTurn(self.terminal, form.own_calls(self.by), edit, of_plan=of_plan)
        while await turns.asked():
            try:
                return await self._say(request, **await turns.entry(self._why))
            except DecisionRefused as error:
                if not await self._waits(request.id):
                    raise
                turns.notes = [(f"not accepted: {error}", "red")]
        self._note("nothing was decided", "yellow")
        return None

    async def _edited(self, request: ApprovalRequest, call: RequestedCall) -> tuple[Any, ...]:
        return await edits_of(self.terminal, self.run, request.id, [call], self.editor)

    async def _answer(self, request: ApprovalRequest) -> dict[str, Any] | None:
        if request.kind is RequestKind.ELICITATION and request.answer_schema is not None:
            filled = await fill_in(self.terminal, request.answer_schema)
            if filled is None:
                self._note("nothing was answered", "yellow")
                return None
            return await self._say(request, "answer", answer=filled)
        example = ' as JSON, such as {"max_steps": 5}' if request.kind is RequestKind.BUDGET else ""
        typed = await self.terminal.ask(f"answer{example}:")
        if typed is None:
            raise Detached
        return await self._say(request, "answer", answer=_read(request, typed))

    def _menu(self, request: ApprovalRequest) -> str:
        hides = self._hides(request)
        shown = [_WHOLE[1]] if hides else []
        shown += [self._said(request, choice) for choice in self._offered(request) if choice in _MAIN]
        more = self._more(request)
        shown += more if len(more) <= _FEW_MORE else [_MORE[1]]
        shown += ["see the [o]ther plan"] if _chooses(request) else []
        return ", ".join([*shown, "[d]etach"])

    def _more(self, request: ApprovalRequest) -> list[str]:
        """Return the choices that are not offered first."""
        hides = self._hides(request)
        rest = [self._said(request, choice) for choice in self._offered(request) if choice not in _MAIN]
        return rest + [_REMEMBERED[how][1] for how in request.may_remember if not (hides and how in _LETS_GO)]

    def _offered(self, request: ApprovalRequest) -> list[str]:
        hides = self._hides(request)
        return [choice for choice in _choices(request) if not (hides and choice in _APPROVES)]

    def _said(self, request: ApprovalRequest, choice: str) -> str:
        of_plan = {} if request.proposal is None else _OF_PLAN
        return of_plan.get(choice, _KEYS[choice][1])

    async def _watch(self, request_id: str) -> None:
        """Return when the request no longer waits."""
        while True:
            await asyncio.sleep(_WATCH_S)
            try:
                if not await self._waits(request_id):
                    return
            except Unreachable:
                continue
            except BackstayError:
                return

    async def _waits(self, request_id: str) -> bool:
        return any(request.id == request_id for request in await self.run.pending())


def _read(request: ApprovalRequest, typed: str) -> Any:
    """Return an answer as every door sends it: where nothing says what fits, the text as it was typed."""
    return json_or_text(typed) if form_of(request).fields else typed


def _choices(request: ApprovalRequest) -> list[str]:
    """Return what can be chosen at a prompt, where no part of a single call can be left out."""
    several = len(request.calls) > 1
    return [choice for choice in form_of(request).choices if choice in _KEYS and (several or choice != "choose")]


def _key(request: ApprovalRequest, typed: str) -> str:
    """Return the letter of what was typed, which may be the word of a choice."""
    choices = _choices(request)
    if request.kind is RequestKind.OUTCOME and typed in _YES_OR_NO:
        return typed
    word = _WORDS.get(typed, typed.replace(" ", "_"))
    if word == "approve" and "approve" not in choices and "answer" in choices:
        word = "answer"
    if word in choices:
        return _KEYS[word][0]
    titles = {_plain(_KEYS[choice][1]): _KEYS[choice][0] for choice in choices}
    if typed in titles:
        return titles[typed]
    if typed in request.may_remember:
        return _REMEMBERED[typed][0]
    other = _OTHERS.get(typed, typed)
    return "" if typed == "other" and not _chooses(request) else other


def _plain(words: str) -> str:
    """Return the words of a menu without the brackets around their letters."""
    return words.replace("[", "").replace("]", "")


def _chooses(request: ApprovalRequest) -> bool:
    return request.proposal is not None and bool(request.proposal.alternatives)
