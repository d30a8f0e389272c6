"""How templates write times, sums and texts; the template itself escapes hostile parts of a string."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from backstay.approvals.verdicts import verdict_words
from backstay.shown import CLIPPED, LINE_BREAK, MINUTE, for_user, one_line
from backstay.shown import money as dollars

_STEPS = ((86_400, "d"), (3600, "h"), (60, "min"))


def line(value: Any, limit: int = 300) -> str:
    """Return a string on one line, in which every character can be seen."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if not _is_plain(text):
        return one_line(text, limit)
    return text if len(text) <= limit else text[: limit - len(CLIPPED)] + CLIPPED


def visible(value: Any) -> Any:
    """Return a value as templates show it: characters of a string that nobody sees are written as their codes."""
    if not isinstance(value, str) or hasattr(value, "__html__") or _is_plain(value):
        return value
    return "\n".join(one_line(part, 16 * len(part) + 16) for part in value.replace("\r\n", "\n").split("\n"))


def _is_plain(text: str) -> bool:
    """Return whether every character of a string is seen for what it is; most texts are, and need no closer look."""
    bare = text.replace(CLIPPED, "").replace(LINE_BREAK, "")
    return bare.isascii() and bare.isprintable()


def lines(text: str) -> list[str]:
    """Return a string that is shown in one line as the lines that it had."""
    return text.split(LINE_BREAK)


def money(amount: float) -> str:
    """Return a sum of US dollars."""
    return f"{dollars(amount)} USD" if 0 < amount < 1 else f"{amount:,.2f} USD"


def moment(at: float | str) -> str:
    """Return a time as people read it, in UTC; any other value is returned as it is."""
    time = _time(at)
    return line(at, 40) if time is None else time.astimezone(UTC).strftime(MINUTE)


def clock(at: float | str) -> str:
    """Return the time of day, in UTC; any other value is returned as it is."""
    time = _time(at)
    return line(at, 40) if time is None else time.astimezone(UTC).strftime("%H:%M:%S")


def stamp(at: float | str) -> str:
    """Return a time as programs read it; empty for what is not a time."""
    time = _time(at)
    return "" if time is None else time.isoformat(timespec="seconds")


def span(seconds: float) -> str:
    """Return how long something lasts, in its largest unit."""
    for size, name in _STEPS:
        if abs(seconds) >= size:
            return f"{abs(seconds) / size:.0f} {name}"
    return f"{abs(seconds):.0f} s"


def since(at: float, now: float) -> str:
    """Return how long ago a time was, or how far it is ahead."""
    return f"{span(now - at)} ago" if now >= at else f"in {span(at - now)}"


def _time(at: float | str) -> datetime | None:
    try:
        return datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return None


FILTERS: dict[str, Callable[..., Any]] = {
    "user": for_user,
    "dollars": dollars,
    **{each.__name__: each for each in (line, lines, money, moment, stamp, since, span, clock, verdict_words)},
}
