"""Tell whose connections and memory a run may use, by what was proven when it began."""

from backstay.memory.item import owner_of
from backstay.settings import Settings
from store.runs.runs import RunRow
from store.store import Store

_MOST_KEPT = 2000
_PROVEN = "started_by"


class Owners:
    """Know the owners of runs."""

    def __init__(self, settings: Settings, store: Store) -> None:
        """Believe the services of the settings as they are now, also about runs that have begun."""
        self._settings = settings
        self._store = store
        self._known: dict[str, str] = {}

    def named(self, user_id: str, started_by: str) -> str:
        """Return who owns a run for a user, started by whoever proved it; empty where that is nobody."""
        return owner_of(user_id, started_by, self._settings.may_act_for)

    def of_row(self, row: RunRow | None) -> str:
        """Return who owns a run that has begun, as its row says."""
        if row is None or row.pruned_at is not None:
            return ""
        return self.named(row.user_id, str(row.opened.get(_PROVEN) or ""))

    async def of(self, run: str) -> str:
        """Return who owns a run; its beginning never changes, so it is looked up once."""
        if run in self._known:
            return self._known[run]
        workflow_id, _, workflow_run_id = run.rpartition("/")
        row = await self._store.runs.get(workflow_id, workflow_run_id)
        return self.of_row(row) if row is None else self._note(run, self.of_row(row))

    def begin(self, run: str, user_id: str, started_by: str) -> str:
        """Return who owns a run that is beginning, and has no row yet."""
        return self._note(run, self.named(user_id, started_by))

    def _note(self, run: str, owner: str) -> str:
        while len(self._known) >= _MOST_KEPT:
            self._known.pop(next(iter(self._known)))
        self._known[run] = owner
        return owner
