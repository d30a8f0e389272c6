"""Start runs of schedules and triggers: check whose they are, reserve for them, and settle what they have cost."""

import asyncio
from typing import Any

import structlog

from activities.definitions import input_fault
from activities.resources import Activities
from activities.retrying import implements
from backstay import calls
from backstay.approvals.proof import LONGEST_LIFE, START, Binding
from backstay.budgets.budget import MICRO
from backstay.client.schedules import Schedules
from backstay.client.sending import signed
from backstay.errors import BackstayError, TaskInvalid, Transient
from backstay.shown import one_line
from backstay.starting import NOT_BEGUN
from backstay.task.standing import StandingTask, run_id
from store.standing.starts import Start
from store.standing.tasks import KeptTask, StartState

_MARGIN_S = 600
_NEVER_BEGUN = frozenset({"TaskInvalid", NOT_BEGUN})
"""What a run fails with before it asks any model."""
_log = structlog.get_logger("backstay.schedules")


class Starting(Activities):
    """Implement `begin_start` and `end_start`."""

    @implements(calls.begin_start)
    async def begin_start(self, ask: calls.BeginStart) -> calls.BegunStart:
        """Reserve for one run, and return its task; a repeat reserves nothing more."""
        kept = await self.store.standing.get(ask.kind, ask.name)
        if kept is None:
            reason = f"this store knows no {ask.kind} of that name"
            await self._give_back(ask, reason)
            return calls.BegunStart(refused=reason)
        standing, run = kept.standing, run_id(ask.start)
        try:
            await self._demand_right(kept)
            task = self._signed(standing, run, await self._task(standing, ask.start))
            start = await self.store.starts.reserve(ask.start, standing, run)
            if start.state is not StartState.RESERVED:
                return _refused(start)
            return calls.BegunStart(workflow_id=run, task=task, line=standing.line)
        except Transient:
            raise
        except BackstayError as error:
            reason = one_line(self.resources.redactor.clipped_text(str(error)), 500)
            await self._give_back(ask, reason)
            return _refused(await self.store.starts.refuse(ask.start, standing, reason))

    @implements(calls.end_start)
    async def end_start(self, ask: calls.EndStart) -> int:
        """Settle with what the run has cost as far as the store knows it, or else with all that was reserved."""
        row = None
        if ask.first_run_id:
            row = await self.store.runs.get(ask.workflow_id, ask.first_run_id)
        result = None if row is None else row.result
        micro: int | None = None
        told = ask.fault
        if result is not None:
            told = str(result.get("outcome") or told)
            micro = round(float(result.get("usage", {}).get("llm_cost_usd", 0)) * MICRO)
        elif ask.fault in _NEVER_BEGUN:
            micro = 0
        settled = await self.store.starts.settle(ask.start, told or "ended", micro)
        return 0 if settled is None else settled.micro

    async def _give_back(self, ask: calls.BeginStart, reason: str) -> None:
        """Settle what a worker reserved for a start that may begin no more, and that died before it could say so."""
        start = await self.store.starts.get(ask.start, ask.kind, ask.name)
        if start is None or start.state is not StartState.RESERVED:
            return
        if await self.store.runs.get(start.run) is None:
            await self.store.starts.settle(start.id, reason, 0)

    async def _demand_right(self, kept: KeptTask) -> None:
        """Raise TaskInvalid unless the author may start runs by schedules; one who may no more is paused."""
        standing = kept.standing
        if not kept.paused and not self.resources.policy.lets_schedule(standing.by):
            reason = f"{standing.by} may start no runs by schedules and triggers any more: policy.yaml, scheduling"
            await self._pause(standing, reason)
            raise TaskInvalid(f"paused: {reason}")
        if kept.paused:
            raise TaskInvalid(f"paused: {kept.paused}")

    async def _pause(self, standing: StandingTask, reason: str) -> None:
        if standing.kind == "schedule":
            # Where Temporal does not know it any more, each further start is refused all the same.
            await Schedules(self.resources.temporal, self.settings.task_queue).pause(standing.name, reason)
        await self.store.standing.pause(standing.kind, standing.name, reason)
        _log.warning("schedule.paused", kind=standing.kind, name=standing.name, by=standing.by)

    async def _task(self, standing: StandingTask, start: str) -> dict[str, Any]:
        """Return the task of a run, with what was sent to a trigger as the words of others; raises TaskInvalid."""
        more: dict[str, Any] = {}
        if standing.kind == "trigger":
            given = await self.store.starts.given(start, standing)
            if given is None:
                raise TaskInvalid("nothing was sent to the trigger under that name")
            more = {"input": given, "input_from": "others"}
        if standing.definition:
            known = self.resources.definitions.named(standing.definition)
            given = more.get("input", standing.task.get("input", {}))
            if (fault := await asyncio.to_thread(input_fault, known, given)) is not None:
                raise TaskInvalid(fault)
            more = known.task(given) | ({"text": standing.task["text"]} if standing.task.get("text") else {}) | more
        budget = standing.admitted({"text": standing.line, **more}).budget
        fixed = {"max_llm_cost_usd": budget.max_llm_cost_usd}
        # A profile must not raise what was reserved.
        more |= {"by": standing.by, "budget": {**standing.task.get("budget", {}), **fixed}}
        more |= {"user_id": standing.user_id}
        more |= {"metadata": {**standing.task.get("metadata", {}), standing.kind: standing.name}}
        task = standing.admitted(more)
        return task.model_dump(mode="json", by_alias=True, exclude_unset=True)

    def _signed(self, standing: StandingTask, run: str, task: dict[str, Any]) -> dict[str, Any]:
        """Return the task with a proof of its author, who has proved to have added the schedule or trigger."""
        binding = Binding(namespace=self.resources.temporal.namespace, workflow_id=run, run_id="", update=START)
        life = LONGEST_LIFE - _MARGIN_S
        return signed(self.settings.approver_key_bytes, binding, task, life_s=life)


def _refused(start: Start) -> calls.BegunStart:
    return calls.BegunStart(refused=start.told or f"it has {start.state} already")
