"""A worker's side of the host of workspaces: start it when it is first needed, and again when it died."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from backstay.errors import BackstayError, InternalError, SandboxLost, WorkerMisfit, WorkspaceBusy, error_type
from sandbox.workspaces.workspace import MOST_FRAME, WorkspaceSettings
from system.children import end_group, launched
from system.frames import json_frame, read_json_frame

_OPEN_S = 180.0
_CLOSE_S = 15.0
_END_S = 2.0
Hearing = Callable[[str, str], None]
"""Is given `stdout` or `stderr`, and what a command said there."""


class WorkspaceClient:
    """Ask the host of workspaces; each request is answered or fails, even if the host dies."""

    def __init__(self, settings: WorkspaceSettings, *, rooms: Path, environment: Mapping[str, str]) -> None:
        """Start the host from the folder that holds the rooms, with nothing but this environment."""
        self._settings = settings
        self._rooms = rooms
        self._environment = dict(environment)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._beginning: asyncio.Task[None] | None = None
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._hearing: dict[int, Hearing] = {}
        self._last = 0
        self.place = ""
        """Where these workspaces are, `<host>/<id>`; known once the host has started."""
        self.root = "" if settings.root is None else settings.root.name
        """The operator's own root in which commands run, with its digest once the host has started."""
        self.reason: str | None = None
        """Why there are no workspaces here; None as long as nothing speaks against them."""
        self.is_over: Callable[[str], Awaitable[bool]] | None = None
        """Tells whether a run is over, whose claims are then released; where it is None, nobody knows."""

    async def start(self) -> None:
        """Start the host unless it runs.

        Raises IsolationUnavailable where nothing can be confined, and SandboxLost when it does not come up.
        """
        async with self._starting:
            if self._reading is not None and not self._reading.done():
                return
            try:
                await self._start()
            except BackstayError as error:
                self.reason = str(error)
                raise
            self.reason = None

    def begin(self) -> None:
        """Start the host in the background, so that the first who needs it need not wait; `reason` tells of faults."""
        self._beginning = asyncio.create_task(self._begun())

    async def call(self, *, hearing: Hearing | None = None, **given: Any) -> dict[str, Any]:
        """Do one thing in a workspace; return `ok` with the answer, or `error` with the reason.

        Raises WorkspaceInvalid, WorkspaceBusy, IsolationUnavailable, and SandboxLost when the host was lost.
        """
        return await self._freeing("call", given, hearing)

    async def show(self, **given: Any) -> dict[str, Any]:
        """Return what a file tool would change, as `ok` with `diff`, or `error` with the reason."""
        return await self._freeing("show", given)

    async def claim(self, workspace: str, run: str, *, place: str = "") -> str:
        """Claim the workspace for the run, also from a run that is known to be over; return the full name.

        Raises WorkspaceInvalid, WorkspaceBusy naming the holder, IsolationUnavailable, and as all methods WorkerMisfit
        for a run whose workspace is in another place.
        """
        return await self._freeing("claim", {"workspace": workspace, "run": run, "place": place})

    async def require_place(self, place: str) -> None:
        """Raise WorkerMisfit, which names the host, for a run whose workspace is in another place."""
        await self.start()
        if place and place != self.place:
            raise WorkerMisfit(
                f"workspace: the one of this run is at {place}, and those of this worker are at {self.place}; start "
                "a worker there, with the BACKSTAY_HOME that it had"
            )

    async def release(self, workspace: str, run: str, *, place: str = "") -> bool:
        """Release the run's claim; return whether there was one."""
        return await self._ask("release", {"name": workspace, "run": run, "place": place})

    async def end_rehearsal(self, workspace: str, run: str, *, place: str = "") -> int:
        """Throw away the copies that the run rehearsed in; return how many there were."""
        return await self._ask("end_rehearsal", {"name": workspace, "run": run, "place": place})

    async def holder(self, workspace: str) -> str | None:
        """Return the run that has the workspace."""
        return await self._ask("holder", {"name": workspace})

    async def close(self) -> None:
        """End the host, which ends its jails and undoes unfinished calls."""
        if self._beginning is not None:
            self._beginning.cancel()
            await asyncio.wait({self._beginning})
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        await end_group(process, quiet_s=_CLOSE_S, ask_s=0)
        if self._reading is not None:
            await asyncio.wait({self._reading})

    @property
    def pid(self) -> int | None:
        """The process of the host, while there is one."""
        return None if self._process is None or self._process.returncode is not None else self._process.pid

    async def _begun(self) -> None:
        with suppress(BackstayError):
            await self.start()

    async def _start(self) -> None:
        log = self._settings.home / "logs" / "workspaces.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        pipe = asyncio.subprocess.PIPE
        with log.open("ab") as file:
            self._process = await asyncio.create_subprocess_exec(
                *launched([sys.executable, "-P", "-m", "sandbox.workspaces.host"]),
                stdin=pipe,
                stdout=pipe,
                stderr=file,
                env=self._environment | {"PYTHONPATH": str(self._rooms)},
                start_new_session=True,
            )
        assert self._process.stdin is not None  # noqa: S101 - made with pipes
        assert self._process.stdout is not None  # noqa: S101 - the same
        self._process.stdin.write(json_frame(self._settings.plain()))
        said = None
        with suppress(TimeoutError, ValueError):
            said = await asyncio.wait_for(read_json_frame(self._process.stdout, MOST_FRAME), _OPEN_S)
        if said is None or "ready" not in said:
            await end_group(self._process, ask_s=0)
            raise _error(said["error"]) if said else SandboxLost(f"the host of workspaces does not start; read {log}")
        self.place = str(said.get("place", ""))
        self.root = str(said.get("root", ""))
        self._reading = asyncio.create_task(self._read(self._process, self._process.stdout))

    async def _read(self, process: asyncio.subprocess.Process, stream: asyncio.StreamReader) -> None:
        with suppress(ValueError):
            while (said := await read_json_frame(stream, MOST_FRAME)) is not None:
                self._take(said)
        await end_group(process, quiet_s=_END_S, ask_s=0)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(SandboxLost("the host of workspaces ended; it is started again"))

    def _take(self, said: dict[str, Any]) -> None:
        if "heard" in said:
            if (hearing := self._hearing.get(said["id"])) is not None:
                hearing(said["heard"], said["text"])
            return
        answer = self._waiting.get(said["id"])
        if answer is None or answer.done():
            return
        if "error" in said:
            answer.set_exception(_error(said["error"]))
        else:
            answer.set_result(said["said"])

    async def _freeing(self, do: str, given: dict[str, Any], hearing: Hearing | None = None) -> Any:
        """Ask for what needs the workspace, which runs that are over must not keep."""
        while True:
            try:
                return await self._ask(do, dict(given), hearing)
            except WorkspaceBusy as error:
                holder = str(error.facts.get("holder", ""))
                if self.is_over is None or not await self.is_over(holder):
                    raise
            await self._ask("free", {"name": given["workspace"], "run": holder})

    async def _ask(self, do: str, given: dict[str, Any], hearing: Hearing | None = None) -> Any:
        await self.require_place(str(given.pop("place", "")))
        assert self._process is not None  # noqa: S101 - started
        assert self._process.stdin is not None  # noqa: S101 - made with pipes
        self._last += 1
        number = self._last
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        if hearing is not None:
            self._hearing[number] = hearing
        try:
            self._process.stdin.write(json_frame({"id": number, "do": do, "given": given}))
            return await answer
        except asyncio.CancelledError:
            self._process.stdin.write(json_frame({"cancel": number}))
            raise
        finally:
            self._waiting.pop(number, None)
            self._hearing.pop(number, None)


def _error(said: Any) -> BackstayError:
    """Return the error that the host names; only backstay's own errors are accepted."""
    known = error_type(str(said.get("type"))) or InternalError
    return known(str(said.get("message")), **said.get("facts", {}))


@asynccontextmanager
async def open_workspace_client(
    workspaces: Path | None,
    *,
    home: Path,
    nsjail: Path | None,
    artifacts_mb: int = 200,
    root: Path | None = None,
    rooms: Path,
    variables: Mapping[str, str],
) -> AsyncGenerator[WorkspaceClient]:
    """Offer workspaces; their host starts when it is first needed, and at once where an operator named a folder."""
    settings = WorkspaceSettings(
        home=home, workspaces=workspaces or home / "workspaces", nsjail=nsjail, artifacts_mb=artifacts_mb, root=root
    )
    client = WorkspaceClient(settings, rooms=rooms, environment=plain_environment(variables))
    if workspaces is not None or root is not None:
        client.begin()
    try:
        yield client
    finally:
        await client.close()


def plain_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that the host needs; none of it is a secret."""
    kept = {"LANG", "LC_ALL", "TZ", "TMPDIR", "VIRTUAL_ENV"}
    return {name: value for name, value in variables.items() if name in kept} | {
        "PATH": variables.get("PATH") or os.defpath
    }
