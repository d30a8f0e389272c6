"""Post a thing once to a chat, and change it there afterwards, whichever process does it.

The place of a message is recorded right after the chat has taken it. Should the process die in between, the next one is
told that it is not the first: it looks in the chat for the message, where it can, before it posts another.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from people.notices.delivering import NotTaken
from store.notices.posts import ChatPost, Posts

BUSY_S = 2.0
"""How soon to try again what another process posts just now."""


async def put(
    posts: Posts, wanted: ChatPost, write: Callable[[ChatPost], Awaitable[str]], *, channel: str, **shows: Any
) -> str:
    """Have a thing written that nobody else writes just now, and record where it stands; return its place.

    `write` posts what has no place yet, changes what has one, and returns its place. `shows` is what is to be
    remembered of it: `drawn` or `event`. Raises NotTaken while another process is at it, and what `write` raises.
    """
    post = await _claimed(posts, wanted)
    try:
        place = await write(post)
    except Exception:
        # The chat may have taken it even so; the next try looks for it first.
        await posts.release(post)
        raise
    await posts.release(post, channel=channel, ts=place, **shows)
    return place


async def is_first(posts: Posts, wanted: ChatPost) -> bool:
    """Return whether a thing that may be delivered again was not seen before; of several at once, one is the first."""
    claimed = await posts.claim(wanted)
    return claimed is not None and claimed.tries == 0


async def _claimed(posts: Posts, wanted: ChatPost) -> ChatPost:
    """Return a post that is ours to write or change; raises NotTaken while another process does."""
    for _ in range(20):
        if (post := await posts.claim(wanted)) is not None:
            return post
        await asyncio.sleep(BUSY_S / 20)
    raise NotTaken("another process posts this just now", BUSY_S)
