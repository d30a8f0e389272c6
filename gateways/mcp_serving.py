"""What the MCP servers here have in common: how tools answer, and how one client is served over stdio."""

import json
from typing import Any

from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


def answered(told: dict[str, Any], *, is_error: bool = False) -> types.CallToolResult:
    """Return what a tool answers: as structured content, and as text for clients that read no other."""
    text = json.dumps(told, ensure_ascii=True)
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=told, is_error=is_error)


def failed(why: str) -> types.CallToolResult:
    """Return the answer of a tool that could not do what it was asked for."""
    return types.CallToolResult(content=[types.TextContent(type="text", text=why)], is_error=True)


async def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it leaves."""
    try:
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())
    except* BrokenPipeError:
        # It has left amid an answer.
        pass
