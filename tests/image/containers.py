"""Run a program as a container of docker-compose.yml, where there is no engine: on this machine's kernel."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

INSIDE = Path(__file__).with_name("inside.py")
# Not the network: a test's servers listen on this machine's loopback.
NAMESPACES = ("--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "--kill-child")


@dataclass(frozen=True)
class Mount:
    """Show a file or a folder of this machine inside."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Container:
    """Describe one; without more words, it is as a step of a build: root with all rights and no filter."""

    lower: Sequence[Path]
    """Layers, the newest first."""
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    mounts: Sequence[Mount] = ()
    others: Sequence[Sequence[Path]] = ()
    """Layers that are shown as /.other0 and so on."""
    tmpfs: Sequence[str] = ()
    read_only: bool = False
    user: tuple[int, int] | None = None
    cap_drop: Sequence[str] = ()
    no_new_privs: bool = False
    filter: bytes = b""
    hostname: str = ""
    opened: Sequence[str] = ()
    """Folders that everybody may enter inside, whatever they are outside."""


@contextmanager
def started(container: Container, upper: Path | None = None, **options: Any) -> Generator[subprocess.Popen[bytes]]:
    """Start it; what it writes to its root stays in `upper`, or is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="backstay-image-", ignore_cleanup_errors=True) as place:
        kept = [
            Path(place, name) for name in ("root", "upper", "work", *(f"u{n}" for n in range(len(container.others))))
        ]
        for folder in kept:
            folder.mkdir()
        # The two must lie on one file system.
        work = kept[2] if upper is None else upper.with_suffix(".work")
        work.mkdir(exist_ok=True)
        plan = {
            "root": str(kept[0]),
            "layers": layers(container.lower, upper or kept[1], work),
            "others": [
                layers(lower, kept[3 + n], _made(Path(place, f"w{n}"))) for n, lower in enumerate(container.others)
            ],
            "mounts": [
                {"source": str(each.source), "target": each.target, "read_only": each.read_only}
                for each in container.mounts
            ],
            "tmpfs": list(container.tmpfs),
            "read_only": container.read_only,
            "user": container.user,
            "cap_drop": list(container.cap_drop),
            "no_new_privs": container.no_new_privs,
            "filter": container.filter.hex(),
            "hostname": container.hostname,
            "opened": list(container.opened),
            "environment": dict(container.environment),
            "cwd": container.folder,
            "command": list(container.command),
        }
        command = ["unshare", *NAMESPACES, "--", sys.executable, "-I", str(INSIDE)]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, **options)
        assert process.stdin is not None
        process.stdin.write(json.dumps(plan).encode())
        process.stdin.close()
        process.stdin = None
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def layers(lower: Sequence[Path], upper: Path, work: Path) -> dict[str, Any]:
    return {"lower": [str(each) for each in lower], "upper": str(upper), "work": str(work)}


def stop(process: subprocess.Popen[bytes]) -> None:
    """Tell the program to end, as an engine does; `unshare` itself passes no signal on."""
    first = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    for child in first:
        os.kill(int(child), signal.SIGTERM)


def ran(container: Container, upper: Path | None = None, seconds: float = 600) -> str:
    """Run it to its end and return what it said; fail with that if it failed."""
    with started(container, upper, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        said, _ = process.communicate(timeout=seconds)
    text = said.decode(errors="replace")
    assert process.returncode == 0, f"{container.command} ended with {process.returncode}:\n{text[-6000:]}"
    return text
