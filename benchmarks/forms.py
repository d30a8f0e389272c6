"""Measure what a program saves a model: three tasks, by a program and by single calls.

python -m benchmarks.forms
"""

import asyncio
from contextlib import ExitStack
from typing import Any

from temporalio.client import Client

from benchmarks.page import publish
from benchmarks.stage import engine, home_of_jails, model, temporal
from benchmarks.tasks import TASKS

FORMS = {"single calls": "runs", "program": "all"}
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"


async def once(client: Client, queue: str, text: str) -> dict[str, Any]:
    """Run one task and return what its model used."""
    budget = {"max_tool_calls": 2000, "max_llm_cost_usd": None}
    task = {"text": text, "budget": budget}
    name = f"{queue}-{list(TASKS.values()).index(text)}"
    result = await client.execute_workflow("RunTask", task, id=name, task_queue=queue)
    assert result["outcome"] == "completed", result
    (used,) = result["usage"]["models"].values()
    return {
        "model_calls": used["calls"],
        "tokens_in": used.get("input_new_tokens", 0) + used.get("input_cached_tokens", 0),
        "tokens_out": used["output_tokens"],
        "tool_calls": result["usage"]["tool_calls"],
        "answer": result["raw_outputs"],
    }


async def measure() -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    async with temporal() as (client, address, _):
        for form, role in FORMS.items():
            with ExitStack() as stack:
                home = stack.enter_context(home_of_jails())
                await asyncio.to_thread((home / "policy.yaml").write_text, POLICY, encoding="utf-8")
                more = {"BACKSTAY_POLICY": str(home / "policy.yaml"), "BACKSTAY_TASK_QUEUE": role}
                url = stack.enter_context(model("benchmarks.tasks:Tasks"))
                stack.enter_context(engine(home, address, url, role, **more))
                for name, text in TASKS.items():
                    rows.append({"task": name, "form": form, **await once(client, role, text)})
    return {"rows": rows}


def render(result: dict[str, Any]) -> str:
    lines = ["| task | form | model calls | tokens in | tokens out | tool calls |", "|---|---|---|---|---|---|"]
    for row in sorted(result["rows"], key=lambda row: list(TASKS).index(row["task"])):
        numbers = " | ".join(f"{row[key]:,}" for key in ("model_calls", "tokens_in", "tokens_out", "tool_calls"))
        lines.append(f"| {row['task']} | {row['form']} | {numbers} |")
    return "\n".join(lines)


if __name__ == "__main__":
    measured = asyncio.run(measure())
    publish("forms", measured, render(measured))
