"""Run a tool as the engine would, without an engine: to test what it does with arguments, answers and faults."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from pydantic import TypeAdapter

from backstay.errors import ArgumentsInvalid, BackstayError, OutcomeUnknown
from backstay.python_tools.context import AnswerNeeded, CallRefused, ToolContext, ToolError
from backstay.python_tools.function import FunctionTool, function_tool, hook_tool
from backstay.python_tools.tool import ToolOptions
from backstay.tools.tool import Safety

_JSON: TypeAdapter[Any] = TypeAdapter(Any)


class TestContext(ToolContext):
    """Stand for the engine: other tools are functions of the test, and people answer what the test says."""

    __test__ = False  # pytest collects classes with such names

    def __init__(
        self,
        *,
        user_id: str = "singleton",
        session_id: str = "",
        effect_id: str = "test/1",
        secrets: Mapping[str, str] | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        answers: tuple[Any, ...] = (),
    ) -> None:
        """Call `tools` by name, and answer questions in order."""
        super().__init__(user_id=user_id, session_id=session_id, effect_id=effect_id, secrets=secrets)
        self.tools = dict(tools or {})
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, Any]]] = []
        """Every call that the tool has made."""
        self.asked: list[str] = []
        """Every question that was answered."""
        self.may_read: tuple[str, ...] = ()
        self.may_write: tuple[str, ...] = ()
        self.written = False
        self.write_answers: list[Any] = []
        """What the write of the call answered, once it has."""
        self.fault: Exception | None = None
        """Why the write of the call has no answer; a tool must not hide it."""

    def begin(self, options: ToolOptions) -> None:
        """Begin a call of a tool: what it may call, and nothing written yet."""
        self.may_read, self.may_write = options.reads, options.writes
        self.written, self.write_answers, self.fault = False, [], None

    async def read(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool of the test. Raises CallRefused where the engine would."""
        if tool not in self.may_read:
            raise CallRefused(f"{tool!r} is not among the `reads` of the tool; add it")
        return await self._call(tool, arguments)

    async def write(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool of the test, once. Raises CallRefused where the engine would."""
        if tool not in self.may_write:
            raise CallRefused(f"{tool!r} is not among the `writes` of the tool; add it")
        if self.written:
            raise CallRefused("a tool writes once; make two tools of it")
        self.written = True
        try:
            answer = await self._call(tool, arguments)
        except (ToolError, AnswerNeeded):
            raise
        except asyncio.CancelledError:
            self.fault = OutcomeUnknown("ended while it was under way")
            raise
        except Exception as error:
            self.fault = error
            raise
        self.write_answers.append(answer)
        return answer

    async def ask(self, question: str, schema: Any = None) -> Any:
        """Return the next answer of the test; without one, the run ends as asked."""
        if self.written:
            raise CallRefused("ask before anything is written")
        if not self.answers:
            raise AnswerNeeded(question, schema)
        self.asked.append(question)
        return AnswerNeeded(question, schema).admit(self.answers.pop(0))

    async def _call(self, tool: str, arguments: dict[str, Any]) -> Any:
        self.calls.append((tool, arguments))
        if tool not in self.tools:
            raise CallRefused(f"the test gives no tool {tool!r}; add it to `tools`")
        found = self.tools[tool](**arguments)
        return await found if asyncio.iscoroutine(found) else found


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Tell what the engine would make of one call of a tool."""

    outcome: Literal["succeeded", "failed", "retry", "unknown", "asked"]
    """`unknown`: nobody knows whether the write took effect, so `verify` is run, or a person asked."""
    data: Any = None
    """What the model is told; of a function that broke after its write had succeeded, what the write answered."""
    error: str | None = None
    """Why it failed; with `succeeded`, how the function broke after its write, of which the model is not told."""
    question: str | None = None
    """What a person is asked, with the outcome `asked`."""
    arguments: dict[str, Any] = field(default_factory=dict)
    context: ToolContext = field(default_factory=ToolContext, repr=False)
    tool: FunctionTool | None = field(default=None, repr=False)

    async def undo(self) -> "ToolRun":
        """Run what takes the effect back. Raises ValueError for a tool without an undo."""
        return await self._run("undo", result=self.data)

    async def verify(self) -> "ToolRun":
        """Run what finds out whether the effect took place; `data` is what it says. Raises ValueError without one."""
        return await self._run("verify", effect_id=self.context.effect_id)

    async def _run(self, hook: Literal["undo", "verify"], **more: Any) -> "ToolRun":
        function = None if self.tool is None else getattr(self.tool.options, hook)
        if self.tool is None or function is None:
            raise ValueError(f"the tool has no {hook}; give it one in @tool")
        hooked = hook_tool(f"{self.tool.name}_{hook}", function)
        return await _run(hooked, {"arguments": self.arguments, **more}, self.context, reads=hook == "verify")


async def run_tool(
    function: Callable[..., Any], arguments: Mapping[str, Any] | None = None, context: ToolContext | None = None
) -> ToolRun:
    """Call a function that `@tool` marks as the engine would, and return what became of it.

    The arguments are JSON, as a model gives them. Raises ToolboxInvalid for a function that can be no tool.
    """
    tool = function_tool(function)
    given = json.loads(json.dumps(dict(arguments or {})))
    reads = tool.options.safety is Safety.READ_ONLY
    return await _run(tool, given, context or TestContext(effect_id="" if reads else "test/1"), reads=reads)


async def _run(tool: FunctionTool, given: dict[str, Any], context: ToolContext, *, reads: bool) -> ToolRun:
    if isinstance(context, TestContext):
        context.begin(tool.options)
    run = partial(ToolRun, arguments=given, context=context, tool=tool)
    try:
        admitted = tool.admit(given)
    except ArgumentsInvalid as error:
        return run("failed", error=f"arguments: {error}")
    ended = await tool.run(admitted, context, asyncio.to_thread)
    for _ in range(tool.options.retries):
        if ended.how != "raised":
            break
        ended = await tool.run(admitted, context, asyncio.to_thread)
    if isinstance(context, TestContext) and (fault := context.fault) is not None:
        unsent = isinstance(fault, BackstayError) and not isinstance(fault, OutcomeUnknown)
        said = str(fault) if isinstance(fault, BackstayError) else f"the write failed: {type(fault).__name__}"
        return run("failed" if unsent else "unknown", error=said)
    if isinstance(context, TestContext) and context.write_answers and ended.how != "returned":
        data = _JSON.dump_python(context.write_answers[0], mode="json", fallback=str)
        return run("succeeded", data=data, error=ended.error)
    match ended.how:
        case "returned":
            return run("succeeded", data=ended.data)
        case "asked":
            return run("asked", question=str(ended.asked))
        case "failed" | "retry":
            return run(ended.how, error=ended.error)
        case "raised":
            own = not reads and not tool.options.writes
            return run("unknown" if own else "failed", error=ended.error)
