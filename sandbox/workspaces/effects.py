"""Write to a workspace so that it happens once, leaves nothing half done, and can be undone."""

import asyncio
import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import Field

from backstay.errors import (
    ArgumentsInvalid,
    Final,
    IsolationUnavailable,
    SnapshotDamaged,
    SnapshotRefused,
    StoreUnavailable,
)
from backstay.frozen import Frozen
from backstay.policies.network import sites_of
from backstay.shown import counted
from sandbox.snapshots.blobs import disk_faults
from sandbox.snapshots.files import shown
from sandbox.snapshots.snapshots import Snapshots
from sandbox.snapshots.types import RestoreReport, Snapshot, SnapshotChange
from sandbox.workspaces.owner import prepare
from sandbox.workspaces.workspace import WorkspaceCall
from system.files import read_json, remove_durably, write_whole
from system.locks import async_file_lock
from system.tasks import in_thread_to_its_end

_UNFINISHED = "unfinished"
_UNTOLD = "untold"
_OF_UNDO = "/undo"
"""How the id of an undo ends; its record is pruned with those of its run."""
_MOST_CHANGES = 200
_MOST_ARTIFACTS = 1000
_MOST_RESTORED = 200
_MOST_LEFT = 10
_MB = 1 << 20
_SHARED = "it changed files that have another name outside of the workspace, where an undo does not bring them back"
_ONLY_A_PERSON = "no call can do that, as none can write here until a person has, in the folder itself"


class EffectRecord(Frozen):
    """Record the workspace before an effect, and after it together with its answer."""

    effect: str
    tool: str
    before: str
    """The snapshot that was taken before it."""
    after: str | None = None
    answer: dict[str, Any] | None = None
    """None: it has not ended, or was cut off."""
    hosts: tuple[str, ...] = ()
    """What it could reach outside, where nothing is undone."""
    outside: tuple[str, ...] | None = Field(default=None, exclude_if=lambda outside: outside is None)
    """The files that it changed and that have names outside, as they are shown; None where that is not known."""
    replaced: dict[str, str] = Field(default_factory=dict, exclude_if=lambda replaced: not replaced)
    """In a record of its revert or undo: what each file held that was added or edited since `before`, which `after`
    keeps; the SHA-256 of a file, the target of a link. A person may have done that, and nobody can tell."""


class WorkspaceEffects:
    """Surround what writes to one workspace with two snapshots and a record."""

    def __init__(
        self, root: Path, snapshots: Snapshots, folder: Path, *, written_mb: int, keep_replaced: bool = True
    ) -> None:
        """Keep the records of this workspace in the folder; `written_mb` is how much one call may write.

        `keep_replaced` says that people work there too, so that what a revert replaces is kept for them.
        """
        self._root = root
        self._snapshots = snapshots
        self._folder = folder
        self._written = written_mb * _MB
        self._keep_replaced = keep_replaced
        self._unfinished = folder / _UNFINISHED
        self._untold = folder / _UNTOLD
        folder.mkdir(parents=True, exist_ok=True)

    async def write(self, call: WorkspaceCall, do: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Return what was done, with the snapshots around it; work done before under this effect is not repeated.

        When it fails, nothing of it is left. Raises SnapshotRefused, before anything is done, where the workspace holds
        something that no snapshot can.
        """
        if not call.effect:
            raise ArgumentsInvalid(f"{call.tool} writes, and needs an effect id")
        known = self._recorded(call.effect)
        if known is not None and known.answer is not None:
            return {"ok": known.answer}
        try:
            taken = await asyncio.to_thread(self._take_before)
        except SnapshotRefused as error:
            raise SnapshotRefused(f"{error}; {_ONLY_A_PERSON}") from error
        hosts = tuple(each.words for each in sites_of(call.arguments))
        begun = EffectRecord(effect=call.effect, tool=call.tool, before=taken.id, hosts=hosts)
        _write(self._unfinished, begun)
        try:
            done = await do()
        except BaseException as error:
            # Where no jail could be made nothing ran, so nothing was reached.
            reached = () if isinstance(error, IsolationUnavailable) else hosts
            await in_thread_to_its_end(self._revert_unanswered, begun.model_copy(update={"hosts": reached}))
            raise
        used = {name: done[name] for name in ("used",) if name in done}
        return await in_thread_to_its_end(self._finish, begun, taken, done) | used

    def revert_unfinished(self) -> None:
        """Revert an effect that began and never ended because its host died; there is at most one."""
        begun = _read(self._unfinished)
        if begun is not None:
            self._revert_unanswered(begun)

    def with_notice(self, said: dict[str, Any]) -> dict[str, Any]:
        """Return the answer of a call, with what earlier calls that had no answer replaced when they were reverted."""
        if not self._untold.is_file():
            return said
        notice = "; ".join(self._untold.read_text(encoding="utf-8").splitlines())
        remove_durably(self._untold)
        if "error" in said:
            return said | {"error": f"{said['error']}; {notice}"}
        return said | {"ok": said["ok"] | {"notice": notice}}

    def outcome(self, effect: str) -> dict[str, Any]:
        """Return under `ok` whether an effect took place, and what it answered, which is final; or an `error`.

        Of what was cut off, the files were undone; the data that it told other hosts was not, and nobody knows of
        it here.
        """
        known = self._recorded(effect)
        if known is not None and known.answer is None:
            return {"error": f"its files were undone, and what it told {', '.join(known.hosts)} is not known"}
        return {"ok": {"applied": known is not None, "answer": None if known is None else known.answer}}

    def restore(self, arguments: dict[str, Any], effect_id: str = "") -> dict[str, Any]:
        """Restore what an effect changed; anything else stays. Repeating it does no harm.

        A file that was changed again since is left alone, and then the answer is an error that names it. Under `kept`
        the answer names the record of what was replaced: a person may have changed files while the effect took place.
        """
        before, after, outside = arguments.get("snapshot"), arguments.get("expect"), None
        if effect := arguments.get("effect"):
            known = self._recorded(str(effect))
            if known is None or known.after is None:
                return {"ok": {"restored": [], "count": 0}}
            before, after, outside = known.before, known.after, known.outside
        if not isinstance(before, str) or not isinstance(after, str):
            return {"error": "name a snapshot and the one that is expected, or an effect"}
        begun = EffectRecord(effect=effect_id.removesuffix(_OF_UNDO), tool="undo", before=before)
        kept: dict[str, str] = {}
        try:
            # On a full disk the undo matters more than a record of it.
            with suppress(StoreUnavailable):
                kept = {"kept": words} if (words := self._keep_replaced_by(begun, after)) else {}
            restored = self._snapshots.restore(self._root, before, expect=after)
        except Final as error:
            return {"error": str(error)}
        if left := _left(restored, outside):
            more = f"; and {len(left) - _MOST_LEFT} more" if len(left) > _MOST_LEFT else ""
            done = f"{len(restored.paths)} paths were brought back, {len(left)} were not, or not wholly: "
            return {"error": "; ".join([done + "; ".join(left[:_MOST_LEFT]) + more, *kept.values()])}
        listed = [ascii(path)[1:-1] for path in restored.paths[:_MOST_RESTORED]]
        return {"ok": {"restored": listed, "count": len(restored.paths)} | kept}

    def _take_before(self) -> Snapshot:
        taken = self._snapshots.take(self._root)
        if taken.of_root and os.geteuid() == 0:
            # It came after the workspace was prepared. Its new owner is not a change of the call.
            prepare(self._root)
            taken = self._snapshots.take(self._root)
        return taken

    def _finish(self, begun: EffectRecord, before: Snapshot, done: dict[str, Any]) -> dict[str, Any]:
        """Record what was done, or revert it: one or the other, in one thread, whoever stops waiting for it."""
        try:
            return self._kept(begun, before, done)
        except SnapshotRefused as error:
            return self._reverted(begun, str(error))
        except BaseException:
            self._revert_unanswered(begun)
            raise

    def _kept(self, begun: EffectRecord, before: Snapshot, done: dict[str, Any]) -> dict[str, Any]:
        if "error" in done:
            return self._reverted(begun, done["error"], told=True)
        taken = self._snapshots.take(self._root)
        changes = self._snapshots.changes(begun.before, taken.id)
        written = [
            (change, change.after)
            for change in changes
            if change.kind != "mode" and change.after is not None and change.after.kind == "file"
        ]
        size = _new_bytes(changes)
        if size > self._written:
            return self._reverted(begun, f"it wrote {size} bytes, more than {self._written}")
        answer = done["ok"] | {
            "before": begun.before,
            "after": taken.id,
            "changes": [{"path": change.shown, "kind": change.kind} for change in changes[:_MOST_CHANGES]],
            "changed": len(changes),
        }
        if "artifacts" in answer:
            answer["artifacts"] = [
                {"path": change.shown, "sha256": node.content, "size": node.size}
                for change, node in written[:_MOST_ARTIFACTS]
            ]
        if outside := _changed_outside(changes, before, taken):
            answer["outside"] = f"{_SHARED}: {counted(len(outside), 'file')}, such as {outside[0]!r}"
        ended = begun.model_copy(update={"after": taken.id, "answer": answer, "outside": outside})
        _write(self._path(ended.effect), ended)
        remove_durably(self._unfinished)
        return {"ok": answer}

    def _revert(self, begun: EffectRecord) -> tuple[str, str]:
        """Restore what was there before; nobody else of us works in the workspace meanwhile.

        Return words about what could not be brought back, and about what a person can have back: people may have
        worked there. An effect that is recorded with its answer took place, and stays.
        """
        if self._is_done(begun):
            remove_durably(self._unfinished)
            return "", ""
        held, kept = self._hold(begun)
        left: list[str] = []
        if held != begun.before:
            # Files that somebody changes from here on are not in what is held, so they are left alone.
            left = _left(self._snapshots.restore(self._root, begun.before, expect=held))
        self._keep_reach(begun)
        remove_durably(self._unfinished)
        return f"{counted(len(left), 'thing')} could not be brought back, such as {left[0]}" if left else "", kept

    def _reverted(self, begun: EffectRecord, error: str, *, told: bool = False) -> dict[str, Any]:
        """Return an error, with what is left of what the call did; `told`: it says by itself where nothing is."""
        left, kept = self._revert(begun)
        more = f"; {kept}" if kept else ""
        if left:
            return {"error": f"{error}; what it did was undone, but {left}{more}", "partly": True}
        return {"error": f"{error}{more}" if told else f"{error}; nothing of it was kept{more}"}

    def _revert_unanswered(self, begun: EffectRecord) -> None:
        """Revert a call that nobody gets an answer of; the next call in the workspace tells what came of it."""
        words = [each for each in self._revert(begun) if each]
        if words:
            known = self._untold.read_text(encoding="utf-8").splitlines() if self._untold.is_file() else []
            line = f"an earlier call of {begun.tool} was cut off and undone: {'; '.join(words)}"
            # The log of the host has it also where the disk is full.
            sys.stderr.write(f"workspace {self._root}: {line}\n")
            with suppress(OSError):
                write_whole(self._untold, "\n".join([*known, line][-_MOST_LEFT:]).encode())

    def _hold(self, begun: EffectRecord) -> tuple[str | None, str]:
        """Keep what is there before it is reverted, also from pruning as long as the run has effects.

        Return the snapshot of it, and words for people if it holds files that are about to go.
        """
        if not self._keep_replaced:
            return None, ""
        try:
            held = self._snapshots.take(self._root).id
            return held, self._keep_replaced_by(begun, held)
        except (SnapshotRefused, StoreUnavailable, OSError) as error:
            return None, f"no copy could be kept of what was there before that: {error}"

    def _keep_replaced_by(self, begun: EffectRecord, held: str) -> str:
        """Record what files held that are about to go; return words about that, or nothing where none are."""
        replaced = {
            ascii(change.path)[1:-1]: change.after.content
            for change in self._snapshots.changes(begun.before, held)
            if change.kind != "mode" and change.after is not None and change.after.kind in ("file", "symlink")
        }
        if not replaced:
            return ""
        path = self._folder / f"replaced-{_digest(begun.effect)[:12]}-{held[:12]}.json"
        _write(path, begun.model_copy(update={"after": held, "hosts": (), "replaced": replaced}))
        what = f"what {counted(len(replaced), 'file')} held meanwhile, such as '{next(iter(replaced))}'"
        return f"a person can have back {what}, with {path.name}"

    def _keep_reach(self, begun: EffectRecord) -> None:
        """Remember that an effect whose files were undone could reach other hosts: it is not just repeated."""
        if begun.hosts:
            _write(self._path(begun.effect), begun)

    def _is_done(self, begun: EffectRecord) -> bool:
        known = self._recorded(begun.effect)
        return known is not None and known.answer is not None

    def _recorded(self, effect: str) -> EffectRecord | None:
        return _read(self._path(effect))

    def _path(self, effect: str) -> Path:
        return self._folder / f"{_digest(effect)}.json"


async def prune_workspaces(
    home: Path, runs: Collection[str], *, dry_run: bool = False, theirs_only: bool = False
) -> tuple[list[int], list[str]]:
    """Remove what these runs recorded in the workspaces of a home, and all snapshots that no other run needs.

    Each workspace is locked meanwhile, so that no call is under way in it; waiting for that can be cancelled. With
    `theirs_only`, one that holds no record of these runs is passed over at once. Return the sizes of what goes, and
    for each workspace that keeps snapshots for it the reason: the disk fails, or one that must stay cannot be read.
    """
    state = home / "workspace-state"
    sizes: list[int] = []
    faults: list[str] = []
    for folder in sorted((state / "written").glob("*")):
        prune = partial(_prune, folder, Snapshots(home / "snapshots" / folder.name), runs, dry_run=dry_run)
        try:
            if theirs_only and not _of_runs(await asyncio.to_thread(_records, folder), runs):
                continue
            async with async_file_lock(state / f"{folder.name}.lock"):
                sizes += await in_thread_to_its_end(prune)
        except (SnapshotDamaged, StoreUnavailable) as error:
            faults.append(str(error))
        except OSError as error:
            faults.append(f"{error.filename or folder}: {error.strerror or error}")
    return sizes, faults


def _records(folder: Path) -> dict[Path, EffectRecord]:
    return {path: record for path in sorted(folder.glob("*.json")) if (record := _read(path)) is not None}


def _of_runs(records: Mapping[Path, EffectRecord], runs: Collection[str]) -> list[Path]:
    return [path for path, record in records.items() if record.effect.rpartition("/")[0] in runs]


def _prune(folder: Path, snapshots: Snapshots, runs: Collection[str], *, dry_run: bool) -> list[int]:
    records = _records(folder)
    ended = _of_runs(records, runs)
    kept = [record for path, record in records.items() if path not in ended]
    if (begun := _read(folder / _UNFINISHED)) is not None:
        # It is reverted before the next call in the workspace, whoever's effect it was.
        kept.append(begun)
    if not dry_run:
        for path in ended:
            remove_durably(path)
    needed = {snapshot_id for record in kept for snapshot_id in (record.before, record.after) if snapshot_id}
    # A record may name a snapshot that is already gone.
    return snapshots.forget({snapshot_id for snapshot_id in needed if snapshots.has(snapshot_id)}, dry_run=dry_run)


def _read(path: Path) -> EffectRecord | None:
    found = read_json(path)
    return None if found is None else EffectRecord.model_validate(found)


def _write(path: Path, record: EffectRecord) -> None:
    with disk_faults(path.parent, "records cannot be kept in"):
        write_whole(path, json.dumps(record.plain()).encode())


def _new_bytes(changes: Iterable[SnapshotChange]) -> int:
    """Count the bytes of files that were not there before under another name: a move writes nothing."""
    gone: Counter[str] = Counter()
    come: Counter[str] = Counter()
    sizes: dict[str, int] = {}
    for change in changes:
        for node, counts in ((change.before, gone), (change.after, come)):
            if node is not None and node.kind == "file":
                counts[node.content] += 1
                sizes[node.content] = node.size
    # As many files as are gone of one content may have moved; any more of it were written.
    return sum(sizes[content] * count for content, count in (come - gone).items())


def _digest(effect: str) -> str:
    return hashlib.sha256(effect.encode()).hexdigest()


def _left(restored: RestoreReport, changed: Collection[str] | None = None) -> list[str]:
    """Return what is not as it was, or only in the workspace; `changed`: which files were, as shown, where it is known.

    A file that was only moved onto another one has not changed outside.
    """
    left = [f"{left.path!a}: {left.why}" for left in (*restored.conflicts, *restored.failed)]
    return left + [
        f"{path!a}: its other name outside of the workspace keeps what it held"
        for path in restored.outside
        if changed is None or shown(path) in changed
    ]


def _changed_outside(changes: Iterable[SnapshotChange], before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Return which changed files have names outside, as they are shown; one that was only moved did not change."""
    held = set(before.outside.values())
    return tuple(
        change.shown for change in changes if change.path in after.outside and after.outside[change.path] not in held
    )
