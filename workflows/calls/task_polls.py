"""Follow the tasks by which servers answer calls that take long: asked by timers, so that nothing is held meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from datetime import timedelta
from typing import Any, Literal, Protocol

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from backstay import calls
from backstay.approvals.approval import Verdict
from backstay.requests import FollowTask
from backstay.shown import one_line
from backstay.tools.server_task import ServerTask, TaskProgress
from backstay.tools.stages import Purpose, Stage, applies
from backstay.tools.tool import Elicitation, ToolCall, ToolResult
from workflows.consent.changing import commented
from workflows.consent.consent import rejected
from workflows.context.calls_in_flight import CallInFlight
from workflows.context.run_context import RunContext
from workflows.state.work import RequestOutcome

Action = Literal["get", "update", "cancel", "forget"]
POLL_S = 15.0
"""How long a server may take to say how far a task is."""
CANCEL_S = 60.0
"""For how long a task that was told to end is asked what became of it."""
CHECK_S = 300.0
"""For how long the task of a check is followed; a person is asked then."""
ASKED_S = 30.0
"""While people are asked what a server wants to know, it is asked less often whether it still wants to."""
MOST_TOLD = 50
"""How many events tell how far one task is."""
QUESTIONS = 10
"""How often one task may ask people."""
NOBODY = "its server asks a question, and nobody can be asked here"


class QuestionAsker(Protocol):
    """Ask people what the server of a call wants to know."""

    def __call__(
        self, call: ToolCall, question: Elicitation, result: ToolResult, unless: Callable[[], bool]
    ) -> Awaitable[RequestOutcome]:
        """Return what they decide; no longer wanted when `unless` becomes true."""
        ...


class TaskPolls:
    """Follow tasks until they end, and have those end that nobody waits for any more."""

    def __init__(self, context: RunContext, ask_person: QuestionAsker) -> None:
        """Work at the run's context."""
        self.context = context
        self.ask_person = ask_person

    async def followed(self, flight: CallInFlight, result: ToolResult) -> ToolResult:
        """Return what the task came to by which a server answers a call.

        It waits for as long as the call may take, the server keeps the task, and the run may last. A task whose outcome
        is not known then has an unknown outcome.
        """
        first = result
        if flight.progress is None and result.task is not None:
            flight.progress = TaskProgress(since=_now(), sealed=result.task.sealed)
        try:
            result = await self._until_ended(flight, result)
        except BaseException:
            # A run that is cancelled, or fails, has it end when it is closed: nothing may be begun here.
            self.context.left_tasks.append(_request(flight, "cancel"))
            raise
        finally:
            self.context.working.pop(flight.call.id, None)
        flight.progress = None
        kept = {"sent": first.sent, "resolved": first.resolved, "simulated": first.simulated}
        return result.model_copy(update={name: value for name, value in kept.items() if value})

    async def end(self, flight: CallInFlight) -> ToolResult:
        """Have a task end that an earlier attempt left, and return what became of it."""
        flight.progress = TaskProgress(since=_now())
        return await self._told_to_end(flight, ServerTask(), "the effects of its run are undone")

    async def _until_ended(self, flight: CallInFlight, result: ToolResult) -> ToolResult:
        task = result.task or ServerTask()
        while result.task is not None:
            task = _newest(task, result.task)
            # The next execution goes on with it.
            flight.result = result = result.model_copy(update={"task": task})
            self._tell(flight, task)
            why = self._why_ended(flight, result, task)
            if why:
                return await self._told_to_end(flight, task, why)
            if result.question is None:
                await self._pause(flight, task)
                result = await self._poll(flight)
            else:
                result = await self._asked(flight, result, result.question)
        return _outcome(flight, result)

    def _why_ended(self, flight: CallInFlight, result: ToolResult, task: ServerTask) -> str:
        """Return why a task is not followed any further; empty while it is."""
        now, progress = _now(), _progress(flight)
        lasts, kept = self._most_s(flight), task.ttl_s
        wall = self.context.state.budget.max_wall_seconds
        if task.refused:
            return task.refused
        if result.question is not None and not _serves_run(flight):
            return NOBODY
        if result.question is not None and progress.questions >= QUESTIONS and result.question.sealed != progress.asked:
            return "its server asks without end"
        if self._is_interrupted(flight):
            return "effects of its run are undone"
        if kept is not None and now >= progress.since + kept:
            return f"its server keeps the task for {kept:g} s only, and has not said what came of it"
        if now >= progress.since + lasts:
            return f"it did not end within {lasts:g} s"
        if _serves_run(flight) and wall is not None and self.context.stopwatch.seconds >= wall:
            return f"max_wall_seconds: the run may last {wall:g} s"
        return ""

    def _most_s(self, flight: CallInFlight) -> float:
        """Return how long the task of a call may take: as somebody chose for this call, else as the operator says."""
        most = self.context.state.opened.server_task_s
        if flight.purpose in {Purpose.VERIFY, Purpose.VERIFY_UNDO}:
            return min(most, CHECK_S)
        return most if flight.most_s is None else min(most, flight.most_s)

    def _ends(self, flight: CallInFlight, task: ServerTask, *, asking: bool) -> float:
        """Return when it is asked for the last time, in unix seconds; the run's time stops while it asks people."""
        most, wall = self._most_s(flight), self.context.state.budget.max_wall_seconds
        ends = _progress(flight).since + (most if task.ttl_s is None else min(most, task.ttl_s))
        if wall is None or asking or not _serves_run(flight):
            return ends
        return min(ends, _now() + max(0.0, wall - self.context.stopwatch.seconds))

    def _is_interrupted(self, flight: CallInFlight) -> bool:
        return self.context.undoing and _serves_run(flight)

    async def _pause(self, flight: CallInFlight, task: ServerTask, *, asking: bool = False) -> None:
        """Wait until the server is to be asked again; no longer than until effects of the run are to be undone."""
        now, ends = _now(), self._ends(flight, task, asking=asking)
        seconds = _progress(flight).pause_s(now, task, ends)
        seconds = min(max(seconds, ASKED_S), max(0.0, ends - now)) if asking else seconds
        name = one_line(flight.call.tool.name, 80)
        # Where nothing else is under way, the run may continue as a new execution here.
        self.context.at_gate += _serves_run(flight)
        try:
            with nullcontext() if asking else self.context.stopwatch.busy(), suppress(TimeoutError):
                await workflow.wait_condition(
                    lambda: self._is_interrupted(flight),
                    timeout=timedelta(seconds=seconds),
                    timeout_summary=f"before {name} is asked how far it is",
                )
        finally:
            self.context.at_gate -= _serves_run(flight)

    async def _poll(self, flight: CallInFlight) -> ToolResult:
        return await self._send(flight, _request(flight, "get"), "how far is")

    async def _send(self, flight: CallInFlight, ask: FollowTask, what: str) -> ToolResult:
        summary = f"{what} {one_line(flight.call.tool.name, 80)}"
        follow = calls.follow_task
        result = await self.context.activities.execute(follow, ask, summary=summary, deadline_s=POLL_S)
        if result.task is not None and flight.progress is not None:
            flight.progress = flight.progress.model_copy(update={"answered": result.task.answered})
        return result

    async def _told_to_end(self, flight: CallInFlight, task: ServerTask, why: str) -> ToolResult:
        """Have a task end; its state by then is what counts, and may be that it is done."""
        until = _now() + CANCEL_S
        await self._send(flight, _request(flight, "cancel"), "end")
        pause = 1.0
        while True:
            result = await self._poll(flight)
            if result.task is None:
                said = one_line(f"{why}; {result.error or ''}", 500)
                return _outcome(flight, result if result.success else result.model_copy(update={"error": said}))
            if _now() + pause > until:
                ask = _request(flight, "forget").model_copy(update={"why": why})
                return _outcome(flight, await self._send(flight, ask, "forget the task of"))
            await workflow.sleep(timedelta(seconds=pause), summary="wait until it has ended")
            pause *= 2

    async def _asked(self, flight: CallInFlight, result: ToolResult, question: Elicitation) -> ToolResult:
        """Ask people what the server wants to know, for as long as it does; return how far the task is then."""
        progress = _progress(flight)
        if progress.asked != question.sealed:
            update = {"questions": progress.questions + 1, "asked": question.sealed}
            flight.progress = progress.model_copy(update=update)
        watching = asyncio.ensure_future(self._watched(flight, result, question))
        try:
            decided = await self.ask_person(flight.call, question, result, watching.done)
        except BaseException:
            watching.cancel()
            raise
        if watching.done():
            return watching.result()
        watching.cancel()
        await workflow.wait([watching])
        flight.call = commented(flight.call, decided)
        if decided.stop:
            raise rejected(decided)
        reply = decided.answer if decided.verdict is Verdict.ANSWER else None
        ask = _request(flight, "update").model_copy(update={"question": question.sealed, "reply": reply})
        return await self._send(flight, ask, "answer")

    async def _watched(self, flight: CallInFlight, result: ToolResult, question: Elicitation) -> ToolResult:
        """Return how far a task is as soon as its server does not want to know any more what people are asked."""
        task = result.task or ServerTask()
        while True:
            await self._pause(flight, task, asking=True)
            result = await self._poll(flight)
            if result.task is None:
                return result
            task = _newest(task, result.task)
            result = result.model_copy(update={"task": task})
            asks_other = result.question is None or result.question.sealed != question.sealed
            if (asks_other and not task.unreachable) or self._why_ended(flight, result, task):
                return result

    def _tell(self, flight: CallInFlight, task: ServerTask) -> None:
        """Show how far a task is, where that has changed."""
        progress, name = _progress(flight), one_line(flight.call.tool.name, 80)
        said = f"it cannot be asked now: {task.unreachable}" if task.unreachable else task.said
        if progress.told and said == progress.said:
            return
        flight.progress = progress.model_copy(update={"said": said, "told": progress.told + 1})
        text = one_line(f"{name}: {said or 'its server works on it'}", 300)
        self.context.working[flight.call.id] = text
        if progress.told < MOST_TOLD and applies(flight.purpose, Stage.EVENT):
            data: dict[str, Any] = {"tool": flight.call.tool.name}
            data |= {} if flight.effect is None else {"effect": flight.effect}
            self.context.record("action.working", text, **data)
        self.context.changed()


async def end_left_tasks(context: RunContext) -> None:
    """Have the tasks end for which nobody waits any more, and record what those came to that have ended at once."""
    left, context.left_tasks = context.left_tasks, []
    for cancel in left:
        for ask in (cancel, cancel.model_copy(update={"action": "get"})):
            with suppress(ApplicationError):
                await context.activities.execute_once(
                    calls.follow_task, ask, summary=f"{ask.action} a task left behind"
                )


def _now() -> float:
    return workflow.now().timestamp()


def _progress(flight: CallInFlight) -> TaskProgress:
    return flight.progress or TaskProgress(since=_now())


def _serves_run(flight: CallInFlight) -> bool:
    """Return whether a call is one of the run's own, and none that checks or undoes another one."""
    return applies(flight.purpose, Stage.RESERVE)


def _newest(known: ServerTask, task: ServerTask) -> ServerTask:
    """Return what is known of a task; a server that could not be asked has said nothing new."""
    if not task.unreachable:
        return task
    told = {"unreachable": task.unreachable, "poll_s": max(known.poll_s, task.poll_s)}
    return known.model_copy(update=told)


def _request(flight: CallInFlight, action: Action) -> FollowTask:
    progress = _progress(flight)
    more: dict[str, Any] = {} if _serves_run(flight) else {"purpose": flight.purpose.value}
    more |= {"sealed": progress.sealed, "answered": progress.answered, "deadline_s": POLL_S}
    return FollowTask(tool=flight.call.tool.name, action=action, effect=flight.effect, **more)


def _outcome(flight: CallInFlight, result: ToolResult) -> ToolResult:
    """Return how a call ended; one that only reads has no outcome that could be unknown."""
    if result.error_type != "OutcomeUnknown":
        return result
    if flight.purpose in {Purpose.VERIFY, Purpose.VERIFY_UNDO}:
        return ToolResult(success=True)
    return result if flight.effect is not None else result.model_copy(update={"error_type": "ToolError"})
