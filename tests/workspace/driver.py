"""Run commands in workspaces, one after the other, and tell what each answered and what it left; a program of its own.

It is run as the user that runs the tests, and as one without rights. What to do comes as JSON on the command line.
"""

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from sandbox.images.image import find_image
from sandbox.isolation.cgroups import find_cgroups, release_cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.limits import shell_limits
from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.jails import WorkspaceJails
from sandbox.workspaces.watch import descendants
from sandbox.workspaces.workspace import WorkspaceCall
from sandbox.workspaces.workspaces import Workspaces

SECRET = "the-worker-holds-this-secret"
WRITTEN_MB = 50


def left_behind(victim):
    """Processes below this one that should be gone; those that are ending get a moment."""
    for _ in range(40):
        found = [pid for pid in descendants(os.getpid()) if pid != victim]
        if not found:
            return []
        time.sleep(0.05)
    return found


async def no_review():
    raise AssertionError("no code is reviewed here")


async def main(asked):
    here = Path.cwd()
    (here / "outside").mkdir(mode=0o700)
    (here / "outside/secret.txt").write_text(SECRET, encoding="ascii")
    (here / "workspaces").mkdir(mode=0o755)
    os.environ["WORKER_TOKEN"] = SECRET
    victim = subprocess.Popen(("/usr/bin/sleep", "600"), env={"WORKER_TOKEN": SECRET})  # noqa: ASYNC220 - at once
    port = socket.create_server(("127.0.0.1", 0))
    port.setblocking(False)
    cgroups = find_cgroups()
    jails = WorkspaceJails(
        Nsjail.find(asked["nsjail"]),
        find_image(asked["image"], Path(asked["images"])),
        folder=here / "profiles",
        cgroups=cgroups,
        written_mb=WRITTEN_MB,
        open_review=no_review,
        limits=shell_limits().model_copy(update={"memory_mb": 640}),
    )
    workspaces = Workspaces(
        here / "workspaces", here / "state", jails, lambda workspace: Snapshots(here / "snapshots" / workspace.key)
    )
    told = {}
    for number, attack in enumerate(asked["attacks"]):
        name = f"w{number}"
        root = here / "workspaces" / name
        root.mkdir()
        if attack["call"]:
            (root / "call").write_bytes(base64.b64decode(attack["call"]))
            (root / "call").chmod(0o755)
        listener = socket.socket(socket.AF_UNIX)
        os.chdir(root)
        listener.bind("sock")
        os.chdir(here)
        listener.listen()
        listener.setblocking(False)
        command = attack["command"].replace("{port}", str(port.getsockname()[1])).replace("{victim}", str(victim.pid))
        call = WorkspaceCall(
            workspace=name,
            run="run",
            tool="run",
            arguments={"command": command},
            writable=attack["writable"],
            effect=f"effect-{number}",
            seconds=attack["seconds"],
        )
        try:
            answer = await asyncio.wait_for(workspaces.call(call), 300)
        except Exception as error:
            answer = {"raised": repr(error)}
        connections = []
        for server in (port, listener):
            try:
                server.accept()
                connections.append(server.getsockname())
            except BlockingIOError:
                pass
        listener.close()
        told[attack["name"]] = {
            "answer": answer,
            "left": left_behind(victim.pid),
            "connections": connections,
            "victim": victim.poll() is None,
            "outside": sorted(path.name for path in (here / "outside").iterdir()),
            "here": sorted(path.name for path in here.iterdir()),
        }
    victim.kill()
    release_cgroups(cgroups)
    print(json.dumps(told))  # noqa: T201 - it is a program


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
