"""Remove what the workspaces of one home keep for runs that are pruned."""

from collections.abc import Collection
from pathlib import Path

from backstay.errors import SnapshotDamaged
from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.durable_file import held
from sandbox.workspaces.effects import WrittenEffects


def prune_workspaces(home: Path, runs: Collection[str], *, dry_run: bool = False) -> tuple[list[int], list[str]]:
    """Remove the records of these runs, and all snapshots that no other run needs.

    Each workspace is locked meanwhile, so that no call is under way in it. Return the sizes of what goes, and why a
    workspace keeps all of its snapshots: one that must stay cannot be read.
    """
    state = home / "workspace-state"
    sizes: list[int] = []
    faults: list[str] = []
    for folder in sorted((state / "written").glob("*")):
        with held(state / f"{folder.name}.lock"):
            try:
                snapshots = home / "snapshots" / folder.name
                sizes += _prune_workspace(WrittenEffects(folder), snapshots, runs, dry_run=dry_run)
            except SnapshotDamaged as error:
                faults.append(str(error))
    return sizes, faults


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
