"""The toolbox of one user at one moment, as plain data that people and other programs read."""

import difflib
from typing import Any

from pydantic import Field

from backstay.errors import ToolNotFound
from backstay.frozen import Frozen
from backstay.tools.tool import Safety
from toolbox.bindings.binding import BoundParameter

_NEAREST = 3


class ManifestTool(Frozen):
    """Hold all of one tool."""

    name: str
    """`provider.tool`."""
    provider: str
    description: str
    parameters: dict[str, Any] = Field(default_factory=dict)
    """The JSON Schema of the arguments."""
    output_schema: dict[str, Any] | None = None
    safety: Safety
    undo: str | None = None
    """How an effect of it is undone, in one line; None if it cannot be."""
    undo_tool: str | None = None
    verify: str | None = None
    """The read-only call that tells whether an effect took place, in one line."""
    verify_is_final: bool = False
    idempotent: bool = False
    serial: bool = False
    denied: str | None = None
    """The rule of the operator's policy that denies every call of it."""
    path: str
    """Where its own file lies beneath the folder of the manifest."""
    mcp_tool_name: str
    function: str
    """The name under which a model calls it."""
    binding: str
    """The function of `sandbox_py.servers` that calls it: `module.function`."""
    arguments: tuple[BoundParameter, ...] = ()
    """The required ones first."""
    others: bool = False
    """Whether it takes arguments beside these."""
    definition: str
    """First 16 hex digits of the definition's hash."""


class ManifestProvider(Frozen):
    """Describe a provider: what it is, whether it can be used, and what it offers."""

    name: str
    kind: str | None = None
    """None where the provider is not looked at."""
    granted: bool = True
    """Whether the user may see it at all."""
    available: bool = True
    reason: str | None = None
    """Why it is not available."""
    tools: int = 0
    safety: dict[Safety, int] = Field(default_factory=dict)
    """How many tools there are of each class."""
    path: str


class Manifest(Frozen):
    """Hold every provider and every tool of one user; equal versions mean equal definitions."""

    user_id: str
    version: str
    providers: dict[str, ManifestProvider]
    tools: dict[str, ManifestTool]
    """By `provider.tool`, sorted."""
    problems: tuple[str, ...] = ()
    """What an operator should correct, one line each."""

    def of(self, provider: str) -> list[ManifestTool]:
        """Return the tools of one provider, by name."""
        return [tool for tool in self.tools.values() if tool.provider == provider]

    def reason(self, tool: ManifestTool) -> str | None:
        """Return why a tool cannot be called now, or None when it can."""
        if tool.denied is not None:
            return f"denied: {tool.denied}"
        provider = self.providers.get(tool.provider)
        return None if provider is None or provider.available else provider.reason

    def find(self, name: str) -> ManifestTool:
        """Return the tool of a name: `provider.tool`, the name that a model calls, or a tool's own when it is the only.

        Raises ToolNotFound naming what comes close.
        """
        if name in self.tools:
            return self.tools[name]
        same = [tool for tool in self.tools.values() if name in (tool.function, tool.mcp_tool_name, tool.binding)]
        if len(same) == 1:
            return same[0]
        withheld = self.providers.get(name.partition(".")[0])
        if withheld is not None and not withheld.granted:
            raise ToolNotFound(f"{name[:100]!a}: {withheld.name} is not available: {withheld.reason}")
        if same:
            raise ToolNotFound(
                f"{name[:100]!a} is a tool of several providers: {_listed([tool.name for tool in same])}"
            )
        raise ToolNotFound(f"there is no tool {name[:100]!a}; {self._closest(name)}")

    def _closest(self, name: str) -> str:
        if not self.tools:
            return "there are no tools at all"
        own = {tool.mcp_tool_name.casefold(): tool.name for tool in reversed(self.tools.values())}
        known = own | {tool.casefold(): tool for tool in self.tools}
        wanted = name[:200].casefold()
        near = [known[match] for match in difflib.get_close_matches(wanted, known, n=2 * _NEAREST, cutoff=0.5)]
        return f"the closest are {_listed(near)}" if near else f"there are {_listed(list(self.tools))}"


def _listed(names: list[str]) -> str:
    every = list(dict.fromkeys(names))
    return ", ".join(every[:_NEAREST]) + (", ..." if len(every) > _NEAREST else "")
