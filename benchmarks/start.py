"""Measure the first run of a newcomer: from a wheel and an empty folder to an approved write, by the README's commands.

python -m benchmarks.start

The packages are in pip's cache, or wherever pip is told to look first: they are installed once before.
"""

import os
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.page import publish
from benchmarks.processes import ROOT

LISTINGS = 5
_PORT = 17_233


def commands() -> list[list[str]]:
    """Return the README's commands of a first run, word by word."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Install and start")[2].partition("\n## ")[0]
    blocks = (block.partition("```")[0] for block in text.split("```bash\n")[1:])
    return [shlex.split(line) for block in blocks for line in block.splitlines() if line]


def measure() -> dict[str, Any]:
    """Run the commands one after the other, and time each."""
    with tempfile.TemporaryDirectory(prefix="backstay-start-") as place:
        home = Path(place)
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(home / "dist")]
        subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
        (wheel,) = (home / "dist").glob("*.whl")
        for name in ("before", "measured"):
            subprocess.run([sys.executable, "-m", "venv", str(home / name)], check=True)
            install_s = timed([str(home / name / "bin/pip"), "install", "--quiet", f"{wheel}[local]"], home)
        return {"install_s": install_s, **_first_run(home)}


def _first_run(home: Path) -> dict[str, Any]:
    """Do what the README says behind its first command."""
    _, init, dev, first = commands()
    folder, program = home / "empty", str(home / "measured/bin/backstay")
    folder.mkdir()
    found: dict[str, Any] = {"commands": len(commands()), "init_s": timed([program, *init[1:]], folder)}
    began = time.monotonic()
    with serving([program, *dev[1:], "--port", str(_PORT), "--headless"], folder):
        found["dev_s"] = round(time.monotonic() - began, 1)
        # The benchmark approves as a person would, but without the time that a person takes.
        found["run_s"] = timed([program, *first[1:], "--yes"], folder)
        found["list_cpu_s"] = min(_cpu([program, "list"], folder) for _ in range(LISTINGS))
    assert "Friday" in (folder / "notes.json").read_text(encoding="utf-8")
    return found


def timed(command: list[str], folder: Path) -> float:
    """Run a command to its end; return its seconds."""
    began = time.monotonic()
    subprocess.run(command, cwd=folder, env=_environment(folder), check=True, stdout=subprocess.DEVNULL)
    return round(time.monotonic() - began, 1)


def _cpu(command: list[str], folder: Path) -> float:
    """Return the seconds of processor time that a command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    timed(command, folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 2)


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[None]:
    """Run `backstay dev` until the end of the block, from when its worker is ready."""
    started = subprocess.Popen(command, cwd=folder, env=_environment(folder), stderr=subprocess.PIPE, text=True)
    try:
        for line in started.stderr or ():
            if "backstay worker ready:" in line:
                break
        else:
            raise SystemExit(f"{command} did not get ready")
        yield
    finally:
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)


def _environment(folder: Path) -> dict[str, str]:
    own = ("BACKSTAY_", "OPENAI_", "TEMPORAL_", "PYTHON")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(own)}  # noqa: TID251 - without settings of ours
    return outside | {"XDG_STATE_HOME": str(folder.parent / "state"), "TEMPORAL_ADDRESS": f"127.0.0.1:{_PORT}"}


def render(result: dict[str, Any]) -> str:
    """Return the table."""
    parts = {
        "`pip install`, packages cached": result["install_s"],
        "`backstay init`": result["init_s"],
        "`backstay dev`, until its worker is ready": result["dev_s"],
        "`backstay run`, until the run is finished": result["run_s"],
        f"all {result['commands']} commands": round(
            sum(result[f"{name}_s"] for name in ("install", "init", "dev", "run")), 1
        ),
    }
    rows = [f"| {what} | {seconds} |" for what, seconds in parts.items()]
    rows.append(f"| `backstay list` (processor time) | {result['list_cpu_s']} |")
    return "\n".join(["| what | seconds |", "|---|---|", *rows])


if __name__ == "__main__":
    measured = measure()
    publish("start", measured, render(measured))
