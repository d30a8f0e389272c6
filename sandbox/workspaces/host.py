"""The host of workspaces: a process without secrets that owns the folder, starts the jails and takes the snapshots.

Its worker speaks to it through standard input and output. When that ends, all that is under way is ended and undone,
and so is the host: `python -m sandbox.workspaces.host`.
"""

import asyncio
import json
import os
import signal
import socket
import sys
import traceback
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from backstay.errors import BackstayError
from sandbox.images.image import Image, build_image
from sandbox.images.own_root import OwnRoot, find_root
from sandbox.isolation.cgroups import Cgroups, find_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile
from sandbox.isolation.self_test import run_workspace_self_test
from sandbox.limits import review_limits, shell_limits
from sandbox.snapshots.snapshots import Snapshots
from sandbox.snapshots.types import SnapshotLimits
from sandbox.workspaces.jails import WorkspaceJails, try_root
from sandbox.workspaces.owner import prepare
from sandbox.workspaces.workspace import MOST_FRAME, Workspace, WorkspaceCall, WorkspaceSettings
from sandbox.workspaces.workspaces import Workspaces
from system.files import read_json, write_whole
from system.frames import json_frame, read_json_frame
from system.locks import file_lock


async def open_workspaces(settings: WorkspaceSettings) -> Workspaces:
    """Return the workspaces, once every property of their jails is proven here.

    Raises IsolationUnavailable, and ImageMissing when the image cannot be built.
    """
    home = settings.home.absolute()
    nsjail = Nsjail.find(None if settings.nsjail is None else str(settings.nsjail))
    image = await asyncio.to_thread(build_image, "shell", home / "images")
    cgroups = await asyncio.to_thread(find_cgroups)
    folder, state = home / "jails", state_of(settings)
    trial = await asyncio.to_thread(_trial, settings)
    test = partial(run_workspace_self_test, nsjail, folder=folder, workspace=trial, cgroups=cgroups)
    (await test(image, limits=shell_limits())).require_isolation()

    async def open_review() -> Image:
        made = await asyncio.to_thread(build_image, "review", home / "images")
        (await test(made, limits=review_limits())).require_isolation()
        return made

    # It is proven meanwhile, so that no call waits for it, and it fails only those that reach hosts.
    proving = asyncio.create_task(test(image, limits=shell_limits(), kind="network"))

    async def test_network() -> None:
        (await asyncio.shield(proving)).require_isolation()

    jails = WorkspaceJails(
        nsjail,
        image,
        folder=folder,
        cgroups=cgroups,
        written_mb=settings.artifacts_mb,
        open_review=open_review,
        test_network=test_network,
        root=await _open_root(settings, nsjail, image, trial, cgroups),
    )
    kept = replace(SnapshotLimits(), file_bytes=max(SnapshotLimits().file_bytes, settings.artifacts_mb << 20))
    return Workspaces(settings.workspaces.absolute(), state, jails, partial(_snapshots, home / "snapshots", kept))


def _trial(settings: WorkspaceSettings) -> Path:
    """Return a workspace to try jails in; where workspaces are is where it must be possible to work."""
    trial = settings.workspaces.absolute() / ".trial"
    trial.mkdir(parents=True, exist_ok=True)
    # The output of commands is recorded there.
    state_of(settings).mkdir(mode=0o700, parents=True, exist_ok=True)
    prepare(trial)
    return trial


async def _open_root(
    settings: WorkspaceSettings, nsjail: Nsjail, image: Image, trial: Path, cgroups: Cgroups
) -> OwnRoot | None:
    """Return the operator's own root, if there is one, once its shell was seen to start and to write nothing there.

    Raises ImageMissing, and IsolationUnavailable.
    """
    if settings.root is None:
        return None
    home = settings.home.absolute()
    root = await asyncio.to_thread(find_root, settings.root, apart_from=(home, settings.workspaces.absolute()))
    await try_root(
        JailProfile(nsjail, image, kind="shell", cgroups=cgroups, workspace=trial, root=root), home / "jails"
    )
    return root


def state_of(settings: WorkspaceSettings) -> Path:
    """Return the folder of what is known of workspaces."""
    return settings.home.absolute() / "workspace-state"


def place_of(state: Path) -> str:
    """Return the name of this host's workspaces, `<host>/<id>`; it is made once and stays with what is known of them.

    On another host a workspace of the same name is another folder, of which nothing is known.
    """
    path = state / "place.json"
    with file_lock(state / "place.lock"):
        held = read_json(path)
        if not isinstance(held, dict):
            held = {"place": f"{socket.gethostname()}/{uuid.uuid4().hex[:12]}"}
            write_whole(path, json.dumps(held).encode())
    return str(held["place"])


def _snapshots(folder: Path, limits: SnapshotLimits, workspace: Workspace) -> Snapshots:
    return Snapshots(folder / workspace.key, limits)


_MOST_HEARD = 256 << 10


class WorkspaceServer:
    """Answer the requests of one worker, several at a time."""

    def __init__(self, workspaces: Workspaces, send: Callable[[dict[str, Any]], None]) -> None:
        """Answer through `send`."""
        self._workspaces = workspaces
        self._send = send
        self._tasks: dict[int, asyncio.Task[None]] = {}

    def take(self, asked: dict[str, Any]) -> None:
        """Begin to answer a request, or end one that nobody waits for any more."""
        if "cancel" in asked:
            if (task := self._tasks.get(asked["cancel"])) is not None:
                task.cancel()
            return
        number = asked["id"]
        self._tasks[number] = asyncio.create_task(self._answer(number, asked))

    async def close(self) -> None:
        """End all unfinished calls, and wait until they are undone."""
        for task in self._tasks.values():
            # One that is ending already must not be cut off in that.
            if not task.cancelling():
                task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _answer(self, number: int, asked: dict[str, Any]) -> None:
        try:
            said = {"id": number, "said": await self._do(number, asked)}
        except asyncio.CancelledError:
            said = {"id": number, "error": {"type": "SandboxLost", "message": "it was cancelled", "facts": {}}}
        except Exception as error:
            said = {"id": number, "error": _plain(error)}
        finally:
            self._tasks.pop(number, None)
        self._send(said)

    def _do(self, number: int, asked: dict[str, Any]) -> Awaitable[Any]:
        given = asked["given"]
        match asked["do"]:
            case "call":
                return self._workspaces.call(WorkspaceCall.model_validate(given), self._hearing(number))
            case "show":
                return self._workspaces.show(WorkspaceCall.model_validate(given))
            case "claim" | "free" | "release" | "holder" | "end_rehearsal" as name:
                return asyncio.to_thread(getattr(self._workspaces, name), **given)
            case other:
                raise ValueError(f"nothing here is called {other!r}")

    def _hearing(self, number: int) -> Callable[[str, bytes], None]:
        """Pass on what a command says while it runs, up to a bound."""
        left = _MOST_HEARD

        def heard(stream: str, data: bytes) -> None:
            nonlocal left
            if left > 0:
                text = data[:left].decode("utf-8", "replace")
                left -= len(data)
                self._send({"id": number, "heard": stream, "text": text})

        return heard


def _plain(error: Exception) -> dict[str, Any]:
    if isinstance(error, BackstayError):
        facts = {name: value for name, value in error.facts.items() if isinstance(value, str | int | float)}
        return {"type": type(error).__name__, "message": str(error), "facts": facts}
    traceback.print_exception(error)
    return {"type": "InternalError", "message": f"the workspace host failed: {type(error).__name__}", "facts": {}}


async def serve() -> int:
    """Serve until the worker is gone."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", buffering=0))
    out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(os.dup(1), "wb", buffering=0))
    # Text printed by mistake must not come between frames.
    os.dup2(2, 1)

    def send(value: dict[str, Any]) -> None:
        out.write(json_frame(value))

    first = await read_json_frame(reader, MOST_FRAME)
    if first is None:
        return 0
    try:
        settings = WorkspaceSettings.model_validate(first)
        workspaces = await open_workspaces(settings)
    except BackstayError as error:
        send({"error": _plain(error)})
        out.close()
        return 2
    place = await asyncio.to_thread(place_of, state_of(settings))
    send({"ready": True, "place": place, "root": workspaces.root})
    server = WorkspaceServer(workspaces, send)
    stop = asyncio.current_task()
    assert stop is not None  # noqa: S101 - this runs in a task
    loop.add_signal_handler(signal.SIGTERM, stop.cancel)
    try:
        while (asked := await read_json_frame(reader, MOST_FRAME)) is not None:
            server.take(asked)
    except asyncio.CancelledError:
        pass
    finally:
        await server.close()
        out.close()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(serve()))
