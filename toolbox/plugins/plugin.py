"""Describe and run one plugin: a folder with a cli.py, whose parser defines its tools."""

import json
import secrets
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from pydantic import ValidationError

from backstay.errors import ToolUnavailable
from backstay.shown import message_line
from backstay.tools.execution import ExecutionResult
from toolbox.configuration.load import is_path
from toolbox.plugins.command_line import command_line
from toolbox.plugins.parser import Level, Parser, levels_of, schema_of
from toolbox.processes.runner import Runner

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


class Confinement(Protocol):
    """Run Python programs in jails."""

    def confine(self, words: Sequence[str], *, folder: Path, variables: Iterable[str]) -> Awaitable[Sequence[str]]:
        """Return the command that runs a jailed interpreter with these words, in this folder, with these variables.

        The folder is read-only and there is no network. Raises IsolationUnavailable with cause and fix.
        """
        ...


class NoJail:
    """Take the place of jails on a machine that has none."""

    async def confine(self, words: Sequence[str], *, folder: Path, variables: Iterable[str]) -> Sequence[str]:
        """Raise ToolUnavailable."""
        raise ToolUnavailable("it must run in a jail, and this machine has none; see `jail` of the plugin")


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
        words = arguments.get("args") or () if self.levels is None else command_line(self.levels, arguments)
        return [_CLI, *words]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Hold a plugin and how it is run."""

    folder: Path
    runner: Runner = field(repr=False)
    python: str = "python"
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    confinement: Confinement | None = field(default=None, repr=False)
    """The jails it runs in, with their own interpreter; None runs it like the worker itself."""

    async def describe(self) -> tuple[PluginTool, ...]:
        """Return its tools, taken from its parser, or from its help text if it makes no parser.

        Raises ToolUnavailable with the reason when it cannot be loaded, and IsolationUnavailable.
        """
        mark = secrets.token_hex(16)
        try:
            result = await self.run(("-c", _dump_parser(), _CLI, mark), timeout_s=_DESCRIBE_S)
        except TimeoutError:
            raise ToolUnavailable(
                f"{_CLI} made no parser within {_DESCRIBE_S:g} s; move slow work behind parse_args()"
            ) from None
        _, found, dumped = result.stdout.partition(mark)
        if found:
            try:
                return _tools(Parser.model_validate_json(self._hidden(dumped)))
            except ValidationError as error:
                raise ToolUnavailable(f"{_CLI} has a parser that cannot be read: {error.errors()[0]['msg']}") from None
        said = self._hidden(result.stdout).strip()
        if result.exit_code == 0 and said:
            return (PluginTool("run", said, _ANY_ARGUMENTS),)
        raise ToolUnavailable(f"{_CLI} cannot be loaded: {self.complaint(result, lines=1)}")

    async def run(
        self, words: Sequence[str], *, timeout_s: float, variables: Mapping[str, str] | None = None
    ) -> ExecutionResult:
        """Run its interpreter once with these words. Raises what `Runner.run` raises, and IsolationUnavailable."""
        environment = {**self.environment, **(variables or {})}
        return await self.runner.run(
            await self._command(words, environment),
            folder=self.folder,
            timeout_s=timeout_s,
            environment=environment,
            limited=self.confinement is None,  # a jail has limits of its own
        )

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
        found = sorted(self.folder.glob("*.py"))
        return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in found if path.is_file())

    async def _command(self, words: Sequence[str], environment: Mapping[str, str]) -> Sequence[str]:
        if self.confinement is None:
            return (self.python, *words)
        return await self.confinement.confine(words, folder=self.folder, variables=sorted(environment))

    def _hidden(self, text: str) -> str:
        """Mask the values of its environment in the text, but no paths; defaults and messages often contain them."""
        hidden = (value for name, value in self.environment.items() if not is_path(name, value))
        for value in sorted(hidden, key=len, reverse=True):
            for written in (value, json.dumps(value)[1:-1]) if len(value) >= _SECRET else ():
                text = text.replace(written, "***")
        return text


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
