"""Write arguments as the words of a command line, so that no value can become an option or a file's content."""

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from backstay.errors import ArgumentsInvalid
from toolbox.plugins.captured import Argument
from toolbox.plugins.parameters import Level, Parameter

_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_REST = "..."
_WORD_BYTES = 120_000
"""A little less than the longest word that Linux takes."""


def command_line(levels: Sequence[Level], arguments: Mapping[str, Any]) -> list[str]:
    """Return the words for arguments that fit the schema of these parsers.

    Raises ArgumentsInvalid for what fits the schema and still cannot be written on a command line.
    """
    for level in levels:
        _check_groups(level, arguments)
    risky = _Risky(levels)
    words: list[str] = []
    for level in levels:
        words += [level.command] if level.command is not None else []
        given = [(one, arguments[one.name]) for one in level.present() if arguments.get(one.name) is not None]
        options = [(one, said) for one, value in given if one.argument.options and (said := _option(one, value, risky))]
        # What takes words until the next option stands first, so that something ends it.
        options.sort(key=lambda one: not _open_ended(*one))
        words += [word for _, said in options for word in said]
        places = _places(level, [one for one in given if not one[0].argument.options], risky)
        bare = level is not levels[-1] or (places and places[0] != "--")
        if options and bare and _open_ended(*options[-1]):
            name = options[-1][0].name
            raise ArgumentsInvalid(f"{name}: give it exactly one value; nothing would tell where more of them end")
        words += places
    return words


class _Risky:
    """Know which bare words these parsers would not take for values."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._prefixes = {sign for level in levels for sign in level.parser.prefixes}
        self._files = {sign for level in levels for sign in level.parser.file_prefixes}
        options = {word for level in levels for one in level.parser.arguments for word in one.options}
        self._numbers_are_values = not any(_NUMBER.fullmatch(word) for word in options)

    def check(self, parameter: Parameter, word: str, *, separated: bool = False, free: bool = False) -> str:
        """Return the word. Raises ArgumentsInvalid when the parser would read something else from it."""
        first = word[:1]
        if first in self._files:
            raise ArgumentsInvalid(f"{parameter.name}: a value must not begin with {first!r}, which names a file here")
        number = self._numbers_are_values and _NUMBER.fullmatch(word)
        if first in self._prefixes and not (separated or free or number):
            raise ArgumentsInvalid(f"{parameter.name}: of several values none may begin with {first!r}")
        return word


def _check_groups(level: Level, arguments: Mapping[str, Any]) -> None:
    for members, needed in level.groups():
        given = [one.name for one in members if arguments.get(one.name) not in ((None, False) if one.flag else (None,))]
        if len(given) > 1:
            raise ArgumentsInvalid(f"{given[0]} and {given[1]} exclude each other; give one of them")
        if needed and not given:
            raise ArgumentsInvalid(f"one of {', '.join(one.name for one in members)} is required; add it")


def _option(parameter: Parameter, value: Any, risky: _Risky) -> list[str]:
    argument = parameter.argument
    word = max(argument.options, key=len)
    match argument.kind:
        case "const":
            return [word] if value else []
        case "boolean":
            negative = {f"--no-{one.removeprefix('--')}" for one in argument.options} & set(argument.options)
            positive = [one for one in argument.options if one not in negative]
            return [positive[0] if value else max(negative, key=len)]
        case "count":
            return [word] * value
        case "extend":
            return [f"{word}={_text(parameter, one)}" for one in value]
        case "append":
            return [part for one in value for part in _valued(parameter, word, one, risky)]
        case "store":
            return _valued(parameter, word, value, risky)


def _valued(parameter: Parameter, word: str, value: Any, risky: _Risky) -> list[str]:
    if parameter.argument.nargs == "?" and value is True:
        return [word]
    values = [_text(parameter, one) for one in value] if parameter.argument.many else [_text(parameter, value)]
    if len(values) == 1:
        return [f"{word}={values[0]}"]
    return [word, *(risky.check(parameter, one) for one in values)]


def _open_ended(parameter: Parameter, words: Sequence[str]) -> bool:
    """Say whether a bare word behind these would be taken for one more value."""
    takes_more = parameter.argument.kind in {"store", "append"} and parameter.argument.nargs in {"?", "*", "+", _REST}
    return takes_more and "=" not in words[-1][: len(max(parameter.argument.options, key=len)) + 1]


def _places(level: Level, places: Sequence[tuple[Parameter, Any]], risky: _Risky) -> list[str]:
    """Return the words that are told by their place, behind a `--` wherever a parser understands that."""
    only_rest = len(places) == 1 and places[0][0].argument.nargs == _REST
    separated = not level.parser.commands and not only_rest
    words: list[str] = []
    lengths: dict[str, int] = {}
    for parameter, value in places:
        values = [_text(parameter, one) for one in value] if parameter.argument.many else [_text(parameter, value)]
        lengths[parameter.name] = len(values)
        for word in values:
            free = parameter.argument.nargs == _REST and bool(words)  # all behind the first word is taken as it comes
            words.append(risky.check(parameter, word, separated=separated, free=free))
    _check_places(level, lengths, len(words))
    return ["--", *words] if separated and words else words


def _check_places(level: Level, lengths: Mapping[str, int], count: int) -> None:
    """Distribute the words as argparse does: by the longest match, from left to right."""
    places = [one for one in level.present() if not one.argument.options]
    kinds: dict[int | str | None, str] = {None: "(A)", "?": "(A?)", "*": "(A*)", "+": "(A+)", _REST: "(A*)"}
    pattern = "".join(kinds.get(one.argument.nargs, f"(A{{{one.argument.nargs}}})") for one in places)
    found = re.fullmatch(pattern, "A" * count)
    if found is None or [len(part) for part in found.groups()] != [lengths.get(one.name, 0) for one in places]:
        names = ", ".join(one.name for one in places)
        raise ArgumentsInvalid(
            f"the program could not tell which of {names} each value is for; give all up to the last"
        )


def _text(parameter: Parameter, value: Any) -> str:
    argument = parameter.argument
    word = _spelled(argument, value)
    try:
        size = len(word.encode())
    except UnicodeEncodeError:
        raise ArgumentsInvalid(f"{parameter.name}: a value has characters that cannot be written") from None
    if word == "--" and argument.nargs != _REST:
        raise ArgumentsInvalid(f"{parameter.name}: '--' cannot be a value on a command line")  # parsers drop it
    if "\0" in word:
        raise ArgumentsInvalid(f"{parameter.name}: a value cannot hold a null character")
    if size > _WORD_BYTES:
        raise ArgumentsInvalid(f"{parameter.name}: a value has {size} bytes; at most {_WORD_BYTES} fit a command line")
    return word


def _spelled(argument: Argument, value: Any) -> str:
    match value:
        case _ if argument.type == "json":
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return str(value) if value else ""  # what bool() of a text makes of it
        case float():
            return format(Decimal(repr(value)), "f")  # 1e-07 with a minus would not be taken for a number
        case _:
            return str(value)
