"""Begin and end sub-runs: what they inherit from the run that delegates, what they have spent, and what they leave."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.model.request import prompt
from activities.model.transcript import Item, Transcripts, Utterance
from activities.resources import Activities, Resources
from activities.retrying import implements
from activities.tools.outcomes import Outcomes
from backstay import calls
from backstay.budgets.budget import MICRO, Budget
from backstay.budgets.share import Spent
from backstay.canonical import digest_of
from backstay.client.executions import described
from backstay.effects.compensation import all_of
from backstay.errors import BackstayError, PolicyInvalid, RunNotFound, StoreUnavailable, TaskInvalid, Unfinished
from backstay.provenance.source import MODEL, is_others
from backstay.responses import RunAbove
from backstay.shown import one_line
from backstay.starting import EndedChild, EndedSubrun, WantedSubrun, is_below, may_be_subrun
from backstay.task.result import Result
from backstay.task.task import Task
from backstay.tools.tool import DELEGATE, ToolResult
from store.runs.runs import RunRow
from store.subruns import Subrun

MOST_EFFECTS = 200
"""How many effects of sub-runs a run is told of one by one; the store knows the others."""
_QUERY = timedelta(seconds=10)
OTHERS = f"!{DELEGATE}"
"""The code of what a sub-run says that has read what others wrote."""


@dataclass(frozen=True)
class Inheritance:
    """Hold what a sub-run has from the run that delegated to it."""

    subrun: Subrun
    row: RunRow
    opened: calls.OpenedRun

    @property
    def runs(self) -> tuple[RunAbove, ...]:
        """Return the runs above it, the first of them first."""
        last = RunAbove(
            workflow_id=self.row.workflow_id, run_id=self.row.workflow_run_id, task_line=self.opened.task_line
        )
        return (*self.opened.above, last)


class _Child(NamedTuple):
    """Hold what is known of a sub-run that is to be settled."""

    told: EndedChild
    subrun: Subrun | None
    row: RunRow | None
    is_open: bool = False


class DelegationActivities(Activities):
    """Implement `begin_subruns` and `end_subruns`, and say what a run inherits that begins."""

    def __init__(self, resources: Resources, transcripts: Transcripts, outcomes: Outcomes) -> None:
        """Share the worker's transcripts."""
        super().__init__(resources)
        self.transcripts = transcripts
        self.outcomes = outcomes

    async def inherited(self, ask: calls.OpenRun) -> Inheritance | None:
        """Return what a run has from the one that delegated to it; None where none did.

        Only what the store says counts: a stranger may start a run under any name, with any task.
        """
        workflow_id, _, _ = ask.run.rpartition("/")
        if not may_be_subrun(workflow_id) or await self.store.subruns.named(workflow_id) is None:
            return None
        subrun = await self.store.subruns.opened(workflow_id, ask.run, _digest(ask.task))
        row = None if subrun is None else await self._row(subrun.parent)
        if subrun is None or row is None:
            return None
        row.require_not_pruned()
        return Inheritance(subrun, row, calls.OpenedRun.model_validate(row.opened))

    async def first_context(self, run: str, inherited: Inheritance, items: list[Item], said: list[Utterance]) -> str:
        """Store how a sub-run begins; the words of its task are the model's, or whose they were where it read them."""
        told: Item = {"kind": "fact", "text": prompt("subrun")}
        by_model = [each._replace(code=MODEL) for each in said]
        above = inherited.subrun.context
        return await self.transcripts.inherit(run, above, [*items, told], by_model)

    @implements(calls.begin_subruns)
    async def begin_subruns(self, ask: calls.BeginSubruns) -> calls.BegunSubruns:
        """Keep what the sub-runs of one decision are started with; a repeat keeps nothing twice."""
        await self.begin(ask)
        row = await self._row(ask.run)
        if row is None:
            raise StoreUnavailable(f"the beginning of {ask.run} is not recorded in this store")
        opened = calls.OpenedRun.model_validate(row.opened)
        limits = opened.policy.delegating
        try:
            wanted = [_wanted(ask, opened, each) for each in ask.subruns]
            await self.store.subruns.begin(wanted, most=limits.max_runs)
        except (TaskInvalid, PolicyInvalid) as error:
            return calls.BegunSubruns(refused=one_line(await self.records.text(ask.run, str(error)), 500))
        return calls.BegunSubruns()

    @implements(calls.end_subruns)
    async def end_subruns(self, ask: calls.EndSubruns) -> calls.EndedSubruns:
        """Settle what sub-runs have spent, keep what they say, and take over their effects that stand."""
        self.store.check(ask.store)
        children = [await self._looked_at(told) for told in ask.children]
        if any(child.is_open for child in children):
            await self.begin(ask)
            return calls.EndedSubruns(subruns=tuple(_open(child) for child in children))
        for child in children:
            if child.row is not None:
                # The words of a sub-run may hold handles, which its reader may pass on.
                await self.store.runs.take_handles(ask.run, child.row.run)
        await self.begin(ask)
        free = await self.store.subruns.adopt(ask.run, [told.workflow_id for told in ask.children], ask.first_effect)
        rows = await self.store.effects.open_of_run(ask.run)
        # By who made them: after a reset, those of before it have lower numbers than what the run has done since.
        rows = [row for row in rows if any(_is_of(row.made_by, told.workflow_id) for told in ask.children)]
        effects = await self.outcomes.shown_page(ask.run, rows[:MOST_EFFECTS], ask.user_id, ask.builtin)
        standing = [sum(_is_of(row.made_by, told.workflow_id) for row in rows) for told in ask.children]
        ended = [await self._ended(ask, child, count) for child, count in zip(children, standing, strict=True)]
        return calls.EndedSubruns(
            subruns=tuple(ended),
            effects=effects,
            count=len(rows),
            authority=all_of(row.authority for row in rows),
            next_effect=free,
        )

    async def _row(self, run: str) -> RunRow | None:
        workflow_id, _, first_run_id = run.rpartition("/")
        return await self.store.runs.get(workflow_id, first_run_id)

    async def _looked_at(self, told: EndedChild) -> _Child:
        subrun = await self.store.subruns.named(told.workflow_id)
        row = None if subrun is None or subrun.run is None else await self._row(subrun.run)
        if not told.unseen or subrun is None or subrun.spent is not None:
            return _Child(told, subrun, row)
        return _Child(told, subrun, row, is_open=await self._is_running(told.workflow_id))

    async def _is_running(self, workflow_id: str) -> bool:
        """Return whether Temporal runs a sub-run that was started before a reset of the run that delegated to it."""
        try:
            return (await described(self.resources.temporal, workflow_id)).is_open
        except RunNotFound:
            return False
        except BackstayError as error:
            raise StoreUnavailable(f"Temporal does not say whether {workflow_id} is open: {error}") from error

    async def _ended(self, ask: calls.EndSubruns, child: _Child, standing: int) -> EndedSubrun:
        """Keep what a sub-run says, and return it with what it has spent, as far as anybody knows."""
        subrun, row = child.subrun, child.row
        result = None if row is None or row.result is None else Result.model_validate(row.result)
        spent, outcome = Spent(), "not begun"
        if subrun is not None and subrun.run is not None:
            spent = subrun.spent
            outcome = (child.told.fault or "stopped") if result is None else result.outcome.value
        told = await self._told(child, result, outcome, spent, standing)
        read = [OTHERS if await self._has_read_others(row) else MODEL]
        kept = await self.records.keep(ask.run, DELEGATE, told, "engine", read=read)
        success = result is not None and result.success
        failed: dict[str, Any] = {}
        if not success:
            why = told.get("error") or told.get("summary", "")
            error = f"the sub-run {child.told.workflow_id} ended as {outcome}: {why}"
            kind = Unfinished.__name__ if result is None or result.error is None else result.error.type
            failed = {"error": one_line(await self.records.text(ask.run, error), 500), "error_type": kind}
        facts: dict[str, Any] = kept.facts | {"snippet": one_line(f"{outcome}: {told.get('summary', '')}", 80)}
        answer = ToolResult(success=success, **facts, **failed)
        whole = None if spent is not None else await self._all_of_share(child)
        return EndedSubrun(workflow_id=child.told.workflow_id, outcome=outcome, result=answer, spent=spent, whole=whole)

    async def _all_of_share(self, child: _Child) -> Spent | None:
        """Return all that a sub-run could spend, as its own history tells; None where Temporal does not tell it.

        A run that was terminated has stored no budget, but answers queries until Temporal forgets it.
        """
        if child.subrun is None or child.subrun.run is None:
            return None
        temporal, name = self.resources.temporal, child.told.workflow_id
        try:
            newest = await temporal.get_workflow_handle(name).describe()
            # Anybody can start another run of this name now, whose budget is not a share of this run.
            first = newest.raw_description.workflow_execution_info.first_run_id
            if child.subrun.run != f"{name}/{first}":
                return None
            handle = temporal.get_workflow_handle(name, run_id=newest.run_id)
            told = await handle.query("budget", rpc_timeout=_QUERY)
            return child.subrun.share.whole_of(Budget.model_validate(told["budget"]))
        except (RPCError, WorkflowQueryFailedError, BackstayError, ValueError, KeyError, TypeError):
            return None

    async def _told(
        self, child: _Child, result: Result | None, outcome: str, spent: Spent | None, standing: int
    ) -> dict[str, Any]:
        """Return what the model that delegated is told."""
        told: dict[str, Any] = {"sub_run": child.told.workflow_id, "outcome": outcome}
        if result is not None and child.row is not None:
            told |= {"summary": result.final_summary, "error": result.error.message if result.error else None}
            told |= {"outputs": await self._uncut(child.row.run, result.raw_outputs)}
            told |= {"output": await self._uncut(child.row.run, result.output)}
            told |= {"undone": [f"{undone.tool}: {undone.state}" for undone in result.undone]}
        elif child.told.fault:
            told["error"] = child.told.fault
        told |= {"effects_that_stand": standing}
        told["spent"] = "unknown, so all of its share counts" if spent is None else _spent_words(spent)
        return {name: value for name, value in told.items() if value not in (None, "", {}, [])}

    async def _uncut(self, run: str, value: Any) -> Any:
        """Return an output, also one that the sub-run has stored apart: the reader here has another run."""
        match value:
            case {"ref": str() as ref, "note": str()} if len(value) == 2:
                with suppress(BackstayError):
                    return await self.records.shown(run, ref)
            case _:
                pass
        return value

    async def _has_read_others(self, row: RunRow | None) -> bool:
        """Return whether a sub-run has read what others wrote; where nobody knows, it has."""
        if row is None:
            return False
        if row.context is None:
            return True
        with suppress(BackstayError):
            return any(map(is_others, await self.transcripts.read_by(row.run, row.context)))
        return True


def _wanted(ask: calls.BeginSubruns, opened: calls.OpenedRun, want: WantedSubrun) -> Subrun:
    """Return a sub-run that may be started; raises TaskInvalid and PolicyInvalid."""
    task, depth, most = Task.admit(want.task), len(opened.above) + 1, opened.policy.delegating.max_depth
    if depth > most:
        raise TaskInvalid(f"delegation.max_depth: the policy lets runs delegate down to depth {most}")
    opened.policy.tightened_by(task.policy)
    return Subrun(
        workflow_id=want.workflow_id,
        parent=ask.run,
        n=want.n,
        step=ask.step,
        task_digest=_digest(task),
        context=ask.context,
        share=want.share,
        private=ask.private,
    )


def _digest(task: Task) -> str:
    return digest_of(task.model_dump(mode="json", by_alias=True, exclude_unset=True))


def _open(child: _Child) -> EndedSubrun:
    nothing = ToolResult(success=False, error="it works on")
    return EndedSubrun(workflow_id=child.told.workflow_id, outcome="open", result=nothing, open=child.is_open)


def _is_of(maker: str, subrun: str) -> bool:
    """Return whether an effect was made by a sub-run, or by one below it."""
    return maker == subrun or is_below(maker, subrun)


def _spent_words(spent: Spent) -> dict[str, Any]:
    usage = spent.usage
    return {"steps": usage.steps_taken, "tool_calls": usage.tool_calls, "llm_cost_usd": spent.micro / MICRO}
