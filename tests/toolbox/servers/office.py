"""An MCP server whose tools answer in every way a server can; argv: stdio, or a port for HTTP and perhaps `sse`."""

import asyncio
import base64
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, Elicit, ElicitationResult, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

PHOTO = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
server = MCPServer("office")
reading = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=reading)
def structured(count: int) -> dict[str, Any]:
    """Return an object."""
    return {"count": count, "id": "0012"}


@server.tool(structured_output=False)
def json_text() -> str:
    """Return JSON as text."""
    return '{"rows": [1, 2, 3]}'


@server.tool(structured_output=False)
def plain_text() -> str:
    """Return words."""
    return "only words"


@server.tool(structured_output=False)
def odd_text() -> str:
    """Return what looks like JSON and cannot be canonical."""
    return '{"a": NaN, "b": "\\ud800"}'


@server.tool()
def picture() -> CallToolResult:
    """Return words, a picture and a link."""
    image = ImageContent(type="image", data="aGVsbG8=", mime_type="image/png")
    link = ResourceLink(type="resource_link", name="plan", uri="office://plan", mime_type="text/plain", size=9)
    return CallToolResult(content=[TextContent(type="text", text="see"), image, link])


@server.resource("office://plan", mime_type="text/plain; charset=utf-8")
def plan() -> str:
    """Say where the desks stand."""
    return "two desks"


@server.resource("office://desks/{name}{?side}")
def desk(name: str, side: str = "left") -> str:
    """Say what lies on a desk."""
    return f"{side} of {name}: a pen"


@server.resource("office://photo", mime_type="image/jpg")
def photo() -> bytes:
    """Show the office; what is said of its bytes is not what they are."""
    return PHOTO


@server.prompt()
def tidy(desk: str, how: str = "well") -> str:
    """Have a desk tidied."""
    return f"Tidy {desk} {how}."


@server.tool()
def refuse() -> str:
    """Report an error over several lines."""
    raise ToolError("the mailbox\nis " + "full " * 400)


@server.tool()
async def hang() -> str:
    """Never answer."""
    await asyncio.Event().wait()
    return "never"


@server.tool()
def die() -> str:
    """End the process in mid-call."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@server.tool(structured_output=False)
def huge(megabytes: int) -> str:
    """Return much text."""
    return "x" * (megabytes * 1024 * 1024)


@server.tool()
def show_meta(context: Context, token: str = "") -> dict[str, Any]:
    """Return what came beside the arguments."""
    meta = context.request_context.meta or {}
    return {"effect": meta.get("backstay/effect-id"), "token": token}


def _environment() -> dict[str, str]:
    pairs = Path("/proc/self/environ").read_text(encoding="utf-8").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


@server.tool()
def show_environment() -> dict[str, Any]:
    """Return the environment, the directory and the process."""
    return {"environment": _environment(), "directory": str(Path.cwd()), "process": os.getpid()}


@server.tool()
async def grow(context: Context) -> str:
    """Offer one more tool and say that the list changed."""
    server.add_tool(plain_text, name="grown")
    await context.notify_tools_changed()
    return "grown"


class Confirmation(BaseModel):
    """What a person is asked before a room is given away."""

    sure: bool


async def _confirmed(room: str) -> Elicit[Confirmation]:
    return Elicit(f"Give away {room}?", Confirmation)


given: list[str] = []
"""Rooms that were given away, one entry each time."""


@server.tool()
async def give_away(room: str, confirmation: Annotated[ElicitationResult[Confirmation], Resolve(_confirmed)]) -> str:
    """Give a room away when a person is sure."""
    if confirmation.action != "accept" or not confirmation.data.sure:
        return "kept"
    given.append(room)
    return f"{room} given {given.count(room)} times"


class Booking(BaseModel):
    """What a person is asked before a room is booked; a number or a yes that comes as a text is refused."""

    model_config = ConfigDict(strict=True)

    name: str
    people: Annotated[int, Field(ge=1, le=12)]
    layout: Literal["rows", "circle"]
    catering: bool


async def _booked(room: str) -> Elicit[Booking]:
    return Elicit(f"How is {room} booked?", Booking)


@server.tool()
async def book(room: str, booking: Annotated[ElicitationResult[Booking], Resolve(_booked)]) -> dict[str, Any]:
    """Book a room as a person says."""
    return {"room": room, "booked": booking.data.model_dump() if booking.action == "accept" else None}


busy: list[int] = [0, 0]
"""How many calls run now, and how many ran at most."""


@server.tool()
async def overlap() -> dict[str, int]:
    """Return how many calls ran at once."""
    busy[0] += 1
    busy[1] = max(busy)
    await asyncio.sleep(0.02)
    busy[0] -= 1
    return {"most": busy[1]}


if __name__ == "__main__":
    sys.stderr.write("office starts\n")
    if sys.argv[1:] == ["stdio"]:
        server.run("stdio")
    else:
        way = "sse" if sys.argv[2:] == ["sse"] else "streamable-http"
        server.run(way, host="127.0.0.1", port=int(sys.argv[1]))
