"""Measure the start of the plugin daemon in a folder of five plugins that has not changed, beside an empty Python.

python -m benchmarks.plugin_daemon
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.page import publish
from benchmarks.processes import ROOT

PLUGINS, STARTS = 5, 15
_ENTRY = ROOT / "gateways/plugins_stdio.py"
_CLI = """
import argparse
parser = argparse.ArgumentParser(description="Plugin {number}")
commands = parser.add_subparsers(dest="command", required=True)
for name in ("open", "click", "read"):
    commands.add_parser(name).add_argument("--button-text", required=True)
parser.parse_args()
"""


def measure() -> dict[str, Any]:
    """Start the daemon and an empty Python in turns."""
    with tempfile.TemporaryDirectory(prefix="backstay-daemon-") as place:
        folder = Path(place)
        for number in range(PLUGINS):
            (folder / "plugins" / f"plugin{number}").mkdir(parents=True)
            (folder / "plugins" / f"plugin{number}" / "cli.py").write_text(
                _CLI.replace("{number}", str(number)), encoding="utf-8"
            )
        _ready(folder)  # the help is read and kept
        rounds = [(_ready(folder), _empty(folder)) for _ in range(STARTS)]
        shutil.rmtree(folder / "state", ignore_errors=True)
    ready = [seconds for (seconds, _), _ in rounds]
    return {
        "plugins": PLUGINS,
        "ready_ms": round(1000 * statistics.median(ready), 1),
        "empty_ms": round(1000 * statistics.median(empty for _, empty in rounds), 1),
        "ratio": round(statistics.median(seconds / empty for (seconds, _), empty in rounds), 1),
        "memory_mb": round(max(memory for (_, memory), _ in rounds), 1),
    }


def _ready(folder: Path) -> tuple[float, float]:
    """Return after how many seconds a daemon was ready, and how much memory it had used until then, in MB."""
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, str(_ENTRY)],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as daemon:
        assert daemon.stdout is not None and daemon.stdin is not None  # noqa: PT018 - two pipes that were asked for
        line = daemon.stdout.readline()
        seconds = time.monotonic() - began
        status = Path(f"/proc/{daemon.pid}/status").read_text(encoding="ascii")
        daemon.stdin.close()
    if b"ready" not in line:
        raise SystemExit(f"the daemon was not ready: {line!r}")
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return seconds, int(peak) / 1024


def _empty(folder: Path) -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "pass"], cwd=folder, check=True, env=_environment(folder))
    return time.monotonic() - began


def _environment(folder: Path) -> dict[str, str]:
    own = ("BACKSTAY_", "TEMPORAL_", "PYTHON")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(own)}  # noqa: TID251 - without settings of ours
    return outside | {"XDG_STATE_HOME": str(folder / "state"), "BACKSTAY_TRUSTED": str(folder)}


def render(result: dict[str, Any]) -> str:
    """Return the table."""
    return "\n".join(
        [
            f"| the daemon with {result['plugins']} plugins | |",
            "|---|---|",
            f"| until it is ready, ms | {result['ready_ms']} |",
            f"| `python3 -c pass`, ms | {result['empty_ms']} |",
            f"| times as long | {result['ratio']} |",
            f"| the most memory until then, MB | {result['memory_mb']} |",
        ]
    )


if __name__ == "__main__":
    measured = measure()
    publish("plugin_daemon", measured, render(measured))
