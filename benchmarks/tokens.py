"""Count the tokens of the requests of a run, and what of each the next one begins with.

python -m benchmarks.tokens

Four bytes of a request count as a token, as in the scripted model, whatever engine has sent it.
"""

import asyncio
from contextlib import ExitStack
from typing import Any

from temporalio.client import Client

from backstay.testing import ScriptedModel
from benchmarks.page import publish
from benchmarks.reader import Reader
from benchmarks.stage import engine, home_of_jails, temporal

SIZES = (10, 50)
ROLES = {"runs": "without programs", "all": "with programs"}


async def once(client: Client, role: str, steps: int) -> dict[str, Any]:
    """Run one task of so many steps and return what its requests came to."""
    budget = {"max_steps": 2000, "max_tool_calls": 2000, "max_llm_cost_usd": None}
    task = {"text": f"read {steps}", "budget": budget}
    result = await client.execute_workflow("RunTask", task, id=f"{role}-{steps}", task_queue=role)
    assert result["outcome"] == "completed", result
    (used,) = result["usage"]["models"].values()
    cached = used["input_cached_tokens"]
    return {
        "run": ROLES[role],
        "steps": steps,
        "tokens": cached + used["input_new_tokens"],
        "cached": cached,
        "output_tokens": used["output_tokens"],
    }


async def measure() -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    async with temporal() as (client, address, _):
        for role in ROLES:
            async with ScriptedModel(Reader()) as model:
                with ExitStack() as stack:
                    home = stack.enter_context(home_of_jails())
                    # The worker is started from a thread, so that its model can answer meanwhile.
                    opening = engine(home, address, model.base_url, role, BACKSTAY_TASK_QUEUE=role)
                    await asyncio.to_thread(stack.enter_context, opening)
                    rows += [await once(client, role, steps) for steps in SIZES]
    return {"rows": rows}


def render(result: dict[str, Any]) -> str:
    lines = [
        "| run | steps | tokens in | of which the request before had them | a step, on average | tokens out |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        share = f"{100 * row['cached'] / row['tokens']:.0f} %"
        each = f"{row['tokens'] / row['steps']:,.0f}"
        lines.append(
            f"| {row['run']} | {row['steps']} | {row['tokens']:,} | {share} | {each} | {row['output_tokens']:,} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    measured = asyncio.run(measure())
    publish("tokens", measured, render(measured))
