"""Read the calls out of screens that are lines: those of a terminal and the code blocks of Slack."""

import re
from collections.abc import Iterator, Sequence

from tests.e2e.approvals.doors.decoding import BAR, Shown, named

GOES_ON = "┆ "
_HEAD = re.compile(r"\[(\d+)\] (\S+)  \((read_only|write_safe|restricted_write)\)(  .*)?")
_BARE = re.compile(r"\[(\d+)\] (\S+)")
_FACTS = re.compile(
    r"CHANGED by .*:|can be undone(: .*)?|CANNOT BE UNDONE|REPEATED: .*|changes: .*"
    r"|[^\"]*(arguments not shown|characters clipped|bytes kept apart and not shown|would change not shown).*"
    r"|[\d,]+ characters in all"
)
_TITLE = re.compile(r"(r\d+) \((\w+)\): ")


def unwrapped(lines: Sequence[str], indents: Sequence[int]) -> list[str]:
    """Return lines as they were before they were broken at the margin.

    A line goes on behind a mark of its own, as far in as the line itself stands.
    """
    whole: list[str] = []
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        before = whole[-1] if whole else ""
        if line[indent:].startswith(GOES_ON) and indent == len(before) - len(before.lstrip(" ")) and indent in indents:
            whole[-1] += line[indent:].removeprefix(GOES_ON)
        else:
            whole.append(line)
    return whole


def request_of_terminal(text: str) -> list[str]:
    """Return the lines of the last request that a terminal shows."""
    lines = text.split("\n")
    starts = [at for at, line in enumerate(lines) if _TITLE.match(line)]
    assert starts, f"no request on the screen:\n{text}"
    return unwrapped(lines[starts[-1] :], (0, 2, 4, 8, 10))


def calls_of_terminal(text: str) -> list[Shown]:
    """Return the calls of the last request that a terminal shows."""
    return calls_in(request_of_terminal(text), head=2, body=8)


def calls_in(lines: Sequence[str], *, head: int, body: int, bare: bool = False) -> list[Shown]:
    """Return the calls that lines show; `head` and `body` are how far in a call's head and its arguments stand.

    `bare`: where a head says nothing but the tool.
    """
    found: list[Shown] = []
    pattern = _BARE if bare else _HEAD
    for title, inner in _articles(lines, head, body, pattern):
        match = pattern.fullmatch(title)
        assert match, title
        shown = Shown(int(match[1]), match[2])
        _fill(shown, inner, body)
        found.append(shown)
    return found


def _articles(lines: Sequence[str], head: int, body: int, pattern: re.Pattern[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the head of each call, and the lines that belong to it."""
    title, inner = "", []
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        if indent == head and pattern.fullmatch(line[head:]):
            if title:
                yield title, inner
            title, inner = line[head:], []
        elif title and indent >= body:
            inner.append(line)
        elif title:
            yield title, inner
            title, inner = "", []
    if title:
        yield title, inner


def _fill(shown: Shown, lines: Sequence[str], body: int) -> None:
    """Take the arguments out of the lines of a call, up to the engine's other facts."""
    own = [line[body:] for line in lines if len(line) - len(line.lstrip(" ")) == body]
    first = next((at for at, line in enumerate(own) if _FACTS.fullmatch(line)), len(own))
    for name, value, inline in named([line for line in own[:first] if not line.startswith("the plan says: ")]):
        shown.add(name, value, inline=inline)
    for at, line in enumerate(lines):
        if line[body:].startswith("CHANGED by ") and not line[body:].startswith(BAR):
            shown.changed_by = line[body:].removeprefix("CHANGED by ").removesuffix(":")
            shown.changed = [more.strip() for more in lines[at + 1 :] if len(more) - len(more.lstrip(" ")) > body]
            return
