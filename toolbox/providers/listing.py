"""The tools that a provider lists, as its server describes them; nothing here is trusted yet."""

from dataclasses import dataclass, field
from typing import Any

from backstay.canonical import canonical
from backstay.policies.command_lists import CommandLists
from toolbox.providers.declaration import Declaration

_SETS = frozenset({"required", "type"})
"""Not `enum`: lists beside it, such as the names of its values, go by its order."""
_SETS_BY_NAME = frozenset({"dependentRequired", "dependencies"})
_SCHEMAS_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"const", "default", "example", "examples"})
"""Fields of a schema that hold values, in which the order of a list may mean something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerExtras:
    """Hold what a server offers besides tools."""

    resources: bool = False
    listed: bool = False
    """Whether it lists a resource or a template; some only name resources in what they answer."""
    reaches_out: bool = False
    """Whether an address that it lists leads elsewhere, or may: what is read by it then leaves."""
    prompts: tuple[dict[str, Any], ...] = ()
    """The prompts that it lists, as it writes them."""
    whole: bool = True
    """Whether it answered what it was asked; else it is asked anew with the next list."""


@dataclass(frozen=True, slots=True)
class ToolAnnotations:
    """Hold a server's own annotations of one tool; None means that it gave none."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class ListedTool:
    """Hold one tool as its server lists it."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=dict)
    output_schema: dict[str, Any] | None = None
    annotations: ToolAnnotations = field(default_factory=ToolAnnotations)
    declared: Declaration | None = None
    """The declaration of a built-in tool; the operator's overrides it."""
    of_engine: bool = False
    """Whether the engine adds it to what the server lists."""
    always: bool = False
    """Whether it is offered whichever tools the operator includes or excludes."""
    hidden: bool = False
    """Whether only the engine calls it."""
    quiet: bool = False
    """Whether searches leave it out: its purpose is in the answers that name it."""
    previewed: bool = False
    """Whether what a call would change can be shown before it is made."""
    behind: str = ""
    """For a tool that calls one other tool: the name of that one."""
    origin: str = ""
    """For a tool that calls others: a hash of how they are called and listed."""
    earlier_origin: str = ""
    """The same as older versions made it, for which the order of every list counted."""
    calls: tuple[str, ...] = ()
    """For a tool that calls others: their names, `provider.tool`."""
    timed: bool = False
    """Whether its argument `timeout` says how long one call may take."""
    commands: CommandLists | None = None
    """For a tool that runs its argument `command`: which it may run."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Hold the last known tools of a provider, and why it cannot be used when it cannot."""

    tools: tuple[ListedTool, ...] = ()
    problems: tuple[str, ...] = ()
    """What is wrong with tools that are listed and left out, each in words that follow the provider's name."""
    instructions: str = ""
    """What its server says of itself: the words of others, without secrets and cut."""
    place: str = ""
    """The operator's own root in which its commands run, if there is one."""
    reason: str | None = None
    starting: bool = False
    """Whether its server has not answered yet since it was started, and may still do so."""
    connection: str = ""
    """Names the sign-in with which it was read; under another one the same tools may do other things."""
    generation: int = 0
    """Counts changes of the tools, so that equal numbers mean equal tools."""


def in_order(schema: Any) -> Any:
    """Return a schema in which each list without an order of its own is sorted.

    Some servers list at random what has no order, such as the arguments that a tool requires.
    """
    match schema:
        case dict():
            return {key: _part(key, part) for key, part in schema.items()}
        case list():
            return [in_order(part) for part in schema]
        case _:
            return schema


def _part(key: str, part: Any) -> Any:
    if key in _SETS and isinstance(part, list):
        return sorted(part, key=canonical)
    if key in _SETS_BY_NAME and isinstance(part, dict):
        return {name: _part("required", names) for name, names in part.items()}
    if key in _SCHEMAS_BY_NAME and isinstance(part, dict):
        return {name: in_order(each) for name, each in part.items()}
    return part if key in _VALUES else in_order(part)
