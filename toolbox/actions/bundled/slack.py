"""Chat: messages are posted and found as people think of it, over whatever server does it."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field

from toolbox.actions import Tools, action


def _channel(given: str) -> str:
    """Return a channel's name or id without what people write around it."""
    channel = given.strip().lstrip("#").strip()
    if not channel or any(sign.isspace() for sign in channel):
        raise ValueError("a channel is one word, such as general, or an id, such as C024BE91L")
    return channel


Channel = Annotated[str, AfterValidator(_channel)]


@action(undo=("delete_message", {"channel": "{{ result.channel }}", "ts": "{{ result.ts }}"}))
async def post_message(
    tools: Tools,
    channel: Channel,
    text: Annotated[str, Field(min_length=1, max_length=40_000)],
    thread_ts: Annotated[str | None, Field(description="the time stamp of the message to answer")] = None,
) -> Any:
    """Post a message to a channel, or into a thread."""
    posted = await tools.write("post_message", channel=channel, text=text, thread_ts=thread_ts)
    # A server may leave out what the caller knows; what would take the message back needs both.
    return {"channel": channel, **posted} if isinstance(posted, dict) else posted


@action(safety="read_only")
async def search_messages(tools: Tools, query: str, limit: Annotated[int, Field(ge=1, le=100)] = 20) -> Any:
    """Search the messages that the account may read."""
    return await tools.read("search_messages", query=" ".join(query.split()), limit=limit)


@action()
async def delete_message(
    tools: Tools, channel: Channel, ts: Annotated[str, Field(description="the message's time stamp")]
) -> Any:
    """Delete a message that the account posted."""
    return await tools.write("delete_message", channel=channel, ts=ts)
