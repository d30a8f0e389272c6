"""Where in a chat something stands, so that it is posted once there, and changed afterwards by any process.

A process that is about to post claims the name of what it posts. When a process dies between posting and recording the
place, the next one is told that it is not the first, and looks in the chat for what the other may have posted.
"""

import secrets
from collections.abc import Callable
from typing import Any, Literal

from sqlalchemy import Connection, Select, delete, exists, insert, or_, select, update

from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import events, posts, requests
from store.database.transactions import reading, writing

PostKind = Literal["run", "request", "steps", "told", "command"]
LEASE_S = 60.0
"""How long whoever claims a post has to write it."""
FOLLOWED_S = 14 * 86_400.0
"""How long after its last change the steps of a run are still followed."""
_AT_ONCE = 50


class ChatPost(Frozen):
    """Hold one message of a chat, or the right to write it."""

    receiver: str
    """The chat that it is in, by the name under which that receives notices."""
    name: str
    """What it is; the same thing is posted once."""
    kind: PostKind
    run: str
    """The run that it is about, `<workflow id>/<first run id>`."""
    workflow_id: str = ""
    run_id: str = ""
    request_id: str = ""
    channel: str = ""
    ts: str = ""
    """Its place in the channel; empty until it has been posted."""
    drawn: float = 0
    """When what it shows was changed last."""
    event: int = 0
    """The number of the last event that the thread under it shows; of a request, a checksum of its votes."""
    tries: int = 0
    """How often somebody claimed it before it was there."""
    token: str = ""


class Posts:
    """Remember the messages of chats."""

    def __init__(self, database: Database, now: Callable[[Connection], float]) -> None:
        """Read time from `now`, on which all processes agree."""
        self.database = database
        self._now = now

    async def get(self, receiver: str, name: str) -> ChatPost | None:
        """Return a post, also one that is not written yet."""
        found = await self._rows(select(posts).where(posts.c.receiver == receiver, posts.c.name == name))
        return found[0] if found else None

    @writing
    def claim(self, connection: Connection, wanted: ChatPost) -> ChatPost | None:
        """Return a post that this process may write or change now; None while another one does.

        Its `ts` says whether it has been posted, and `tries` how often somebody wanted to before.
        """
        token, named, now = secrets.token_hex(8), _named(wanted), self._now(connection)
        row = connection.execute(select(posts).where(*named).with_for_update()).mappings().first()
        if row is None:
            fresh = wanted.model_copy(update={"token": token, "tries": 1})
            connection.execute(insert(posts).values(**fresh.model_dump(), lease=now + LEASE_S, touched_at=now))
            return fresh.model_copy(update={"tries": 0})
        if row["lease"] > now:
            return None
        tries = row["tries"] + (0 if row["ts"] else 1)
        values = {"lease": now + LEASE_S, "token": token, "tries": tries}
        taken = connection.execute(update(posts).where(*named, posts.c.token == row["token"]).values(**values))
        return _post(row).model_copy(update={"token": token}) if taken.rowcount else None

    @writing
    def release(self, connection: Connection, post: ChatPost, **changed: Any) -> None:
        """Give a claim back, with what has changed: `channel` and `ts`, `drawn`, or `event`."""
        held = (*_named(post), posts.c.token == post.token)
        values = {"lease": 0.0, "token": "", "touched_at": self._now(connection), **changed}
        connection.execute(update(posts).where(*held).values(**values))

    @reading
    def behind(self, connection: Connection, receiver: str, since: float) -> list[tuple[str, str, str]]:
        """Return the requests that a chat shows differently from what they are: workflow id, run id and request id.

        Also those that are open and not shown at all, where they were opened after a unix time.
        """
        of_request = (
            posts.c.receiver == receiver,
            posts.c.workflow_id == requests.c.workflow_id,
            posts.c.run_id == requests.c.run_id,
            posts.c.request_id == requests.c.request_id,
            posts.c.kind == "request",
        )
        stale = exists().where(*of_request, posts.c.drawn < requests.c.changed_at)
        missing = (requests.c.state == "open") & (requests.c.opened_at >= since) & ~exists().where(*of_request)
        chosen = (
            select(requests.c.workflow_id, requests.c.run_id, requests.c.request_id)
            .where(or_(stale, missing), requests.c.changed_at >= since)
            .order_by(requests.c.position)
            .limit(_AT_ONCE)
        )
        return [(row[0], row[1], row[2]) for row in connection.execute(chosen)]

    @reading
    def following(self, connection: Connection, receiver: str) -> list[ChatPost]:
        """Return the runs of a chat that have events which their threads do not show yet."""
        newer = exists().where(events.c.run == posts.c.run, events.c.n > posts.c.event)
        chosen = (
            select(posts)
            .where(posts.c.receiver == receiver, posts.c.kind == "run", posts.c.ts != "")
            .where(posts.c.touched_at > self._now(connection) - FOLLOWED_S, newer)
            .order_by(posts.c.touched_at)
            .limit(_AT_ONCE)
        )
        return self._rows.within(connection, chosen)

    @writing
    def forget(self, connection: Connection, before: float) -> int:
        """Remove what has not changed since a unix time; return how much."""
        return connection.execute(delete(posts).where(posts.c.touched_at < before)).rowcount

    @reading
    def _rows(self, connection: Connection, chosen: Select[Any]) -> list[ChatPost]:
        return [_post(row) for row in connection.execute(chosen).mappings()]


def _named(post: ChatPost) -> tuple[Any, Any]:
    return posts.c.receiver == post.receiver, posts.c.name == post.name


def _post(row: Any) -> ChatPost:
    return ChatPost.model_validate({name: row[name] for name in ChatPost.model_fields})
