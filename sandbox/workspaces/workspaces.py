"""Do what runs ask for in workspaces: a call at a time in each, and each call that writes can be undone.

One run at a time uses a workspace, and what it only rehearses happens in a copy.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from backstay.errors import ArgumentsInvalid, SnapshotDamaged, SnapshotRefused, WorkspaceBusy
from backstay.policies.network import ARGUMENT
from backstay.tools.tool import WorkspaceLimits
from sandbox.snapshots.files import empty, opened_root
from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.command import Heard
from sandbox.workspaces.effects import WorkspaceEffects
from sandbox.workspaces.jails import WorkspaceJails
from sandbox.workspaces.owner import owner_of, prepare
from sandbox.workspaces.workspace import COPIES, Workspace, WorkspaceCall
from system.files import read_json, remove_durably, write_whole
from system.locks import async_file_lock, file_lock
from system.tasks import in_thread_to_its_end

MEASURE = "measure"
"""Measures files, for a review; no tool of a model."""
READING = frozenset({"read_file", "list_directory", "search", MEASURE})
WRITING = frozenset({"write_file", "edit_file", "move", "delete"})
SHELL = "run"
CHECK = "check"
"""Looks at the workspace's code, for a review; no tool of a model."""
RESTORE, OUTCOME = "restore", "outcome"
_UNFINISHED = ".new"
_LEAST_S = 0.1
_Run = Callable[..., Awaitable[dict[str, Any]]]
"""Takes a workspace, the user of its jail, and `writable`."""


class Claims:
    """Let one run at a time use a workspace, including the folders inside it and around it."""

    def __init__(self, folder: Path) -> None:
        """Keep the claims in this folder."""
        self._folder = folder
        self._lock = folder / "lock"
        folder.mkdir(parents=True, exist_ok=True)

    def claim(self, workspace: Workspace, run: str) -> None:
        """Claim the workspace for the run; repeating a claim is fine. Raises WorkspaceBusy, which names the holder."""
        with file_lock(self._lock):
            for _, claim in self._overlapping(workspace):
                if claim["run"] == run and claim["root"] == str(workspace.root):
                    return
                if claim["run"] != run:
                    raise _busy(claim)
            claim = {"workspace": workspace.name, "root": str(workspace.root), "run": run}
            write_whole(self._path(workspace), json.dumps(claim).encode())

    def release(self, workspace: Workspace, run: str) -> bool:
        """Release the run's claim; return whether there was one."""
        with file_lock(self._lock):
            claim = read_json(self._path(workspace))
            if claim is None or claim["run"] != run:
                return False
            remove_durably(self._path(workspace))
            return True

    def free(self, workspace: Workspace, run: str) -> bool:
        """Release every claim of the run that keeps others out of the workspace; return whether there was one."""
        with file_lock(self._lock):
            found = [path for path, claim in self._overlapping(workspace) if claim["run"] == run]
            for path in found:
                remove_durably(path)
            return bool(found)

    def holder(self, workspace: Workspace) -> str | None:
        """Return the run that holds the workspace, a folder inside it or a folder around it."""
        with file_lock(self._lock):
            return next((claim["run"] for _, claim in self._overlapping(workspace)), None)

    def require_free(self, workspace: Workspace, run: str) -> None:
        """Raise WorkspaceBusy when another run holds the workspace."""
        with file_lock(self._lock):
            for _, claim in self._overlapping(workspace):
                if claim["run"] != run:
                    raise _busy(claim)

    def _overlapping(self, workspace: Workspace) -> Iterator[tuple[Path, dict[str, Any]]]:
        for path in sorted(self._folder.glob("*.json")):
            claim = read_json(path)
            if claim is None:
                continue
            root = Path(claim["root"])
            if root.is_relative_to(workspace.root) or workspace.root.is_relative_to(root):
                yield path, claim

    def _path(self, workspace: Workspace) -> Path:
        return self._folder / f"{workspace.key}.json"


def _busy(claim: dict[str, Any]) -> WorkspaceBusy:
    name, run = claim["workspace"], claim["run"]
    return WorkspaceBusy(f"workspace {name} is in use by run {run}; wait until it ends, or cancel it", holder=run)


class Copies:
    """Make copies of one workspace, each for one rehearsal, and remove them; the caller that does so holds its lock."""

    def __init__(self, workspace: Workspace, snapshots: Snapshots, folder: Path, state: Path) -> None:
        """Keep the copies beside the workspaces, where jails can reach them, and what is known of them in `state`."""
        self._workspace = workspace
        self._snapshots = snapshots
        self._folder = folder.resolve() / COPIES / workspace.key
        self._state = state / "rehearsals" / workspace.key

    def copy(self, rehearsal: str) -> Workspace:
        """Return the copy of a rehearsal, and make it from the workspace as it is now when there is none.

        Raises SnapshotRefused for a workspace that cannot be copied whole.
        """
        root = self._folder / _name(rehearsal)
        if not root.is_dir():
            taken = self._snapshots.take(self._workspace.root)
            # A copy that was begun when its host died is not one: only a whole one gets its name.
            begun = root.with_suffix(_UNFINISHED)
            _remove(begun)
            begun.mkdir(parents=True)
            begun.chmod(self._workspace.root.stat().st_mode & 0o777)
            if lacking := self._snapshots.restore(begun, taken.id).failed:
                raise SnapshotRefused(f"{lacking[0].path!a}: {lacking[0].why}")
            begun.rename(root)
        return Workspace(name=f"a copy of {self._workspace.name}", root=root)

    def records(self, rehearsal: str) -> Path:
        """Return the folder of what was done in the copy of a rehearsal."""
        return self._state / _name(rehearsal)

    def remove(self) -> int:
        """Throw all copies of the workspace away, with what is known of them; return how many there were."""
        found = sorted(self._folder.iterdir()) if self._folder.is_dir() else []
        for path in [*found, self._folder, self._state]:
            _remove(path)
        return len(found)


def _name(rehearsal: str) -> str:
    return hashlib.sha256(rehearsal.encode("utf-8", "replace")).hexdigest()[:32]


def _remove(path: Path) -> None:
    if not path.is_dir():
        return
    with opened_root(path, unlocking=True) as top:
        empty(top)
    path.rmdir()


class Workspaces:
    """Own the folder of workspaces, and what is known of each."""

    def __init__(
        self, folder: Path, state: Path, jails: WorkspaceJails, snapshots: Callable[[Workspace], Snapshots]
    ) -> None:
        """Keep claims and records in the state folder, which no jail reaches."""
        self._folder = folder
        self._state = state.resolve()
        self._jails = jails
        self._snapshots = snapshots
        self._claims = Claims(state / "claims")
        self._turns: dict[str, asyncio.Lock] = {}
        self._prepared: dict[str, int] = {}

    @property
    def root(self) -> str:
        """The operator's own root in which commands run, as people are told it; empty when there is none."""
        return self._jails.root

    async def call(self, call: WorkspaceCall, heard: Heard | None = None) -> dict[str, Any]:
        """Do one thing in a workspace and return the answer: `ok` with data, or `error` with the reason.

        Raises WorkspaceInvalid, WorkspaceBusy, SandboxLost or IsolationUnavailable, and then nothing has changed.
        """
        run: _Run = partial(self._run, call, heard=heard, asked_at=time.monotonic())
        workspace = self._find(call.workspace)
        async with self._turn(workspace):
            folder = self._state / "written" / workspace.key
            effects = self._effects(workspace.root, workspace, folder, call.limits)
            if call.tool in (RESTORE, OUTCOME):
                self._claims.require_free(workspace, call.run)
            else:
                self._claims.claim(workspace, call.run)
            await in_thread_to_its_end(effects.revert_unfinished)
            if call.tool == OUTCOME:
                return effects.outcome(str(call.arguments.get("effect")))
            if call.tool == RESTORE:
                return await in_thread_to_its_end(effects.restore, call.arguments, call.effect or "")
            if call.tool not in (*READING, *WRITING, SHELL, CHECK):
                raise ArgumentsInvalid(f"there is no tool {call.tool[:80]!r} in workspaces")
            if call.rehearsal:
                return await self._rehearsed(call, workspace, run)
            uid = await self._prepare(workspace)
            if call.tool in (*READING, CHECK) or not call.writable:
                said = await run(workspace, uid, writable=False)
            else:
                said = await effects.write(call, partial(run, workspace, uid, writable=True))
            return said if call.tool in (CHECK, MEASURE) else effects.with_notice(said)

    async def show(self, call: WorkspaceCall) -> dict[str, Any]:
        """Return what a file tool would change, as a unified diff under `diff`, without changing anything.

        Raises as `call` does.
        """
        if call.tool not in WRITING:
            return {"ok": {"diff": ""}}
        workspace = self._find(call.workspace)
        self._claims.require_free(workspace, call.run)
        async with self._turn(workspace):
            uid = await self._prepare(workspace)
            return _answered(await self._jails.files(workspace, uid, call, writable=False, show=True))

    def claim(self, workspace: str, run: str) -> str:
        """Claim the workspace for the run and return the full name.

        Raises WorkspaceInvalid, and WorkspaceBusy naming the holder.
        """
        found = self._find(workspace)
        before = self._claims.holder(found)
        self._claims.claim(found, run)
        if before != run:
            # A run that was ended from outside could not throw its copies away.
            self.end_rehearsal(workspace, run)
        return found.name

    def free(self, name: str, run: str) -> bool:
        """Release what a run that is over keeps others out of the workspace with; return whether there was anything."""
        return self._claims.free(self._find(name), run)

    def release(self, name: str, run: str) -> bool:
        """Release the run's claim; return whether there was one."""
        self.end_rehearsal(name, run)
        return self._claims.release(self._find(name), run)

    def end_rehearsal(self, name: str, run: str) -> int:
        """Throw away the copies that the run rehearsed in, unless another run holds the workspace; return how many."""
        workspace = self._find(name)
        if self._claims.holder(workspace) not in (run, None):
            return 0
        with file_lock(self._state / f"{workspace.key}.lock"):
            return self._copies(workspace).remove()

    def holder(self, name: str) -> str | None:
        """Return the run that has the workspace."""
        return self._claims.holder(self._find(name))

    async def _rehearsed(self, call: WorkspaceCall, workspace: Workspace, run: _Run) -> dict[str, Any]:
        """Do one thing in a copy of the workspace, which is made with the first thing that a rehearsal does."""
        if call.arguments.get(ARGUMENT):
            return {"error": "what it does to other hosts cannot be rehearsed; leave out `network`"}
        copies = self._copies(workspace)
        try:
            copy = await in_thread_to_its_end(copies.copy, call.rehearsal)
        except (SnapshotRefused, SnapshotDamaged) as error:
            return {"error": f"the workspace cannot be copied for a rehearsal: {error}"}
        uid = await self._prepare(copy)
        if call.tool in READING or not call.writable:
            return await run(copy, uid, writable=False)
        effects = self._effects(copy.root, workspace, copies.records(call.rehearsal), call.limits)
        await in_thread_to_its_end(effects.revert_unfinished)
        return await effects.write(call, partial(run, copy, uid, writable=True))

    def _effects(self, root: Path, workspace: Workspace, folder: Path, limits: WorkspaceLimits) -> WorkspaceEffects:
        most = limits.narrowing(artifacts_mb=self._jails.written_mb)["artifacts_mb"]
        snapshots, real = self._snapshots(workspace), root == workspace.root
        return WorkspaceEffects(root, snapshots, folder, written_mb=most, keep_replaced=real)

    def _copies(self, workspace: Workspace) -> Copies:
        return Copies(workspace, self._snapshots(workspace), self._folder, self._state)

    async def _run(
        self,
        call: WorkspaceCall,
        workspace: Workspace,
        uid: int,
        *,
        writable: bool,
        heard: Heard | None,
        asked_at: float,
    ) -> dict[str, Any]:
        """Run a tool in a jail, which may or may not write to the workspace."""
        if call.tool == CHECK:
            return _answered(await self._jails.check(workspace, uid, call.arguments, seconds=call.seconds))
        if call.tool != SHELL:
            return _answered(await self._jails.files(workspace, uid, call, writable=writable))
        if call.within is not None:
            # The wait for its turn and the snapshot before it took a part of the time.
            left = call.within - (time.monotonic() - asked_at)
            call = call.model_copy(update={"seconds": round(max(_LEAST_S, min(call.seconds, left)), 1)})
        ended, use = await self._jails.shell(workspace, uid, call, writable=writable, heard=heard)
        used = {"used": use.plain()}
        if ended.overfull:
            return {"error": f"the command was ended: {ended.reason}; nothing of it was kept", **used}
        notes = [*ended.notes, *([f"the command was ended: {ended.reason}"] if ended.reason else [])]
        note = "".join(f"\nbackstay: {each}" for each in notes)
        return {
            "ok": {
                "exit_code": ended.exit_code,
                "stdout": ended.stdout.text,
                "stderr": ended.stderr.text + note,
                "duration_ms": ended.duration_ms,
                "artifacts": [],
                "allowed": True,
            },
            **used,
        }

    async def _prepare(self, workspace: Workspace) -> int:
        """Return the user of the workspace's jails, once it owns what it must."""
        number = workspace.root.stat().st_ino
        if self._prepared.get(workspace.key) != number:
            await in_thread_to_its_end(prepare, workspace.root)
            self._prepared[workspace.key] = number
        return owner_of(workspace.root)

    @asynccontextmanager
    async def _turn(self, workspace: Workspace) -> AsyncGenerator[None]:
        """Hold the workspace alone, in this process and among all processes of this machine."""
        lock = async_file_lock(self._state / f"{workspace.key}.lock")
        async with self._turns.setdefault(workspace.key, asyncio.Lock()), lock:
            yield

    def _find(self, name: str) -> Workspace:
        workspace = Workspace.find(self._folder, name)
        workspace.require_apart(self._state)
        return workspace


def _answered(answer: dict[str, Any] | str) -> dict[str, Any]:
    return {"error": answer} if isinstance(answer, str) else {"ok": answer}
