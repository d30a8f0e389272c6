"""The tools by which clients use the engine, and what each of them takes."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Protocol

from mcp import types
from pydantic import ConfigDict, Field, WithJsonSchema

from backstay.bounds import MOST
from backstay.budgets.budget import Budget
from backstay.canonical import canonical
from backstay.data_files import data_beside
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import one_line
from backstay.task.reading import PAGE_BYTES
from backstay.task.task import OutputSchema, Task
from gateways.engine_mcp.limits import CallerLimits
from gateways.engine_mcp.runs import MOST_AFTER, EngineRuns
from gateways.engine_mcp.server import ServedTool, ToolRequest
from gateways.engine_mcp.tasks import TaskStart, settled
from gateways.mcp_serving import answered

TOLD = data_beside(__file__)
_LONGEST_WAIT_S = 600
_WAIT_S = 45
_LONGEST_ONCE = 200
_READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
_STARTS = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)
_ENDS = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False)
_SAYS = types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)


class Definitions(Protocol):
    """Know what the operator keeps in files: plans, and the limits of runs."""

    async def listed(self) -> list[dict[str, Any]]:
        """Return all of them, each with the schema of its input as `input`."""
        ...

    async def task(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a task that carries one out; raises TaskInvalid."""
        ...

    async def budget(self, task: Task) -> Budget:
        """Return the limits of a run of this task, those of its profile where it sets none."""
        ...


class _Arguments(Frozen):
    """Hold the arguments of a tool; what each of them is is in its schema."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, title="")


RunId = Annotated[str, Field(min_length=1, max_length=200)]
Wait = Annotated[float, Field(ge=0, le=_LONGEST_WAIT_S, allow_inf_nan=False)]


class StartRunArguments(_Arguments):
    """Hold the arguments of `start_run`."""

    text: str = Field(default="", max_length=100_000)
    """What to do, in a sentence; with a definition, the line under which people see the run."""
    definition: str = Field(default="", max_length=50)
    """The plan to carry out instead, by its ID."""
    input: dict[str, Any] | None = None
    """What the definition takes, or what the text may refer to."""
    budget: Annotated[dict[str, Any] | None, WithJsonSchema(Budget.model_json_schema())] = None
    """What the run may spend."""
    output_schema: OutputSchema = None
    """JSON Schema of the value that the run is to give."""
    once: str = Field(default="", max_length=_LONGEST_ONCE)
    """A name of your own for this start: the same name starts the same run once."""
    wait_s: Wait = _WAIT_S
    """How many seconds to wait for the end."""

    def task(self) -> dict[str, Any]:
        """Return the fields of a task that are given; raises TaskInvalid."""
        given = {"input": self.input, "budget": self.budget, "output_schema": self.output_schema}
        task = {name: value for name, value in given.items() if value is not None}
        if self.budget is not None and self.budget.get("max_llm_cost_usd", 0) is None:
            raise TaskInvalid("budget.max_llm_cost_usd: a run that is started here needs a limit; give a number")
        return task | ({"text": self.text} if self.text else {})


class FollowRun(_Arguments):
    """Hold the arguments of `follow_run`."""

    run: RunId
    """The run, as start_run has named it."""
    after: int = Field(default=0, ge=0, le=MOST_AFTER)
    """The `after` of the last answer, for what has happened since; 0 for all events."""
    wait_s: Wait = 0
    """How many seconds to wait for the end, or for a question."""


class ReadResultArguments(_Arguments):
    """Hold the arguments of `read_result`."""

    run: RunId
    """The run, as start_run has named it."""
    path: str = Field(default="", max_length=1000)
    """What to read, such as `outputs.invoices.3`."""
    ref: str = Field(default="", max_length=200)
    """The stored result to read, as an answer names it."""
    offset: int = Field(default=0, ge=0, le=MOST)
    """The first item of a list, or the first character of a string."""


class ListRuns(_Arguments):
    """Hold the arguments of `list_runs`, which takes none."""


class ListDefinitions(_Arguments):
    """Hold the arguments of `list_definitions`."""

    id: str = Field(default="", max_length=50)
    """The definition to tell of, whole."""


class AnswerQuestion(_Arguments):
    """Hold the arguments of `answer_question`."""

    run: RunId
    """The run, as start_run has named it."""
    question: str = Field(min_length=1, max_length=200)
    """The question, as follow_run has named it."""
    answer: str | None = Field(default=None, max_length=60_000)
    """The answer; without it, the model is told that it gets none."""


class CancelRun(_Arguments):
    """Hold the arguments of `cancel_run`."""

    run: RunId
    """The run, as start_run has named it."""


Answer = Callable[[ToolRequest], Awaitable[types.CallToolResult | TaskStart]]


class EngineTools:
    """Do what the tools say, for callers."""

    def __init__(
        self, runs: EngineRuns, definitions: Definitions, limits: CallerLimits, may_start: Callable[[str], bool]
    ) -> None:
        """`may_start` says whether a caller may start runs."""
        self._runs, self._definitions = runs, definitions
        self._limits, self._may_start = limits, may_start

    def served(self) -> list[ServedTool]:
        """Return the tools."""
        return [
            _tool("start_run", StartRunArguments, _STARTS, self._start),
            _tool("follow_run", FollowRun, _READS, self._follow),
            _tool("read_result", ReadResultArguments, _READS, self._read),
            _tool("list_runs", ListRuns, _READS, self._list),
            _tool("list_definitions", ListDefinitions, _READS, self._list_definitions),
            _tool("answer_question", AnswerQuestion, _SAYS, self._answer),
            _tool("cancel_run", CancelRun, _ENDS, self._cancel),
        ]

    async def _start(self, call: ToolRequest) -> TaskStart:
        asked = StartRunArguments.admit(call.arguments)
        self._demand_starter(call)
        task = asked.task()
        # With a definition, its own line stands where the caller gives none.
        said = [name for name in ("text", "input") if name in task]
        if asked.definition:
            if asked.output_schema is not None:
                raise TaskInvalid("output_schema: a definition reports outputs; leave it out")
            task = await self._definitions.task(asked.definition, asked.input or {}) | task
        if call.client:
            task["metadata"] = {"mcp_client": call.client}
        if (await self._definitions.budget(Task.admit(task))).max_llm_cost_usd is None:
            task["budget"] = {**task.get("budget", {}), "max_llm_cost_usd": Budget().max_llm_cost_usd}
        self._limits.start(call.caller)
        return TaskStart(await self._runs.start(call.caller, task, said=said, once=asked.once), asked.wait_s)

    def _demand_starter(self, call: ToolRequest) -> None:
        """Raise TaskInvalid for a caller that may not start runs."""
        if not self._may_start(call.caller):
            raise TaskInvalid("you may not start runs here; the operator names who may in BACKSTAY_WEB_STARTERS")

    async def _follow(self, call: ToolRequest) -> types.CallToolResult:
        asked = FollowRun.admit(call.arguments)
        if asked.wait_s:
            await settled(lambda: self._runs.look(call.caller, asked.run), call.report, asked.wait_s)
        return answered(await self._runs.follow(call.caller, asked.run, asked.after))

    async def _read(self, call: ToolRequest) -> types.CallToolResult:
        asked = ReadResultArguments.admit(call.arguments)
        return answered(await self._runs.read(call.caller, asked.run, asked.ref, asked.path, asked.offset))

    async def _list(self, call: ToolRequest) -> types.CallToolResult:
        ListRuns.admit(call.arguments)
        return answered({"runs": await self._runs.listed(call.caller)})

    async def _list_definitions(self, call: ToolRequest) -> types.CallToolResult:
        asked = ListDefinitions.admit(call.arguments)
        self._demand_starter(call)
        known = await self._definitions.listed()
        if asked.id:
            found = next((each for each in known if each["id"] == asked.id), None)
            if found is None:
                raise TaskInvalid(f"id: there is no definition {one_line(asked.id, 60)!r}; list all without an id")
            return answered(found)
        told, room = list[dict[str, Any]](), PAGE_BYTES // 2
        for each in known:
            # Of those that have no room, the schema is read one by one.
            shown = each if (size := len(canonical(each))) <= room else {"id": each["id"], "title": each["title"]}
            room -= size if shown is each else 0
            told.append(shown)
        return answered({"definitions": told})

    async def _answer(self, call: ToolRequest) -> types.CallToolResult:
        asked = AnswerQuestion.admit(call.arguments)
        return answered(await self._runs.answer_question(call.caller, asked.run, asked.question, asked.answer))

    async def _cancel(self, call: ToolRequest) -> types.CallToolResult:
        asked = CancelRun.admit(call.arguments)
        if await self._runs.cancel(call.caller, asked.run):
            return answered({"run": asked.run, "cancelled": True, "next": "call follow_run to see its end"})
        return answered({"run": asked.run, "cancelled": False, "next": "it has ended: call read_result"})


def _tool(name: str, taken: type[_Arguments], hints: types.ToolAnnotations, answer: Answer) -> ServedTool:
    told = TOLD["tools"][name]
    schema = taken.model_json_schema()
    described = {key: value for key, value in schema.items() if key not in {"title", "description"}}
    tool = types.Tool(
        name=name, title=told["title"], description=told["about"], input_schema=described, annotations=hints
    )
    return ServedTool(tool, answer)
