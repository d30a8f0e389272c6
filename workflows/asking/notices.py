"""Tell people and other programs what becomes of a run, in order, beside its work."""

import asyncio
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals.notice import NoticeDraft, NoticeKind
from backstay.canonical import canonical
from workflows.dispatch.activity_calls import ActivityCalls
from workflows.state.state import RunState

RETRY_AFTER = timedelta(minutes=1)
"""How long to wait when the store did not take notices for longer than a transient fault lasts."""
MOST_DOUBLED = 4
"""How often that wait doubles; each try makes the history longer."""
MOST_AT_ONCE = 20
"""How many notices one activity writes."""
MOST_CHARACTERS = 400_000
"""How long they may be together, but for the first: each may hold a whole request, and the server refuses 2 MiB."""


class Notices:
    """Number what is told, and have it written in that order.

    Each activity writes everything that none has written yet. It does not wait for the activity before it: the end of
    that one asks for nothing, and of such an empty workflow task an SDK without a cached run makes one with the next,
    while a replay gets both apart. The commands must be the same, in the same order, either way.
    """

    def __init__(self, state: RunState, activities: ActivityCalls) -> None:
        """Share the state of the run."""
        self.state = state
        self.activities = activities
        self._sending: list[asyncio.Task[None]] = []
        self._latest = 0
        """The number of the task that writes whatever is left; those before it write once."""
        self._begun = 0
        """The number of the last task that has begun."""
        self._failed = 0
        self._hurry = False
        """Whether the run ends, so that nothing is tried again here."""

    @property
    def under_way(self) -> bool:
        """Return whether an activity writes notices now."""
        return any(not task.done() for task in self._sending)

    def add(self, event: NoticeKind, **more: Any) -> None:
        """Have something told from now on."""
        if self.keep(event, **more):
            self.resume()

    def resume(self) -> None:
        """Have written what is left, where nothing will do so yet."""
        waits = self._begun < self._latest
        if self.state.notices and not waits:
            self._latest += 1
            self._sending = [task for task in self._sending if not task.done()]
            self._sending.append(asyncio.create_task(self._send(self._latest)))

    def keep(self, event: NoticeKind, **more: Any) -> bool:
        """Keep a notice for whatever writes the next ones; return whether the run tells anything at all."""
        if not self.state.opened.store:
            return False
        self.state.notices.append(self._draft(event, **more))
        self.state.next_notice += 1
        return True

    def with_last(self, event: NoticeKind) -> tuple[NoticeDraft, ...]:
        """Return what is left to be told, and what comes after it, which counts only once it is written."""
        return (*self.state.notices, self._draft(event)) if self.state.opened.store else ()

    def _draft(self, event: NoticeKind, **more: Any) -> NoticeDraft:
        at = workflow.now().isoformat(timespec="milliseconds")
        return NoticeDraft(sequence=self.state.next_notice, event=event, at=at, **more)

    def first(self) -> tuple[NoticeDraft, ...]:
        """Return the first notices that are left, as many as one activity may hold."""
        taken: list[NoticeDraft] = []
        size = 0
        for draft in self.state.notices[:MOST_AT_ONCE]:
            size += len(canonical(draft.plain()))
            if taken and size > MOST_CHARACTERS:
                break
            taken.append(draft)
        return tuple(taken)

    async def settled(self) -> None:
        """Wait until nothing writes notices, so that what is written next comes after them."""
        self._hurry = True
        while self.under_way:
            await workflow.wait(self._sending)
        self._hurry = False

    async def shortened(self) -> None:
        """Write what is more than the activity that ends the run can take with it; raises ApplicationError."""
        while len(drafts := self.first()) < len(self.state.notices):
            await self.activities.execute(calls.announce, self._ask(drafts), summary=self._summary(drafts))
            self.confirm(drafts)

    async def _send(self, number: int) -> None:
        self._begun = number
        while drafts := self.first():
            try:
                summary = self._summary(drafts)
                await self.activities.execute_once(calls.announce, self._ask(drafts), summary=summary, counted=False)
            except ApplicationError as error:
                self.state.record("approval.unannounced", error.message, workflow.now(), count=len(drafts))
                if await self._given_up(number):
                    return
            else:
                self._failed = 0
                self.confirm(drafts)
                if number < self._latest:
                    return

    @staticmethod
    def _ask(drafts: tuple[NoticeDraft, ...]) -> calls.Announce:
        info = workflow.info()
        return calls.Announce(workflow_id=info.workflow_id, run_id=info.first_execution_run_id, notices=drafts)

    @staticmethod
    def _summary(drafts: tuple[NoticeDraft, ...]) -> str:
        return f"tell: {', '.join(draft.event.value for draft in drafts[:3])}"

    async def _given_up(self, number: int) -> bool:
        """Wait before the next try; return whether another task, or what ends the run, writes the rest."""
        wait = RETRY_AFTER * 2 ** min(self._failed, MOST_DOUBLED)
        self._failed += 1
        try:
            await workflow.wait_condition(
                lambda: self._hurry or number < self._latest, timeout=wait, timeout_summary="tell again"
            )
        except TimeoutError:
            return False
        return True

    def confirm(self, written: tuple[NoticeDraft, ...]) -> None:
        """Drop notices that an activity has written; their numbers are taken."""
        numbers = {draft.sequence for draft in written}
        self.state.notices = [draft for draft in self.state.notices if draft.sequence not in numbers]
        self.state.next_notice = max({self.state.next_notice, *(number + 1 for number in numbers)})
