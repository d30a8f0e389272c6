"""Read all tools a server lists, however it pages."""

from typing import Any

from mcp import Client
from mcp.types import Tool

from toolbox.providers.listed import Hints, Listed
from toolbox.providers.plain import plain

_PAGES = 1000
_TOOLS = 20_000


async def list_all_tools(client: Client) -> tuple[Listed, ...]:
    """Return every tool once, in the server's order; a paginator that never ends is an error."""
    found: dict[str, Listed] = {}
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


def _listed(tool: Tool) -> Listed:
    hints: Any = tool.annotations
    return Listed(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=plain(tool.input_schema),
        output_schema=plain(tool.output_schema),
        hints=Hints()
        if hints is None
        else Hints(
            read_only=hints.read_only_hint,
            destructive=hints.destructive_hint,
            idempotent=hints.idempotent_hint,
            open_world=hints.open_world_hint,
        ),
    )
