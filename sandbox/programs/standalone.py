"""Run one program without Temporal: in the same jail, with tools that the calling process supplies."""

import ast
import asyncio
import contextlib
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field

from backstay.canonical import digest_of
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.redaction.redactor import Redactor
from backstay.settings import Settings
from sandbox.guest.programs.errors import DeadlineExceeded
from sandbox.limits import Limits
from sandbox.programs.bridge import CallBridge, ToolCaller
from sandbox.programs.frames import Round, names_of
from sandbox.programs.sandbox import ProvenJails, RoundOutcome, Sandbox, prove


class SandboxResult(Frozen):
    """Tell what a program returned, what it printed, and what went wrong."""

    success: bool
    result: Any = None
    """The JSON value that it returned."""
    logs: tuple[str, ...] = Field(default=())
    """What it printed, line by line."""
    error: str | None = None
    """One line; None on success."""
    timed_out: bool = False


class PlanBackend(Protocol):
    """Run a program elsewhere, such as behind HTTP; it takes and returns what `run_python_plan` does."""

    async def __call__(
        self, code_body: str, *, user_id: str, toolbox_root: Path, timeout_sec: float = 30
    ) -> SandboxResult:
        """Run one program and return how it ended."""
        ...


_registered: list[ToolCaller] = []
_backends: list[PlanBackend] = []
_proofs: dict[tuple[Path | None, str, Path, Limits], ProvenJails] = {}
_PROOFS = 64
_LONGEST_S = 3600


def register_tool_caller(caller: ToolCaller | None) -> None:
    """Answer the calls of programs with this caller from now on; None refuses them again."""
    _registered[:] = [] if caller is None else [caller]


def register_plan_backend(backend: PlanBackend | None) -> None:
    """Run programs with this backend from now on; None runs them in jails of this process again."""
    _backends[:] = [] if backend is None else [backend]


def bridge_for(user_id: str) -> CallBridge:
    """Return what makes the calls of one program with the registered tool caller; it knows this process's secrets."""
    known = Settings.load(None).secrets()
    return CallBridge(_registered[0] if _registered else None, user_id, Redactor(known))


async def run_python_plan(
    code_body: str, *, user_id: str, toolbox_root: Path, timeout_sec: float = 30
) -> SandboxResult:
    """Run a program in a jail and return how it ended; its calls go to the registered tool caller.

    `toolbox_root` holds the bindings, as `sandbox_py/servers/<provider>/<tool>.py`; images and profiles of jails are
    kept there too. That the jails hold is proven once per process, folder and timeout. BACKSTAY_NSJAIL and
    BACKSTAY_IMAGE of the environment are obeyed.
    Raises TaskInvalid for an invalid timeout, SettingsInvalid for an invalid setting, IsolationUnavailable where jails
    do not work.
    """
    if not 0 < timeout_sec <= _LONGEST_S:
        raise TaskInvalid(f"timeout_sec: {timeout_sec!r} is not between 0 and {_LONGEST_S} seconds")
    if _backends:
        return await _backends[0](code_body, user_id=user_id, toolbox_root=toolbox_root, timeout_sec=timeout_sec)
    settings = Settings.load(None)
    bindings = await asyncio.to_thread(bindings_of, toolbox_root)
    tools = tools_of(bindings)
    start: dict[str, Any] = {
        "source": code_body,
        "bindings": bindings,
        "seed": digest_of([user_id, code_body])[:32],
        "now": round(time.time(), 3),
        "given_s": timeout_sec,
        "calls_from": 0,
        "tools": names_of(tools),
    }
    seconds = math.ceil(timeout_sec)
    limits = Limits(cpu_s=max(Limits().cpu_s, seconds), wall_s=max(Limits().wall_s, timeout_sec))
    proven = await _proven_once(settings, (toolbox_root / ".sandbox").resolve(), limits)
    bridge = bridge_for(user_id)
    async with proven.open(ready=0) as sandbox:
        outcome = await _run(sandbox, json.dumps(start).encode(), tools, bridge, timeout_sec)
        return await _result(outcome, bridge, timeout_sec)


async def _proven_once(settings: Settings, home: Path, limits: Limits) -> ProvenJails:
    """Prove the jails of a folder unless this process has done so; a worker too proves them only when it starts."""
    key = (settings.nsjail, settings.image, home, limits)
    known = _proofs.get(key)
    if known is None or not (home / "images" / known.image.hash).is_dir():
        known = await prove(nsjail=settings.nsjail, home=home, image=settings.image, limits=limits)
        if len(_proofs) >= _PROOFS:
            _proofs.clear()
        _proofs[key] = known
    return known


async def _run(
    sandbox: Sandbox, start: bytes, tools: frozenset[str], bridge: CallBridge, timeout_s: float
) -> RoundOutcome | None:
    """Return how a program ended, or where it stood when its time was up: None where it had not begun."""
    rounds: list[Round] = []
    frame: bytes | None = None
    outcome: RoundOutcome | None = None
    made = 0

    async def played() -> Sequence[Round]:
        return rounds

    until = asyncio.get_running_loop().time() + timeout_s
    with contextlib.suppress(TimeoutError):
        while outcome is None or outcome.kind == "waiting":
            key = str(len(rounds)) if rounds else None
            outcome = await sandbox.advance(
                sandbox.image_hash,
                start,
                key=key,
                frame=frame,
                rounds=played,
                tools=tools,
                first_call=made,
                until=until,
            )
            rounds.append(outcome.round)
            sandbox.keep(str(len(rounds)), outcome)
            made += len(outcome.calls)
            async with asyncio.timeout_at(until):
                answers = await asyncio.gather(*(bridge.answer(call) for call in outcome.calls))
            frame = json.dumps({"now": round(time.time(), 3), "results": answers}).encode()
    return outcome


async def _result(outcome: RoundOutcome | None, bridge: CallBridge, timeout_s: float) -> SandboxResult:
    late = SandboxResult(success=False, error=f"not finished after {timeout_s:g} s", timed_out=True)
    if outcome is None:
        return late
    logs = tuple((await asyncio.to_thread(bridge.masked, outcome.output)).splitlines())
    if outcome.kind == "finished":
        return SandboxResult(success=True, result=await bridge.shown(outcome.result, "program"), logs=logs)
    error = outcome.error or {"type": "SandboxLost", "message": "it ended without an answer"}
    # A program may raise errors with these names itself; then there is a frame from the program.
    ended = "" if outcome.round.came else error["type"]
    slept_on = error["type"] == DeadlineExceeded.__name__
    if outcome.kind == "waiting" or ended == "WallLimit" or slept_on:
        return late.model_copy(update={"logs": logs})
    said = bridge.masked(f"{error['type']}: {error['message']}")
    return SandboxResult(success=False, logs=logs, error=said, timed_out=ended == "CpuLimit")


def bindings_of(root: Path) -> dict[str, dict[str, str]]:
    """Return the source of every binding of a toolbox, by provider and name."""
    found: dict[str, dict[str, str]] = {}
    for path in sorted((root / "sandbox_py" / "servers").glob("*/*.py")):
        if path.name != "__init__.py":
            found.setdefault(path.parent.name, {})[path.stem] = path.read_text(encoding="utf-8")
    return found


def tools_of(bindings: Mapping[str, Mapping[str, str]]) -> frozenset[str]:
    """Return every tool that the bindings call, without running them."""
    return frozenset(tool for sources in bindings.values() for source in sources.values() for tool in _tools(source))


def _tools(source: str) -> list[str]:
    """Return the tools that a binding calls, without running it."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        named = [
            node.args[0] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "call" and node.args
        ]
        return [node.value for node in named if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return []
