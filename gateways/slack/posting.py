"""Post a thing once to a channel, and change it there afterwards.

The place of a message is recorded right after Slack has taken it. Should the process die in between, the next one looks
for the message in the channel, by the name that each carries in its metadata, before it posts another.
"""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.models.blocks import Block
from slack_sdk.models.metadata import Metadata
from slack_sdk.web.async_client import AsyncWebClient

from backstay.shown import one_line
from gateways.slack.drawing.page import escaped, section
from people.notices.delivering import NotTaken
from people.notices.posting import put
from store.notices.posts import ChatPost, PostKind, Posts

EVENT = "backstay_post"
"""The type of the metadata that names a message."""
_OF_PAGE = 200
_MOST_PAGES = 20
_LOOKED_BACK_S = 24 * 3600
_TOO_MUCH = frozenset({"invalid_blocks", "msg_too_long", "msg_blocks_too_long", "invalid_blocks_format"})
_NEVER_MIND = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})
FAILURES = (SlackClientError, aiohttp.ClientError, OSError)
"""How a call of Slack's API fails: it is refused, it is not answered in time, or the connection breaks."""
log = structlog.get_logger("backstay.slack")


class SlackClient(AsyncWebClient):
    """Call Slack's API; whatever something in front of Slack answers is a failure, too, also with status 200."""

    async def _request(self, *, http_verb: str, api_url: str, req_args: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await super()._request(http_verb=http_verb, api_url=api_url, req_args=req_args)
        except UnicodeDecodeError:
            raise SlackClientError("an answer in characters that are not those it names") from None
        # Of an answer in plain text, the library asks as of a dictionary whether it is a refusal.
        return answer if isinstance(answer["data"], dict) else {**answer, "data": {}}


def status_of(error: SlackApiError) -> int:
    """Return the HTTP status of a refusal."""
    response: Any = error.response
    # Of an answer that calls itself JSON and is none, the library hands on what the HTTP client returned.
    return int(response.status_code if hasattr(response, "status_code") else response.status)


def code_of(error: SlackApiError) -> str:
    """Return the code of a refusal, or its HTTP status where it is not in the words of Slack, such as a proxy's."""
    return _slack_code(error) or f"HTTP {status_of(error)}"


def is_refusal(error: Exception) -> bool:
    """Return whether Slack itself does not do what it is asked, so that it would not the next time."""
    return isinstance(error, SlackApiError) and status_of(error) == 200 and bool(_slack_code(error))


def _slack_code(error: SlackApiError) -> str:
    data: Any = getattr(error.response, "data", None)
    return str(data.get("error") or "") if isinstance(data, dict) else ""


def not_taken(error: Exception) -> NotTaken:
    """Return the reason why Slack did not take something, and when it wants to be asked again."""
    if not isinstance(error, SlackApiError):
        return NotTaken(f"Slack cannot be reached: {type(error).__name__}")
    after = error.response.headers.get("Retry-After", "") if status_of(error) == 429 else ""
    return NotTaken(f"Slack refuses: {code_of(error)}", float(after) if after.isdecimal() else None)


class Channel:
    """Post to one channel."""

    def __init__(self, client: AsyncWebClient, posts: Posts, receiver: str, channel: str) -> None:
        """`receiver` is the name under which the store knows this channel."""
        self.client = client
        self.posts = posts
        self.receiver = receiver
        self.id = channel

    def named(self, kind: PostKind, name: str, run: str, **more: Any) -> ChatPost:
        """Return what is to be posted under a name."""
        return ChatPost(receiver=self.receiver, name=f"{kind}/{name}", kind=kind, run=run, **more)

    async def put(
        self,
        wanted: ChatPost,
        text: str,
        blocks: Sequence[Block],
        *,
        thread: str = "",
        broadcast: bool = False,
        once: bool = False,
        **shows: Any,
    ) -> str:
        """Post a thing, or change its message; return its place. With `once`, what is there is left alone.

        `shows` is what is to be remembered of it: `drawn` or `event`. Raises NotTaken.
        """

        async def write(post: ChatPost) -> str:
            ts = post.ts or await self._found(post, thread)
            if not ts:
                return await self._post(post, text, blocks, thread=thread, broadcast=broadcast)
            return ts if once else await self._change(post, ts, text, blocks)

        try:
            return await put(self.posts, wanted, write, channel=self.id, **shows)
        except FAILURES as error:
            raise not_taken(error) from None

    async def _post(self, post: ChatPost, text: str, blocks: Sequence[Block], *, thread: str, broadcast: bool) -> str:
        more: dict[str, Any] = {"thread_ts": thread} if thread else {}
        if thread and broadcast:
            more["reply_broadcast"] = True
        metadata = Metadata(event_type=EVENT, event_payload={"name": _name_of(post)})
        answer = await self._say("chat_postMessage", text, blocks, channel=self.id, metadata=metadata, **more)
        return str(answer["ts"])

    async def _change(self, post: ChatPost, ts: str, text: str, blocks: Sequence[Block]) -> str:
        try:
            await self._say("chat_update", text, blocks, channel=post.channel or self.id, ts=ts)
        except SlackApiError as error:
            # Somebody deleted it, which is not a reason to say it again.
            if code_of(error) not in _NEVER_MIND:
                raise
        return ts

    async def _say(self, method: str, text: str, blocks: Sequence[Block], **more: Any) -> Any:
        call = getattr(self.client, method)
        said: dict[str, Any] = {"text": escaped(one_line(text, 300)), "parse": "none", "link_names": False, **more}
        if method == "chat_postMessage":
            said |= {"unfurl_links": False, "unfurl_media": False, "mrkdwn": False}
        try:
            return await call(**said, blocks=list(blocks))
        except SlackApiError as error:
            if code_of(error) not in _TOO_MUCH:
                raise
            # People must learn of it even so; the buttons go, since what they decide cannot be seen.
            log.exception("slack.too_much", method=method)
            short = f"{one_line(text, 300)}\n\nSlack takes no message of all this; look at it elsewhere."
            return await call(**said, blocks=[section(short)])

    async def _found(self, post: ChatPost, thread: str) -> str:
        """Return the place of what a process posted that died before it recorded this; empty when nothing is found."""
        if post.tries == 0:
            return ""
        oldest = str(max(float(thread or 0), time.time() - _LOOKED_BACK_S))
        try:
            if thread:
                return await self._looked_up(post, self.client.conversations_replies, ts=thread, oldest=oldest)
            return await self._looked_up(post, self.client.conversations_history, oldest=oldest)
        except SlackApiError as error:
            code = code_of(error)
            if thread and code == "thread_not_found":
                # Somebody has deleted its head, and Slack posts into the channel what is meant for such a thread.
                return await self._found(post, "")
            if code != "missing_scope":
                raise
            log.warning("slack.cannot_look", needs="channels:history", post=post.name)
            return ""

    async def _looked_up(self, post: ChatPost, pages: Callable[..., Awaitable[Any]], **look: Any) -> str:
        """Return the place of a message in a thread, which comes oldest first, or in the channel, newest first."""
        for _ in range(_MOST_PAGES):
            answer = await pages(channel=self.id, limit=_OF_PAGE, include_all_metadata=True, **look)
            messages: list[dict[str, Any]] = answer.get("messages") or []
            for message in messages:
                if _carried(message) == _name_of(post):
                    return str(message["ts"])
            look["cursor"] = (answer.get("response_metadata") or {}).get("next_cursor")
            if not look["cursor"]:
                break
        return ""


def _carried(message: dict[str, Any]) -> str:
    metadata = message.get("metadata") or {}
    return str((metadata.get("event_payload") or {}).get("name", "")) if metadata.get("event_type") == EVENT else ""


def _name_of(post: ChatPost) -> str:
    """Return the name of a post as its metadata carry it, which everybody in the channel can read."""
    return hashlib.sha256(f"{post.receiver}\n{post.name}".encode()).hexdigest()[:32]
