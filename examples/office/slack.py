"""Slack as an MCP server over stdio, with the tools and answers that Composio gives it.

python examples/office/slack.py

SLACK_FILE is where the channels are kept (default .backstay/office/slack.json); it is made when it is missing.
"""

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

# A script finds modules beside itself only; the checkout has to be added.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mcp.server.mcpserver import MCPServer
from pydantic import Field

from examples.office.book import Book, Refused, answered, page
from examples.office.serving import DELETES, READS, WRITES, file_of, offer

Channel = Annotated[str, Field(description="the id of a channel, such as C02BILLING")]
Timestamp = Annotated[str, Field(description="the ts of a message")]
Most = Annotated[int, Field(ge=1, le=200)]
_CHANNELS = {"general": "C01GENERAL", "billing": "C02BILLING", "support": "C03SUPPORT"}


class Slack:
    """Keep channels and their messages as Slack does; a message is named by its channel and its ts."""

    def __init__(self, book: Book) -> None:
        self._book = book
        channels = [{"id": place, "name": name, "is_channel": True} for name, place in _CHANNELS.items()]
        book.begin({"channels": channels, "messages": [], "made": 0})

    async def list_all_channels(self, limit: Most = 100, cursor: str | None = None) -> dict[str, Any]:
        """List the channels, a page at a time."""
        rows, following = page(self._book.read()["channels"], limit, cursor, "channel")
        return answered(ok=True, channels=rows, response_metadata={"next_cursor": following or ""})

    async def fetch_conversation_history(self, channel: Channel, limit: Most = 20) -> dict[str, Any]:
        """Read the newest messages of a channel."""
        data = self._book.read()
        found = [_shown(message) for message in reversed(_of(data, channel))]
        return answered(ok=True, messages=found[:limit], has_more=len(found) > limit)

    async def search_messages(self, query: str, count: Most = 20) -> dict[str, Any]:
        """Search the messages of all channels."""
        found = [message for message in self._book.read()["messages"] if query.lower() in message["text"].lower()]
        return answered(ok=True, messages={"matches": found[:count], "total": len(found)})

    async def send_message(
        self, channel: Channel, text: Annotated[str, Field(min_length=1)], thread_ts: Timestamp | None = None
    ) -> dict[str, Any]:
        """Post a message to a channel, or into a thread."""
        data = self._book.read()
        _of(data, channel)
        made = data["made"] + 1
        told = {"ts": f"1763640000.{made:06}", "text": text, "thread_ts": thread_ts, "reactions": []}
        message = {"channel": channel, "type": "message", "user": "U0BACKSTAY"} | told
        self._book.write(data | {"messages": [*data["messages"], message], "made": made})
        return answered(ok=True, channel=channel, ts=message["ts"], message=_shown(message))

    async def delete_message(self, channel: Channel, ts: Timestamp) -> dict[str, Any]:
        """Delete a message for good."""
        data = self._book.read()
        message = _message(data, channel, ts)
        self._book.write(data | {"messages": [other for other in data["messages"] if other != message]})
        return answered(ok=True, channel=channel, ts=ts)

    async def add_reaction(self, channel: Channel, name: str, timestamp: Timestamp) -> dict[str, Any]:
        """React to a message with an emoji."""
        data = self._book.read()
        reactions = _message(data, channel, timestamp)["reactions"]
        if name in reactions:
            raise Refused("already_reacted")
        reactions.append(name)
        self._book.write(data)
        return answered(ok=True)

    async def remove_reaction(self, channel: Channel, name: str, timestamp: Timestamp) -> dict[str, Any]:
        """Undo a reaction."""
        data = self._book.read()
        reactions = _message(data, channel, timestamp)["reactions"]
        if name not in reactions:
            raise Refused("no_reaction")
        reactions.remove(name)
        self._book.write(data)
        return answered(ok=True)


def _of(data: dict[str, Any], channel: str) -> list[dict[str, Any]]:
    if channel not in [known["id"] for known in data["channels"]]:
        raise Refused("channel_not_found")
    return [message for message in data["messages"] if message["channel"] == channel]


def _message(data: dict[str, Any], channel: str, ts: str) -> dict[str, Any]:
    for message in _of(data, channel):
        if message["ts"] == ts:
            return message
    raise Refused("message_not_found")


def _shown(message: dict[str, Any]) -> dict[str, Any]:
    return {name: message[name] for name in ("type", "user", "text", "ts")}


def server(book: Book) -> MCPServer:
    """Build the server over one workspace."""
    built, slack = MCPServer("slack", log_level="WARNING"), Slack(book)
    offer(
        built,
        READS,
        SLACK_LIST_ALL_CHANNELS=slack.list_all_channels,
        SLACK_FETCH_CONVERSATION_HISTORY=slack.fetch_conversation_history,
        SLACK_SEARCH_MESSAGES=slack.search_messages,
    )
    offer(
        built,
        WRITES,
        SLACK_SEND_MESSAGE=slack.send_message,
        SLACK_ADD_REACTION_TO_AN_ITEM=slack.add_reaction,
        SLACK_REMOVE_REACTION_FROM_ITEM=slack.remove_reaction,
    )
    offer(built, DELETES, SLACK_DELETES_A_MESSAGE_FROM_A_CHAT=slack.delete_message)
    return built


if __name__ == "__main__":
    asyncio.run(server(Book(file_of("SLACK_FILE", "slack.json"))).run_stdio_async())
