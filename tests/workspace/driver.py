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
from contextlib import suppress
from ipaddress import ip_address
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
from system.addresses import Internet

FAR = ip_address("93.184.216.34")
TRANSLATED = ip_address("64:ff9b::5db8:d822")
"""The same in a network that knows IPv6 only."""
NAMES = {
    "far.example": [FAR],
    "near.example": [ip_address("10.0.0.1")],
    "both.example": [FAR, ip_address("192.168.1.1")],
    "mapped.example": [ip_address("::ffff:10.0.0.1")],
    "metadata.example": [ip_address("169.254.169.254")],
}
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


class Elsewhere(Internet):
    """An internet of a few names, whose one machine is a server on this one: no test reaches any other."""

    def __init__(self, port, names=NAMES):
        super().__init__()
        self.port = port
        self.names = names
        self.looked_up = []

    async def addresses(self, host, port):
        self.looked_up.append((host, port))
        if host not in self.names:
            raise OSError("no such name")
        found = self.names[host]
        return found() if callable(found) else found

    def is_own(self, address):
        return False

    async def connect(self, address, port):
        assert address in {FAR, TRANSLATED}, address
        return await asyncio.open_connection("127.0.0.1", self.port)


async def answer(reader, writer):
    """Answer a request with what was asked; what is no request is repeated until it ends."""
    with suppress(OSError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        is_request = b" HTTP/1." in head
        said = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" if is_request else b""
        writer.write(said + b"asked: " + head.replace(b"\r\n", b"|"))
        left = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0) if is_request else 1 << 30
        while left > 0 and (more := await reader.read(min(left, 1000))):
            left -= len(more)
            writer.write(b"more: " + more)
            await writer.drain()
    writer.close()


async def no_test():
    """Leave the self-test of jails to other tests."""


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
    far = await asyncio.start_server(answer, "127.0.0.1", 0)
    cgroups = find_cgroups()
    jails = WorkspaceJails(
        Nsjail.find(asked["nsjail"]),
        find_image(asked["image"], Path(asked["images"])),
        folder=here / "profiles",
        cgroups=cgroups,
        written_mb=WRITTEN_MB,
        open_review=no_review,
        test_network=no_test,
        internet=lambda: Elsewhere(far.sockets[0].getsockname()[1]),
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
            arguments={"command": command} | ({"network": attack["network"]} if attack["network"] else {}),
            writable=attack["writable"],
            effect=f"effect-{number}",
            seconds=attack["seconds"],
        )
        try:
            answered = await asyncio.wait_for(workspaces.call(call), 300)
        except Exception as error:
            answered = {"raised": repr(error)}
        connections = []
        for server in (port, listener):
            try:
                server.accept()
                connections.append(server.getsockname())
            except BlockingIOError:
                pass
        listener.close()
        told[attack["name"]] = {
            "answer": answered,
            "left": left_behind(victim.pid),
            "connections": connections,
            "victim": victim.poll() is None,
            "outside": sorted(path.name for path in (here / "outside").iterdir()),
            "here": sorted(path.name for path in here.iterdir()),
        }
    far.close()
    victim.kill()
    release_cgroups(cgroups)
    print(json.dumps(told))  # noqa: T201 - it is a program


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
