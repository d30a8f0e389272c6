"""Tell people and other programs what becomes of a run, in order, beside its work."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals.notice import NoticeDraft, Told
from workflows.activity_calls import ActivityCalls
from workflows.state import RunState

RETRY_AFTER = timedelta(minutes=1)
"""How long to wait when the store did not take notices for longer than a transient fault lasts."""
MOST_AT_ONCE = 20
"""How many notices one activity writes; each may hold a whole request."""


class Notices:
    """Number what is told, and have it written in that order; one activity at a time writes."""

    def __init__(self, state: RunState, activities: ActivityCalls) -> None:
        """Share the state of the run."""
        self.state = state
        self.activities = activities
        self._sending: asyncio.Task[None] | None = None
        self._hurry = False
        """Whether the run ends, so that nothing is tried again here."""

    @property
    def under_way(self) -> bool:
        """Return whether an activity writes notices now."""
        return self._sending is not None and not self._sending.done()

    def add(self, event: Told, **more: Any) -> None:
        """Have something told from now on."""
        if self.keep(event, **more):
            self.resume()

    def resume(self) -> None:
        """Have written what is left, where nothing does so yet."""
        if self.state.notices and not self.under_way:
            self._sending = asyncio.create_task(self._send())

    def keep(self, event: Told, **more: Any) -> bool:
        """Keep a notice for whatever writes the next ones; return whether the run tells anything at all."""
        if not self.state.opened.notices:
            return False
        at = workflow.now().isoformat(timespec="milliseconds")
        draft = NoticeDraft(sequence=self.state.next_notice, event=event, at=at, **more)
        self.state.next_notice += 1
        self.state.notices.append(draft)
        return True

    async def settled(self) -> None:
        """Wait until nothing writes notices, so that what is written next comes after them."""
        self._hurry = True
        if self._sending is not None:
            await workflow.wait([self._sending])

    async def _send(self) -> None:
        info = workflow.info()
        while drafts := tuple(self.state.notices[:MOST_AT_ONCE]):
            ask = calls.Announce(workflow_id=info.workflow_id, run_id=info.first_execution_run_id, notices=drafts)
            told = ", ".join(draft.event.value for draft in drafts[:3])
            try:
                await self.activities.execute_once(calls.announce, ask, summary=f"tell: {told}", counted=False)
            except ApplicationError as error:
                self.state.record("approval.unannounced", error.message, workflow.now(), count=len(drafts))
                if await self._given_up():
                    return
            else:
                self.confirm(drafts)

    async def _given_up(self) -> bool:
        """Wait before the next try; return whether the run ends first, and what ends it writes the rest."""
        try:
            await workflow.wait_condition(lambda: self._hurry, timeout=RETRY_AFTER, timeout_summary="tell again")
        except TimeoutError:
            return False
        return True

    def confirm(self, written: tuple[NoticeDraft, ...]) -> None:
        """Drop notices that an activity has written."""
        numbers = {draft.sequence for draft in written}
        self.state.notices = [draft for draft in self.state.notices if draft.sequence not in numbers]
