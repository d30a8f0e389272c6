"""Remove what the workspaces of one home keep for runs that are pruned."""

from collections.abc import Collection
from pathlib import Path

from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.durable_file import held
from sandbox.workspaces.effects import WrittenEffects


def prune_workspaces(home: Path, runs: Collection[str], *, dry_run: bool = False) -> list[int]:
    """Remove the records of these runs, and all snapshots that no other run needs; return the sizes of what goes.

    Each workspace is locked meanwhile, so that no call is under way in it. Raises SnapshotDamaged when a snapshot that
    must stay cannot be read.
    """
    state = home / "workspace-state"
    sizes: list[int] = []
    for folder in sorted((state / "written").glob("*")):
        with held(state / f"{folder.name}.lock"):
            sizes += _prune_workspace(WrittenEffects(folder), home / "snapshots" / folder.name, runs, dry_run=dry_run)
    return sizes


def _prune_workspace(records: WrittenEffects, snapshots: Path, runs: Collection[str], *, dry_run: bool) -> list[int]:
    every = records.all()
    gone = [written for written in every if written.effect.rpartition("/")[0] in runs]
    begun = records.unfinished()
    kept = [written for written in (*every, begun) if written is not None and written not in gone]
    if not dry_run:
        for written in gone:
            records.remove(written.effect)
    needed = {snapshot_id for written in kept for snapshot_id in (written.before, written.after) if snapshot_id}
    # A record of a kept run names a snapshot that is on the disk, or one that was gone before.
    return Snapshots(snapshots).forget(
        [snapshot_id for snapshot_id in needed if (snapshots / "manifests" / snapshot_id).is_file()], dry_run=dry_run
    )
