"""The plans that runs have proposed, as people saw them, and what became of each."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from backstay.approvals.proposal import Proposal
from backstay.frozen import Frozen
from backstay.plans.plan_run import PlanEnd, PlanState
from backstay.task.plan import Plan
from store.database.database import Database
from store.database.schema import plans

_OF_RUN = select(plans).where(plans.c.run == bindparam("run_")).order_by(plans.c.created_at, plans.c.plan_id)
_ONE = select(plans.c.plan_id).where(plans.c.run == bindparam("run_"), plans.c.plan_id == bindparam("plan_id_"))
_UPDATE = update(plans).where(plans.c.run == bindparam("run_"), plans.c.plan_id == bindparam("plan_id_"))


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
        self._database = database
        self._clock = clock

    async def keep(self, run: str, plan: Plan, proposal: Proposal) -> None:
        """Keep a plan as it is proposed; a repeat replaces what was shown before."""

        def work(connection: Connection) -> None:
            now = self._clock()
            shown = {"body": plan.plain(), "proposal": proposal.plain(), "updated_at": now}
            named = {"run_": run, "plan_id_": plan.id}
            if connection.execute(_ONE, named).first() is not None:
                connection.execute(_UPDATE.values(**shown), named)
                return
            row: dict[str, Any] = {"run": run, "plan_id": plan.id, "state": PlanState.PROPOSED.value, "ended": None}
            connection.execute(insert(plans), row | shown | {"created_at": now})

        await self._database.write(work)

    async def end(self, run: str, ended: Sequence[PlanEnd]) -> None:
        """Keep what became of plans; those that were never proposed are not known here, and stay unknown."""
        if not ended:
            return

        def work(connection: Connection) -> None:
            for end in ended:
                values = {"state": end.state.value, "ended": end.plain(), "updated_at": self._clock()}
                connection.execute(_UPDATE.values(**values), {"run_": run, "plan_id_": end.plan_id})

        await self._database.write(work)

    async def of_run(self, run: str) -> list[KeptPlan]:
        """Return the plans of a run, in the order in which they were proposed."""

        def work(connection: Connection) -> list[KeptPlan]:
            return [
                KeptPlan.model_validate(
                    {
                        "plan": row.body,
                        "proposal": row.proposal,
                        "state": row.state,
                        "ended": row.ended,
                        "created_at": row.created_at,
                    }
                )
                for row in connection.execute(_OF_RUN, {"run_": run})
            ]

        return await self._database.read(work)
