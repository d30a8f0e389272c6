"""Read what the Temporal Web UI shows of a run, and hold it against the run and its requests."""

import re
from typing import Any

from temporalio.api.sdk.v1 import WorkflowMetadata

from tests.e2e.approvals.doors.comparing import same
from tests.e2e.approvals.doors.decoding import Shown, named, plain, read

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_TOLD = re.compile(r" \(.*\)$")
"""What the engine adds to an argument, whose own parentheses are escaped."""
_CALL = re.compile(r"- (?:step (\d+): )?\*\*(.+?)\*\*[ ,]")
_MORE, _ROW = "      ", "    - "


async def check_details(handle: Any, requests: list[dict[str, Any]], wanted: dict[int, dict[str, Any]]) -> None:
    """Assert that state, limits and every open request stand there; `wanted`: arguments by call, of the first one."""
    status = await handle.query("status")
    answer = await handle.query("__temporal_workflow_metadata", result_type=WorkflowMetadata)
    head, *sections = re.split(r"^### ", answer.current_details, flags=re.MULTILINE)
    assert head.startswith(f"**{status['state']}**, step {status['step']}"), (head, status["state"])
    _check_limits(head, await handle.query("budget"))
    assert [section.partition(":")[0] for section in sections] == [request["id"] for request in requests]
    for section, request in zip(sections, requests, strict=True):
        lines = section.split("\n")
        question = _text(lines[0].partition(": ")[2])
        assert "clipped" in question or _spaced(question) == _spaced(request["question"]), question
        for option in {"approve", "reject"} & {*request["options"]}:
            how = rf"backstay {option} .*{request['id']}\b"
            assert re.search(how + (f".*{request['args_digest']}" if request["args_digest"] else ""), section), section
        assert f"Rule: {_spaced(request['rule'])}" in _spaced(_text(section))
    if requests and wanted:
        _check_calls(sections[0].split("\n"), requests[0], wanted)


def _check_limits(head: str, told: dict[str, Any]) -> None:
    """Assert that the line of limits says what the run says itself."""
    (line,) = [line for line in head.splitlines() if line.startswith("steps ")]
    parts = [re.fullmatch(r"(.+?) ([0-9.]+)(?: of ([0-9.]+))?", part) for part in line.split(" · ")]
    limits = {part[1]: (float(part[2]), part[3] and float(part[3])) for part in parts if part is not None}
    usage, budget = told["usage"], told["budget"]
    assert len(limits) == len(parts), line
    assert limits["tool calls"] == (usage["tool_calls"], budget["max_tool_calls"])
    assert limits["steps"] == (usage["steps"] - usage["lifelines"], budget["max_steps"])
    assert abs(limits["USD"][0] - usage["llm_cost_usd"]) < 1e-4


def _check_calls(lines: list[str], request: dict[str, Any], wanted: dict[int, dict[str, Any]]) -> None:
    """Assert that each call stands there with its arguments, or that the rest is counted."""
    found = list(_calls(lines))
    known = (request["proposal"] or {}).get("steps") or request["calls"]
    names = [step.get("tool") or step["action"] for step in known]
    tools = [tool for _, tool, _ in found]
    assert tools == names[: len(tools)], (tools, names)
    left = "\n".join(line for line in lines if "not shown" in line or "clipped" in line)
    assert len(found) == len(names) or f"{len(names) - len(found)} more" in left, lines
    for (index, tool, entries), step in zip(found, known, strict=False):
        at = step.get("index", step.get("idx"))
        assert index in {None, at}
        shown, whole = Shown(at, tool), True
        for entry in entries:
            if entry[0].startswith("**") or entry[0].startswith("the plan says: "):
                whole = whole and not ("not shown" in entry[0] or "clipped" in entry[0])
                continue
            whole = whole and "arguments not shown" not in entry[0]
            for name, value, inline in named([_text(_TOLD.sub("", line)) for line in entry]) if whole else ():
                shown.add(name, value, inline=inline)
        if whole and at in wanted:
            assert same(_flat(read(shown, wanted[at])), _flat(wanted[at])), (shown, wanted[at])


def _calls(lines: list[str]):
    """Yield the number of each step, its tool, and what stands under it."""
    held: tuple[int | None, str, list[list[str]]] | None = None
    for line in lines:
        if match := _CALL.match(line):
            if held is not None:
                yield held
            held = (int(match[1]) if match[1] else None, _text(match[2]), [])
        elif held is not None and line.startswith(_ROW):
            held[2].append([line.removeprefix(_ROW).removesuffix("  ")])
        elif held is not None and held[2] and line.startswith(_MORE):
            held[2][-1].append(line.removeprefix(_MORE).removesuffix("  "))
        elif held is not None:
            yield held
            held = None
    if held is not None:
        yield held


def _text(markdown: str) -> str:
    """Return what a renderer shows."""
    return _ESCAPED.sub(r"\1", markdown).replace("\u00a0", " ")


def _spaced(text: str) -> str:
    return " ".join(text.replace("⏎", " ").split())


def _flat(value: Any) -> Any:
    """Return a value without the white space that Markdown does not show."""
    match value:
        case str():
            return _spaced(plain(value))
        case dict():
            return {_spaced(name): _flat(item) for name, item in value.items()}
        case list():
            return [_flat(item) for item in value]
        case _:
            return value
