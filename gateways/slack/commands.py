"""The command that people write in Slack: start a run, list runs, undo one."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond

from backstay.client import Backstay, Run
from backstay.errors import BackstayError, RunNotFound, TaskInvalid
from backstay.shown import message_line, one_line
from gateways.slack.board import RunChannel
from gateways.slack.drawing.page import escaped, literally
from gateways.slack.people import People
from gateways.slack.place import event_of
from gateways.slack.posting import FAILURES
from people.notices.delivering import NotTaken
from people.notices.posting import is_first
from people.runs.words import undone_line
from store.runs.runs import RunRow
from store.store import Store

COMMAND = "/backstay"
USAGE = f"{COMMAND} run TEXT  ·  {COMMAND} list  ·  {COMMAND} undo RUN (its id or the beginning of it, or last)"
SHOWN_S = 30.0
"""How long a run that was started here has until its thread is begun by somebody else: by its first request."""
_LISTED = 10
_LOOKED_AT = 300
log = structlog.get_logger("backstay.slack")
Body = Mapping[str, Any]


class Commands:
    """Act for people who write commands; the answers are for them alone."""

    def __init__(self, backstay: Backstay, store: Store, board: RunChannel, people: People) -> None:
        """`backstay` signs what it sends in the name of the person."""
        self._backstay = backstay
        self._store = store
        self._board = board
        self._people = people

    def listen(self, app: AsyncApp) -> None:
        """Have the app call us."""
        app.command(COMMAND)(self._heard)

    async def _heard(self, ack: AsyncAck, body: Body, respond: AsyncRespond) -> None:
        await ack()

        async def say(text: str) -> None:
            await respond(text=escaped(text), blocks=literally(text), response_type="ephemeral")

        verb, rest = [*str(body.get("text") or "").split(None, 1), "", ""][:2]
        doing: Callable[[Body, str, str, Any], Awaitable[None]] | None
        doing = {"run": self._run, "list": self._list, "undo": self._undo}.get(verb.lower())
        try:
            if doing is None:
                await say(USAGE)
                return
            by = await self._people.principal(str(body["user_id"]), [body.get("team_id")])
            await doing(body, by, rest.strip(), say)
        except (BackstayError, NotTaken) as error:
            await say(message_line(str(error), 1500))
        except FAILURES as error:
            log.warning("slack.unheard", error=type(error).__name__)

    async def _run(self, body: Body, by: str, text: str, say: Callable[[str], Awaitable[None]]) -> None:
        """Start a run for the person; the same command delivered twice starts one."""
        if not text:
            raise TaskInvalid(f"write what is to be done: {COMMAND} run TEXT")
        workflow_id = event_of(body["user_id"], body.get("trigger_id"))
        run = self._backstay.run(workflow_id)
        with suppress(RunNotFound):
            await run.is_open()
            await say(f"{workflow_id} was started by this command already")
            return
        await self._backstay.start({"text": text, "user_id": by, "by": by}, workflow_id, once=True)
        await say(f"Started {workflow_id}; its steps and what it asks come into its thread")
        await self._begin_thread(run, str(body["user_id"]))

    async def _begin_thread(self, run: Run, user: str) -> None:
        """Begin the thread of a new run, once a worker has opened it: then it can be named, and holds no secret."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SHOWN_S):
                while True:
                    with suppress(BackstayError):
                        status = await run.status()
                        if await self._store.runs.get(run.id, status.run_id) is not None:
                            await self._board.thread(f"{run.id}/{status.run_id}", started_by=user)
                            return
                    await asyncio.sleep(0.5)

    async def _list(self, _body: Body, by: str, _rest: str, say: Callable[[str], Awaitable[None]]) -> None:
        """Say which runs the person has started, and how many requests wait."""
        rows = _started(await self._store.runs.newest(_LOOKED_AT, user_id=by))[:_LISTED]
        waiting = await self._store.requests.count_open()
        lines = [_line(row) for row in rows] or [f"No run for {by} yet; start one with {COMMAND} run TEXT"]
        await say("\n".join([*lines, f"{waiting} requests wait for people"]))

    async def _undo(self, body: Body, by: str, name: str, say: Callable[[str], Awaitable[None]]) -> None:
        """Undo what a run did, as far as the policy lets this person."""
        row = await self._found(name, by)
        if not await self._first(body, row.run):
            await say("this command was done already")
            return
        run = self._backstay.run(row.workflow_id)
        with suppress(NotTaken):
            await self._board.thread(row.run)
        if await run.is_known_as_open():
            undone = await run.undo(by=by)
            await say("\n".join([f"Undone of {row.workflow_id}, which goes on:", *map(undone_line, undone)]))
            return
        await run.start_undo(by=by)
        await say(f"Undoing {row.workflow_id}; the thread of the run says what comes of it")

    async def _first(self, body: Body, run: str) -> bool:
        """Return whether a command was not delivered before; a later one may find more to undo."""
        channel = self._board.channel
        event = event_of(body["user_id"], body.get("trigger_id"))
        return await is_first(channel.posts, channel.named("command", event, run))

    async def _found(self, name: str, by: str) -> RunRow:
        """Return the only run whose id begins so, or the last one of this person; raises RunNotFound or TaskInvalid."""
        if not name:
            raise TaskInvalid(f"name a run: {COMMAND} undo RUN")
        if name == "last":
            rows = _started(await self._store.runs.newest(_LOOKED_AT, user_id=by))[:1]
        elif (exact := await self._store.runs.get(name)) is not None:
            rows = [exact]
        else:
            found = await self._store.runs.page(words=name, limit=_LOOKED_AT)
            if len(found) == _LOOKED_AT:
                raise TaskInvalid(f"{one_line(name, 100)} is found in too many runs; give more of the id")
            # The names of sub-runs begin with that of the run that delegated to them.
            rows = _started([row for row in found if row.workflow_id.startswith(name)])
        ids = sorted({row.workflow_id for row in rows})
        if not rows:
            raise RunNotFound(f"there is no run {one_line(name, 100)}; {COMMAND} list shows yours")
        if len(ids) > 1:
            raise TaskInvalid(f"several runs begin with {one_line(name, 100)}: {', '.join(ids[:3])}; give more of it")
        return rows[0]


def _started(rows: Sequence[RunRow]) -> list[RunRow]:
    """Return the runs that no other one of these has delegated to."""
    names = {row.workflow_id for row in rows}
    return [row for row in rows if row.part_of not in names]


def _line(row: RunRow) -> str:
    if row.result is None:
        outcome = "open" if row.lost_at is None else "ended in Temporal"
    else:
        outcome = str(row.result.get("outcome", "closed"))
    return f"{row.workflow_id}  {outcome}  {one_line(str(row.opened.get('task_line') or row.text), 120)}"
