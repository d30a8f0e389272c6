"""Read back what a screen says of a call, by code of its own: escapes are undone, lines are put together again.

A screen shows `{"a": 1}` and the text that spells it alike where both stand over several lines, so a value is read as
what it would have to be: text as text, an object as an object.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from backstay.canonical import with_texts

CODE = re.compile(r"<U\+([0-9A-F]{4,6})>")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")
BREAK, BAR, COLUMN = "⏎", "│", " │ "
ABSENT = object()


@dataclass
class Shown:
    """One call, or step, as a screen shows it: each argument by its name, as it stands there, with its lines."""

    index: int
    tool: str
    arguments: dict[str, list[str]] = field(default_factory=dict)
    inline: dict[str, bool | None] = field(default_factory=dict)
    """Whether a value stood on the line of its name; None where a screen does not tell."""
    changed: list[str] = field(default_factory=list)
    changed_by: str = ""
    values: dict[str, Any] | None = None
    """The arguments themselves, where they were shown as JSON."""
    escaped: bool = True
    """Whether the texts of that JSON have their signs written out."""

    def add(self, name: str, lines: list[str], *, inline: bool | None) -> None:
        assert name not in self.arguments, f"two arguments look like {name!r}: {self}"
        self.arguments[name], self.inline[name] = lines, inline


def plain(text: str) -> str:
    """Return a text as it was before its signs were written out."""
    return CODE.sub(lambda code: chr(int(code[1], 16)), text.replace(BREAK, "\n"))


def plain_all(value: Any) -> Any:
    return with_texts(value, plain, names=True)


def read(shown: Shown, like: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that a screen showed; `like` says only of what type each one is."""
    if shown.values is not None:
        return _typed(plain_all(shown.values) if shown.escaped else shown.values, like)
    found = {}
    for said, lines in shown.arguments.items():
        name = name_of(said)
        found[name] = _value(lines, like.get(name, ABSENT), inline=shown.inline[said])
    return found


def _typed(value: Any, like: Any) -> Any:
    """Return a value in which numbers too long for JSON readers, which are shown as text, are numbers again."""
    match value, like:
        case dict(), dict():
            return {name: _typed(item, like.get(name)) for name, item in value.items()}
        case list(), list():
            return [_typed(item, other) for item, other in zip(value, [*like, *[None] * len(value)], strict=False)]
        case str(), int() | float() if not isinstance(like, bool) and _NUMBER.fullmatch(value):
            return json.loads(value)
        case _:
            return value


def name_of(said: str) -> str:
    """Return the name that stands on a screen so, in quotes where it could be taken for something else."""
    return plain(json.loads(said) if said.startswith('"') else said)


def _value(lines: list[str], like: Any, *, inline: bool | None) -> Any:
    if inline is None:
        # One line may be an object with one name; a text of several lines never is one line.
        inline = len(lines) == 1 and (not isinstance(like, dict | list) or _is_json(lines[0]))
    return _on_its_line(lines[0], like) if inline else _over_lines(lines, like)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except ValueError:
        return False


def _on_its_line(text: str, like: Any) -> Any:
    if isinstance(like, str):
        return plain(json.loads(text) if text.startswith('"') else text)
    try:
        return _typed(plain_all(json.loads(text)), like)
    except ValueError:
        return plain(text)


def _over_lines(lines: list[str], like: Any) -> Any:
    match like:
        case dict():
            return {
                name_of(name): _value(inner, like.get(name_of(name), ABSENT), inline=inline)
                for name, inner, inline in named(lines)
            }
        case list() if not lines[0].startswith("[0]:"):
            head, *rows = ([cell.strip() for cell in line.split(COLUMN)] for line in lines)
            return [
                {
                    name_of(name): _on_its_line(
                        cell, (row_like if isinstance(row_like, dict) else {}).get(name_of(name), ABSENT)
                    )
                    for name, cell in zip(head, row, strict=True)
                }
                for row, row_like in zip(rows, [*like, *[{}] * len(rows)], strict=False)
            ]
        case list():
            found = list(named(lines))
            assert [name for name, _, _ in found] == [f"[{at}]" for at in range(len(found))], lines
            return [
                _value(inner, item, inline=inline)
                for (_, inner, inline), item in zip(found, [*like, *[ABSENT] * len(found)], strict=False)
            ]
        case _:
            return plain("\n".join(lines))


def named(lines: list[str]):
    """Yield what lines say: each name with its value's lines, and whether that stands on the line of the name."""
    held: tuple[str, list[str], bool] | None = None
    for line in lines:
        if line.startswith(BAR):
            assert held is not None, f"a bar without a name before it: {lines}"
            assert not held[2], f"a bar behind a whole value: {lines}"
            held[1].append(unbarred(line))
            continue
        if held is not None:
            yield held
        name, rest = _head(line)
        held = (name, [rest] if rest else [], bool(rest))
    if held is not None:
        yield held


def unbarred(line: str) -> str:
    return line.removeprefix(BAR).removeprefix(" ")


def _head(line: str) -> tuple[str, str]:
    """Return the name at the start of a line, as it stands there, and what follows."""
    if line.startswith('"'):
        _, end = json.JSONDecoder().raw_decode(line)
        name, rest = line[:end], line[end:]
    else:
        name, colon, rest = line.partition(":")
        rest = colon + rest
    assert rest == ":" or rest.startswith(": "), f"no name and value: {line!r}"
    return name, rest[2:]
