"""The plans that runs have proposed, as people saw them, and what became of each."""

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Table, bindparam, delete, func, insert, select, union_all, update

from backstay.approvals.proposal import Proposal
from backstay.canonical import digest_of
from backstay.effects.effect import EffectState
from backstay.frozen import Frozen
from backstay.plans.plan_run import PlanEnd, PlanState
from backstay.task.plan import Plan
from store.database.database import Database
from store.database.schema import decisions, effects, events, plans, runs
from store.database.transactions import only_with, reading, writing
from store.ledger.noting import note

_OF_RUN = select(plans).where(plans.c.run == bindparam("run_")).order_by(plans.c.created_at, plans.c.plan_id)
_ONE = select(plans.c.plan_id).where(plans.c.run == bindparam("run_"), plans.c.plan_id == bindparam("plan_id_"))
_UPDATE = update(plans).where(plans.c.run == bindparam("run_"), plans.c.plan_id == bindparam("plan_id_"))
_UNDONE = (
    select(events.c.body)
    .where(events.c.run == bindparam("run_"), events.c.n > 0, events.c.name == "undo.ran")
    .order_by(events.c.n)
)
_COMPENSATED = select(effects.c.n).where(
    effects.c.run == bindparam("run_"), effects.c.undo.is_(False), effects.c.state == EffectState.COMPENSATED.value
)


class KeptPlan(Frozen):
    """Hold one plan of a run."""

    plan: Plan
    proposal: Proposal
    state: PlanState
    ended: PlanEnd | None = None
    """What became of its steps; None until the run has ended."""
    created_at: float


class Plans:
    """Keep every plan of every run, once."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Read time from `clock`, in unix seconds."""
        self.database = database
        self._clock = clock

    @writing
    def keep(self, connection: Connection, run: str, plan: Plan, proposal: Proposal) -> None:
        """Keep a plan as it is proposed; a repeat replaces what was shown before."""
        now = self._clock()
        shown = {"body": plan.plain(), "proposal": proposal.plain(), "updated_at": now}
        named = {"run_": run, "plan_id_": plan.id}
        said = {"plan": shown["body"], "proposal": shown["proposal"], "sha256": digest_of(shown["body"])}
        note(connection, run, "plan", "plan.proposed", said)
        if connection.execute(_ONE, named).first() is not None:
            connection.execute(_UPDATE.values(**shown), named)
            return
        row: dict[str, Any] = {"run": run, "plan_id": plan.id, "state": PlanState.PROPOSED.value, "ended": None}
        connection.execute(insert(plans), row | shown | {"created_at": now})

    @only_with("ended")
    @writing
    def end(self, connection: Connection, run: str, ended: Sequence[PlanEnd]) -> None:
        """Keep what became of plans; those that were never proposed are not known here, and stay unknown."""
        for end in ended:
            values = {"state": end.state.value, "ended": end.plain(), "updated_at": self._clock()}
            connection.execute(_UPDATE.values(**values), {"run_": run, "plan_id_": end.plan_id})
            note(connection, run, "plan", f"plan.{end.state.value}", end.plain())

    @reading
    def of_run(self, connection: Connection, run: str) -> list[KeptPlan]:
        """Return the plans of a run, in the order in which they were proposed, as undos have left them since."""
        return _of_run(connection, run)


def _of_run(connection: Connection, run: str) -> list[KeptPlan]:
    undone = _undone(connection, run)
    kept: list[KeptPlan] = []
    for row in connection.execute(_OF_RUN, {"run_": run}):
        ended = None if row.ended is None else PlanEnd.model_validate(row.ended).after_undo(undone)
        kept.append(
            KeptPlan(
                plan=Plan.model_validate(row.body),
                proposal=Proposal.model_validate(row.proposal),
                state=PlanState(row.state) if ended is None else ended.state,
                ended=ended,
                created_at=row.created_at,
            )
        )
    return kept


def _undone(connection: Connection, run: str) -> dict[int, str]:
    """Return what became of the effects that were to be undone, also after the end of the run."""
    told = (body["data"] for body in connection.execute(_UNDONE, {"run_": run}).scalars())
    found = {data["effect"]: data["state"] for data in told if data.keys() >= {"effect", "state"}}
    return found | dict.fromkeys(connection.execute(_COMPENSATED, {"run_": run}).scalars(), "compensated")


def settle_plans(connection: Connection, run: str) -> None:
    """Keep with the plans what undos have left of them, before the effects that show it are removed."""
    for kept in _of_run(connection, run):
        if kept.ended is not None:
            values = {"state": kept.state.value, "ended": kept.ended.plain()}
            connection.execute(_UPDATE.values(**values), {"run_": run, "plan_id_": kept.plan.id})


def forget_plans(connection: Connection, pruned: Collection[str], before: float, *, dry_run: bool) -> tuple[int, int]:
    """Remove the plans and the decisions of pruned runs where none is newer; return how many of each.

    `pruned`: runs that count as pruned beside those that are marked.
    """
    at = datetime.fromtimestamp(before, UTC).isoformat(timespec="milliseconds")
    newer = union_all(
        select(plans.c.run).where(plans.c.updated_at >= before), select(decisions.c.run).where(decisions.c.at >= at)
    )
    old = select(runs.c.run).where(
        runs.c.pruned_at.is_not(None) | runs.c.run.in_(pruned),
        runs.c.run.in_(union_all(select(plans.c.run), select(decisions.c.run))),
        runs.c.run.not_in(newer),
    )
    gone = connection.execute(old).scalars().all()
    kept, said = (_count(connection, table, gone) for table in (plans, decisions))
    if not dry_run:
        for table in (plans, decisions):
            for run in gone:
                connection.execute(delete(table).where(table.c.run == run))
    return kept, said


def _count(connection: Connection, table: Table, gone: Sequence[str]) -> int:
    count = select(func.count()).select_from(table)
    return sum(connection.execute(count.where(table.c.run == run)).scalar_one() for run in gone)
