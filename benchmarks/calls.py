"""Measure a call of a program through Temporal against the bare floor of the same shape, in one interleaved run.

python -m benchmarks.calls [--rounds 5]
"""

import argparse
import asyncio
import statistics
import time
from collections import defaultdict
from contextlib import ExitStack
from typing import Any

from temporalio.client import Client

from benchmarks.page import publish
from benchmarks.stage import engine, floor, home_of_jails, model, temporal

CALLS = 100
ASIDE = "floor-aside"
"""Programs run in a process of their own, and so do the activities that replace them on the floor."""
SHAPES = {"one after the other": ("program", CALLS, 1), "gathered": ("gather", 1, CALLS)}


class Bench:
    """Run the same number of calls on the floor and in a program."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.number = 0

    async def once(self, kind: str, shape: str) -> dict[str, float]:
        """Return what one call took, the beginning and the end of the run included."""
        word, steps, together = SHAPES[shape]
        self.number += 1
        name = f"{kind}-{word}-{self.number}"
        began = time.perf_counter()
        if kind == "floor":
            handle = await self.client.start_workflow(
                "Floor", args=[steps, together, ASIDE], id=name, task_queue="floor"
            )
            await handle.result()
        else:
            budget = {"max_tool_calls": 2000, "max_llm_cost_usd": None}
            task = {"text": f"{word} {CALLS}", "budget": budget}
            handle = await self.client.start_workflow("RunTask", task, id=name, task_queue="backstay")
            result = await handle.result()
            assert result["usage"]["tool_calls"] == CALLS, result
        took = time.perf_counter() - began
        history = await handle.fetch_history()
        return {
            "wall_ms": 1000 * took / CALLS,
            "events": len(history.events) / CALLS,
            "bytes": sum(event.ByteSize() for event in history.events) / CALLS,
        }


async def measure(rounds: int) -> dict[str, Any]:
    samples: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    async with temporal() as (client, address, _):
        with ExitStack() as stack:
            stack.enter_context(floor(address))
            stack.enter_context(floor(address, ASIDE))
            url = stack.enter_context(model("benchmarks.reader:Reader"))
            home = stack.enter_context(home_of_jails())
            stack.enter_context(engine(home, address, url, "all"))
            bench = Bench(client)
            for number in range(rounds + 1):
                for shape in SHAPES:
                    for kind in ("floor", "engine"):
                        sample = await bench.once(kind, shape)
                        if number:
                            samples[shape, kind].append(sample)
    return {"rows": [_row(shape, samples) for shape in SHAPES], "calls": CALLS, "rounds": rounds}


def _row(shape: str, samples: dict[tuple[str, str], list[dict[str, float]]]) -> dict[str, Any]:
    row: dict[str, Any] = {"shape": shape}
    for kind in ("floor", "engine"):
        of_kind = samples[shape, kind]
        row[kind] = {name: statistics.median(sample[name] for sample in of_kind) for name in of_kind[0]}
    return row | {"wall_ratio": row["engine"]["wall_ms"] / row["floor"]["wall_ms"]}


def render(result: dict[str, Any]) -> str:
    lines = [
        f"| {result['calls']} calls | wall ms per call, floor | engine | ratio | events per call | bytes per call |",
        "|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        floor_ms, ours = row["floor"]["wall_ms"], row["engine"]
        numbers = f"{ours['wall_ms']:.1f} | {row['wall_ratio']:.2f} | {ours['events']:.1f} | {ours['bytes']:.0f}"
        lines.append(f"| {row['shape']} | {floor_ms:.1f} | {numbers} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    measured = asyncio.run(measure(parser.parse_args().rounds))
    publish("calls", measured, render(measured))
