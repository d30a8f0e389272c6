"""Take back what an effect did to a workspace, and say what became of effects."""

from typing import Any

from backstay.errors import Final
from sandbox.snapshotting import Snapshotting
from sandbox.workspace import Workspace
from sandbox.written import WrittenEffects

_MOST_NAMED = 200


class Restoring:
    """Bring back what one workspace held."""

    def __init__(self, workspace: Workspace, snapshots: Snapshotting, records: WrittenEffects) -> None:
        """Look effects up in the records."""
        self._workspace = workspace
        self._snapshots = snapshots
        self._records = records

    def cut_off(self) -> bool:
        """Take back an effect that began and never ended, since its host is gone; return whether there was one."""
        begun = self._records.unfinished()
        if begun is None:
            return False
        if self._records.get(begun.effect) is None:
            self._snapshots.restore(self._workspace.root, begun.before)
        self._records.drop()
        return begun is not None

    def outcome(self, effect: str) -> dict[str, Any]:
        """Say whether an effect took place, and what it answered; an answer is final."""
        known = self._records.get(effect)
        return {"applied": known is not None, "answer": None if known is None else known.answer}

    def restore(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Bring the files that an effect changed back to what they were; files that it did not change stay.

        A file that was changed again since is not overwritten: then nothing is.
        """
        before, after = arguments.get("snapshot"), arguments.get("expect")
        if effect := arguments.get("effect"):
            known = self._records.get(effect)
            if known is None or known.after is None:
                return {"ok": {"restored": [], "note": "the effect did not take place"}}
            before, after = known.before, known.after
        if not isinstance(before, str) or not isinstance(after, str):
            return {"error": "name a snapshot and the one that is expected, or an effect"}
        try:
            changes = self._snapshots.changes(before, after)
            self._snapshots.restore(self._workspace.root, before, only=[one.path for one in changes], expect=after)
        except Final as error:
            return {"error": str(error)}
        return {"ok": {"restored": [one.shown for one in changes[:_MOST_NAMED]]}}
