"""Take back what an effect did to a workspace, and say what became of effects."""

from typing import Any

from backstay.errors import Final
from sandbox.snapshotting import Snapshotting
from sandbox.workspace import Workspace
from sandbox.written import WrittenEffects

_MOST_NAMED = 200
_MOST_LEFT = 10


class TakingBack:
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
        return True

    def outcome(self, effect: str) -> dict[str, Any]:
        """Say whether an effect took place, and what it answered; an answer is final."""
        known = self._records.get(effect)
        return {"applied": known is not None, "answer": None if known is None else known.answer}

    def restore(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Bring what an effect changed back to what it was; what it did not change stays. Repeating it does no harm.

        What was changed again since is left alone, and then the answer is an error that names it.
        """
        before, after = arguments.get("snapshot"), arguments.get("expect")
        if effect := arguments.get("effect"):
            known = self._records.get(str(effect))
            if known is None or known.after is None:
                return {"ok": {"restored": [], "count": 0}}
            before, after = known.before, known.after
        if not isinstance(before, str) or not isinstance(after, str):
            return {"error": "name a snapshot and the one that is expected, or an effect"}
        try:
            restored = self._snapshots.restore(self._workspace.root, before, expect=after)
        except Final as error:
            return {"error": str(error)}
        left = [f"{one.path!a}: {one.why}" for one in (*restored.conflicts, *restored.failed)]
        if left:
            more = f"; and {len(left) - _MOST_LEFT} more" if len(left) > _MOST_LEFT else ""
            done = f"{len(restored.paths)} paths were brought back, {len(left)} were left alone: "
            return {"error": done + "; ".join(left[:_MOST_LEFT]) + more}
        shown = [ascii(path)[1:-1] for path in restored.paths[:_MOST_NAMED]]
        return {"ok": {"restored": shown, "count": len(restored.paths)}}
