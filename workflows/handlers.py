"""The queries, updates and the signal of a run; they take plain JSON and validate it themselves."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls, errors
from backstay.approvals import admission, approvers
from backstay.approvals.voting import with_vote
from backstay.authority import Authority
from backstay.canonical import canonical, longer_than
from backstay.effects.compensation import UndoOutcome, UndoStack
from backstay.plans.plan_run import current_plan
from backstay.shown import one_line
from backstay.task.event import Timeline
from backstay.task.result import usage_shown
from backstay.task.status import State, Status
from workflows.asking.approvals import identity_of
from workflows.asking.hiding import words_without_secrets
from workflows.asking.said import RunCommand, reading_of, said_in
from workflows.calls.rollback import Rollback, unseen
from workflows.context.carrying import Carrying
from workflows.context.run_context import RunContext
from workflows.dispatch.activity_calls import Stopped, answer_of, as_application_error
from workflows.state.state import RunState
from workflows.view import SearchAttributes, details

MOST_CHECKED = 4
"""How many decisions that came by signal are looked at at once."""
MOST_READS = 4
"""How many pages are read at once: each of them stays in history."""
MOST_SAID = 500
"""Characters of a reason that are kept; a Result holds 100 events, each with two of them."""
MOST_HELD = 20_000
"""Characters of a decision that is held back until then."""
STOPS = {"pause": State.PAUSED, "undo": State.UNDOING}
"""The updates that hold the run from when it is known that a person may send them, and to what they bring it."""


class Handlers:
    """Define the queries, updates and the signal of a run."""

    context: RunContext
    carrying: Carrying | None = None
    """Whether and when the run continues as a new execution; None for one that never does."""
    result: dict[str, Any] | None = None
    reads = 0
    """How many reads are under way."""

    def prepare_handlers(self) -> None:
        """Create what the handlers need; call this before anything else."""
        self.attributes = SearchAttributes()
        self.pending_before_undo: tuple[str, ...] = ()

    def show(self) -> None:
        """Update what operators see in the Web UI."""
        # A coroutine that a stopped worker leaves behind is collected any time; its `finally` blocks run amid another
        # run's task.
        if not workflow.in_workflow() or workflow.instance() is not self:
            return
        context = self.context
        workflow.set_current_details(details(context.state, context.approvals.requests, context.working.values()))
        self.attributes.show(self.context.state, len(self.context.approvals.pending))

    @property
    def _closing(self) -> bool:
        return self.carrying is not None and self.carrying.closing

    def _known_state(self) -> RunState:
        """Return the state; raises RunContinuing before it is taken over from the execution before."""
        if not self.context.taken_over:
            raise as_application_error(errors.RunContinuing())
        return self.context.state

    @workflow.query(description="The state of the run, and the requests that wait for a person")
    def status(self) -> dict[str, Any]:
        """Return the status."""
        state = self._known_state()
        return Status(
            namespace=workflow.info().namespace,
            workflow_id=workflow.info().workflow_id,
            run_id=workflow.info().first_execution_run_id,
            refused=state.refused,
            paused=None if state.paused is None else one_line(state.paused, MOST_SAID),
            state=State.WAITING if self.context.approvals.pending and state.state is not State.PAUSED else state.state,
            step=state.usage.step,
            task_progress=tuple(state.progress),
            pending=self.context.approvals.requests,
            usage=usage_shown(state.usage, state.ledger.spent),
            last_events=tuple(state.events[-10:]),
        ).plain()

    @workflow.query(description="Facts that an activity needs before it asks the model after calls")
    def interruption(self) -> dict[str, Any]:
        """Return why the run is held up, empty where it is not, and how often people have told it something."""
        return {"held_up": self.context.held_up, **self.context.activities.heard}

    @workflow.query(name="result", description="How the run ended; null while it is open")
    def result_query(self) -> dict[str, Any] | None:
        """Return the Result, or None."""
        return self.result

    @workflow.query(
        description='What happened, from {"after": n} on; the last 100 events are kept here, all in the store'
    )
    def timeline(self, ask: Any = None) -> dict[str, Any]:
        """Return events after n."""
        after = ask.get("after", 0) if isinstance(ask, dict) else 0
        after = after if isinstance(after, int) else 0
        state = self._known_state()
        events, first = state.events, state.first_event
        kept = events[0].n if events else first
        ref = self.result.get("events_ref") if self.result else None
        late = tuple(event for event in events if event.n > after)
        return Timeline(events=late, first=first, first_kept=kept, events_ref=ref).plain()

    @workflow.query(description="The requests that wait for a person")
    def pending(self) -> list[dict[str, Any]]:
        """Return the open requests."""
        self._known_state()
        return [request.plain() for request in self.context.approvals.requests]

    @workflow.query(description='A call that waits for people, whole: {"id": "r1", "index": 0, "offset": 0}')
    def request(self, ask: Any = None) -> dict[str, Any] | None:
        """Return a part of the arguments' JSON, or None."""
        self._known_state()
        return self.context.approvals.whole_call(ask if isinstance(ask, dict) else {})

    @workflow.query(description="Limits, what is used, what is reserved")
    def budget(self) -> dict[str, Any]:
        """Return budget, usage, the ledger, and the shares of sub-runs under way."""
        state = self._known_state()
        subruns = state.work.subruns
        return {
            "budget": state.budget.plain(),
            "usage": usage_shown(state.usage, state.ledger.spent),
            "reserved_usd": round(state.ledger.reserved / 1e6, 6),
            "active_seconds": round(self.context.stopwatch.seconds, 3),
            **(
                {"delegated": [{"workflow_id": each.workflow_id, **each.share.shown} for each in subruns]}
                if subruns
                else {}
            ),
        }

    @workflow.query(description='A plan by {"plan_id": "p1", "offset": 0}, or the current one; null without a plan')
    def plan(self, ask: Any = None) -> dict[str, Any] | None:
        """Return a plan with the states of its steps, as many from an offset on as fit into an answer."""
        known = ask if isinstance(ask, dict) else {}
        wanted, offset = known.get("plan_id"), known.get("offset", 0)
        offset = offset if isinstance(offset, int) else 0
        plans = self._known_state().plans
        run = current_plan(plans) if wanted is None else next((run for run in plans[::-1] if run.id == wanted), None)
        return None if run is None else run.shown(offset)

    @workflow.query(description="The effects that undo would undo, last first, and those that cannot be undone")
    def undo_preview(self) -> dict[str, Any]:
        """Return the undo stack as people read it."""
        stack = self._known_state().undo
        slots = stack.to_undo()
        ref = self.result.get("effects_ref") if self.result else None
        return {"count": stack.count, "effects": [slot.plain() for slot in slots[:100]], "effects_ref": ref}

    @workflow.update(description='Decide a request: {"request_id": "r1", "verdict": "approve", "by": "you"}')
    async def decide(self, approval: Any = None) -> dict[str, Any]:
        """Accept one decision."""
        return await self._answered(lambda: self.context.approvals.decide(approval, "decide"))

    @decide.validator
    def validate_decide(self, approval: Any = None) -> None:
        """Refuse at once what cannot be accepted, before anything is written to history."""
        if not self._accepts():
            return
        try:
            decision = admission.admit(approval)
            known = self.context.state.answer_to(*identity_of(decision)) is not None
            refused = None if known else self.context.approvals.refusal(decision)
        except errors.BackstayError as error:
            refused = error
        if refused is not None:
            raise as_application_error(refused)

    @workflow.signal(description="The same as the update decide, for senders that cannot wait for an answer")
    async def approval(self, *given: Any) -> None:
        """Accept one decision; a refused one becomes an event."""
        # A signal with several arguments is refused like any other list.
        data = admission.readable(given[0] if len(given) == 1 else given)
        if self.carrying is None:
            return await self._signalled(data)
        self.carrying.signals += 1
        full = self.context.approvals.checking >= MOST_CHECKED
        if full or self._closing or not self.context.taken_over:
            self._hold(data)
        else:
            await self._signalled(data)
        return None

    async def listen(self) -> None:
        """Look at the decisions that were held back, one after the other."""
        while True:
            await workflow.wait_condition(self._looks_at_held)
            await self._signalled(self.context.state.work.take_held())

    def _looks_at_held(self) -> bool:
        held = bool(self.context.state.work.held) and self.context.taken_over
        return held and not self._closing and self.context.approvals.checking < MOST_CHECKED

    async def _signalled(self, data: Any) -> None:
        self.context.approvals.checking += 1
        try:
            await self.context.approvals.decide(data, "approval")
        except errors.RunContinuing:
            self._hold(data)
        except (Exception, Stopped) as error:
            # Anyone can send a signal, and an error raised in its handler would fail the run.
            self._refuse_signal(error)
        finally:
            self.context.approvals.checking -= 1

    def _refuse_signal(self, error: BaseException) -> None:
        self.context.state.record_refusal(one_line(str(error), 300), workflow.now(), type(error).__name__)
        self.context.changed()

    def _hold(self, data: Any) -> None:
        """Hold a decision back until it can be looked at; one that cannot be accepted is refused at once."""
        try:
            approval = admission.admit(data)
            refused = self.context.approvals.refusal(approval) if self.context.taken_over else None
        except errors.BackstayError as error:
            refused = error
        if refused is None and (
            longer_than(data, MOST_HELD) or not self.context.state.work.hold(data, len(canonical(data)))
        ):
            refused = errors.DecisionRefused("too many decisions wait, or this one is too long; send it as an update")
        if refused is not None and self.context.taken_over:
            self._refuse_signal(refused)

    @workflow.update(description='Raise limits: {"max_steps": 5, "by": "you"}')
    async def top_up(self, ask: Any = None) -> dict[str, Any]:
        """Raise limits; a run that waits at a limit goes on from there."""
        with self.context.activities.taking_news():
            return await self._answered(lambda: self._said("top_up", ask, self._top_up))

    @top_up.validator
    def validate_top_up(self, ask: Any = None) -> None:
        """Refuse at once what is malformed, or not this person's to ask."""
        self._refuse("top_up", ask)

    @workflow.update(
        description='Undo and go on: {"to_step": null} undoes everything, {"to_step": 2} what came after step 2'
    )
    async def undo(self, ask: Any = None) -> dict[str, Any]:
        """Undo effects, then continue."""
        return await self._answered(lambda: self._said("undo", ask, self._undo))

    @undo.validator
    def validate_undo(self, ask: Any = None) -> None:
        """Refuse at once what is malformed, or not this person's to ask."""
        self._refuse("undo", ask)

    @workflow.update(description='Hold the run before its next step or call: {"reason": "why"}')
    async def pause(self, ask: Any = None) -> dict[str, Any]:
        """Pause the run."""
        return await self._answered(lambda: self._said("pause", ask, self._pause))

    @pause.validator
    def validate_pause(self, ask: Any = None) -> None:
        """Refuse at once what is malformed, not this person's to ask, or true already."""
        self._refuse("pause", ask, "pause: the run is paused already" if self.context.state.paused else None)

    @workflow.update(description="Let a paused run go on: {}")
    async def resume(self, ask: Any = None) -> dict[str, Any]:
        """Resume the run."""
        return await self._answered(lambda: self._said("resume", ask, self._resume))

    @resume.validator
    def validate_resume(self, ask: Any = None) -> None:
        """Refuse at once what is malformed, not this person's to ask, or true already."""
        paused = self.context.state.paused or State.PAUSED in self.context.stops
        self._refuse("resume", ask, None if paused else "resume: the run is not paused")

    @workflow.update(description='Read what is stored: {"ref": "..."} a result, {"after": 0} events, a page at a time')
    async def read(self, ask: Any = None) -> dict[str, Any]:
        """Return a page of a stored result, or of the events; a page stays in history."""
        return await self._answered(lambda: self._page(ask))

    @read.validator
    def validate_read(self, ask: Any = None) -> None:
        """Refuse at once what is malformed, and more reads at a time than the history can take."""
        if not self._accepts():
            return
        try:
            reading_of(ask)
            if self.reads >= MOST_READS:
                raise errors.DecisionRefused(f"read: {MOST_READS} reads are under way; try again")
        except errors.BackstayError as error:
            raise as_application_error(error) from None

    async def _page(self, ask: Any) -> dict[str, Any]:
        reading = reading_of(ask)
        if not self.context.state.opened.store:
            raise errors.ArgumentsInvalid("read: the run has stored nothing yet")
        self.reads += 1
        try:
            call = calls.ReadPage(reading=reading)
            page = await self.context.activities.execute_in_handler(calls.read_page, call, summary="read a page")
        finally:
            self.reads -= 1
        return page.answer(reading)

    def _accepts(self) -> bool:
        """Return whether an update can be checked now; raises RunContinuing when it must be sent again."""
        if self._closing:
            raise as_application_error(errors.RunContinuing())
        return self.context.taken_over

    async def _answered(self, answer: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Return the answer of an update; nothing is begun that an eviction before the takeover would leave behind."""
        if not self.context.taken_over:
            await workflow.wait_condition(lambda: self.context.taken_over)
        if self.carrying is not None:
            self.carrying.updates += 1
        try:
            told = await answer()
            info = workflow.current_update_info()
            return answer_of("" if info is None else info.name, told)
        except errors.BackstayError as error:
            raise as_application_error(error) from None
        except Stopped:
            raise as_application_error(errors.DecisionRefused("the run is being cancelled")) from None
        except ApplicationError:
            raise
        except Exception as error:
            # Any other exception would fail the workflow task and block the whole run.
            workflow.logger.exception("Failed")
            fault = f"{type(error).__name__}: {error}"
            self.context.state.record_refusal(one_line(fault, 300), workflow.now(), "InternalError")
            raise as_application_error(errors.InternalError(fault)) from None

    async def _said(self, update: str, data: Any, act: Any) -> dict[str, Any]:
        """Check who asks, then act once; a repeat with the same event id or proof gets the stored answer."""
        said, more = said_in(update, data)
        approvals, state = self.context.approvals, self.context.state
        sender = said.by if said.proof is not None else ""
        key = f"{update} {said.event_id or said.proof}" if said.event_id or said.proof else None
        refuse = partial(self._raise_refusal, update, said, more)
        answer = await approvals.answered(sender, key, update, data or {}, refuse)
        if answer is not None:
            return answer
        with self._stopped_by(update, said, more):
            reason, more = await words_without_secrets(self.context.activities, said.by, said.reason, more)
            said = said.model_copy(update={"reason": reason})
            # Meanwhile the same event may have been handled, or another person may have done the same.
            answer = state.answer_to(sender, key)
            if answer is not None:
                return answer
            refuse()
            answer = self._missing_votes(update, said, more) or await act(said, more)
        state.record_decision(
            update,
            said.by,
            workflow.now(),
            verified=said.proof is not None,
            state=str(answer.get("state", "decided")),
            comment=one_line(said.reason, MOST_SAID),
        )
        return state.remember_answer(sender, key, answer)

    def _stopped_by(self, update: str, said: RunCommand, more: dict[str, Any]) -> AbstractContextManager[None]:
        """Hold the run for a pause or an undo that is permitted: looking at its words may take as long as a store."""
        quorum = self._authority(update, said).quorum
        if update not in STOPS or (quorum > 1 and len(self._votes(update, said, more)[1]) < quorum):
            return nullcontext()
        return self.context.stopped_for(STOPS[update])

    def _authority(self, update: str, said: RunCommand) -> Authority:
        """Return whose word an update needs: for an undo of those who decide about the effects that it undoes."""
        run = self.context.approvals.authority
        if update == "top_up":
            return run
        run = run.for_stopping()
        if update != "undo":
            return run
        return self.context.state.undo.authority(said.to_step, run)

    def _raise_refusal(self, update: str, said: RunCommand, more: dict[str, Any]) -> None:
        if (refused := self._refusal(update, said, more)) is not None:
            raise refused

    def _refusal(self, update: str, said: RunCommand, more: dict[str, Any]) -> errors.BackstayError | None:
        starters = self.context.approvals.starters
        refused = approvers.refused_person(self._authority(update, said), said.by, said.proof, starters)
        return refused or unseen(self.context.state.undo, said.to_step, said.last_seen)

    def _refuse(self, update: str, data: Any, needless: str | None = None) -> None:
        """Refuse an update before anything is written to history."""
        if not self._accepts():
            return
        try:
            said, more = said_in(update, data)
            sender = said.by if said.proof is not None else ""
            known = self.context.state.answer_to(sender, f"{update} {said.event_id or said.proof}") is not None
            refused = None if known else self._refusal(update, said, more)
            if refused is None and not known and needless is not None:
                refused = errors.DecisionRefused(needless)
        except errors.BackstayError as error:
            refused = error
        if refused is not None:
            raise as_application_error(refused) from None

    def _missing_votes(self, update: str, said: RunCommand, more: dict[str, Any]) -> dict[str, Any] | None:
        """Count a person who asks for what several must ask for; None when they are enough."""
        quorum = self._authority(update, said).quorum
        if quorum <= 1:
            return None
        what, votes = self._votes(update, said, more)
        if len(votes) >= quorum:
            self.context.state.votes.pop(what, None)
            return None
        self.context.state.keep_votes(what, votes)
        return {"state": "recorded", "by": list(votes), "quorum": quorum}

    def _votes(self, update: str, said: RunCommand, more: dict[str, Any]) -> tuple[str, dict[str, float]]:
        """Return under what the votes for an update are kept, and those there are with this person's."""
        state = self.context.state
        undo = state.undo if update == "undo" else UndoStack()
        # A word is about the effects that stood then: a later one must not be undone by it.
        what = canonical([update, said.to_step, more, undo.digest(said.to_step)])
        hold_s = approvers.words_hold_s(state.opened.policy, {slot.tool for slot in undo.to_undo(said.to_step)})
        return what, with_vote(state.votes.get(what, {}), said.by, workflow.now().timestamp(), hold_s)

    async def _top_up(self, said: RunCommand, more: dict[str, Any]) -> dict[str, Any]:
        return await self.context.top_up(more)

    async def _undo(self, said: RunCommand, more: dict[str, Any]) -> dict[str, Any]:
        context = self.context
        if open_ones := context.state.work.subruns:
            names = one_line(", ".join(child.workflow_id for child in open_ones), 300)
            raise errors.DecisionRefused(f"undo: sub-runs are under way ({names}); wait for them, or cancel them first")
        await self._without_people(lambda: not context.undoing, besides=self.pending_before_undo)
        if context.ending:
            raise errors.DecisionRefused("undo: the run is ending or has ended; start UndoRun then")
        context.undoing = True
        self.pending_before_undo = tuple(context.approvals.pending)
        try:
            with context.activities.undoing():
                await self._without_people(lambda: context.calls_in_flight == 0)
                undone = await self._rolled_back(said)
            context.state.undos += 1
        finally:
            context.undoing = False
        listed = "; ".join(f"{effect.tool}: {effect.state}" for effect in undone.last) or "nothing"
        listed = listed if undone.count == len(undone.last) else f"{undone.count} in all, of these {listed}"
        context.tell(f"A person had effects undone: {listed}. Take this into account.", fact=True)
        return {"undone": [effect.plain() for effect in undone.last]}

    async def _rolled_back(self, said: RunCommand) -> UndoOutcome:
        """Undo effects; raises RunContinuing when people are awaited and the server would soon end the run."""
        undoing = asyncio.ensure_future(Rollback(self.context).undo(said.to_step, said.last_seen))

        def in_danger() -> bool:
            return self.carrying is not None and self.carrying.urgent and self.context.approvals.waiting

        await workflow.wait_condition(lambda: undoing.done() or in_danger())
        if not undoing.done():
            undoing.cancel()
            await workflow.wait([undoing])
            raise errors.RunContinuing
        return await undoing

    async def _without_people(self, until: Callable[[], bool], *, besides: Sequence[str] = ()) -> None:
        """Wait before an undo; raises DecisionRefused when that would be a wait for people, so that nothing hangs.

        The requests `besides` are about something else.
        """
        pending = self.context.approvals.pending
        while not until():
            await workflow.wait_condition(lambda: until() or bool(pending.keys() - set(besides)))
            if not until():
                waits = ", ".join(sorted(pending.keys() - set(besides)))
                raise errors.DecisionRefused(f"undo: what is under way waits for {waits}; decide that first")

    async def _pause(self, said: RunCommand, more: dict[str, Any]) -> dict[str, Any]:
        self.context.state.paused = one_line(said.reason, MOST_SAID) or "no reason given"
        self.context.record("run.paused", self.context.state.paused, by=said.by)
        return {"paused": True}

    async def _resume(self, said: RunCommand, more: dict[str, Any]) -> dict[str, Any]:
        if State.PAUSED in self.context.stops:
            await workflow.wait_condition(lambda: State.PAUSED not in self.context.stops)
        was, self.context.state.paused = self.context.state.paused, None
        if was is not None:
            why = one_line(said.reason, MOST_SAID) or "no reason given"
            self.context.record("run.resumed", why, by=said.by, was=was)
        return {"paused": False, "was": was}
