"""An MCP server for mail and chat; argv: in which shape its tools are named, `plain` or `composio`."""

import os
import sys
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

server = MCPServer("people")
calls: list[dict[str, Any]] = []
reading = ToolAnnotations(read_only_hint=True)


def note(context: Context, **given: Any) -> dict[str, Any]:
    meta = context.request_context.meta or {}
    calls.append(given | {"effect": meta.get("backstay/effect-id")})
    return calls[-1]


def plain() -> None:
    @server.tool()
    def send_email(
        context: Context, to: list[str], subject: str, body: str, cc: list[str] | None = None, html: bool = False
    ) -> dict[str, Any]:
        """Send an email."""
        if subject == "refuse":
            raise ToolError("the mailbox is full")
        if subject == "die":
            os._exit(1)
        return note(context, to=to, subject=subject, cc=cc, html=html) | {"message_id": "m1"}

    @server.tool(annotations=reading)
    def search_emails(context: Context, query: str, limit: int) -> dict[str, Any]:
        """Search mail."""
        return note(context, query=query, limit=limit)

    @server.tool()
    def post_message(context: Context, channel: str, text: str, thread_ts: str | None = None) -> dict[str, Any]:
        """Post."""
        return note(context, channel=channel, text=text, thread_ts=thread_ts) | {"ts": "1.5"}


def composio() -> None:
    def wrapped(data: dict[str, Any] | None, error: str | None = None) -> dict[str, Any]:
        return {"data": data or {}, "successful": error is None, "error": error}

    @server.tool(name="GMAIL_SEND_EMAIL")
    def send_email(
        context: Context,
        recipient_email: str,
        subject: str,
        body: str,
        extra_recipients: list[str] | None = None,
        cc: list[str] | None = None,
        is_html: bool = False,
    ) -> dict[str, Any]:
        """Send an email using Gmail."""
        if subject == "refuse":
            return wrapped(None, "the mailbox is full")
        more = extra_recipients or []
        return wrapped(note(context, to=[recipient_email, *more], subject=subject, cc=cc, html=is_html) | {"id": "m1"})

    @server.tool(name="GMAIL_FETCH_EMAILS")
    def fetch(context: Context, query: str, max_results: Annotated[int, Field(le=500)] = 1) -> dict[str, Any]:
        """Fetch emails."""
        return wrapped(note(context, query=query, limit=max_results))

    @server.tool(name="SLACK_SEND_MESSAGE")
    def post(context: Context, channel: str, text: str, thread_ts: str | None = None) -> dict[str, Any]:
        """Send a message."""
        return wrapped(note(context, channel=channel, text=text, thread_ts=thread_ts) | {"ts": "1.5"})

    @server.tool(name="SLACK_SEARCH_MESSAGES")
    def search(context: Context, query: str, count: int = 1) -> dict[str, Any]:
        """Search messages."""
        return wrapped(note(context, query=query, limit=count))

    @server.tool(name="SLACK_DELETES_A_MESSAGE_FROM_A_CHAT")
    def delete(context: Context, channel: str, ts: str) -> dict[str, Any]:
        """Delete a message."""
        return wrapped(note(context, deleted=[channel, ts]))


{"plain": plain, "composio": composio}[sys.argv[1]]()
server.run("stdio")
