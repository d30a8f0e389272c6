"""The terminal of a chat: a line to type in, and keys that are heard while a run works."""

import asyncio
import contextlib
import re
import sys
from collections.abc import Generator, Iterable

from prompt_toolkit import PromptSession
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_input
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output.vt100 import Vt100_Output

from backstay.shown import one_line
from gateways.terminal.terminal import Terminal

MOST_TYPED = 100_000
"""The characters that a task may have; a longer paste is refused, and not cut."""
_SHOWN_OF_A_PASTE = 500
_PASTED = re.compile(r"\[pasted \d+: [\d,]+ characters\]")
_ESCAPE_S = 0.1
"""How long a lone Esc is waited for: other keys begin with it, too."""


class ChatTerminal(Terminal):
    """Ask with a line that can be edited, and hear keys while nothing is asked.

    What is typed while nothing is asked is dropped: nobody approves what has not been shown yet.
    """

    def __init__(self) -> None:
        """Use the streams of this process."""
        super().__init__()
        self.steers = asyncio.Event()
        """Set when Esc is pressed."""
        self.leaves = asyncio.Event()
        """Set when Ctrl-C or Ctrl-D is pressed."""
        self._said: set[str] = set()
        self._pastes: dict[str, str] = {}
        """All long ones by what is shown for them: a line that holds one may be asked for again."""
        self._listening = False
        self._paused = False

    def open(self) -> None:
        """Take the terminal; only where there is one."""
        self._input = create_input(sys.stdin)
        output = Vt100_Output.from_pty(sys.stderr)
        # It does not ask where the cursor is: the answer would be typed into what is asked next.
        output.enable_cpr = False
        self._typing: PromptSession[str] = PromptSession(
            input=self._input, output=output, key_bindings=self._bindings(), history=InMemoryHistory()
        )
        self._deciding: PromptSession[str] = PromptSession(
            input=self._input, output=output, key_bindings=self._bindings()
        )

    def say_once(self, text: str, style: str = "") -> None:
        """Print one line, unless it is there since an earlier turn."""
        if text not in self._said:
            self._said.add(text)
            self.say(text, style)

    async def ask(self, question: str, before: Iterable[tuple[str, str]] = ()) -> str | None:
        """Return the line that a person types; None when the person leaves."""
        for line, style in before:
            self.say(line, style)
        return await self._prompt(self._deciding, f"{one_line(question, 2000)} ")

    async def line(self, mark: str) -> str | None:
        """Return what a person says next, which may be asked for again with the arrow keys; None to leave."""
        return await self._prompt(self._typing, mark)

    async def _prompt(self, asked: PromptSession[str], question: str) -> str | None:
        with self._quiet():
            try:
                typed = await asked.prompt_async(FormattedText([("bold", question)]))
            except (EOFError, KeyboardInterrupt):
                return None
        # In one go: what was pasted may itself hold what is shown for another paste.
        return _PASTED.sub(lambda mark: self._pastes.get(mark[0], mark[0]), typed).strip()

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Hear keys within the block, except while something is asked."""
        self.steers.clear()
        self.leaves.clear()
        self._listening = True
        try:
            with self._heard():
                yield
        finally:
            self._listening = False

    @contextlib.contextmanager
    def _heard(self) -> Generator[None]:
        with self._input.raw_mode(), self._input.attach(self._keys):
            yield

    @contextlib.contextmanager
    def _quiet(self) -> Generator[None]:
        """Stop hearing keys, and forget what was typed before the question was there."""
        with contextlib.ExitStack() as stack:
            if self._listening:
                stack.enter_context(self._input.detach())
                stack.enter_context(self._input.cooked_mode())
            self.forget_typed()
            yield

    def forget_typed(self) -> None:
        """Drop what was typed before now, also what was read of it already."""
        clear_typeahead(self._input)
        self._input.flush_keys()
        super().forget_typed()

    def _keys(self) -> None:
        self._hear()
        asyncio.get_running_loop().call_later(_ESCAPE_S, self._hear_escape)

    def _hear(self) -> None:
        self._take([press.key for press in self._input.read_keys()])

    def _hear_escape(self) -> None:
        if self._listening:
            self._take([press.key for press in self._input.flush_keys()])

    def _take(self, keys: list[Keys | str]) -> None:
        if Keys.Escape in keys:
            self.steers.set()
        if Keys.ControlC in keys or Keys.ControlD in keys or self._input.closed:
            self.leaves.set()

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(self._pasted(event.data, event.current_buffer.text))

        @bindings.add(Keys.Escape, eager=True)
        def drop(event: KeyPressEvent) -> None:
            event.current_buffer.reset()

        return bindings

    def _pasted(self, text: str, before: str) -> str:
        """Return what is shown for a string that is pasted; a long one is kept apart, since a line cannot show it."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        # A paste that was taken out of the line again does not count.
        standing = sum(len(pasted) for mark, pasted in self._pastes.items() if mark in before)
        if len(before) + standing + len(text) > MOST_TYPED:
            return f"(pasted {len(text):,} characters, and {MOST_TYPED:,} may be typed: put them in a file) "
        if len(text) <= _SHOWN_OF_A_PASTE:
            return one_line(text, 2 * len(text)) if "\x1b" in text else text
        mark = f"[pasted {len(self._pastes) + 1}: {len(text):,} characters]"
        self._pastes[mark] = text
        return mark
