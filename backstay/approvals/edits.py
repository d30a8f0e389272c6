"""Change the arguments of a call: what a change leads to, and how people are shown what differs."""

from typing import Any

from backstay.approvals.admission import DecisionInvalid, changes
from backstay.approvals.approval import CallVerdict
from backstay.approvals.layout import changed_lines
from backstay.quoting import named
from backstay.shown import clipped_words, one_line, shown_arguments
from backstay.stored_texts import REF, is_stored_text

_WHOLE = 200_000
"""Characters of the arguments that are compared; longer texts are kept apart, and compared by their digests."""
_LINE = 400
_MOST_LINES = 60


def edited(arguments: dict[str, Any], seen: dict[str, Any], verdict: CallVerdict, where: str) -> dict[str, Any]:
    """Return the arguments of a call after a change; `seen` are they as they were shown.

    Arguments that are not named stay as they are. Raises DecisionInvalid for an argument that is left out and not
    there.
    """
    given = verdict.arguments or {}
    for name in verdict.without:
        shown = one_line(named(name), 80)
        if name in given:
            raise DecisionInvalid(f"{where}.without: {shown} is given a value as well; name it once")
        if name not in arguments:
            raise DecisionInvalid(f"{where}.without: the call has no argument {shown}; it has {_names(arguments)}")
    kept = {name: value for name, value in arguments.items() if name not in verdict.without}
    return kept | changes(seen, given)


def touched(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return which arguments differ, by name: those with another value, and those that are gone."""
    return [*changes(before, after), *(name for name in before if name not in after)]


def change_lines(before: dict[str, Any], after: dict[str, Any], most: int = 2000) -> tuple[str, ...]:
    """Return what differs between two versions of arguments as history holds them, in lines of `most` characters."""
    names = touched(before, after)
    shown = [
        shown_arguments({name: _told(version[name]) for name in names if name in version}, _WHOLE).arguments
        for version in (before, after)
    ]
    lines: list[str] = []
    hidden, left = 0, most
    for line in changed_lines(*shown):
        cut = one_line(line, _LINE)
        if len(lines) >= _MOST_LINES or len(cut) > left:
            hidden, left = hidden + len(line), 0
            continue
        hidden, left = hidden + max(len(line) - len(cut), 0), left - len(cut)
        lines.append(cut)
    return (*lines, f"{clipped_words(hidden)} of the difference") if hidden else tuple(lines)


def _told(value: Any) -> Any:
    """Return a value with the texts that are kept apart named by their size and digest."""
    match value:
        case dict() if is_stored_text(value):
            return f"text of {value['bytes']:,} bytes ({one_line(value[REF], 12)})"
        case dict():
            return {name: _told(item) for name, item in value.items()}
        case list():
            return [_told(item) for item in value]
        case _:
            return value


def _names(arguments: dict[str, Any]) -> str:
    return one_line(", ".join(arguments), 300) or "none"
