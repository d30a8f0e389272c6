"""Read all tools that a server lists, over all pages."""

from typing import Any

from mcp import Client
from mcp.types import Tool

from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import ListedTool, ToolAnnotations

_PAGES = 1000
_TOOLS = 20_000


async def list_all_tools(client: Client) -> tuple[ListedTool, ...]:
    """Return every tool once, in the server's order; a paginator that never ends is an error."""
    found: dict[str, ListedTool] = {}
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        for tool in page.tools:
            found.setdefault(tool.name, _listed(tool))
        if page.next_cursor is None:
            return tuple(found.values())
        if page.next_cursor == cursor or len(found) > _TOOLS:
            break
        cursor = page.next_cursor
    raise ValueError("the list of tools has no end")


def _listed(tool: Tool) -> ListedTool:
    given: Any = tool.annotations
    annotations = ToolAnnotations()
    if given is not None:
        annotations = ToolAnnotations(
            read_only=given.read_only_hint,
            destructive=given.destructive_hint,
            idempotent=given.idempotent_hint,
            open_world=given.open_world_hint,
        )
    return ListedTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=json_safe(tool.input_schema),
        output_schema=json_safe(tool.output_schema),
        annotations=annotations,
    )
