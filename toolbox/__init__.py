"""Know the tools: providers, catalog, search and calls; no workflow engine and no model in here."""

from typing import Any, Literal

from toolbox.answer import Answer
from toolbox.catalog import Catalog
from toolbox.definition import Definition
from toolbox.outcome import NotSent
from toolbox.provider import Provider, Sent
from toolbox.template import holds, render
from toolbox.toolbox import Toolbox, open_toolbox

__all__ = [
    "Answer",
    "Catalog",
    "Definition",
    "NotSent",
    "Provider",
    "Sent",
    "Toolbox",
    "holds",
    "open_toolbox",
    "render",
    "search_tools",
]


async def search_tools(
    query: str,
    detail_level: Literal["summary", "full"] = "summary",
    limit: int = 10,
    user_id: str = "singleton",
    *,
    toolbox: Toolbox,
) -> list[dict[str, Any]]:
    """Return the tools that fit the query, best first, as plain JSON."""
    catalog = await toolbox.catalog(user_id)
    return [hit.plain() for hit in catalog.search(query, detail_level, limit)]
