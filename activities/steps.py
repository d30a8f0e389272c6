"""Make the calls of one decision and ask the model for the next one, in one activity."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import structlog
from temporalio import activity
from temporalio.client import WorkflowQueryRejectedError
from temporalio.common import QueryRejectCondition
from temporalio.service import RPCError

from activities.batches import Batches, Found, calls_of, drafts_of
from activities.interruptions import Interruption, by_run
from activities.model.model import Model
from activities.resources import Activities, Resources
from activities.retrying import implements, is_retry, told_of
from activities.telemetry.calls import call_span
from backstay import calls
from backstay.client.failures import is_pause
from backstay.errors import BackstayError, InternalError, StoreUnavailable
from backstay.requests import CallTool
from backstay.task.context import answered, answers_first
from backstay.tools.tool import ToolResult
from system.clock import uptime

UNSEEN_S = 0.02
"""The words of people take longer than this to reach a run, so that after shorter calls nobody needs to be asked."""
ENDED_UNSEEN_S = 2
"""A run that is terminated is not told to its worker; after longer calls the server is asked, which knows."""
ASK_RUN_S = 2

_log = structlog.get_logger("backstay.activities")


class Steps(Activities):
    """Implement `act_and_ask`."""

    def __init__(self, resources: Resources, batches: Batches, model: Model) -> None:
        """Use the bodies of `call_together` and `ask_model`."""
        super().__init__(resources)
        self.batches = batches
        self.model = model

    @implements(calls.act_and_ask)
    async def act_and_ask(self, ask: calls.ActAndAsk) -> calls.StepOutcome:
        """Make the calls of one decision, and ask the model for the next when what became of each is known.

        Only the first attempt asks the model: the amount reserved for that may be spent once. Work that the first
        attempt cannot do now is left to the workflow, so that a later attempt means that a worker was lost.
        """
        first = not is_retry()
        acted = await self._acted_and_asked(ask, first=first)
        if await self._is_written():
            return acted
        if not first:
            raise StoreUnavailable("store: what was done could not be written")
        await self.store.blobs.spill()
        self.store.forget_waiting()
        return _untold(acted)

    async def _is_written(self) -> bool:
        """Write what is left to write, whether or not the run is interrupted meanwhile."""
        writing = asyncio.ensure_future(self.store.flush())
        while not writing.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([writing])
        match writing.exception():
            case None:
                return True
            case StoreUnavailable():
                return False
            case error:
                raise error

    async def _acted_and_asked(self, ask: calls.ActAndAsk, *, first: bool) -> calls.StepOutcome:
        began = uptime()
        # Only a run that is cancelled lets go of calls that were not sent yet: pauses and undos wait for them.
        interruption = Interruption(self._run_is_cancelled)
        acting = asyncio.ensure_future(self._acted(ask, interruption, first=first))
        interrupted = await interruption.wait_for(acting)
        acted = acting.result()
        if not first or interrupted or acted.unwritten or not _all_known(acted.results):
            return acted
        if await self._held_up(ask, uptime() - began):
            return acted
        return await self._decided(ask, acted)

    async def _acted(self, ask: calls.ActAndAsk, interruption: Interruption, *, first: bool) -> calls.StepOutcome:
        """Make the calls, and write their events; a call that was not made has no result."""
        inner, found = calls_of(ask), Found()
        unwritten = False
        try:
            ask = await self._begun(ask, inner)
            await self.batches.each_made(inner, found, interruption, lets_go=first, ordered=ask.ordered)
            if len(found) < len(inner) or any(result.question is not None for result in found.values()):
                # Without an intent, nothing else has written what people decided.
                await self.admit(ask)
            left = [drafts_of(call, found.get(place)) for place, call in enumerate(inner)]
            # In one transaction with what the model decides; effects are settled by now.
            await self.tell_later(ask, [draft for drafts in left for draft in drafts])
            unwritten = any(result.untold for result in found.values())
        except StoreUnavailable:
            if not first:
                raise
            unwritten = True
        results = tuple(found.get(place) for place in range(len(inner)))
        acted = calls.StepOutcome(results=results, asked=not first)
        return _untold(acted) if unwritten else acted

    async def _begun(self, ask: calls.ActAndAsk, inner: Sequence[CallTool]) -> calls.ActAndAsk:
        """Write what must be in the store before anything is sent, and return what is left to be written after it."""
        effects = [call.effect is not None for call in inner]
        # The permission for an effect is written with its intent.
        await self.admit(ask.model_copy(update={"decisions": ()}) if all(effects) else ask)
        if not any(effects) or not ask.events:
            return ask
        # They go with the first intent.
        await self.tell_later(ask)
        return ask.model_copy(update={"events": (), "numbered": ()})

    async def _held_up(self, ask: calls.ActAndAsk, took_s: float) -> bool:
        """Return whether the model must not be asked now: the run is held up, out of time, or was told something."""
        info = activity.info()
        waited_s = (info.started_time - info.scheduled_time).total_seconds()
        if ask.within_s is not None and waited_s + took_s >= ask.within_s:
            return True
        says = self._run_says_here(ask.ask.step) if waited_s + took_s < ENDED_UNSEEN_S else None
        if says is None and waited_s + took_s < UNSEEN_S:
            return False
        try:
            says = says or await self._run_says()
        except asyncio.CancelledError:
            if not by_run():
                raise
            return True
        return says.get("held_up") != "" or says.get("news") != ask.news

    async def _run_is_cancelled(self) -> bool:
        try:
            return (await self._run_says()).get("held_up") == "cancelled"
        except asyncio.CancelledError:
            # The worker stops as well.
            return True

    def _run_says_here(self, step: int) -> Mapping[str, Any] | None:
        """Return what the run says where it lives in this process, and costs nobody anything to ask."""
        return self.resources.cached_runs.says(activity.info().workflow_run_id, step)

    async def _run_says(self) -> Mapping[str, Any]:
        """Return what holds the run up; nothing where it does not answer."""
        info = activity.info()
        handle = self.resources.temporal.get_workflow_handle(info.workflow_id or "", run_id=info.workflow_run_id)
        try:
            async with asyncio.timeout(ASK_RUN_S):
                said = await handle.query("interruption", reject_condition=QueryRejectCondition.NOT_OPEN)
        except WorkflowQueryRejectedError:
            # It was terminated, or reset, and lets go of its calls as a cancelled one does.
            return {"held_up": "cancelled"}
        except (RPCError, TimeoutError):
            return {}
        except ValueError as error:
            if not is_pause(error):
                raise
            return {"held_up": "paused by Temporal"}
        return said if isinstance(said, dict) else {}

    async def _decided(self, ask: calls.ActAndAsk, acted: calls.StepOutcome) -> calls.StepOutcome:
        """Ask the model; that it fails, or is interrupted, hides no result of a call."""
        try:
            return acted.model_copy(update={"asked": True, **await self._answer(ask, acted)})
        except asyncio.CancelledError:
            if not by_run():
                raise
            return acted.model_copy(update={"asked": True})

    async def _answer(self, ask: calls.ActAndAsk, acted: calls.StepOutcome) -> dict[str, Any]:
        """Return what the model decided, or why it did not."""
        told = [answered(*pair) for pair in zip(ask.answers, filter(None, acted.results), strict=True)]
        append = answers_first((*ask.ask.append, *told))
        asking = ask.shared_with(ask.ask).model_copy(update={"append": append})
        try:
            with call_span(asking) as note:
                decision = await self.model.asked(asking)
                note(decision)
        except BackstayError as error:
            fault = error
        except Exception as error:
            _log.exception("internal error", activity="act_and_ask")
            fault = InternalError(f"{type(error).__name__} in ask_model")
        else:
            return {"decision": decision}
        return {"fault": told_of(fault, await self.resources.redactor_of(ask.run))}


def _untold(acted: calls.StepOutcome) -> calls.StepOutcome:
    """Return what was done where the store cannot be written to: that counts more than its events.

    The workflow tells them itself.
    """
    told = (result and result.model_copy(update={"untold": True}) for result in acted.results)
    return acted.model_copy(update={"results": tuple(told), "unwritten": True})


def _all_known(results: Iterable[ToolResult | None]) -> bool:
    """Return whether every call succeeded, or its tool itself said that it failed; all else may need people."""
    return all(result is not None and _is_known(result) for result in results)


def _is_known(result: ToolResult) -> bool:
    return result.question is None and (result.success or result.error_type == "ToolError")
