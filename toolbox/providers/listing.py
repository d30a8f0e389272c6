"""The tools that a provider lists, as its server describes them; nothing here is trusted yet."""

from dataclasses import dataclass, field
from typing import Any

from backstay.policies.command_lists import CommandLists
from toolbox.providers.declaration import Declaration


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
