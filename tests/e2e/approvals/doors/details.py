"""Read what the Temporal Web UI shows of a run, and hold it against the run and its requests."""

import re
from collections import Counter
from typing import Any

from temporalio.api.sdk.v1 import WorkflowMetadata

from backstay.shown import shell_words
from workflows.view import MOST_TOOLS

_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


async def check_details(handle: Any, requests: list[dict[str, Any]]) -> None:
    """Assert that state, limits and every open request stand there, with what it is about and its commands."""
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
        assert f"backstay show {shell_words(handle.id, request['id'])}" in section, section
        _check_counts(section, request)


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


def _check_counts(section: str, request: dict[str, Any]) -> None:
    """Assert that each tool is counted."""
    counted = Counter(call["tool"] for call in request["calls"])
    (line,) = [line for line in section.splitlines() if "Calls: " in line] or [""]
    found = {tool: int(count) for count, tool in re.findall(r"(\d+) of ([^,;]+)", _text(line.partition("Calls: ")[2]))}
    assert found == {tool: counted[tool] for tool in found}, section
    assert len(found) == min(len(counted), MOST_TOOLS), section


def _text(markdown: str) -> str:
    """Return what a renderer shows."""
    return _ESCAPED.sub(r"\1", markdown).replace("\u00a0", " ")


def _spaced(text: str) -> str:
    return " ".join(text.replace("⏎", " ").split())
