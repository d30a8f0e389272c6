"""Offer the methods of a service as the tools of an MCP server over stdio."""

import functools
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from examples.office.book import Refused, refused

Method = Callable[..., Awaitable[dict[str, Any]]]
READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
DELETES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)


def offer(server: MCPServer, annotations: ToolAnnotations, **methods: Method) -> None:
    """Offer methods under the names of the service's tools."""
    for name, method in methods.items():
        server.tool(name=name, annotations=annotations)(_in_envelope(method))


def _in_envelope(method: Method) -> Method:
    @functools.wraps(method)
    async def answer(*args: Any, **arguments: Any) -> dict[str, Any]:
        try:
            return await method(*args, **arguments)
        except Refused as error:
            return refused(error)

    return answer


def file_of(variable: str, name: str) -> Path:
    """Return the file that a variable names, or the usual one."""
    environment = dict(os.environ)  # noqa: TID251 - a separate program, configured by its environment
    return Path(environment.get(variable) or f".backstay/office/{name}")
