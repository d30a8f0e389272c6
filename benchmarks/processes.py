"""Start each measured part as a process of its own, and read its CPU and memory."""

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TICKS = os.sysconf("SC_CLK_TCK")
PRICES = {"scripted": {"input": 0.1, "cached": 0.01, "output": 0.4}}


def cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def family(pid: int) -> list[int]:
    """Return a process and all that it and they have started."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                children[int(_stat(int(entry.name))[1])].append(int(entry.name))
    found = [pid]
    for known in found:
        found.extend(children[known])
    return found


def family_cpu_seconds(pid: int) -> float:
    """Return what a process and its children have used, those that ended and were waited for included."""
    used = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            used += sum(int(field) for field in _stat(member)[11:15])
    return used / TICKS


def family_memory_kb(pid: int) -> int:
    """Return what a process and its children hold."""
    held = 0
    for member in family(pid):
        with contextlib.suppress(OSError):
            held += memory_kb(member)
    return held


def _stat(pid: int) -> list[str]:
    """Return the fields of a process that stand behind its name, the first of which is its state."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def memory_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@contextmanager
def process(command: list[str], ready: str, **env: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a process until the end of the block; yield it with the line that said it was ready."""
    started = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **env},  # noqa: TID251  # a measured process sees what this one sees
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said: list[str] = []
    try:
        for line in started.stdout or ():
            said.append(line)
            if ready in line:
                # A process that writes into a full pipe stands still.
                threading.Thread(target=_drain, args=(started,), daemon=True).start()
                yield started, line.strip()
                return
        raise SystemExit(f"{command} did not get ready:\n{''.join(said[-20:])}")
    finally:
        started.terminate()
        try:
            started.wait(60)
        except subprocess.TimeoutExpired:
            started.kill()


def _drain(started: subprocess.Popen[str]) -> None:
    for _ in started.stdout or ():
        pass


def worker_environment(home: Path, address: str, model_url: str) -> dict[str, str]:
    """Return the environment of a worker that serves the mailbox on a queue named backstay."""
    data = json.loads((ROOT / "examples/toolbox.json").read_text(encoding="utf-8"))
    mail: dict[str, Any] = data["mcpServers"]["mail"]
    mail.update(command=sys.executable, args=[str(ROOT / "examples/mailbox/server.py")])
    mail["env"] = {"MAILBOX_DB": str(home / "mailbox.db")}
    home.mkdir(parents=True, exist_ok=True)
    (home / "toolbox.json").write_text(json.dumps(data), encoding="utf-8")
    return {
        "TEMPORAL_ADDRESS": address,
        "BACKSTAY_HOME": str(home),
        "BACKSTAY_TOOLBOX": str(home / "toolbox.json"),
        "BACKSTAY_POLICY": str(ROOT / "examples/policy.yaml"),
        "BACKSTAY_MODEL": "scripted",
        "BACKSTAY_PRICES": json.dumps(PRICES),
        "OPENAI_BASE_URL": model_url,
        "OPENAI_API_KEY": "key-of-the-scripted-model",
    }
