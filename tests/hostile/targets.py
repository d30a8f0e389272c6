"""What hostile programs aim at: listeners, files, secrets and a process, all made to be thrown away."""

import asyncio
import json
import os
import secrets
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

PLACES = (
    "/",
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/dev/mqueue",
    "/run",
    "/run/shm",
    "/run/lock",
    "/var/run",
    "/usr",
    "/etc",
)


class Targets:
    """Hold everything that must stay untouched, in one folder and on the loopback interface."""

    def __init__(self, folder: Path, image: Path) -> None:
        self.mark = f"mark-{secrets.token_hex(8)}"
        self.key = secrets.token_hex(12)
        self.image = image
        self.canary = folder / "canary"
        self.tokens = {
            name: f"canary-{name}-{secrets.token_hex(8)}" for name in ("file", "environment", "victim", "inherited")
        }
        self._make_files()
        self._listeners = self._listen(folder)
        self.abstract = f"abstract-{secrets.token_hex(8)}"
        self._listeners["abstract"] = _listener(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract}")
        self.spare_port = _spare_port()
        self.answered = False
        """Whether anything ever answered on the spare port."""
        os.environ["BACKSTAY_CANARY_TOKEN"] = self.tokens["environment"]
        self._before = self._files()
        self._image = _tree(image)
        self.victim: asyncio.subprocess.Process | None = None
        self._victim_before: dict[str, Any] = {}
        self._address = 0

    def _make_files(self) -> None:
        (self.canary / "folder").mkdir(parents=True)
        (self.canary / "secret.txt").write_text(self.tokens["file"], encoding="utf-8")
        (self.canary / "keep.txt").write_text("kept", encoding="utf-8")
        (self.canary / "folder/inside.txt").write_text("kept", encoding="utf-8")
        inherited = os.open(self.canary.with_name("inherited.txt"), os.O_RDWR | os.O_CREAT)
        os.write(inherited, self.tokens["inherited"].encode())
        os.lseek(inherited, 0, os.SEEK_SET)
        # A worker's libraries open files that are inherited by whatever they start; jails must not get them.
        os.set_inheritable(inherited, True)
        folder = os.open(self.canary, os.O_RDONLY | os.O_DIRECTORY)
        os.set_inheritable(folder, True)

    def _listen(self, folder: Path) -> dict[str, socket.socket]:
        stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
        self.stream_path, self.datagram_path = str(folder / "stream.socket"), str(folder / "datagram.socket")
        listeners = {
            "tcp": _listener(socket.AF_INET, stream, ("127.0.0.1", 0)),
            "udp": _listener(socket.AF_INET, datagram, ("127.0.0.1", 0)),
            "stream": _listener(socket.AF_UNIX, stream, self.stream_path),
            "datagram": _listener(socket.AF_UNIX, datagram, self.datagram_path),
        }
        for path in (self.stream_path, self.datagram_path):
            Path(path).chmod(0o777)
        with suppress(OSError):
            listeners["tcp6"] = _listener(socket.AF_INET6, stream, ("::1", 0))
        return listeners

    async def start_victim(self) -> None:
        """Start the process that others must leave alone; its secret is in its arguments, environment and memory."""
        self.victim = await asyncio.create_subprocess_exec(
            *self._interpreter(),
            str(Path(__file__).with_name("victim.py")),
            self.tokens["victim"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={"VICTIM_TOKEN": self.tokens["victim"], "PYTHONHOME": str(self.image / "usr")},
            start_new_session=True,
        )
        assert self.victim.stdout
        self._address = json.loads(await asyncio.wait_for(self.victim.stdout.readline(), 150))["address"]
        self._victim_before = self._victim_state()

    def _interpreter(self) -> list[str]:
        """Return how to start the image's interpreter outside of any jail: every user may read that one."""
        libraries = self.image / "usr/lib"
        loader = next(libraries.glob("ld-*"))
        return [str(loader), "--library-path", str(libraries), str(self.image / "usr/bin/python3"), "-s", "-S", "-B"]

    def given(self) -> dict[str, object]:
        """Return what a hostile program is told, so that its attack can be aimed well."""
        assert self.victim
        ports = {
            name: listener.getsockname()[1]
            for name, listener in self._listeners.items()
            if name in ("tcp", "tcp6", "udp")
        }
        return {
            "TCP_PORT": ports["tcp"],
            "TCP6_PORT": ports.get("tcp6", ports["tcp"]),
            "UDP_PORT": ports["udp"],
            "SPARE_PORT": self.spare_port,
            "STREAM_PATH": self.stream_path,
            "DATAGRAM_PATH": self.datagram_path,
            "ABSTRACT": self.abstract,
            "CANARY": str(self.canary),
            "MARK": self.mark,
            "VICTIM": self.victim.pid,
            "SECRET_ADDRESS": self._address,
            "HOST_NAME": os.uname().nodename,
            "KEY": self.key[::-1],
        }

    def connections(self) -> list[str]:
        """Return the listeners that were reached, and forget it."""
        return [name for name, listener in self._listeners.items() if _was_reached(listener)]

    async def watch_port(self) -> None:
        """Try, until cancelled, whether anything answers on the port that nobody should listen on."""
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", self.spare_port), timeout=0.2).close()
                self.answered = True
            await asyncio.sleep(0.05)

    def said(self, data: bytes) -> list[str]:
        """Return the secrets that stand in what came out."""
        return [name for name, token in self.tokens.items() if token.encode() in data]

    def confessed(self, data: bytes) -> str | None:
        """Return what a program says it has done that it must not be able to do."""
        _, found, after = data.partition(f"proof {self.key} ".encode())
        return after.split(b"\n", 1)[0].decode("utf-8", "replace") if found else None

    def changed_files(self, *, image: bool) -> list[str]:
        """Return what is not as it was: the canary, places where a mark could be left and, asked, the image."""
        marks = [path for place in PLACES if (path := Path(place, self.mark)).exists() or path.is_symlink()]
        changed = [str(path) for path in marks]
        now = self._files()
        changed += [name for name in self._before.keys() | now if self._before.get(name) != now.get(name)]
        self._before = now
        if image:
            tree = _tree(self.image)
            changed += [name for name in self._image.keys() | tree if self._image.get(name) != tree.get(name)]
            self._image = tree
        for path in marks:
            with suppress(OSError):
                path.unlink()
        return changed

    async def victim_fault(self) -> str | None:
        """Return what has happened to the victim; it is replaced when something has."""
        assert self.victim
        assert self.victim.stdin
        assert self.victim.stdout
        fault = None
        state = self._victim_state()
        if state != self._victim_before:
            fault = f"{self._victim_before} became {state}"
        else:
            self.victim.stdin.write(b"?\n")
            try:
                answer = await asyncio.wait_for(self.victim.stdout.readline(), 10)
                said = json.loads(answer or b'{"signals": ["dead"]}')
            except TimeoutError:
                said = {"signals": ["silent"]}
            if said["signals"] or said.get("changed"):
                fault = f"it says {said}"
        if fault:
            await self.end_victim()
            await self.start_victim()
        return fault

    async def end_victim(self) -> None:
        assert self.victim
        with suppress(ProcessLookupError):
            self.victim.kill()
        await self.victim.wait()

    def close(self) -> None:
        for listener in self._listeners.values():
            listener.close()

    def _victim_state(self) -> dict[str, Any]:
        assert self.victim
        place = Path("/proc", str(self.victim.pid))
        try:
            fields = (place / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            status = (place / "status").read_text(encoding="utf-8")
            limits = (place / "limits").read_text(encoding="utf-8")
        except OSError:
            return {"alive": False}
        kept = ("TracerPid", "Uid", "Gid", "SigPnd", "ShdPnd", "SigCgt", "Cpus_allowed", "Threads", "CapEff")
        lines = dict(line.split(":\t", 1) for line in status.splitlines() if line.partition(":")[0] in kept)
        running = {"R": "S"}.get(fields[0], fields[0])
        return {"alive": True, "state": running, "group": fields[2], "session": fields[3], "nice": fields[16]} | {
            "start": fields[19],
            "policy": fields[38],
            "limits": limits,
            **lines,
        }

    def _files(self) -> dict[str, tuple[Any, ...]]:
        return _tree(self.canary, content=True)


def _listener(family: int, kind: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(address)
    if kind == socket.SOCK_STREAM:
        made.listen(16)
    made.setblocking(False)
    return made


def _spare_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _was_reached(listener: socket.socket) -> bool:
    reached = False
    with suppress(BlockingIOError):
        while True:
            if listener.type == socket.SOCK_STREAM:
                listener.accept()[0].close()
            else:
                listener.recv(4096)
            reached = True
    return reached


def _tree(root: Path, *, content: bool = False) -> dict[str, tuple[Any, ...]]:
    """Return mode, owner, size and times of everything below the root, and what is in it where asked."""
    found: dict[str, tuple[Any, ...]] = {}
    for folder, folders, files in os.walk(root):
        for name in (".", *folders, *files):
            path = f"{folder}/{name}"
            facts = os.lstat(path)
            inside = Path(path).read_bytes() if content and stat.S_ISREG(facts.st_mode) else b""
            found[path] = (facts.st_mode, facts.st_uid, facts.st_size, facts.st_mtime_ns, facts.st_nlink, inside)
    return found
