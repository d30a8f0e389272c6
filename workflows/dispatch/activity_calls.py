"""Start activities: every activity of a run is started here, and what a run hands to the server is measured here.

Values that people, programs and models send are bounded where they come in. A request that grew large all the same is
refused here, since the server would carry no part of it, and one that the server refuses fails for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

from temporalio import workflow
from temporalio.common import Priority, RawValue
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, TimeoutError, TimeoutType  # noqa: A004  # Temporal's own

from backstay import calls, errors
from backstay.bounds import PAYLOAD
from backstay.calls import EncodedInput
from backstay.requests import OfRun
from backstay.shown import one_line
from backstay.task.result import Failure, Outcome, Result
from backstay.task.task import LAST, URGENT, USUAL
from workflows.dispatch.options import Options, options_for
from workflows.state.state import MOST_UNWRITTEN, RunState
from workflows.state.stopwatch import Stopwatch

Answer = TypeVar("Answer")
TRANSIENT = frozenset(
    {
        "ModelUnavailable",
        "ToolUnavailable",
        "StoreUnavailable",
        "StoreMismatch",
        "WorkerMisfit",
        "NotSent",
        "IsolationUnavailable",
        "ImageMissing",
        "SandboxLost",
        "InternalError",
    }
)
"""What an operator, or a version without the bug, may fix while the run waits."""
MOST_TOLD = 20_000
"""Characters of a failure."""
CLIPPED = 1_000
"""Characters of a summary beside which nothing else fits."""
BUG = errors.InternalError.__name__
LOST = errors.WorkerLost.__name__
BUSY = errors.ToolBusy.__name__
"""A call waits for its turn, however long that takes."""
ASKED_ABOUT = TRANSIENT | {LOST}
BY_OPERATOR = frozenset({"ActivityReset", "ActivityPause"})
"""How the SDK names what an operator did to an activity, which therefore gave no answer."""
AGAIN = timedelta(minutes=1)
"""How long a fault is left alone where no person is there who could be asked about it."""
UNASKED = timedelta(seconds=0.1)
"""An activity that is younger may ask the model without having asked the run for news, since its calls were fast."""


class Stopped(asyncio.CancelledError):
    """The run was cancelled while something that must not be interrupted was under way."""


class Interrupted(Exception):
    """An activity was told to end, and gave no answer."""


class TooLarge(ApplicationError):
    """The request is more than history can hold, so that nothing was begun."""


@dataclass
class _Interruptible:
    since: datetime
    told: bool = False
    """Whether it was told to end; Temporal tells an activity once only."""


class ActivityCalls:
    """Start activities, hand them the events that must be written, and ask a person when a fault lasts."""

    def __init__(self, state: RunState, stopwatch: Stopwatch) -> None:
        """Share the state of the run."""
        self.state = state
        self.stopwatch = stopwatch
        self.stopping = False
        self.news = 0
        """How often people have told the run something that its model, or its budget, is to know."""
        self.ahead = 0
        """The step for which the latest activity asks the model after its calls."""
        self._untaken: set[int] = set()
        """The numbers of what they have told it that is still looked at, such as for secrets."""
        self._interruptible: dict[workflow.ActivityHandle[Any], _Interruptible] = {}
        """What may be told to end."""
        self._undoing = 0
        self.under_way = 0
        """How many activities the run waits for."""
        self._unconfirmed: dict[int, OfRun] = {}
        """The requests under way: nobody knows yet whether their events are written."""
        self.ask_about_fault: Callable[[str], Awaitable[bool]] = _nobody
        """Asks people whether to try again; set once they can be asked."""

    async def execute(
        self,
        call: Callable[[Any], Awaitable[Answer]],
        ask: OfRun,
        *,
        summary: str = "",
        deadline_s: float | None = None,
        queue: str = "",
    ) -> Answer:
        """Run one activity of `backstay.calls`; a transient fault that lasts becomes a question: retry or stop.

        Raises ApplicationError with the type of the final error, or Stopped.
        """
        while True:
            try:
                return await self.execute_once(call, ask, summary=summary, deadline_s=deadline_s, queue=queue)
            except ApplicationError as error:
                await self.ask_whether_again(call, error)

    async def execute_patiently(self, call: Callable[[Any], Awaitable[Answer]], ask: OfRun, *, summary: str) -> Answer:
        """Run one activity, again and again while a transient fault lasts, where nobody can be asked about it."""
        while True:
            try:
                return await self.execute_once(call, ask, summary=summary)
            except ApplicationError as error:
                if error.type not in ASKED_ABOUT:
                    raise
            await workflow.sleep(AGAIN)

    async def ask_whether_again(self, call: Callable[[Any], Awaitable[Any]], error: ApplicationError) -> None:
        """Return when people want a call tried again; else raise its error."""
        if error.type == BUSY:
            return
        fault = f"{name_of(call)}: {error.message}"
        if error.type not in ASKED_ABOUT or not await self.ask_about_fault(fault):
            raise error

    async def execute_once(
        self,
        call: Callable[[Any], Awaitable[Answer]],
        ask: OfRun,
        *,
        summary: str = "",
        deadline_s: float | None = None,
        queue: str = "",
        counted: bool = True,
        interruptible: bool = False,
        urgent: bool = False,
    ) -> Answer:
        """Run one activity; wait for lost workers, and raise other faults as ApplicationError.

        A call that is not `counted` takes no wall time of the run's budget. A call that is `interruptible` is told to
        end soon by `interrupt`, and answers all the same, or raises Interrupted. An `urgent` call goes first.
        """
        if self.stopping:
            raise Stopped
        options = options_for(name_of(call), deadline_s, queue)
        events = self.state.take_events() if options.writes_events else {}
        # Calls of one batch go at once, and each intent must come with what permits it: so all carry the decisions.
        decisions = tuple(self.state.decisions) if options.writes_events else ()
        ask = ask.model_copy(update=self._common(ask) | events | {"decisions": decisions})
        try:
            given = cast("Any", handed_over(name_of(call), ask))
        except ApplicationError:
            self.state.withdraw_events(ask)
            raise
        with self._counted() if counted else nullcontext():
            try:
                more = self._keywords(options, urgent=urgent)
                handle = workflow.start_activity(call, given, summary=summary or None, **more)
                with self._kept(ask), self._heard(handle, ask) if interruptible else nullcontext():
                    answer = await handle
            except ActivityError as error:
                self.state.withdraw_events(ask)
                raise cause_of(error) from error
        self._confirm(ask, answer)
        return answer

    async def execute_in_handler(self, call: Callable[[Any], Awaitable[Answer]], ask: OfRun, *, summary: str) -> Answer:
        """Run one activity for an update; its failure is raised as a BackstayError, which refuses the update."""
        try:
            return await self.execute_once(call, ask, summary=summary, urgent=True)
        except ApplicationError as error:
            raise error_of(error) from None

    def events_left(self) -> dict[str, Any]:
        """Return what the next execution must write of the timeline; what is written already is not written again."""
        asks, state = self._unconfirmed.values(), self.state
        events = [*(event for ask in asks for event in ask.events), *state.unwritten]
        numbered = [*(draft for ask in asks for draft in ask.numbered), *state.numbered]
        return {"unwritten": events[-MOST_UNWRITTEN:], "numbered": numbered}

    @contextmanager
    def _kept(self, ask: OfRun) -> Generator[None]:
        """Remember a request while it is under way: a run that continues meanwhile hears nothing of its end."""
        self._unconfirmed[id(ask)] = ask
        try:
            yield
        finally:
            del self._unconfirmed[id(ask)]

    def _confirm(self, ask: OfRun, answer: object) -> None:
        if isinstance(answer, calls.StepOutcome) and answer.unwritten:
            self.state.withdraw_events(ask)
        else:
            self.state.confirm_decisions(ask.decisions)

    @contextmanager
    def undoing(self) -> Generator[None]:
        """Let all that is begun go before the steps of other runs, since what stands wrongly is being undone."""
        self._undoing += 1
        try:
            yield
        finally:
            self._undoing -= 1

    @property
    def heard(self) -> dict[str, int]:
        """Return what an activity compares with what it was given; one in this process reads it from its own thread."""
        return {"news": self.news, "step": self.ahead}

    @property
    def takes_news(self) -> bool:
        """Return whether something that people have told the run cannot be read yet."""
        return bool(self._untaken)

    @contextmanager
    def taking_news(self) -> Generator[None]:
        """Count what a person tells the run from when it comes in; the model is not asked without it.

        Activities that have just begun take it that nobody has said anything yet, and are interrupted. A model that has
        answered before they hear of that has answered without it.
        """
        self.news += 1
        number = self.news
        self._untaken.add(number)
        self.interrupt(begun_within=UNASKED)
        try:
            yield
        finally:
            self._untaken.discard(number)

    async def news_taken(self) -> None:
        """Wait until all that people have told the run by now can be read."""
        last = self.news
        await workflow.wait_condition(lambda: all(number > last for number in self._untaken))

    def interrupt(self, *, begun_within: timedelta = timedelta.max) -> None:
        """Tell what is interruptible to end soon."""
        now = workflow.now()
        for handle, known in self._interruptible.items():
            if not known.told and now - known.since < begun_within:
                known.told = True
                handle.cancel()

    @contextmanager
    def _heard(self, handle: workflow.ActivityHandle[Any], ask: OfRun) -> Generator[None]:
        """Raise Interrupted for what was told to end and did so without an answer.

        The server tries no such activity again, whether a worker was lost with it or none has begun it.
        """
        self._interruptible[handle] = _Interruptible(workflow.now())
        try:
            yield
        except (ActivityError, asyncio.CancelledError) as error:
            if not self._interruptible[handle].told or self.stopping or _is_cancelled():
                raise
            self.state.withdraw_events(ask)
            raise Interrupted from error
        finally:
            del self._interruptible[handle]

    @contextmanager
    def _counted(self) -> Generator[None]:
        self.under_way += 1
        try:
            with self.stopwatch.busy():
                yield
        finally:
            self.under_way -= 1

    def _keywords(self, options: Options, *, urgent: bool) -> dict[str, Any]:
        """Return the options of an activity, with what it adds to the priority of its run.

        A run that was started without a fairness key, such as by another Temporal client, gets that of its user here.
        """
        own = workflow.info().priority
        key = own.priority_key or USUAL
        first = urgent or options.urgent or self._undoing
        wanted = min(key, URGENT) if first else min(key + options.last, LAST)
        priority = Priority(
            priority_key=None if wanted == key else wanted,
            fairness_key=None if own.fairness_key else self.state.task.fairness_key,
        )
        return options.keywords() | {"priority": priority}

    def _common(self, ask: OfRun) -> dict[str, Any]:
        opened, task = self.state.opened, self.state.task
        return {
            "run": self.state.run,
            "user_id": task.user_id,
            "session_id": task.session_id,
            "store": ask.store or opened.store,
            "workspace": opened.workspace,
            "workspace_place": opened.workspace_place,
            "builtin": opened.builtin,
        }


def _is_cancelled() -> bool:
    """Return whether whoever waits is itself cancelled, with the run or as the worker lets go of it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _nobody(_fault: str) -> bool:
    return False


def name_of(call: Callable[..., Any]) -> str:
    """Return the Temporal name of an activity."""
    return call.__name__


def cause_of(error: ActivityError) -> BaseException:
    """Turn an activity's failure into what the run acts on: its own error, a cancellation, or a lost worker."""
    match error.cause:
        case ApplicationError() as cause if cause.type not in BY_OPERATOR:
            return cause
        case CancelledError():
            return Stopped()
        case TimeoutError(type=TimeoutType.SCHEDULE_TO_START):
            return ApplicationError("no worker of the sandbox role takes the program", type="IsolationUnavailable")
        case _:
            return ApplicationError(f"no answer from the worker: {error.cause}", type=LOST)


def error_of(error: ApplicationError) -> errors.BackstayError:
    """Return the BackstayError for an activity's failure; an unknown type is a bug in backstay."""
    return Failure(type=error.type or "unknown", message=error.message).error()


def as_application_error(error: errors.BackstayError) -> ApplicationError:
    """Return the failure that other programs see: the type is the error's name."""
    # A failure that the server cannot carry would never be told.
    return ApplicationError(str(error)[:MOST_TOLD], type=type(error).__name__, non_retryable=True)


def handed_over(name: str, ask: OfRun) -> EncodedInput:
    """Return the input of an activity, encoded once; raises ApplicationError for what the server would not carry."""
    given = _encoded(ask)
    if (size := len(given.payload.data)) > PAYLOAD:
        raise TooLarge(
            f"{name}: {size:,} bytes to hand over are more than the {PAYLOAD:,} that history can hold; "
            "give less, or put it in a file",
            type=errors.ArgumentsInvalid.__name__,
            non_retryable=True,
        )
    return EncodedInput(given.payload, ask)


def answer_of(update: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of an update; raises ArgumentsInvalid for one that the server would not carry."""
    if (size := len(_encoded(answer).payload.data)) > PAYLOAD:
        raise errors.ArgumentsInvalid(
            f"{update}: done, but its answer has {size:,} bytes, more than the {PAYLOAD:,} that history can hold; "
            "read the run's status instead"
        )
    return answer


def fitting(result: Result) -> Result:
    """Return a Result that the server carries: without what is stored apart, or as a failure that says why."""
    if len(_encoded(result.plain()).payload.data) <= PAYLOAD:
        return result
    # Where the run could be closed, all of them are under their refs.
    bare = result.model_copy(update={"events": (), "effects": ()})
    if (size := len(_encoded(bare.plain()).payload.data)) <= PAYLOAD:
        return bare
    why = f"raw_outputs: the result has {size:,} bytes, more than the {PAYLOAD:,} that history can hold"
    why = f"{why}; let the run report less, and store the rest"
    return Result(
        outcome=Outcome.FAILED if result.success else result.outcome,
        success=False,
        final_summary=one_line(result.final_summary, CLIPPED),
        usage=result.usage,
        error=Failure(type=errors.OutputInvalid.__name__, message=why),
        effects_ref=result.effects_ref,
        events_ref=result.events_ref,
        output_ref=result.output_ref,
        ledger_head=result.ledger_head,
        workflow_id=result.workflow_id,
        run_id=result.run_id,
    )


def _encoded(value: object) -> RawValue:
    (payload,) = workflow.payload_converter().to_payloads([value])
    return RawValue(payload)
