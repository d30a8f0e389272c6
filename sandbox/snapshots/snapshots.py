"""Snapshots of one workspace: what it held at any moment, to be compared and to be brought back."""

import os
import sys
import time
from collections.abc import Collection, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from backstay.errors import SnapshotDamaged, SnapshotRefused, WorkspaceChanging
from sandbox.snapshots.blobs import SnapshotBlobs, disk_faults
from sandbox.snapshots.files import chunks, opened_root, shown
from sandbox.snapshots.manifest import ManifestIndex, SnapshotManifest, checked_id, settled
from sandbox.snapshots.restoring import Restoring, sweep_staging
from sandbox.snapshots.restoring_plan import Nodes, RestoringPlan
from sandbox.snapshots.types import ChangeKind, Node, RestoreReport, Snapshot, SnapshotChange, SnapshotLimits
from sandbox.snapshots.walk import Read, Walk
from system.files import write_whole
from system.locks import file_lock

_TRIES = 3
_INDEX = "index.json"


class Snapshots:
    """Keep the snapshots of one workspace in a folder of their own, which lies outside every workspace.

    All methods wait for the disk, so they belong into a thread; threads and processes that use one folder take turns.
    Files whose size, inode and times are as before are not read again: take snapshots while no jail runs in the
    workspace, since a process that mapped a file into its memory can write without touching its times.
    """

    def __init__(self, folder: Path, limits: SnapshotLimits | None = None) -> None:
        """Name the folder; it is made, for this user only, with the first snapshot."""
        self._folder = folder
        self._limits = limits or SnapshotLimits()
        self._blobs = SnapshotBlobs(folder)

    def take(self, root: Path) -> Snapshot:
        """Keep what is in the workspace now; everyone who has the id can bring it back.

        Raises SnapshotRefused when something cannot be kept whole (over a limit, not readable), and WorkspaceChanging
        when files change faster than they can be read.
        """
        self._check_outside(root)
        with self._alone(), opened_root(root, unlocking=False) as top:
            # A restore that was killed left it; it is nobody's.
            sweep_staging(top)
            index = ManifestIndex.load(self._folder / _INDEX, top)
            started = time.time_ns()
            walk = _walk(top, index, self._blobs.keep, self._limits, restoring=False)
            self._blobs.commit()
            same = not walk.fresh and len(walk.nodes) == len(index.known) and self._path(index.snapshot_id).is_file()
            snapshot_id = index.snapshot_id if same else self._record(top, walk, started)
        files = [node.size for node in walk.nodes.values() if node.kind == "file"]
        return Snapshot(id=snapshot_id, files=len(files), size=sum(files), outside=walk.outside, of_root=walk.of_root)

    def has(self, snapshot_id: str) -> bool:
        """Return whether there is such a snapshot."""
        return self._path(checked_id(snapshot_id)).is_file()

    def changes(self, before_id: str, after_id: str) -> list[SnapshotChange]:
        """List what differs between two snapshots, by path. Raises SnapshotDamaged when one is gone or altered."""
        before, after = self._manifest(before_id).nodes, self._manifest(after_id).nodes
        return [
            SnapshotChange(path, _kind_of_change(before.get(path), after.get(path)), before.get(path), after.get(path))
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path)
        ]

    def restore(self, root: Path, snapshot_id: str, *, expect: str | None = None) -> RestoreReport:
        """Put back every byte, mode and link of a snapshot, and remove what was added; repeating it does no harm.

        Names of one file are so again. A name outside of the workspace is not touched, and the report tells of it.

        `expect` is the snapshot from after what is to be undone: then only what differs between the two is put back,
        and what others changed since is reported and left alone. Setuid bits are not put back. Raises SnapshotDamaged
        before anything is changed, and StoreUnavailable when the disk has no space for what is to be put back.
        """
        self._check_outside(root)
        with self._alone(), opened_root(root, unlocking=True) as top:
            manifest = self._manifest(snapshot_id)
            wanted = manifest.nodes
            expected = None if expect is None else self._manifest(expect).nodes
            sweep_staging(top)
            index = ManifestIndex.load(self._folder / _INDEX, top)
            # The tree may hold more than may be kept; it is only compared.
            unbounded = replace(self._limits, total_bytes=sys.maxsize)
            walk = _walk(top, index, _hash, unbounded, restoring=True)
            plan = RestoringPlan(walk.nodes, wanted, expected, owners=os.geteuid() == 0)
            restoring = Restoring(top, self._blobs, plan, manifest, walk)
            with disk_faults(root, "files cannot be brought back in the workspace"):
                restoring.run()
        outside = tuple(_changed_outside(restoring.done, walk, wanted))
        return RestoreReport(
            snapshot_id, tuple(restoring.done), tuple(restoring.conflicts), tuple(restoring.failed), outside
        )

    def forget(self, keep: Collection[str], *, dry_run: bool = False) -> list[int]:
        """Remove all snapshots but these, and every blob that none of these needs; return the sizes of what goes."""
        kept = {checked_id(snapshot_id) for snapshot_id in keep}
        with self._alone():
            nodes = [node for snapshot_id in sorted(kept) for node in self._manifest(snapshot_id).nodes.values()]
            reachable = {node.content for node in nodes if node.kind == "file"}
            manifests = [file for file in (self._folder / "manifests").iterdir() if file.name not in kept]
            blobs = self._blobs.unreachable(reachable)
            sizes = [file.stat().st_size for file in (*manifests, *blobs)]
            if not dry_run:
                for manifest in manifests:
                    manifest.unlink()
                if blobs:
                    # The index promises blobs for what it knows, so it goes before they do.
                    (self._folder / _INDEX).unlink(missing_ok=True)
                for blob in blobs:
                    blob.unlink()
        return sizes

    def _record(self, top: int, walk: Walk, started: int) -> str:
        """Write the manifest, and then the index that refers to it."""
        snapshot_id, data = SnapshotManifest(walk.nodes, walk.links).encode()
        if not self._path(snapshot_id).is_file():
            self._write(self._path(snapshot_id), data)
        known = {
            path: (walk.facts[path], node)
            for path, node in walk.nodes.items()
            if not node.lacks and settled(walk.facts[path], started)
        }
        # An index that leaves something out holds less than the snapshot does, so it stands for none.
        index = ManifestIndex(known, snapshot_id if len(known) == len(walk.nodes) else "")
        # Half an index is not an index: then everything is read once more.
        self._write(self._folder / _INDEX, index.encode(top), durable=False)
        return snapshot_id

    def _write(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        with disk_faults(self._folder):
            write_whole(path, data, durable=durable, unfinished_in=self._blobs.unfinished)

    def _manifest(self, snapshot_id: str) -> SnapshotManifest:
        path = self._path(checked_id(snapshot_id))
        try:
            data = path.read_bytes()
        except OSError as error:
            raise SnapshotDamaged(
                f"snapshot {snapshot_id} is not in {shown(str(self._folder))} ({error.strerror});"
                " it was forgotten, or belongs to another workspace"
            ) from error
        return SnapshotManifest.decode(snapshot_id, data)

    def _path(self, snapshot_id: str) -> Path:
        return self._folder / "manifests" / (snapshot_id or "none")

    def _check_outside(self, root: Path) -> None:
        if self._folder.resolve().is_relative_to(root.resolve()):
            raise SnapshotRefused(
                f"snapshots of {shown(str(root))} cannot lie within it, in {shown(str(self._folder))};"
                " name a folder elsewhere"
            )

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Hold the folder for as long as something is read from it or written to it."""
        with ExitStack() as stack:
            with disk_faults(self._folder):
                for folder in (self._folder, self._folder / "manifests"):
                    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                stack.enter_context(file_lock(self._folder / "lock"))
                self._blobs.prepare()
            yield


def _walk(top: int, index: ManifestIndex, read: Read, limits: SnapshotLimits, *, restoring: bool) -> Walk:
    """Look at everything; a tree that moves meanwhile is looked at again a few times."""
    walk = partial(Walk, top, index=index, read=read, limits=limits, restoring=restoring)
    for _ in range(_TRIES - 1):
        with suppress(WorkspaceChanging):
            return walk()
    return walk()


def _kind_of_change(before: Node | None, after: Node | None) -> ChangeKind:
    if before is None:
        return "added"
    if after is None:
        return "removed"
    same = (before.kind, before.size, before.content) == (after.kind, after.size, after.content)
    return "mode" if same else "edited"


def _changed_outside(done: Iterable[str], walk: Walk, wanted: Nodes) -> Iterator[str]:
    """Yield those paths whose file stays changed under a name outside; one that was only moved did not change."""
    before = {(node.content, node.mode) for node in wanted.values() if node.kind == "file"}
    outside = walk.outside
    for path in done:
        if path in outside:
            node = walk.nodes[path]
            if path in wanted or (node.content, node.mode) not in before:
                yield path


def _hash(opened: int, size: int) -> str:
    total = sha256()
    for data in chunks(opened, size):
        total.update(data)
    return total.hexdigest()
