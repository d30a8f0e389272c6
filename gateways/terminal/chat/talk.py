"""The command `chat`: turn after turn, until the person leaves."""

import asyncio
from collections.abc import Iterable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from backstay.client import Backstay, Run
from backstay.errors import BackstayError, Cancelled, RunTimedOut, SettingsInvalid, TaskInvalid
from backstay.settings import Settings
from backstay.shown import shell_words
from backstay.task.result import Result
from gateways.terminal.asking.prompt import Detached, Prompt
from gateways.terminal.chat.screen import MOST_TYPED, ChatTerminal
from gateways.terminal.chat.slash import obey
from gateways.terminal.chat.spoken import LiveText, behind_bar
from gateways.terminal.chat.turn import Turn
from gateways.terminal.chat.turns import Turns, new_session
from gateways.terminal.exit_codes import DETACHED
from gateways.terminal.flags import By, User
from gateways.terminal.memory.reading import ResumedSession, last_session, resumed
from gateways.terminal.render import ending_lines, result_text
from gateways.terminal.run import Filesystem, Limits, ModelName, ProfileName, Shell, Workspace
from gateways.terminal.session import account_name, open_store, session

if TYPE_CHECKING:
    from store.store import Store

SessionId = Annotated[str | None, Parameter(name="--session", help="Go on in this session; a new one by default.")]
Resume = Annotated[
    bool, Parameter(negative="", help="Go on in the session that is remembered last, and show what it answered.")
]
_MARK, _TELL = "you> ", "tell it> "
_SHOWN_TURNS = 3
"""How many of the turns before are shown to a person who comes back."""


async def chat(
    *,
    session_id: SessionId = None,
    resume: Resume = False,
    user: User | None = None,
    budget: Limits = None,
    model: ModelName = None,
    profile: ProfileName = None,
    workspace: Workspace = None,
    filesystem: Filesystem = False,
    shell: Shell = False,
    by: By = None,
) -> int:
    """Talk with an agent: each turn is a run that continues the one before; /help lists what you can type."""
    settings, terminal = Settings.load(), ChatTerminal()
    if not terminal.interactive:
        raise SettingsInvalid("chat: needs a terminal to type at; without one, use: backstay run TEXT")
    terminal.open()
    fields: dict[str, Any] = {"user_id": user, "model": model, "profile": profile, "workspace": workspace}
    fields |= {"filesystem": filesystem or None, "shell": shell or None}
    fields |= {"budget": None if budget is None else budget.model_dump(mode="json", exclude_unset=True)}
    lately = await _resumed(settings, session_id, user or by) if resume else None
    for line in () if lately is None else _told_again(lately, terminal.console.width):
        terminal.say(line, "dim")
    named = session_id or (new_session() if lately is None else lately.session)
    # Where it can be signed: a person who has proved to have started a run may go on from it.
    fields |= {"by": None if settings.approver_key is None else by or account_name()}
    async with session(settings) as backstay, AsyncExitStack() as stack:
        store, why = None, f"there is no store in {settings.home}; set BACKSTAY_HOME to the worker's"
        try:
            store = await stack.enter_async_context(open_store(settings)) if settings.has_store else None
        except BackstayError as error:
            why = str(error)
        turns = Turns(backstay, named, fields)
        await turns.find()
        if store is None:
            terminal.say(f"what the model says is shown when it has said it: {why}", "dim")
        return await Talk(settings, terminal, backstay, turns, by=by or account_name(), store=store).go_on()


def _told_again(lately: ResumedSession, width: int) -> Iterable[str]:
    """Return what is shown of a session that goes on; what a model answered there is behind the bar."""
    first, *answers = resumed(*lately)
    return [first, *(line for answer in answers for line in behind_bar(answer, width))]


async def _resumed(settings: Settings, session_id: str | None, user: str | None) -> ResumedSession:
    if session_id is not None:
        raise SettingsInvalid("--resume: goes on in the session that is remembered last; leave out --session")
    return await last_session(settings, user)


class Talk:
    """Take turns with a person."""

    def __init__(
        self,
        settings: Settings,
        terminal: ChatTerminal,
        backstay: Backstay,
        turns: Turns,
        *,
        by: str,
        store: "Store | None",
    ) -> None:
        """Decide in the name of `by`, and read in the store what a model is saying."""
        self.settings = settings
        self.terminal = terminal
        self.turns = turns
        self.by = by
        self.leaving = False
        self._backstay = backstay
        self._store = store

    async def go_on(self) -> int:
        """Take turns until the person leaves; return the exit code."""
        self._greet()
        try:
            for run in self.turns.runs[-_SHOWN_TURNS:]:
                await self._show_turn(run)
            while not self.leaving:
                line = await self.terminal.line(_MARK)
                if line is None:
                    break
                if line.startswith("/"):
                    await obey(self, line)
                elif line:
                    await self._turn(line)
        except (Detached, asyncio.CancelledError) as reason:
            self._say_goodbye(works=True)
            if isinstance(reason, asyncio.CancelledError):
                raise
            return DETACHED
        self._say_goodbye(works=False)
        return 0

    async def _show_turn(self, run: Run) -> None:
        """Show how a turn before went, or follow it where it still goes on."""
        if await run.is_known_as_open():
            await self._follow(run)
            return
        try:
            result = await run.result()
        except BackstayError as error:
            self.terminal.say(str(error), "red")
            return
        asked = next((event.text for event in result.events if event.name == "run.started"), "")
        if asked:
            self.terminal.say(f"{_MARK}{asked}", "dim")
        for line in behind_bar(result_text(result), self.terminal.console.width):
            self.terminal.say(line, "italic")

    async def change_session(self, name: str) -> None:
        """Go over to another session; raises TaskInvalid for one that cannot be named so."""
        turns = Turns(self._backstay, name, self.turns.fields)
        await turns.find()
        self.turns = turns

    async def _turn(self, text: str) -> None:
        """Start a turn and follow it; an error is shown, and the chat goes on."""
        if len(text) > MOST_TYPED:
            self.terminal.say(f"{len(text):,} characters: a turn takes {MOST_TYPED:,}; put them in a file", "red")
            return
        try:
            run = await self.turns.start(text)
        except BackstayError as error:
            self.terminal.say(str(error), "red")
            return
        await self._follow(run)

    async def _follow(self, run: Run) -> None:
        editor = self.settings.environment.get("VISUAL") or self.settings.environment.get("EDITOR")
        prompt = Prompt(self.terminal, run, self.settings, by=self.by, editor=editor)
        spoken = LiveText(self._backstay, self._store, run.id)
        turn = Turn(self.terminal, run, prompt, spoken, self._steer)
        try:
            await turn.follow()
            self._show_end(turn, await run.result())
        except Detached:
            raise
        except (Cancelled, RunTimedOut, TaskInvalid) as error:
            # Nothing can go on from such a run, so the next turn goes on from the one before.
            self.turns.forget(run)
            self.terminal.say(str(error), "red")
        except BackstayError as error:
            self.terminal.say(str(error), "red")

    def _show_end(self, turn: Turn, result: Result) -> None:
        text = result_text(result)
        if turn.has_said(result):
            text = text.removeprefix(result.final_summary).lstrip("\n")
        for line in text.splitlines():
            turn.say_words(line)
        for line, style in ending_lines(result):
            self.terminal.say(line, "dim" if style == "bold green" else style)

    async def _steer(self, run: Run) -> None:
        """Ask what the run is to be told, and tell it."""
        line = await self.terminal.ask(_TELL.strip())
        if not line:
            self.terminal.say("it has no turns", "dim")
        elif line.startswith("/"):
            await obey(self, line)
        else:
            try:
                await run.message(line, by=self.by)
            except BackstayError as error:
                self.terminal.say(f"not said: {error}", "red")
            else:
                self.terminal.say("it reads that at its next step", "green")
        if self.leaving:
            raise Detached

    def _greet(self) -> None:
        so_far = f", {len(self.turns.runs)} turns so far" if self.turns.runs else ""
        self.terminal.say(f"session {self.turns.session}{so_far}; /help says what can be typed", "bold")

    def _say_goodbye(self, *, works: bool) -> None:
        if works:
            self.terminal.say("the run continues", "yellow")
        self.terminal.say(f"come back with: backstay chat --session {shell_words(self.turns.session)}", "yellow")
