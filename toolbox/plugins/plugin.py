"""Describe and run one plugin: a folder with a cli.py, whose parser defines its tools and their command lines."""

import json
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import structlog
from pydantic import ValidationError

from backstay.canonical import with_texts
from backstay.errors import ArgumentsInvalid, BackstayError, ToolUnavailable
from backstay.shown import message_line
from backstay.tools.execution import ExecutionResult
from system.folders import code_state
from toolbox.configuration.load import is_path
from toolbox.plugins.parser import Argument, Level, Parameter, Parser, levels_of, schema_of
from toolbox.processes.runner import Runner

_log = structlog.get_logger("toolbox")
_CLI = "cli.py"
_DESCRIBE_S = 30.0
_DEPTH = 5
_TOOLS = 1000
_SECRET = 8
_ANY_ARGUMENTS = {
    "type": "object",
    "properties": {"args": {"type": "array", "items": {"type": "string"}, "description": "the words behind cli.py"}},
    "additionalProperties": False,
}
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_REST = "..."
_HELP = re.compile(r"(?im)^\s*(?:usage\b(?! error)|(?:synopsis|(?:\w+ )?(?:options|flags|commands|arguments)):?\s*$)")
"""How a line of help begins, or what it is where it is a heading."""
_HELP_CODES = range(3)
_TRACEBACK = "Traceback (most recent call last)"
_JAILED = "its parser is read in a jail, without a network and in a copy of its folder, unless `jail` is false"
_FIRST_ONLY = "it has `jail: false`, so it is described by its first parser; a later one is seen in a jail only"
_WORD_BYTES = 120_000
"""A little less than the longest word that Linux accepts."""


def command_line(levels: Sequence[Level], arguments: Mapping[str, Any]) -> list[str]:
    """Return the words for arguments that fit the schema of these parsers.

    Raises ArgumentsInvalid for arguments that fit the schema but cannot be written on a command line.
    """
    for level in levels:
        _check_groups(level, arguments)
    guard = _WordGuard(levels)
    words: list[str] = []
    for level in levels:
        words += [level.command] if level.command is not None else []
        given = [(found, arguments[found.name]) for found in level.parameters if arguments.get(found.name) is not None]
        options = [
            (found, written)
            for found, value in given
            if found.argument.options and (written := _option(found, value, guard))
        ]
        # An option that takes words until the next option goes first, so that another option ends it.
        options.sort(key=lambda option: not _open_ended(*option))
        words += [word for _, written in options for word in written]
        positionals = _positionals(level, [pair for pair in given if not pair[0].argument.options], guard)
        bare = level is not levels[-1] or (positionals and positionals[0] != "--")
        if options and bare and _open_ended(*options[-1]):
            name = options[-1][0].name
            raise ArgumentsInvalid(f"{name}: give exactly one value; nothing would mark the end of several")
        words += positionals
    return words


class _WordGuard:
    """Refuse bare words that these parsers would not read as values."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self._prefixes = {sign for level in levels for sign in level.parser.prefixes}
        self._files = {sign for level in levels for sign in level.parser.file_prefixes}
        self._numbers_are_values = not any(level.parser.number_options for level in levels)
        self._read_twice = any(level.parser.read_twice for level in levels)

    def check(self, parameter: Parameter, word: str, *, separated: bool = False, free: bool = False) -> str:
        """Return the word. Raises ArgumentsInvalid when the parser would not read it as this value."""
        first = word[:1]
        if first in self._files:
            raise ArgumentsInvalid(f"{parameter.name}: a value must not begin with {first!r}, which names a file here")
        number = self._numbers_are_values and _NUMBER.fullmatch(word)
        if first in self._prefixes and not number:
            if self._read_twice:
                raise ArgumentsInvalid(f"{parameter.name}: a value must not begin with {first!r}, as an option does")
            if not (separated or free):
                raise ArgumentsInvalid(f"{parameter.name}: of several values none may begin with {first!r}")
        return word


def _check_groups(level: Level, arguments: Mapping[str, Any]) -> None:
    for members, needed in level.groups():
        given = [
            member.name
            for member in members
            if arguments.get(member.name) not in ((None, False) if member.flag else (None,))
        ]
        if len(given) > 1:
            raise ArgumentsInvalid(f"{given[0]} and {given[1]} exclude each other; give one of them")
        if needed and not given:
            raise ArgumentsInvalid(f"one of {', '.join(member.name for member in members)} is required; add it")


def _option(parameter: Parameter, value: Any, guard: _WordGuard) -> list[str]:
    argument = parameter.argument
    word = max(argument.options, key=len)
    match argument.kind:
        case "const":
            return [word] if value else []
        case "boolean":
            negative = {f"--no-{option.removeprefix('--')}" for option in argument.options} & set(argument.options)
            positive = [option for option in argument.options if option not in negative]
            return [positive[0] if value else max(negative, key=len)]
        case "count":
            return [word] * value
        case "extend" if isinstance(argument.nargs, int) and argument.nargs > 1:
            return _grouped(parameter, word, value, argument.nargs, guard)
        case "extend":
            return [f"{word}={_text(parameter, item)}" for item in value]
        case "append":
            return [part for item in value for part in _valued(parameter, word, item, guard)]
        case "store":
            return _valued(parameter, word, value, guard)


def _valued(parameter: Parameter, word: str, value: Any, guard: _WordGuard) -> list[str]:
    if parameter.argument.nargs == "?" and value is True:
        return [word]
    values = _texts(parameter, value)
    if len(values) == 1:
        return [f"{word}={values[0]}"]
    return [word, *(guard.check(parameter, text) for text in values)]


def _grouped(parameter: Parameter, word: str, value: Sequence[Any], size: int, guard: _WordGuard) -> list[str]:
    """Return an option once for each group of this many values, which is all that it takes at a time."""
    if len(value) % size:
        raise ArgumentsInvalid(f"{parameter.name}: give {size} values, or several times as many")
    groups = (value[at : at + size] for at in range(0, len(value), size))
    return [part for group in groups for part in _valued(parameter, word, group, guard)]


def _open_ended(parameter: Parameter, words: Sequence[str]) -> bool:
    """Return whether the parser would read a bare word after these as one more value."""
    takes_more = parameter.argument.kind in {"store", "append"} and parameter.argument.nargs in {"?", "*", "+", _REST}
    return takes_more and "=" not in words[-1][: len(max(parameter.argument.options, key=len)) + 1]


def _positionals(level: Level, given: Sequence[tuple[Parameter, Any]], guard: _WordGuard) -> list[str]:
    """Return the words of positional arguments, after a `--` if the parser understands it."""
    only_rest = len(given) == 1 and given[0][0].argument.nargs == _REST
    separated = not level.parser.commands and not only_rest
    words: list[str] = []
    lengths: dict[str, int] = {}
    for parameter, value in given:
        values = _texts(parameter, value)
        lengths[parameter.name] = len(values)
        for word in values:
            free = parameter.argument.nargs == _REST and bool(
                words
            )  # argparse takes all words after the first unchanged
            words.append(guard.check(parameter, word, separated=separated, free=free))
    _check_lengths(level, lengths, len(words))
    return ["--", *words] if separated and words else words


def _check_lengths(level: Level, lengths: Mapping[str, int], count: int) -> None:
    """Check that argparse would assign the words as meant: it matches the longest from left to right."""
    positionals = [parameter for parameter in level.parameters if not parameter.argument.options]
    kinds: dict[int | str | None, str] = {None: "(A)", "?": "(A?)", "*": "(A*)", "+": "(A+)", _REST: "(A*)"}
    repeats = [parameter.argument.nargs for parameter in positionals]
    found = re.fullmatch("".join(kinds.get(nargs, f"(A{{{nargs}}})") for nargs in repeats), "A" * count)
    wanted = [lengths.get(parameter.name, 0) for parameter in positionals]
    if found is None or [len(part) for part in found.groups()] != wanted:
        names = ", ".join(parameter.name for parameter in positionals)
        raise ArgumentsInvalid(f"{names}: the program cannot tell which value is for which; give all up to the last")


def _texts(parameter: Parameter, value: Any) -> list[str]:
    return [_text(parameter, item) for item in (value if parameter.argument.many else [value])]


def _text(parameter: Parameter, value: Any) -> str:
    argument = parameter.argument
    word = _word(parameter.name, _written(argument, value))
    if word == "--" and argument.nargs != _REST:
        raise ArgumentsInvalid(f"{parameter.name}: '--' cannot be a value on a command line")  # parsers drop it
    return word


def _word(name: str, word: str) -> str:
    """Return a word that can be handed to a program. Raises ArgumentsInvalid for one that cannot."""
    try:
        size = len(word.encode())
    except UnicodeEncodeError:
        raise ArgumentsInvalid(f"{name}: a value has characters that cannot be encoded as UTF-8") from None
    if "\0" in word:
        raise ArgumentsInvalid(f"{name}: a value cannot hold a null character")
    if size > _WORD_BYTES:
        raise ArgumentsInvalid(f"{name}: a value has {size} bytes; a command line takes {_WORD_BYTES}")
    return word


def _written(argument: Argument, value: Any) -> str:
    match value:
        case _ if argument.type == "json":
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return str(value) if value else ""  # bool() of any other text is True
        case float() if argument.type == "integer":
            return str(int(value))  # the schema takes 7.0 for 7, and int() does not
        case float():
            return format(Decimal(repr(value)), "f")  # argparse does not read -1e-07 as a number
        case _:
            return str(value)


class Confinement(Protocol):
    """Run Python programs in jails."""

    def confine(self, words: Sequence[str], *, folder: Path, variables: Iterable[str]) -> Awaitable[Sequence[str]]:
        """Return the command that runs a jailed interpreter with these words, in this folder, with these variables.

        The folder is read-only and there is no network. Raises IsolationUnavailable with cause and fix.
        """
        ...

    def try_out(
        self, words: Sequence[str], *, python: Path, folder: Path, variables: Iterable[str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """Yield the command that runs an interpreter of this machine in a jail, in a copy of the folder.

        Its changes there are gone afterwards. Raises IsolationUnavailable with cause and fix.
        """
        ...


class NoJail:
    """Take the place of jails on a machine that has none."""

    async def confine(self, words: Sequence[str], *, folder: Path, variables: Iterable[str]) -> Sequence[str]:
        """Raise ToolUnavailable."""
        raise ToolUnavailable("it must run in a jail, and this machine has none; see `jail` of the plugin")

    @asynccontextmanager
    async def try_out(
        self, words: Sequence[str], *, python: Path, folder: Path, variables: Iterable[str]
    ) -> AsyncGenerator[Sequence[str]]:
        """Raise ToolUnavailable."""
        yield await self.confine(words, folder=folder, variables=variables)


@dataclass(frozen=True, slots=True)
class PluginTool:
    """Hold one tool of a plugin."""

    name: str
    description: str
    schema: dict[str, Any] = field(repr=False)
    levels: tuple[Level, ...] | None = field(default=None, repr=False)
    """How its arguments are written; without levels, the arguments are the words themselves."""

    def words(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the command line, from cli.py on. Raises ArgumentsInvalid for values that it cannot express."""
        if self.levels is not None:
            return [_CLI, *command_line(self.levels, arguments)]
        return [_CLI, *(_word("args", word) for word in arguments.get("args") or ())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Hold a plugin and how it is run."""

    folder: Path
    runner: Runner = field(repr=False)
    python: str = "python"
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    parallel: bool = False
    """Whether several of its calls may run at the same time."""
    cache: Path
    """Where its bytecode is kept: what lies in its folder need not be that of its sources, and is not loaded."""
    confinement: Confinement | None = field(default=None, repr=False)
    """The jails it runs in, with their own interpreter; None runs it like the worker itself."""
    describing: Confinement | None = field(default=None, repr=False)
    """The jails in which its parser is read where its calls run in none; None reads it as its calls run."""

    async def describe(self) -> tuple[PluginTool, ...]:
        """Return its tools, taken from its parser, or from its help text if it makes no parser.

        Raises ToolUnavailable with the reason when it cannot be loaded, and IsolationUnavailable.
        """
        mark = secrets.token_hex(16)
        try:
            result = await self._dump(mark)
        except TimeoutError:
            raise ToolUnavailable(
                f"{_CLI} made no parser within {_DESCRIBE_S:g} s; move slow work behind parse_args()"
            ) from None
        printed, *dumped = result.stdout.split(mark)
        parser = _parser(dumped[-1]) if dumped else None
        # It may print more between its parsers and behind them.
        printed += "".join(each.partition("\n")[2] for each in dumped)
        said = _help_of(result, printed).strip()
        if parser is not None and not (parser.went_on and _is_help(said)):
            if parser.others_unseen:
                _log.warning("plugin.first_parser", provider=self.folder.name, reason=_FIRST_ONLY)
            return _tools(self._shown(parser))
        if said:
            return (PluginTool("run", self._hidden(said), _ANY_ARGUMENTS),)
        where = "" if self.describing is None else f" ({_JAILED})"
        raise ToolUnavailable(f"{_CLI} cannot be loaded: {self.complaint(result, lines=1)}{where}")

    async def run(
        self,
        words: Sequence[str],
        *,
        timeout_s: float,
        variables: Mapping[str, str] | None = None,
        inherited: Sequence[int] = (),
    ) -> ExecutionResult:
        """Run its interpreter once with these words. Raises what `Runner.run` raises, and IsolationUnavailable."""
        environment = {**self.environment, **(variables or {})}
        return await self.runner.run(
            await self._command(words, environment),
            folder=self.folder,
            timeout_s=timeout_s,
            environment=environment,
            limited=self.confinement is None,  # a jail has limits of its own
            inherited=inherited,
        )

    async def _dump(self, mark: str) -> ExecutionResult:
        where = "open" if self.describing is None and self.confinement is None else "jail"
        words = ("-c", _dump_parser(), _CLI, mark, where)
        if self.describing is None:
            return await self.run(words, timeout_s=_DESCRIBE_S)
        python = self.runner.check((self.python,), folder=self.folder, environment=self.environment)
        known: Any = {"folder": self.folder, "variables": sorted(self.environment)}
        try:
            async with self.describing.try_out(words, python=Path(python), **known) as command:
                return await self.runner.run(
                    command, folder=self.folder, timeout_s=_DESCRIBE_S, environment=self.environment, limited=False
                )
        except BackstayError as error:
            raise ToolUnavailable(f"{error} ({_JAILED})") from None

    async def check(self) -> None:
        """Check that it can be started. Raises ToolUnavailable and IsolationUnavailable."""
        command = await self._command((_CLI,), self.environment)
        self.runner.check(command, folder=self.folder, environment=self.environment)

    def complaint(self, result: ExecutionResult, *, lines: int = 3) -> str:
        """Return the reason for a failure: the last lines of stderr, or else of stdout."""
        said = result.stderr.strip() or result.stdout.strip()
        found = [line for line in said[-4000:].splitlines() if line.strip()]
        return message_line(self._hidden(" / ".join(found[-lines:]))) or f"exit code {result.exit_code} and no output"

    def state(self) -> tuple[tuple[str, int, int], ...]:
        """Return a value that changes whenever one of its modules does."""
        return code_state(self.folder)

    async def _command(self, words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
        if self.confinement is None:
            return (self.python, "-X", f"pycache_prefix={self.cache}", *words)
        return await self.confinement.confine(words, folder=self.folder, variables=sorted(environment))

    def _shown(self, parser: Parser) -> Parser:
        """Mask the values of its environment where people read them, and not in the words of its command line."""
        return parser.model_copy(
            update={
                "summary": self._hidden(parser.summary),
                "description": self._hidden(parser.description),
                "arguments": tuple(map(self._shown_argument, parser.arguments)),
                "commands": {name: self._shown(below) for name, below in parser.commands.items()},
            }
        )

    def _shown_argument(self, argument: Argument) -> Argument:
        said, default = self._hidden(argument.help), with_texts(argument.default, self._hidden)
        shown: dict[str, Any] = {"help": said, "default": None if self._tells(default) else default}
        if argument.choices is not None and any(map(self._tells, argument.choices)):
            # A choice with a mask in it could not be given, so which there are is left to the program.
            listed = ", ".join(self._hidden(str(choice)) for choice in argument.choices)
            shown |= {"choices": None, "help": f"{said} (one of: {listed})".strip()}
        return argument.model_copy(update=shown)

    def _tells(self, value: Any) -> bool:
        """Return whether a JSON value holds a value of the environment."""
        written = json.dumps(value)
        return self._hidden(written) != written

    def _hidden(self, text: str) -> str:
        """Mask the values of its environment in the text, but no paths; defaults and messages often contain them."""
        hidden = (value for name, value in self.environment.items() if not is_path(name, value))
        for value in sorted(hidden, key=len, reverse=True):
            for written in (value, json.dumps(value)[1:-1]) if len(value) >= _SECRET else ():
                text = text.replace(written, "***")
        return text


def _parser(dumped: str) -> Parser:
    """Return the parser that was printed; the program may have printed more behind it."""
    try:
        return Parser.model_validate_json(dumped.partition("\n")[0])
    except ValidationError as error:
        raise ToolUnavailable(f"{_CLI} has a parser that cannot be read: {error.errors()[0]['msg']}") from None


def _help_of(result: ExecutionResult, printed: str) -> str:
    """Return what a program says for `--help`, on whichever stream; some call that a failure."""
    failed = result.exit_code not in _HELP_CODES or _TRACEBACK in printed + result.stderr
    said = "" if failed else next(filter(_is_help, (printed, result.stderr)), "")
    return said or (printed if result.exit_code == 0 else "")


def _is_help(said: str) -> bool:
    return _HELP.search(said) is not None


def _tools(parser: Parser) -> tuple[PluginTool, ...]:
    """Return one tool for each parser without subcommands, named by the words that lead to it."""
    found: list[PluginTool] = []
    waiting: list[tuple[tuple[str | None, Parser], ...]] = [((None, parser),)]
    while waiting and len(found) < _TOOLS:
        chain = waiting.pop(0)
        leaf = chain[-1][1]
        if leaf.commands and len(chain) <= _DEPTH:
            waiting += [(*chain, (name, below)) for name, below in leaf.commands.items()]
            continue
        levels = levels_of(chain)
        said = leaf.description or leaf.summary or parser.description
        name = ".".join(command for command, _ in chain if command is not None) or "run"
        found.append(PluginTool(name, " ".join(said.split()), schema_of(levels), levels))
    return tuple(found)


@cache
def _dump_parser() -> str:
    return Path(__file__).with_name("dump_parser.py").read_text(encoding="utf-8")
