"""The commands `result` and `export`: what a run found, and all that its model was told and said."""

import contextlib
import json
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TextIO

from cyclopts import Parameter

from backstay.canonical import canonical
from backstay.client import Run
from backstay.errors import BackstayError, SettingsInvalid, TaskInvalid
from backstay.settings import Settings
from backstay.shown import one_line
from backstay.task.event import Event
from backstay.tools.recipients import call_line
from backstay.tools.tool import tool_result
from gateways.terminal.exit_codes import ENDED
from gateways.terminal.flags import Output, OutputFile, Workflow
from gateways.terminal.session import session_of, silence_logs
from gateways.terminal.terminal import Terminal

_FEW, _SHORT = 20, 1000
"""The steps of a plan whose answers are shown at its end, and the most characters of such an answer."""
_SUCCEEDED = frozenset({"action.called", "action.rehearsed"})
_CALLS = _SUCCEEDED | {"action.failed", "program.ended"}
Step = Annotated[int | None, Parameter(help="Show the whole answers of this step instead of the end of the run.")]
Format = Annotated[Literal["jsonl"], Parameter(help="jsonl: one message of Chat Completions per line.")]


async def result(
    workflow: Workflow, *, step: Step = None, output_file: OutputFile = None, output: Output = "text"
) -> int:
    """Show what a run found: its summary and outputs, or with --step what the calls of one step answered."""
    settings, terminal = Settings.load(), Terminal()
    silence_logs(settings)
    async with session_of(workflow, settings) as run:
        if step is not None:
            calls = await _calls(run, step)
            code, data, lines = 0, {"workflow_id": run.id, "step": step, "calls": calls}, _call_lines(calls)
        else:
            if await run.is_known_as_open():
                raise TaskInvalid(f"workflow: {run.id} is still open; follow it with `backstay attach`, or give --step")
            ended = await run.result()
            code = ENDED[ended.outcome]
            data = ended.plain() | {"raw_outputs": await _whole(run, ended.raw_outputs)}
            if ended.output_ref is not None:
                data["output"] = await run.read(ended.output_ref)
            lines = _lines(data)
    if output_file is not None:
        write_text(output_file, f"{json.dumps(data, indent=2)}\n")
        terminal.say(f"written to {output_file}", "green")
    else:
        terminal.results(output, data, lines)
    return code


async def export(workflow: Workflow, *, format: Format = "jsonl", output_file: OutputFile = None) -> None:  # noqa: A002 - the flag's name
    """Write the whole conversation with the model of a run: the prompt, the task, every call and every answer.

    Secrets are replaced as everywhere. The lines with the model's own words say what each call of it cost.
    """
    count = 0
    async with session_of(workflow) as run:
        with _stream(output_file) as stream:
            async for message in run.messages():
                stream.write(f"{json.dumps(message)}\n")
                count += 1
    Terminal().say(f"{count} messages as {format}{f', written to {output_file}' if output_file else ''}", "green")


@contextlib.contextmanager
def _stream(path: Path | None) -> Generator[TextIO]:
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with path.open("w", encoding="utf-8") as stream:
            yield stream
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> SettingsInvalid:
    return SettingsInvalid(f"--output-file: {path} cannot be written: {error.strerror}")


async def _calls(run: Run, step: int) -> list[dict[str, Any]]:
    """Return the calls of a step with their stored answers; raises TaskInvalid for a step without calls."""
    events = [event async for event in run.stored_events() if event.name in _CALLS]
    found = [event for event in events if event.step_index == step]
    if not found:
        known = ", ".join(map(str, sorted({event.step_index for event in events}))) or "none"
        raise TaskInvalid(f"--step: step {step} made no call; the steps with calls are: {known}")
    return [await _call(run, event) for event in found]


async def _call(run: Run, event: Event) -> dict[str, Any]:
    """Return what was called with what, and how that ended as people and programs are told."""
    ref, tool, facts = event.data.get("summary_ref"), event.data.get("tool", "program"), event.data
    success = event.name in _SUCCEEDED or bool(facts.get("success"))
    told = tool_result(
        tool,
        None if ref is None else await run.read(ref),
        error=None if success else event.said,
        kind=facts.get("type", "ToolError"),
        effect=facts.get("effect"),
        ref=ref,
        undo=facts.get("undo"),
        cached=bool(facts.get("cached")),
        simulated=event.name == "action.rehearsed",
    )
    return {"tool": tool, "arguments": facts.get("arguments", {}), **told}


async def _whole(run: Run, outputs: Any) -> Any:
    """Return the outputs with what is stored apart put in its place."""
    match outputs:
        case {"ref": str(ref), "note": str()} if len(outputs) == 2:
            try:
                whole = await run.read(ref)
            except BackstayError:  # The model's own words can look the same.
                return outputs
            # The outputs of a long plan are stored apart, too.
            return await _whole(run, whole) if isinstance(whole, dict) and "steps" in whole else whole
        case {"steps": list(steps)}:
            return {**outputs, "steps": [await _read_step(run, step) for step in steps]}
        case _:
            return outputs


async def readable(run: Run, outputs: Any) -> Any:
    """Return the outputs of a plan with the short answers of its steps in their place, where there are few steps."""
    match outputs:
        case {"steps": list(steps)} if len(steps) <= _FEW:
            return {**outputs, "steps": [_short(await _read_step(run, step)) for step in steps]}
        case _:
            return outputs


def _short(step: Any) -> Any:
    if not isinstance(step, dict) or not step.get("ref") or len(canonical(step.get("data"))) <= _SHORT:
        return step
    return {name: value for name, value in step.items() if name != "data"}


async def _read_step(run: Run, step: Any) -> Any:
    if not isinstance(step, dict) or not step.get("ref"):
        return step
    try:
        return {**step, "data": await run.read(str(step["ref"]))}
    except BackstayError as error:
        return {**step, "data": None, "error": step.get("error") or str(error)}


def _lines(data: dict[str, Any]) -> Iterator[str]:
    yield f"{data['workflow_id']}: {data['outcome']}"
    if data["final_summary"]:
        yield data["final_summary"]
    if data["error"]:
        yield f"{data['error']['type']}: {data['error']['message']}"
    if data["output"] is not None:
        yield json.dumps(data["output"], indent=2, ensure_ascii=False)
    if data["raw_outputs"]:
        yield json.dumps(data["raw_outputs"], indent=2, ensure_ascii=False)


def _call_lines(calls: list[dict[str, Any]]) -> Iterator[str]:
    for call in calls:
        yield call_line(call["tool"], call["arguments"])
        if not call["success"]:
            yield f"  failed: {one_line(call['error'], 500)}"
        known = [name for name in ("cached", "simulated") if call["context"][name]]
        if known:
            yield f"  {', '.join(known)}"
        if call["data"] is not None:
            yield json.dumps(call["data"], indent=2, ensure_ascii=False)


def write_text(path: Path, text: str) -> None:
    """Write a file; raises SettingsInvalid when that is not possible."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from None
