"""Do what runs ask for in workspaces: one call at a time in each, and each writing one can be taken back."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from backstay.errors import ArgumentsInvalid
from sandbox.workspaces.claims import Claims
from sandbox.workspaces.command import Heard
from sandbox.workspaces.durable_file import held
from sandbox.workspaces.effects import TakingBack, Writing, WrittenEffects
from sandbox.workspaces.jails import WorkspaceJails
from sandbox.workspaces.owner import owner_of, prepare
from sandbox.workspaces.snapshotting import Snapshotting
from sandbox.workspaces.workspace import Workspace, WorkspaceCall

READING = frozenset({"read_file", "list_directory", "search"})
WRITING = frozenset({"write_file", "edit_file", "move", "delete"})
SHELL = "run"
RESTORE, OUTCOME = "restore", "outcome"
_LOCK_S = 0.05


class Workspaces:
    """Own the folder of workspaces, and what is known of each."""

    def __init__(
        self, folder: Path, state: Path, jails: WorkspaceJails, snapshots: Callable[[Workspace], Snapshotting]
    ) -> None:
        """Keep claims and records in the state folder, which no jail reaches."""
        self._folder = folder
        self._state = state.resolve()
        self._jails = jails
        self._snapshots = snapshots
        self._claims = Claims(state / "claims")
        self._turns: dict[str, asyncio.Lock] = {}
        self._prepared: dict[str, int] = {}

    async def call(self, call: WorkspaceCall, heard: Heard | None = None) -> dict[str, Any]:
        """Do one thing in a workspace and return the answer: `ok` with data, or `error` with the reason.

        Raises WorkspaceInvalid, WorkspaceBusy, SandboxLost or IsolationUnavailable, and then nothing has changed.
        """
        workspace = self._find(call.workspace)
        async with self._turn(workspace):
            records = WrittenEffects(self._state / "written" / workspace.key)
            snapshots = self._snapshots(workspace)
            back = TakingBack(workspace, snapshots, records)
            if call.tool in (RESTORE, OUTCOME):
                self._claims.demand_free(workspace, call.run)
            else:
                self._claims.claim(workspace, call.run)
            await asyncio.to_thread(back.cut_off)
            if call.tool == OUTCOME:
                return {"ok": back.outcome(str(call.arguments.get("effect")))}
            if call.tool == RESTORE:
                return await asyncio.to_thread(back.restore, call.arguments)
            uid = await self._prepare(workspace)
            if call.tool in READING or not call.writable:
                return await self._look(call, workspace, uid, heard)
            return await Writing(workspace, snapshots, records, most_mb=call.artifacts_mb).write(
                call, partial(self._do, call, workspace, uid, heard)
            )

    async def show(self, call: WorkspaceCall) -> dict[str, Any]:
        """Return what a file tool would change, as a unified diff under `diff`, without changing anything.

        Raises as `call` does.
        """
        if call.tool not in WRITING:
            return {"ok": {"diff": ""}}
        workspace = self._find(call.workspace)
        self._claims.demand_free(workspace, call.run)
        async with self._turn(workspace):
            uid = await self._prepare(workspace)
            return _said(await self._jails.files(workspace, uid, call.tool, call.arguments, writable=False, show=True))

    def claim(self, name: str, run: str, instead_of: str | None = None) -> str:
        """Let the run have the workspace and return its whole name.

        Raises WorkspaceInvalid, and WorkspaceBusy naming the holder.
        """
        workspace = self._find(name)
        self._claims.claim(workspace, run, instead_of=instead_of)
        return workspace.name

    def release(self, name: str, run: str) -> bool:
        """Take the workspace from the run; return whether it had it."""
        return self._claims.release(self._find(name), run)

    def holder(self, name: str) -> str | None:
        """Return the run that has the workspace."""
        return self._claims.holder(self._find(name))

    async def _look(self, call: WorkspaceCall, workspace: Workspace, uid: int, heard: Heard | None) -> dict[str, Any]:
        """Do what changes nothing, in a jail that cannot."""
        if call.tool == SHELL:
            return await self._shell(call, workspace, uid, heard, writable=False)
        if call.tool not in READING | WRITING:
            return {"error": f"{call.tool} is not possible while the workspace may only be read"}
        return _said(await self._jails.files(workspace, uid, call.tool, call.arguments, writable=False, show=False))

    async def _do(self, call: WorkspaceCall, workspace: Workspace, uid: int, heard: Heard | None) -> dict[str, Any]:
        if call.tool == SHELL:
            return await self._shell(call, workspace, uid, heard, writable=True)
        if call.tool not in WRITING:
            raise ArgumentsInvalid(f"there is no tool {call.tool[:80]!r} in workspaces")
        return _said(await self._jails.files(workspace, uid, call.tool, call.arguments, writable=True, show=False))

    async def _shell(
        self, call: WorkspaceCall, workspace: Workspace, uid: int, heard: Heard | None, *, writable: bool
    ) -> dict[str, Any]:
        line = str(call.arguments.get("command", ""))
        ended = await self._jails.shell(workspace, uid, line, writable=writable, seconds=call.seconds, heard=heard)
        if ended.overfull:
            return {"error": f"the command was ended: {ended.reason}; nothing of it was kept"}
        note = f"\nbackstay: the command was ended: {ended.reason}" if ended.reason else ""
        return {
            "ok": {
                "exit_code": ended.exit_code,
                "stdout": ended.stdout.text,
                "stderr": ended.stderr.text + note,
                "duration_ms": ended.duration_ms,
                "artifacts": [],
                "allowed": True,
            }
        }

    async def _prepare(self, workspace: Workspace) -> int:
        """Return the user of the workspace's jails, once it owns what it must."""
        number = workspace.root.stat().st_ino
        if self._prepared.get(workspace.key) != number:
            await asyncio.to_thread(prepare, workspace.root)
            self._prepared[workspace.key] = number
        return owner_of(workspace.root)

    @asynccontextmanager
    async def _turn(self, workspace: Workspace) -> AsyncGenerator[None]:
        """Hold the workspace alone, in this process and among all processes of this machine."""
        place = self._state / f"{workspace.key}.lock"
        async with self._turns.setdefault(workspace.key, asyncio.Lock()):
            while True:
                with held(place, wait=False) as mine:
                    if mine:
                        yield
                        return
                await asyncio.sleep(_LOCK_S)

    def _find(self, name: str) -> Workspace:
        workspace = Workspace.find(self._folder, name)
        workspace.demand_apart(self._state)
        return workspace


def _said(answer: dict[str, Any] | str) -> dict[str, Any]:
    return {"error": answer} if isinstance(answer, str) else {"ok": answer}
