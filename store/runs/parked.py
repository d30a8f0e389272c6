"""Know which undos are parked: the effects that were to be undone, and wait for a person instead.

The timeline says so when it happens, and says too when an effect was undone after all.
"""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from backstay.task.event import Event
from store.database.database import Database
from store.database.schema import parked_undos
from store.database.transactions import reading

_TRIED = "undo.ran"
_PARKED = "parked"
_FORGET = delete(parked_undos).where(
    parked_undos.c.run == bindparam("run_"), parked_undos.c.effect == bindparam("effect_")
)
_KEEP = insert(parked_undos)
_OF_RUN = select(parked_undos.c.effect).where(parked_undos.c.run == bindparam("run_"))
_COUNT = select(func.count()).select_from(parked_undos)


def note_undos(connection: Connection, run: str, told: Sequence[Event]) -> None:
    """Note what events say of undos, in the transaction that writes them; of one effect the last one counts."""
    tried = {event.data.get("effect"): event.data.get("state") for event in told if event.name == _TRIED}
    for effect, state in tried.items():
        if isinstance(effect, int):
            connection.execute(_FORGET, {"run_": run, "effect_": effect})
            if state == _PARKED:
                connection.execute(_KEEP, {"run": run, "effect": effect})


class ParkedUndos:
    """Tell which undos are parked."""

    def __init__(self, database: Database) -> None:
        """Use this database."""
        self.database = database

    @reading
    def of_run(self, connection: Connection, run: str) -> set[int]:
        """Return the numbers of a run's effects that wait for a person, because their undo failed."""
        return set(connection.execute(_OF_RUN, {"run_": run}).scalars())

    @reading
    def count(self, connection: Connection) -> int:
        """Return how many effects wait for a person, because their undo failed; those of pruned runs do not."""
        return connection.execute(_COUNT).scalar_one()
