"""Find the tool that a call names, and what its server is told of who calls."""

from typing import Any

from activities.resources import Activities
from backstay.errors import ToolNotFound, ToolUnavailable
from backstay.requests import OfRun
from backstay.tools.own_server import NOT_THEIRS, OWN
from backstay.tools.tool import DELEGATE, ONLY_MODELS_DELEGATE
from toolbox.catalog.catalog import Catalog
from toolbox.catalog.definition import Definition


class ToolActivities(Activities):
    """Base class of activity classes that are about tools."""

    async def callable(self, ask: OfRun, tool: str) -> tuple[Catalog, Definition]:
        """Return a tool that may be called by a run, with its catalog; raises ToolNotFound and ToolUnavailable."""
        catalog, definition = await self.definition(ask, tool)
        if definition.hidden:
            raise ToolNotFound(f"there is no tool {tool[:100]} that may be called here; only the engine calls it")
        return catalog, definition

    async def definition(self, ask: OfRun, tool: str) -> tuple[Catalog, Definition]:
        """Return a tool, also one that only the engine calls; raises ToolNotFound and ToolUnavailable."""
        if tool == DELEGATE:
            raise ToolNotFound(ONLY_MODELS_DELEGATE)
        catalog = await self.catalog(ask, ask.user_id)
        definition = catalog.definitions.get(tool)
        if definition is not None:
            return catalog, definition
        provider = tool.partition(".")[0]
        if provider in catalog.unavailable:
            raise ToolUnavailable(f"{provider}: {catalog.unavailable[provider]}")
        if provider in catalog.withheld:
            raise ToolNotFound(f"{tool[:100]}: {provider} is not available: {catalog.withheld[provider]}")
        if provider.startswith(OWN) and provider not in catalog.kinds:
            raise ToolNotFound(f"{tool[:100]}: {NOT_THEIRS}")
        close = ", ".join(hit.tool for hit in catalog.search(tool, limit=3)) or "none"
        raise ToolNotFound(f"there is no tool {tool[:100]}; the closest are: {close}")


def vouching(definition: Definition, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """Return the arguments of a call whose answer vouches for what it says, but for what it only repeats of them."""
    return arguments if definition.tool.content == "own" else None


def variables_of(effect_id: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what declarations can name of an effect."""
    return {"effect": {"id": effect_id}, "arguments": arguments}
