"""How a program's calls leave the jail: they wait until nothing else can go on, and are then sent as one batch."""

from asyncio import events
from collections.abc import Awaitable, Iterator
from typing import Any

from sandbox.guest.programs.clock import Clock
from sandbox.guest.programs.errors import NeverAwaited, OutcomeSettled, ToolError
from sandbox.guest.programs.host_pipe import HostPipe
from sandbox.guest.programs.strict_json import encode

RESULT = "engine.result"
_WHOLE = ',"whole":true'
_SHOWN = 20
_TOKEN = ("⟦sim:", "⟧")


class ProgramCalls:
    """Number a program's calls and hold those that have not been made."""

    def __init__(self, pipe: HostPipe, clock: Clock) -> None:
        """Send calls through the pipe; its answers move the clock."""
        self._pipe = pipe
        self._clock = clock
        self._next = 0
        self._waiting: list[tuple[str, str, Any, bool]] = []
        self.forgotten: list[str] = []
        """What was called and thrown away without being awaited, in words."""

    def start(self, first: int) -> None:
        """Give the next call this number."""
        self._next = first

    def call(self, tool: str, arguments: dict[str, Any], *, whole: bool = False) -> Awaitable[Any]:
        """Call a tool with these arguments, as they are now; await its answer, or with `whole` how the call ended.

        Raises ToolError when awaited and the tool fails, OutcomeSettled when it took place and its answer is lost.
        """
        if not isinstance(tool, str):
            raise TypeError(f"a tool is named by a str, not by {type(tool).__name__}")
        if not isinstance(arguments, dict):
            raise TypeError(f"{tool}: arguments are a dict, not {type(arguments).__name__}")
        text = encode(arguments, f"{tool}: arguments")
        future = events.get_running_loop().create_future()
        self._waiting.append((tool, text, future, whole))
        return future

    async def result(self, ref: str) -> Any:
        """Return an earlier stored result in full."""
        return await self.call(RESULT, {"ref": ref})

    def waiting(self) -> list[str]:
        """Return the tools of calls that have not been made."""
        return [tool for tool, _, future, _ in self._waiting if not future.done()]

    def make_calls(self) -> bool:
        """Make the waiting calls in one batch and hand out the answers in the order in which they came.

        Raises NeverAwaited before that when the program has thrown a call away.
        """
        if self.forgotten:
            raise NeverAwaited("; ".join(self.forgotten))
        batch = [waiting for waiting in self._waiting if not waiting[2].done()]
        self._waiting.clear()
        if not batch:
            return False
        first = self._next
        self._next += len(batch)
        calls = (
            f'{{"i":{number},"tool":{encode(tool, "a tool")},"args":{text}{_WHOLE if whole else ""}}}'
            for number, (tool, text, _, whole) in enumerate(batch, first)
        )
        self._pipe.send(f'{{"calls":[{",".join(calls)}]}}')
        answer = self._pipe.receive()
        self._clock.move(answer["now"])
        for result in answer["results"]:
            tool, _, future, _ = batch[result["i"] - first]
            if "ok" in result:
                future.set_result(_simulated(result["ok"]) if result.get("simulated") else result["ok"])
            else:
                future.set_exception(_error(result["error"], tool))
        return True


class SimulatedValue(str):
    """A value of a simulated answer, which nobody knows yet; a part that a program takes out is another such value."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """Return the value beneath this one; a slice is one of the text."""
        if isinstance(key, slice):
            return super().__getitem__(key)
        name = str(key).replace("~", "~0").replace("/", "~1")
        return SimulatedValue(f"{self[: -len(_TOKEN[1])]}/{name}{_TOKEN[1]}")

    def get(self, key: Any, _default: Any = None) -> Any:
        """Return the value beneath this one."""
        return self[key]

    def __iter__(self) -> Iterator[Any]:
        """Yield one value, which stands for all."""
        yield self[0]


def _simulated(value: Any) -> Any:
    """Return an answer in which each text that is a token is a value that nobody knows."""
    match value:
        case str() if value.startswith(_TOKEN[0]) and value.endswith(_TOKEN[1]):
            return SimulatedValue(value)
        case dict():
            return {key: _simulated(part) for key, part in value.items()}
        case list():
            return [_simulated(part) for part in value]
        case _:
            return value


class ToolResult(dict[str, Any]):
    """Hold how a call ended: `success`, `data`, `context`, `error` and `trace`, as keys and as attributes."""

    def __getattr__(self, name: str) -> Any:
        """Return the value of a key."""
        if name not in self:
            raise AttributeError(f"a result has no {name!r}; it has {', '.join(self)}")
        value = self[name]
        return ToolResult(value) if name == "context" else value


class Mcp:
    """Call tools by their names; a call that fails is a result, not an error."""

    def __init__(self, tool_calls: ProgramCalls, names: dict[str, str]) -> None:
        """Know the tools of a program by every name that may stand for one."""
        self._tool_calls = tool_calls
        self._names = names

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> ToolResult:
        """Call a tool, such as `mail.search`, and return how that ended; raises LookupError for an unknown one."""
        if name not in self._names:
            known = sorted(set(self._names.values()))
            more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
            raise LookupError(f"there is no tool {name!r}; there is {', '.join(known[:_SHOWN])}{more}")
        return ToolResult(await self._tool_calls.call(self._names[name], arguments or {}, whole=True))


Mcp.call_tool.__qualname__ = "mcp.call_tool"


def _error(error: dict[str, Any], tool: str) -> Exception:
    if "effect" in error:
        return OutcomeSettled(error["message"], tool, error["effect"], error["by"])
    return ToolError(error["message"], error["type"], tool)
