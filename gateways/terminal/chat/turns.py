"""The turns of a chat: runs of one session, each of which goes on from the one before."""

import re
import uuid
from typing import Any

from backstay.client import Backstay, Run
from backstay.client.executions import Execution, listed
from backstay.errors import TaskInvalid, Unreachable
from backstay.shown import one_line

_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_MOST = 1000
_LEFT_OUT = {"failed", "terminated", "timed_out"}
"""How runs ended that nothing can go on from."""


def new_session() -> str:
    """Return the name of a new session."""
    return uuid.uuid4().hex[:8]


class Turns:
    """Know the runs of one session, and start the next."""

    def __init__(self, backstay: Backstay, session: str, fields: dict[str, Any]) -> None:
        """Give every run these fields of a Task. Raises TaskInvalid for a session that cannot be named so."""
        if _SESSION.fullmatch(session) is None:
            raise TaskInvalid(
                f"--session: {one_line(session, 80)!r} is not a session name; use up to 60 letters, digits, - _ ."
            )
        self._backstay = backstay
        self.session = session
        self.fields = fields
        self.runs: list[Run] = []
        """Those that were started so far, oldest first."""
        self._unsure: tuple[str, str] | None = None
        """The last message, and the id of its run, where nobody knows whether that was started."""

    @property
    def last(self) -> Run | None:
        """Return the run that the next one goes on from."""
        return self.runs[-1] if self.runs else None

    async def find(self) -> None:
        """Find the turns that there were, without those that nothing can go on from."""
        named = re.compile(rf"chat-{re.escape(self.session)}-([0-9]+)-[0-9a-f]{{6}}")
        query = f"WorkflowType = 'RunTask' AND WorkflowId STARTS_WITH 'chat-{self.session}-'"
        found: dict[str, tuple[int, Execution]] = {}
        async for execution in listed(self._backstay.client, query, _MOST):
            name = execution.workflow_id
            if (turn := named.fullmatch(name)) is None:
                continue
            # A run that continued or was reset has several executions; the newest one says how it is.
            if name not in found or found[name][1].started_at < execution.started_at:
                found[name] = (int(turn[1]), execution)
        kept = [(turn, execution) for turn, execution in found.values() if execution.status not in _LEFT_OUT]
        kept.sort(key=lambda each: (each[0], each[1].started_at))
        self.runs = [self._backstay.run(execution.workflow_id) for _, execution in kept]

    async def start(self, text: str) -> Run:
        """Start the next turn; the same text after a start that was not answered starts no second one."""
        said, name = self._unsure or ("", "")
        self._unsure = None
        if said != text:
            number = int(self.runs[-1].id.rsplit("-", 2)[1]) + 1 if self.runs else 1
            name = f"chat-{self.session}-{number}-{uuid.uuid4().hex[:6]}"
        fields = {field: value for field, value in self.fields.items() if value is not None}
        try:
            if self.last is not None:
                run = await self.last.follow_up(text, id=name, once=True, **fields)
            else:
                task = {"text": text, "session_id": self.session, **fields}
                run = await self._backstay.start(task, name, once=True)
        except Unreachable:
            self._unsure = (text, name)
            raise
        self.runs.append(run)
        return run

    def forget(self, run: Run) -> None:
        """Go on from the turn before, when a run cannot be followed."""
        self.runs = [kept for kept in self.runs if kept.id != run.id]
