"""Blocks of limited size, in which text of others is shown literally, and what does not fit is counted.

Such text is in plain text, or between the fences of code, and there only with `&`, `<` and `>` escaped: Slack makes
of it no mention, no link, no broadcast and no formatting.
"""

from collections.abc import Iterable, Sequence

from slack_sdk.models.blocks import (
    Block,
    ContextBlock,
    HeaderBlock,
    MarkdownTextObject,
    PlainTextObject,
    SectionBlock,
)

from backstay.shown import clipped_words

SECTION = 2900
"""Characters of one block; Slack takes 3,000."""
HEADING = 150
MESSAGE = 11_000
"""Characters of a message; Slack refuses a little more than that."""
ENDING = 3500
"""Characters of them that are kept for the end: what is not shown, who may decide, and until when."""
MODAL = 60_000
MOST_BLOCKS = 38
"""Blocks of a message before its end and its buttons; Slack takes 50."""
MOST_MODAL_BLOCKS = 90
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_FENCE = "```"
_GOES_ON = "┆ "
"""Stands before what goes on of a line that fits no block, which could pass for a line of its own at the margin."""
_DEEPEST = 20
"""How far in that mark is at most."""
_LINES = 8
"""Lines of 300 characters that fit a block."""


def escaped(text: str) -> str:
    """Return a string in which Slack finds no mention, no link and no broadcast."""
    return "".join(_ESCAPES.get(sign, sign) for sign in text)


def fitting(text: str, most: int) -> tuple[str, int]:
    """Return an escaped text of at most `most` characters, and how many characters of the text are left out."""
    shown: list[str] = []
    left = most
    for at, sign in enumerate(text):
        said = _ESCAPES.get(sign, sign)
        if len(said) > left:
            return "".join(shown), len(text) - at
        shown.append(said)
        left -= len(said)
    return "".join(shown), 0


def plain(text: str, most: int = SECTION) -> PlainTextObject:
    """Return a string that is shown literally, clipped where it is too long."""
    shown, hidden = fitting(text, most)
    if hidden:
        shown = fitting(text, most - 1)[0] + "…"
    return PlainTextObject(text=shown or "-", emoji=False)


def section(text: str) -> SectionBlock:
    """Return a block of text that is shown literally."""
    return SectionBlock(text=plain(text))


def code(lines: Sequence[str]) -> SectionBlock:
    """Return a block of lines as code; they must be escaped and free of fences."""
    return SectionBlock(text=MarkdownTextObject(text=f"{_FENCE}\n{chr(10).join(lines)}\n{_FENCE}", verbatim=True))


def literally(text: str) -> list[Block]:
    """Return a string as blocks that show it literally; of one that is too long for a message, how much is left out."""
    page, lines = BlockPage(characters=MESSAGE - ENDING), text.split("\n")
    for start in range(0, len(lines), _LINES):
        page.say("\n".join(lines[start : start + _LINES]))
    page.end()
    page.fine(clipped_words(page.hidden) if page.hidden else "")
    return page.blocks


class BlockPage:
    """Fill blocks one after the other, and count what does not fit."""

    def __init__(self, *, characters: int = MESSAGE - ENDING, most_blocks: int = MOST_BLOCKS) -> None:
        """Begin empty."""
        self.blocks: list[Block] = []
        self.hidden = 0
        """How many characters are not shown."""
        self._left = characters
        self._most = most_blocks

    def end(self) -> None:
        """Begin the end, for which there is room in any case."""
        self._left = max(self._left, 0) + ENDING
        self._most += 8

    def head(self, text: str) -> None:
        """Add a heading of our own words."""
        self.blocks.append(HeaderBlock(text=plain(text, HEADING)))

    def say(self, text: str) -> None:
        """Add a paragraph."""
        if text and (shown := self._fit(text)):
            self.blocks.append(SectionBlock(text=PlainTextObject(text=shown, emoji=False)))

    def fine(self, *texts: str) -> None:
        """Add small lines, as far as there are any."""
        text = "\n".join(filter(None, texts))
        if text and (shown := self._fit(text)):
            self.blocks.append(ContextBlock(elements=[PlainTextObject(text=shown, emoji=False)]))

    def ours(self, text: str) -> None:
        """Add small words of our own, in Slack's markup; nothing that others wrote may be in them."""
        if text:
            self.blocks.append(ContextBlock(elements=[MarkdownTextObject(text=text, verbatim=True)]))

    def code(self, lines: Iterable[str]) -> None:
        """Add lines as code, over as many blocks as they need."""
        held: list[str] = []
        size = 0
        for line in lines:
            cut = False
            for part in _parts(_unfenced(line)):
                said = escaped(part)
                if held and size + len(said) + 1 > SECTION - 2 * len(_FENCE) - 2:
                    self._add_code(held)
                    held, size = [], 0
                # The rest of a line whose beginning did not fit would seem to belong to the line before it.
                cut = cut or len(said) + 1 > self._left - size or len(self.blocks) >= self._most
                if cut:
                    self.hidden += len(part)
                    continue
                held.append(said)
                size += len(said) + 1
        self._add_code(held)

    def _add_code(self, lines: list[str]) -> None:
        if lines:
            self._left -= sum(len(line) + 1 for line in lines)
            self.blocks.append(code(lines))

    def _fit(self, text: str) -> str:
        if len(self.blocks) >= self._most:
            self.hidden += len(text)
            return ""
        shown, hidden = fitting(text, min(SECTION, self._left))
        self.hidden += hidden
        self._left -= len(shown)
        return shown

    @property
    def unseen(self) -> str:
        """Return how people are told that something is not shown; empty when everything is."""
        return f"{clipped_words(self.hidden)}; Show all shows the rest" if self.hidden else ""


def _unfenced(line: str) -> str:
    """Return a line in which no fence can end; the third of three backticks is written as its code."""
    return line.replace(_FENCE, "``<U+0060>")


def _parts(line: str) -> Iterable[str]:
    """Yield a line in pieces that fit a block even when every character of them is escaped."""
    most = (SECTION - 2 * len(_FENCE) - 2) // len("&amp;")
    if len(escaped(line)) <= SECTION - 2 * len(_FENCE) - 3:
        yield line
        return
    yield line[:most]
    mark = f"{' ' * min(len(line) - len(line.lstrip(' ')), _DEEPEST)}{_GOES_ON}"
    step = most - len(mark)
    for start in range(most, len(line), step):
        yield f"{mark}{line[start : start + step]}"
