"""Find tools and call them: providers, catalog, search. Imports no workflow engine and no model client.

May import: backstay, system.
"""

import importlib
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from toolbox.manifest.builder import RefreshedManifest, ToolboxBuilder
    from toolbox.manifest.introspection import get_method_info, list_domains, list_methods
    from toolbox.toolbox import Toolbox

__all__ = ["RefreshedManifest", "ToolboxBuilder", "get_method_info", "list_domains", "list_methods", "search_tools"]

_HOMES = {
    "manifest.builder": ("Refreshed", "ToolboxBuilder"),
    "manifest.introspection": ("get_method_info", "list_domains", "list_methods"),
}


def __getattr__(name: str) -> Any:
    # Names are loaded when they are asked for: a process that checks a schema does not load what writes bindings.
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"toolbox.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


async def search_tools(
    query: str,
    detail_level: Literal["summary", "full"] = "summary",
    limit: int = 10,
    user_id: str = "singleton",
    *,
    toolbox: "Toolbox",
) -> list[dict[str, Any]]:
    """Return the tools that fit the query, best first, as plain JSON."""
    catalog = await toolbox.catalog(user_id)
    return [hit.plain() for hit in catalog.search(query, detail_level, limit)]
