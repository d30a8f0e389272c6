"""Run one program without Temporal: in the same jail, with tools that the calling process supplies."""

import ast
import asyncio
import contextlib
import json
import math
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from backstay.canonical import digest_of
from backstay.errors import TaskInvalid
from backstay.frozen import Frozen
from backstay.shown import message_line
from backstay.tools.tool import tool_result
from sandbox.limits import Limits
from sandbox.programs.frames import ProgramCall, Round, names_of
from sandbox.programs.sandbox import Proven, RoundOutcome, Sandbox, prove


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


ToolCaller = Callable[[str, dict[str, Any], str], Awaitable[Any]]
"""Takes `provider.tool`, the arguments and the user's id; returns the tool's answer as JSON, or raises."""
_registered: list[ToolCaller] = []
_proofs: dict[tuple[Path, Limits], Proven] = {}
_PROOFS = 64
_LONGEST_S = 3600


def register_tool_caller(caller: ToolCaller | None) -> None:
    """Answer the calls of programs with this caller from now on; None refuses them again."""
    _registered[:] = [] if caller is None else [caller]


async def run_python_plan(
    code_body: str, *, user_id: str, toolbox_root: Path, timeout_sec: float = 30
) -> SandboxResult:
    """Run a program in a jail and return how it ended; its calls go to the registered tool caller.

    `toolbox_root` holds the bindings, as `sandbox_py/servers/<provider>/<tool>.py`; images and profiles of jails are
    kept there too. That the jails hold is proven once per process, folder and timeout.
    Raises TaskInvalid for an invalid timeout, IsolationUnavailable where jails do not work.
    """
    if not 0 < timeout_sec <= _LONGEST_S:
        raise TaskInvalid(f"timeout_sec: {timeout_sec!r} is not between 0 and {_LONGEST_S} seconds")
    bindings = await asyncio.to_thread(_bindings, toolbox_root)
    tools = frozenset(
        tool for functions in bindings.values() for source in functions.values() for tool in _tools(source)
    )
    seed = digest_of([user_id, code_body])[:32]
    start: dict[str, Any] = {
        "source": code_body,
        "bindings": bindings,
        "seed": seed,
        "now": round(time.time(), 3),
        "calls_from": 0,
    }
    start["tools"] = names_of(tools)
    seconds = math.ceil(timeout_sec)
    limits = Limits(cpu_s=max(Limits().cpu_s, seconds), wall_s=max(Limits().wall_s, timeout_sec))
    proven = await _proven_once((toolbox_root / ".sandbox").absolute(), limits)
    async with proven.open(ready=0) as sandbox:
        try:
            async with asyncio.timeout(timeout_sec):
                return _result(await _run(sandbox, json.dumps(start).encode(), tools, user_id))
        except TimeoutError:
            return SandboxResult(success=False, error=f"not finished after {timeout_sec:g} s", timed_out=True)


async def _proven_once(home: Path, limits: Limits) -> Proven:
    """Prove the jails of a folder unless this process has done so; a worker too proves them only when it starts."""
    known = _proofs.get((home, limits))
    if known is None or not (home / "images" / known.image.hash).is_dir():
        known = await prove(nsjail=None, home=home, image="python", limits=limits)
        if len(_proofs) >= _PROOFS:
            _proofs.clear()
        _proofs[home, limits] = known
    return known


async def _run(sandbox: Sandbox, start: bytes, tools: frozenset[str], user_id: str) -> RoundOutcome:
    rounds: list[Round] = []
    frame: bytes | None = None
    made = 0

    async def played() -> Sequence[Round]:
        return rounds

    while True:
        key = str(len(rounds)) if rounds else None
        outcome = await sandbox.advance(
            sandbox.image_hash, start, key=key, frame=frame, rounds=played, tools=tools, first_call=made
        )
        rounds.append(outcome.round)
        if outcome.kind != "waiting":
            return outcome
        sandbox.keep(str(len(rounds)), outcome)
        made += len(outcome.calls)
        answers = await asyncio.gather(*(_answer(call, user_id) for call in outcome.calls))
        frame = json.dumps({"now": round(time.time(), 3), "results": answers}).encode()


async def _answer(call: ProgramCall, user_id: str) -> dict[str, Any]:
    answer = await _answered(call, user_id)
    if not call.whole:
        return answer
    fault = answer.get("error", {"message": None, "type": ""})
    told = tool_result(call.tool, answer.get("ok"), error=fault["message"], kind=fault["type"])
    return {"i": call.i, "ok": told}


async def _answered(call: ProgramCall, user_id: str) -> dict[str, Any]:
    if not _registered:
        fault = {"type": "ToolError", "message": "no tools are available here; register some with register_tool_caller"}
        return {"i": call.i, "error": fault}
    try:
        value = await _registered[0](call.tool, call.arguments, user_id)
        json.dumps(value, allow_nan=False)
    except Exception as error:  # any exception of a tool is an answer to the program
        message = message_line(str(error)) or type(error).__name__
        return {"i": call.i, "error": {"type": type(error).__name__, "message": message}}
    return {"i": call.i, "ok": value}


def _result(outcome: RoundOutcome) -> SandboxResult:
    logs = tuple(outcome.output.splitlines())
    if outcome.kind == "finished":
        return SandboxResult(success=True, result=outcome.result, logs=logs)
    error = outcome.error or {"type": "SandboxLost", "message": "it ended without an answer"}
    # A program may raise errors with these names itself; then there is a frame from the program.
    timed_out = error["type"] in {"WallLimit", "CpuLimit"} and not outcome.round.came
    return SandboxResult(success=False, logs=logs, error=f"{error['type']}: {error['message']}", timed_out=timed_out)


def _bindings(root: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for path in sorted((root / "sandbox_py" / "servers").glob("*/*.py")):
        if path.name != "__init__.py":
            found.setdefault(path.parent.name, {})[path.stem] = path.read_text(encoding="utf-8")
    return found


def _tools(source: str) -> list[str]:
    """Return the tools that a binding calls, without running it."""
    with contextlib.suppress(SyntaxError, ValueError, RecursionError):
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        named = [
            node.args[0] for node in calls if isinstance(node.func, ast.Name) and node.func.id == "call" and node.args
        ]
        return [node.value for node in named if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return []
