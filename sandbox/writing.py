"""Write to a workspace so that it happens once, leaves nothing half done, and can be taken back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from backstay.errors import ArgumentsInvalid, SnapshotRefused
from sandbox.snapshotting import Changed, Snapshotting
from sandbox.workspace import Workspace
from sandbox.workspace_call import WorkspaceCall
from sandbox.written import Written, WrittenEffects

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
