"""Chat: messages are posted and found as people think of it, over whatever server does it."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from backstay.python_tools.context import ToolContext
from backstay.python_tools.tool import tool


def _channel(given: str) -> str:
    """Return a channel's name or id without what people write around it."""
    channel = given.strip().lstrip("#").strip()
    if not channel or any(sign.isspace() for sign in channel):
        raise ValueError("a channel is one word, such as general, or an id, such as C024BE91L")
    return channel


Channel = Annotated[str, AfterValidator(_channel)]


@tool(writes=("delete_message",))
async def delete_post(result: Any, arguments: dict[str, Any], context: ToolContext) -> Any:
    """Delete the message that was posted."""
    channel = result.get("channel") or arguments["channel"]
    return await context.write("delete_message", channel=channel, ts=result["ts"])


@tool(writes=("post_message",), undo=delete_post)
async def post_message(
    context: ToolContext,
    channel: Channel,
    text: Annotated[str, Field(min_length=1, max_length=40_000)],
    thread_ts: Annotated[str | None, Field(description="the time stamp of the message to answer")] = None,
) -> Any:
    """Post a message to a channel, or into a thread."""
    posted = await context.write("post_message", channel=channel, text=text, thread_ts=thread_ts)
    # A server may leave out what the caller knows; the method that would take the message back needs both.
    return {"channel": channel, **posted} if isinstance(posted, dict) else posted


@tool(safety="read_only", reads=("search_messages",))
async def search_messages(context: ToolContext, query: str, limit: Annotated[int, Field(ge=1, le=100)] = 20) -> Any:
    """Search the messages that the account may read."""
    return await context.read("search_messages", query=" ".join(query.split()), limit=limit)


@tool(writes=("delete_message",))
async def delete_message(
    context: ToolContext, channel: Channel, ts: Annotated[str, Field(description="the message's time stamp")]
) -> Any:
    """Delete a message that the account posted."""
    return await context.write("delete_message", channel=channel, ts=ts)
