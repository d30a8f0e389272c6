"""Read the tools of an MCP server, page by page."""

from dataclasses import dataclass
from typing import Any

from mcp import Client, MCPError
from mcp.types import METHOD_NOT_FOUND, Tool

from backstay.shown import one_line
from toolbox.mcp.pages import FRESH_MS, LEFT_OUT, MORE, NAMED
from toolbox.providers.json_safe import json_safe
from toolbox.providers.listing import ListedTool, ToolAnnotations

_PAGES = 1000
_TOOLS = 20_000


@dataclass(frozen=True, slots=True)
class ToolListing:
    """Hold the tools of a server, what is wrong with the others, and for how long that counts."""

    tools: tuple[ListedTool, ...]
    problems: tuple[str, ...]
    """Each in words that follow the name of the server."""
    fresh_s: float


async def list_all_tools(client: Client) -> ToolListing:
    """Return every tool once, in the server's order; of a list without an end, as many as were read."""
    found: dict[str, ListedTool] = {}
    problems: list[str] = []
    unnamed = 0
    fresh_ms: list[int] = []
    seen = set[str]()
    cursor: str | None = None
    for _ in range(_PAGES):
        try:
            page = await client.list_tools(cursor=cursor, cache_mode="bypass")
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and _has_no_tools(client):
                break
            raise
        if client.session.discover_result is not None:  # older revisions have no such field
            fresh_ms.append(page.ttl_ms)
        said = page.meta or {}
        problems += said.get(LEFT_OUT, ())
        unnamed += said.get(MORE, 0)
        for tool in page.tools:
            found.setdefault(tool.name, _listed(tool))
        # Many servers write an empty cursor where there is no other page.
        if not page.next_cursor:
            break
        cursor = page.next_cursor
        if cursor in seen or len(found) > _TOOLS:
            problems.append(f": its list has no end; the {len(found)} tools that were read are offered")
            break
        seen.add(cursor)
    kept = problems[:NAMED]
    unnamed += len(problems) - len(kept)
    more = [f": {unnamed} more entries of its list are left out"] if unnamed else []
    told = tuple(one_line(problem, 300) for problem in (*kept, *more))
    return ToolListing(tuple(found.values()), told, min(fresh_ms, default=FRESH_MS) / 1000)


def _has_no_tools(client: Client) -> bool:
    """Return whether a server says that it offers other things than tools."""
    offered = client.server_capabilities
    return offered.tools is None and (offered.resources is not None or offered.prompts is not None)


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
