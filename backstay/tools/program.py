"""One program, whole: what must be the same wherever and whenever it runs."""

from typing import Any, Literal

from pydantic import Field

from backstay.frozen import Frozen, Message
from backstay.tools.execution import JailUse
from backstay.tools.tool import OutcomeSource, Safety, Tool, ToolCall

RUN_PROGRAM = Tool(name="engine.run_program", safety=Safety.READ_ONLY)
"""A program changes nothing by itself: each of its calls is ruled on when it is made."""


class Program(Frozen):
    """Bundle a program with all that its run depends on; stored once, named by its ref."""

    source: str
    bindings: dict[str, dict[str, str]] = Field(default_factory=dict)
    """Python source by provider and function."""
    tools: dict[str, Tool] = Field(default_factory=dict)
    """The declared set: what the program may call, by `provider.tool`."""
    parameters: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """The JSON Schema of each declared tool's arguments."""
    commands: dict[str, dict[str, tuple[str, ...] | None]] = Field(default_factory=dict)
    """For each declared tool that runs its argument `command`: the lists of what is allowed and denied."""
    seed: str
    """Where everything random in the program comes from."""
    image: Literal["", "python", "data"] = ""
    """What it may import, where the profile of its run says so."""
    markers: bool = False
    """Whether what it returns is normalised, and may begin with a marker."""
    traced: bool = False
    """Whether its calls say where their arguments came from."""
    literals: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Texts in its source, and the codes of the places where the model had read them."""
    now: float
    """When it starts, in seconds since 1970; its clock moves only with its journal."""


class ProgramAnswer(Message):
    """Tell a program how one of its calls ended; the result itself stays in the store."""

    i: int
    """Number of the call, from 0 in program order."""
    ref: str | None = None
    """The stored result record."""
    error: str | None = None
    error_type: str | None = None
    settled: OutcomeSource | None = None
    """Set when it took place and its answer is lost."""
    effect: int | None = None
    """The number of its effect, where the program wants to know how the call ended."""
    undo: str | None = None
    """How it would be undone, where the program wants to know."""
    cached: bool = False
    """Whether the answer is that of an earlier call."""
    simulated: bool = False
    """Whether it was not made, and tokens stand for values of its answer."""


class Halt(Message):
    """Describe why a program stopped: it waits for calls, has finished, or has failed."""

    kind: Literal["waiting", "finished", "crashed"]
    calls: tuple[ToolCall, ...] = ()
    """What it waits for: one batch, ids are the calls' numbers in program order."""
    whole: tuple[int, ...] = ()
    """The numbers of those calls of which the program wants to know how they ended."""
    refused: dict[int, str] = Field(default_factory=dict)
    """By index in `calls`: what is wrong with the arguments; such a call is not made."""
    journal: str = ""
    """Ref of the journal up to here."""
    image: str = ""
    """Hash of the root image it runs in; every later round needs the same one."""
    sampled: bool = False
    """Whether it is to be run again from its journal, beside the run, to prove that this leads to the same end."""
    queue: str = ""
    """Where the paused program is kept; going on anywhere else feeds the journal to a new one."""
    rounds: int = 0
    payload: str | None = None
    """Ref of what it returned and printed."""
    marked: bool = False
    """Whether it returned a string of its own that begins with a marker."""
    error: str | None = None
    """One line; None when it finished."""
    error_type: str | None = None
    used: JailUse | None = None
    """What its jail used until it ended."""


def sandbox_error(said: str) -> str:
    """Return what went wrong with a program as planners that know markers expect it."""
    return f"[sandbox error: {said}]"
