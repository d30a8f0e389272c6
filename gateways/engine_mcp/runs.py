"""The runs of the engine as tasks of callers: each caller has those that it started, and no others."""

import asyncio
import hmac
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mcp import types

from backstay.approvals.admission import NOT_OPEN
from backstay.approvals.approval import ApprovalRequest, RequestKind
from backstay.authority import principal
from backstay.canonical import digest_of
from backstay.client import Backstay
from backstay.errors import (
    ArgumentsInvalid,
    BackstayError,
    DecisionRefused,
    Pruned,
    RunNotFound,
    Transient,
    Unreachable,
)
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.task.reading import Reading, at_path, page_of
from gateways.engine_mcp.own_run import OwnRun
from gateways.engine_mcp.tasks import ServedTask, UnknownTask
from gateways.engine_mcp.views import event_view, questions_of, result_view, verdict_of, waits_for, whole_view
from gateways.links import Seals
from gateways.mcp_serving import answered
from people.decide.looking import hindrance
from people.runs.finding import KnownRun, RunSources, find
from people.runs.listing import list_page
from people.runs.looking import FIRST_LATE, with_newest
from people.runs.starting import in_own_name, start_once
from store.store import Store

MOST_EVENTS = 50
MOST_AFTER = (MOST_EVENTS + 1) * FIRST_LATE - 1
"""The highest `after` that an answer has."""
MOST_LISTED = 20
_LAST_EVENTS = 5
_LOOK_S = 8.0
_NONCE, _MARK = 24, 32
_OURS = "mcp-"
"""How the IDs of runs begin that are started here."""
_ID = re.compile(rf"{_OURS}(?P<nonce>[0-9a-f]{{{_NONCE}}})-(?P<mark>[0-9a-f]{{{_MARK}}})")
_PURPOSE = "mcp-run"
_NOT_FOUND = "there is no such run, or it was not started here by this caller"


class EngineRuns:
    """Start, look at, answer and cancel runs in the names of callers."""

    def __init__(
        self, backstay: Backstay, store: Store, seals: Seals, *, trusted: Collection[str], signs: bool
    ) -> None:
        """`backstay` signs as its connection does. `trusted`: whose words count as the task's own."""
        self._backstay, self._store, self._seals = backstay, store, seals
        # Words that others may have written are not a decision of the caller, so they carry no proof of theirs.
        self._unsigned = Backstay(backstay.client, task_queue=backstay.task_queue)
        self._trusted = frozenset(map(principal, trusted))
        self._signs = signs
        self._sources = RunSources(backstay, store, None)

    async def start(self, caller: str, task: dict[str, Any], *, said: Sequence[str], once: str) -> str:
        """Start a run as the caller, and the same run once for each `once` that is not empty; return its ID.

        `said`: which of `text` and `input` the caller has written.
        """
        nonce = digest_of(["once", once])[:_NONCE] if once else secrets.token_hex(_NONCE // 2)
        workflow_id = f"{_OURS}{nonce}-{self._mark(caller, nonce)}"
        given = {f"{name}_from": "others" for name in said if caller not in self._trusted}
        task = in_own_name({**task, **given}, caller)
        if once:
            return await start_once(self._backstay, self._store, task, workflow_id)
        try:
            return (await self._backstay.start(task, workflow_id)).id
        except Transient as error:
            # The run may have begun and only the answer be lost; another start would start another run.
            raise Unreachable(
                f"{error}; the run may have begun all the same: call follow_run with {workflow_id} before you start it "
                "again"
            ) from None

    def _mark(self, caller: str, nonce: str) -> str:
        return self._seals.mark(_PURPOSE, [caller, nonce])[:_MARK]

    def is_own(self, caller: str, workflow_id: str) -> bool:
        """Return whether a run has the ID that only this server gives, and only to what the caller starts."""
        named = _ID.fullmatch(workflow_id)
        return named is not None and hmac.compare_digest(named["mark"], self._mark(caller, named["nonce"]))

    async def _found(self, caller: str, workflow_id: str) -> KnownRun:
        """Return a run of the caller; raises UnknownTask for every other."""
        if not self.is_own(caller, workflow_id):
            raise UnknownTask(_NOT_FOUND)
        try:
            found = await find(self._sources, caller, workflow_id)
        except RunNotFound:
            raise UnknownTask(_NOT_FOUND) from None
        # Everyone who reaches Temporal can give a run any name, and starts it as somebody else.
        if found.user_id != caller:
            raise UnknownTask(_NOT_FOUND)
        return found

    async def seen(self, caller: str, workflow_id: str) -> OwnRun:
        """Return what is known of a run of the caller; raises UnknownTask."""
        found = await self._found(caller, workflow_id)
        run = self._backstay.run(workflow_id)
        if found.row is not None and found.row.pruned_at is not None:
            return OwnRun(found, failure=Pruned("the run was pruned: what it recorded is gone"))
        if found.row is not None and found.row.result is not None:
            return OwnRun(found, result=found.row.result)
        if found.fault or (found.is_open and found.row is None):
            # Of a run that no worker has begun there is nothing to ask.
            return OwnRun(found, fault=found.fault)
        try:
            async with asyncio.timeout(_LOOK_S):
                if not found.is_open:
                    return OwnRun(found, result=(await run.result()).plain())
                status = await run.status()
        except TimeoutError:
            return OwnRun(found, fault="the run does not answer at the moment")
        except BackstayError as error:
            if found.is_open or not error.final:
                return OwnRun(found, fault=one_line(str(error), 300))
            return OwnRun(found, failure=error)
        questions = tuple(each for each in status.pending if self._may_answer(caller, each))
        return OwnRun(found, status=status, questions=questions)

    def _may_answer(self, caller: str, request: ApprovalRequest) -> bool:
        signs = self._signs and caller in self._trusted
        return request.kind is RequestKind.QUESTION and not hindrance(request, caller, signs=signs)

    async def look(self, caller: str, task: str) -> ServedTask:
        """Return how far a run is, as a task."""
        return (await self.seen(caller, task)).task()

    async def follow(self, caller: str, workflow_id: str, after: int) -> dict[str, Any]:
        """Return how far a run is, with its events after a number."""
        return await self._followed(await self.seen(caller, workflow_id), after)

    async def _followed(self, seen: OwnRun, after: int) -> dict[str, Any]:
        task, workflow_id = seen.task(), seen.found.workflow_id
        events, after = await self._events(seen, after)
        told: dict[str, Any] = {"run": workflow_id, "status": task.status, "message": task.message or task.error}
        if seen.status is not None:
            told |= {"state": seen.status.state.value, "step": seen.status.step}
            told |= {} if seen.status.paused is None else {"paused": one_line(seen.status.paused, 300)}
        told |= {"waits_for": waits_for(seen.people), "questions": questions_of(seen.questions)}
        told["events"] = [event_view(event) for event in events]
        told["after"] = after
        return told | ({} if seen.result is None else {"result": result_view(workflow_id, seen.result)})

    async def _events(self, seen: OwnRun, after: int) -> tuple[list[Event], int]:
        """Return the next events, and the `after` of those behind them.

        That is the number of the last one, and above FIRST_LATE how many late ones were told: those stand outside the
        count, so each time there are more of them, all are told.
        """
        late_told, last = divmod(after, FIRST_LATE)
        events = list[Event]()
        if seen.found.row is not None:
            events = await self._store.events.of_run(seen.found.run, after=last, limit=MOST_EVENTS)
        if len(events) < MOST_EVENTS and seen.status is not None:
            events = with_newest(events, seen.status.last_events, last)[:MOST_EVENTS]
        counted = [event for event in events if event.n < FIRST_LATE]
        late = len(events) - len(counted)
        last = counted[-1].n if counted else last
        return events if late > late_told else counted, max(late, late_told) * FIRST_LATE + last

    async def read(self, caller: str, workflow_id: str, ref: str, path: str, offset: int) -> dict[str, Any]:
        """Return how a run ended, or a page of what it has stored, or of its result where no `ref` is named."""
        seen = await self.seen(caller, workflow_id)
        if ref:
            if seen.found.row is None:
                raise ArgumentsInvalid("ref: this run has stored nothing yet")
            seen.found.row.require_not_pruned()
            whole = await self._store.blobs.of(seen.found.run).named_by_a_person(ref)
        elif seen.result is None:
            task = seen.task()
            words = task.error or task.message or "it works"
            return {"run": workflow_id, "status": task.status, "message": words}
        elif not path:
            return result_view(workflow_id, seen.result)
        else:
            whole = whole_view(seen.result)
        reading = Reading(ref=ref or workflow_id, path=path, offset=offset)
        part = await asyncio.to_thread(page_of, at_path(whole, path), reading)
        return {"run": workflow_id, **part.answer(reading)}

    async def listed(self, caller: str) -> list[dict[str, Any]]:
        """Return the runs that the caller started, the newest first."""

        async def is_own(run: str, user_id: str) -> bool:
            # Temporal does not know the user of a run that no worker has begun.
            return user_id in {caller, ""} and self.is_own(caller, run.rpartition("/")[0])

        page = await list_page(self._backstay, self._store, is_own, user_id=caller, named=_OURS, limit=MOST_LISTED)
        return [
            {
                "run": run["workflow_id"],
                "state": run["state"],
                "text": one_line(str(run["text"]), 200),
                "started_at": run["started_at"],
                "ended_at": run["ended_at"],
            }
            for run in sorted(page.runs, key=lambda run: run["started_at"], reverse=True)[:MOST_LISTED]
        ]

    async def answer(self, caller: str, task: str, responses: Mapping[str, Any]) -> None:
        """Take answers to questions of the model; answers to anything else, or to earlier questions, are ignored."""
        seen = await self.seen(caller, task)
        for question in seen.questions:
            if question.id not in responses:
                continue
            said = verdict_of(question.id, responses[question.id])
            if said is not None:
                try:
                    await self._decide(caller, task, question.id, said)
                except DecisionRefused as error:
                    # Somebody else was faster.
                    if not str(error).startswith(NOT_OPEN):
                        raise

    async def answer_question(self, caller: str, workflow_id: str, question: str, answer: str | None) -> dict[str, Any]:
        """Answer one question of the model, or say that it gets no answer; raises DecisionRefused where none waits."""
        seen = await self.seen(caller, workflow_id)
        if question not in {each.id for each in seen.questions}:
            waiting = ", ".join(each.id for each in seen.questions) or "none"
            raise DecisionRefused(
                f"question: {one_line(question, 40)!r} is not a question that waits for you; waiting: {waiting}"
            )
        verdict = {"verdict": "reject"} if answer is None else {"verdict": "answer", "answer": answer}
        await self._decide(caller, workflow_id, question, verdict)
        return {"run": workflow_id, "question": question, "answered": answer is not None}

    async def _decide(self, caller: str, workflow_id: str, question: str, verdict: Mapping[str, Any]) -> None:
        backstay = self._backstay if caller in self._trusted else self._unsigned
        await backstay.run(workflow_id).decide({"request_id": question, **verdict, "by": caller})

    async def cancel(self, caller: str, task: str) -> bool:
        """Cancel a run, and return whether it was open."""
        is_open = (await self._found(caller, task)).is_open
        if is_open:
            await self._backstay.run(task).cancel()
        return is_open

    async def handle(self, caller: str, task: ServedTask) -> types.CallToolResult:
        """Return how far a run is that goes on, or that was cancelled."""
        seen = await self.seen(caller, task.id)
        told = await self._followed(seen, max(0, int(task.progress) - _LAST_EVENTS))
        if not task.has_ended:
            told["next"] = "the run goes on: call follow_run with this run"
        return answered(told, is_error=task.has_ended)
