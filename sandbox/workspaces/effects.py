"""Write to a workspace so that it happens once, leaves nothing half done, and can be taken back."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from backstay.errors import ArgumentsInvalid, Final, SnapshotRefused
from backstay.frozen import Frozen
from sandbox.workspaces.durable_file import read_json, remove_durably, write_durably
from sandbox.workspaces.snapshotting import Changed, Snapshotting
from sandbox.workspaces.workspace import Workspace, WorkspaceCall


class Written(Frozen):
    """Tell what an effect found, and what it left and answered once it has ended."""

    effect: str
    tool: str
    before: str
    """The snapshot that was taken before it."""
    after: str | None = None
    answer: dict[str, Any] | None = None
    """None: it has not ended, or was cut off."""


class WrittenEffects:
    """Keep what effects did to one workspace."""

    def __init__(self, folder: Path) -> None:
        """Keep the records in this folder."""
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def get(self, effect: str) -> Written | None:
        """Return what is recorded of an effect."""
        said = read_json(self._place(effect))
        return None if said is None else Written.model_validate(said)

    def unfinished(self) -> Written | None:
        """Return the effect that has begun and not ended; there is at most one at a time."""
        said = read_json(self._folder / "unfinished")
        return None if said is None else Written.model_validate(said)

    def all(self) -> list[Written]:
        """Return what is recorded of every effect that has ended."""
        return [Written.model_validate(read_json(place)) for place in sorted(self._folder.glob("*.json"))]

    def remove(self, effect: str) -> None:
        """Remove what is recorded of an effect; it can no longer be taken back."""
        remove_durably(self._place(effect))

    def begin(self, written: Written) -> None:
        """Record that an effect begins."""
        write_durably(self._folder / "unfinished", written.plain())

    def finish(self, written: Written) -> None:
        """Record how it ended."""
        write_durably(self._place(written.effect), written.plain())
        remove_durably(self._folder / "unfinished")

    def drop(self) -> None:
        """Forget the effect that has begun, since nothing of it is left."""
        remove_durably(self._folder / "unfinished")

    def _place(self, effect: str) -> Path:
        return self._folder / f"{hashlib.sha256(effect.encode()).hexdigest()}.json"


_MOST_CHANGES = 200
_MOST_ARTIFACTS = 1000
_MB = 1 << 20

Doing = Callable[[], Awaitable[dict[str, Any]]]


class Writing:
    """Surround what writes with two snapshots and a record."""

    def __init__(self, workspace: Workspace, snapshots: Snapshotting, records: WrittenEffects, *, most_mb: int) -> None:
        """Let one call write at most so many megabytes."""
        self._workspace = workspace
        self._snapshots = snapshots
        self._records = records
        self._most = most_mb * _MB

    async def write(self, call: WorkspaceCall, do: Doing) -> dict[str, Any]:
        """Return what was done, with the snapshots around it; what was done before under this effect is not repeated.

        When it fails, nothing of it is left.
        """
        if not call.effect:
            raise ArgumentsInvalid(f"{call.tool} writes, and needs an effect id")
        known = self._records.get(call.effect)
        if known is not None and known.answer is not None:
            return {"ok": known.answer}
        taken = await asyncio.to_thread(self._snapshots.take, self._workspace.root)
        begun = Written(effect=call.effect, tool=call.tool, before=taken.id)
        self._records.begin(begun)
        try:
            said = await do()
            return await asyncio.to_thread(self._finished, begun, said)
        except SnapshotRefused as error:
            left = await asyncio.to_thread(self._take_back, begun)
            return {"error": f"{error}; nothing of it was kept{left}"}
        except BaseException:
            await asyncio.shield(asyncio.to_thread(self._take_back, begun))
            raise

    def _finished(self, begun: Written, said: dict[str, Any]) -> dict[str, Any]:
        if "error" in said:
            left = self._take_back(begun)
            return {"error": said["error"] + left}
        after = self._snapshots.take(self._workspace.root).id
        changes = self._snapshots.changes(begun.before, after)
        files = [one for one in changes if one.after is not None and one.after.kind == "file" and one.kind != "mode"]
        size = sum(one.after.size for one in files if one.after is not None)
        if size > self._most:
            left = self._take_back(begun)
            return {"error": f"it wrote {size} bytes, more than {self._most}; nothing of it was kept{left}"}
        answer = said["ok"] | {
            "before": begun.before,
            "after": after,
            "changes": [{"path": one.shown, "kind": one.kind} for one in changes[:_MOST_CHANGES]],
            "changed": len(changes),
        }
        if "artifacts" in answer:
            answer["artifacts"] = [_artifact(one) for one in files[:_MOST_ARTIFACTS]]
        self._records.finish(begun.model_copy(update={"after": after, "answer": answer}))
        return {"ok": answer}

    def _take_back(self, begun: Written) -> str:
        """Bring back what was there before, and say what could not be; nobody else works in the workspace meanwhile."""
        restored = self._snapshots.restore(self._workspace.root, begun.before)
        self._records.drop()
        left = [f"{one.path!a}: {one.why}" for one in (*restored.conflicts, *restored.failed)]
        return f"; {len(left)} things could not be brought back, such as {left[0]}" if left else ""


def _artifact(change: Changed) -> dict[str, Any]:
    assert change.after is not None  # noqa: S101 - only of files that are there
    return {"path": change.shown, "sha256": change.after.content, "size": change.after.size}


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
