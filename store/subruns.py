"""Keep the sub-runs of each run: what they were started with, what they have spent, and their effects that stand."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, select, update

from backstay.budgets.share import Share, Spent
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from store.database.database import Database
from store.database.schema import adopted_effects, effects, subruns
from store.database.transactions import reading, writing
from store.effects.effects import could_be_undone
from store.effects.types import EffectRow
from store.ledger.noting import note
from store.runs.events import Events

_BY_NAME = select(subruns).where(subruns.c.workflow_id == bindparam("workflow_id_"))
_OF_PARENT = select(subruns).where(subruns.c.parent == bindparam("parent_")).order_by(subruns.c.n)
_BY_RUN = select(subruns).where(subruns.c.run == bindparam("run_"))
_MADE = select(adopted_effects.c.effect_id).where(
    adopted_effects.c.run == bindparam("run_"), adopted_effects.c.n == bindparam("n_")
)
_MOST_BELOW = 5_000
"""More sub-runs than a tree can have."""


class Subrun(Frozen):
    """Hold one sub-run, as the run that delegated to it began it."""

    workflow_id: str
    parent: str
    """The run that delegated to it."""
    n: int
    """Which sub-run of that run it is."""
    step: int
    """In which step of it that was."""
    task_digest: str
    """Of the task that it was to be started with: a run of the same name with another task is a stranger's."""
    context: str
    """Ref of what the model of that run had been told by then."""
    share: Share
    private: tuple[str, ...] = ()
    """The providers that have answered the run above something which not everybody may read."""
    run: str | None = None
    """None while it has not begun."""
    spent: Spent | None = None
    """None while it has not said so."""


class Made(NamedTuple):
    """Name an effect by the run that made it."""

    run: str
    n: int


class Subruns:
    """Keep sub-runs, and find the tree of a run."""

    def __init__(self, database: Database, events: Events) -> None:
        """Read in these parts of the store what the calls behind effects were asked."""
        self.database = database
        self._events = events

    @writing
    def begin(self, connection: Connection, wanted: Sequence[Subrun], *, most: int) -> None:
        """Keep what sub-runs are to be started with; a repeat changes nothing.

        Raises TaskInvalid where a run would have more than that.
        """
        new = [each for each in wanted if not _rows(connection, _BY_NAME, workflow_id_=each.workflow_id)]
        for each in new:
            if each.n > most:
                raise TaskInvalid(f"delegation.max_runs: the policy allows {most} sub-runs of one run")
            connection.execute(insert(subruns), each.model_dump(mode="json"))
            said = {"workflow_id": each.workflow_id, "n": each.n, "step": each.step, "share": each.share.shown}
            note(connection, each.parent, "run", "run.delegated", said)

    @writing
    def opened(self, connection: Connection, workflow_id: str, run: str, task_digest: str) -> Subrun | None:
        """Return the sub-run that a run is which begins; None where it is none.

        Of several runs of one name, it is the first one that was given the very task.
        """
        found = _rows(connection, _BY_NAME, workflow_id_=workflow_id)
        if not found or found[0].task_digest != task_digest or found[0].run not in {None, run}:
            return None
        if found[0].run is None:
            connection.execute(update(subruns).where(subruns.c.workflow_id == workflow_id).values(run=run))
        return found[0].model_copy(update={"run": run})

    @writing
    def ended(self, connection: Connection, run: str, spent: Spent) -> None:
        """Keep what a sub-run has spent."""
        said = spent.model_dump(mode="json")
        connection.execute(update(subruns).where(subruns.c.run == run).values(spent=said))
        note(connection, run, "run", "run.spent", {"micro": spent.micro, "wall_ms": spent.wall_ms})

    @reading
    def named(self, connection: Connection, workflow_id: str) -> Subrun | None:
        """Return a sub-run by the workflow id that was kept for it."""
        return next(iter(_rows(connection, _BY_NAME, workflow_id_=workflow_id)), None)

    @reading
    def of_run(self, connection: Connection, run: str) -> Subrun | None:
        """Return the sub-run that a run is, or None."""
        return next(iter(_rows(connection, _BY_RUN, run_=run)), None)

    @reading
    def below(self, connection: Connection, run: str) -> list[Subrun]:
        """Return the sub-runs that a run has delegated to, those that these have delegated to, and so on."""
        return [*_below(connection, run)]

    @reading
    def children(self, connection: Connection, run: str) -> list[Subrun]:
        """Return the sub-runs that a run has delegated to, in their order."""
        return _rows(connection, _OF_PARENT, parent_=run)

    @reading
    def made(self, connection: Connection, run: str, n: int) -> Made | None:
        """Return which effect of a sub-run has a number in a run; None for the run's own."""
        effect_id = connection.execute(_MADE, {"run_": run, "n_": n}).scalar()
        if effect_id is None:
            return None
        made_by, _, number = str(effect_id).rpartition("/")
        return Made(made_by, int(number))

    async def arguments_of(self, rows: Iterable[EffectRow]) -> dict[int, dict[str, Any]]:
        """Return what the effects of a run and its sub-runs were called with, in short, by their numbers in the run."""
        found: dict[int, dict[str, Any]] = {}
        by_maker: dict[str, dict[int, int]] = {}
        for row in rows:
            by_maker.setdefault(row.run, {})[row.own_n] = row.n
        for maker, numbers in by_maker.items():
            asked = await self._events.arguments(maker, list(numbers))
            found |= {numbers[n]: arguments for n, arguments in asked.items()}
        return found

    @writing
    def adopt(self, connection: Connection, run: str, children: Iterable[str] | None, first: int | None = None) -> int:
        """Take the effects of sub-runs that stand over into a run, in the order of the store's clock.

        `children`: the workflow ids of those sub-runs, None for all. `first`: the first number that is free, None where
        the store knows it. Return the first number that is free then. An effect that was taken over before keeps its
        number.
        """
        known = _rows(connection, _OF_PARENT, parent_=run)
        wanted = {
            each.run: each.step for each in known if each.run and (children is None or each.workflow_id in children)
        }
        highest = max(_highest(connection, effects, run), _highest(connection, adopted_effects, run))
        free = max(highest + 1, first or 1)
        for effect_id, maker in _standing(connection, list(wanted)):
            there = (adopted_effects.c.run == run) & (adopted_effects.c.effect_id == effect_id)
            if connection.execute(select(adopted_effects.c.n).where(there)).first() is None:
                row = {"run": run, "n": free, "effect_id": effect_id, "step": wanted[maker]}
                connection.execute(insert(adopted_effects), row)
                free += 1
        return free


def _standing(connection: Connection, makers: Sequence[str]) -> list[tuple[str, str]]:
    """Return the effects of these runs that stand, and those that they have taken over, by the clock of the store."""
    columns = (effects.c.effect_id, effects.c.first_sent_at)
    own = select(*columns, effects.c.run.label("maker")).where(effects.c.run.in_(makers), effects.c.undo.is_(False))
    theirs = (
        select(*columns, adopted_effects.c.run.label("maker"))
        .join(adopted_effects, adopted_effects.c.effect_id == effects.c.effect_id)
        .where(adopted_effects.c.run.in_(makers))
    )
    found = [
        *connection.execute(own.where(could_be_undone(effects))),
        *connection.execute(theirs.where(could_be_undone(effects))),
    ]
    return [(str(row[0]), str(row[2])) for row in sorted(found, key=lambda row: (row[1], row[0]))]


def _highest(connection: Connection, table: Any, run: str) -> int:
    return int(connection.execute(select(func.max(table.c.n)).where(table.c.run == run)).scalar() or 0)


def _below(connection: Connection, run: str) -> Iterable[Subrun]:
    waiting, found = [run], 0
    while waiting and found < _MOST_BELOW:
        children = _rows(connection, _OF_PARENT, parent_=waiting.pop())
        found += len(children)
        yield from children
        waiting += [each.run for each in children if each.run is not None]


def _rows(connection: Connection, chosen: Any, **asked: Any) -> list[Subrun]:
    return [Subrun.model_validate(dict(row)) for row in connection.execute(chosen, asked).mappings()]
