"""Measure a step: wall, CPU, history, memory and replay, against the bare floor in one interleaved run.

python -m benchmarks.steps [--rounds 3] [--parked 50]
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.worker import Replayer, UnsandboxedWorkflowRunner

from backstay.client.connecting import DATA_CONVERTER
from benchmarks.floor import Floor
from benchmarks.page import publish
from benchmarks.processes import cpu_seconds, memory_kb
from benchmarks.stage import engine, floor, model, temporal
from workflows import WORKFLOWS

SIZES = (10, 50, 200)
SAMPLE_STEPS = 100


class Bench:
    """Run the same number of steps on the floor and on the engine, in turns."""

    def __init__(self, client: Client, server: int, floor: int, engine: int) -> None:
        self.client = client
        self.pids = {"server": server, "floor": floor, "engine": engine}
        self.number = 0

    async def once(self, kind: str, steps: int) -> dict[str, Any]:
        """Run enough runs of this many steps, one after the other, that a clock tick does not matter."""
        before = {part: cpu_seconds(pid) for part, pid in self.pids.items()}
        began = time.perf_counter()
        handles = [await self._run(kind, steps) for _ in range(max(1, SAMPLE_STEPS // steps))]
        total = steps * len(handles)
        wall = time.perf_counter() - began
        used = {part: cpu_seconds(pid) - before[part] for part, pid in self.pids.items()}
        history = await handles[0].fetch_history()
        return {
            "kind": kind,
            "steps": steps,
            "wall_ms": 1000 * wall / total,
            "cpu_worker_ms": 1000 * used[kind] / total,
            "cpu_server_ms": 1000 * used["server"] / total,
            "events": len(history.events) / steps,
            "bytes": sum(event.ByteSize() for event in history.events) / steps,
            "history": history,
        }

    async def _run(self, kind: str, steps: int) -> WorkflowHandle[Any, Any]:
        self.number += 1
        name = f"{kind}-{steps}-{self.number}"
        if kind == "floor":
            handle = await self.client.start_workflow(Floor.run, steps, id=name, task_queue="floor")
            await handle.result()
            return handle
        budget = {"max_steps": 2000, "max_tool_calls": 2000, "max_llm_cost_usd": None}
        task = {"text": f"read {steps}", "budget": budget}
        handle = await self.client.start_workflow("RunTask", task, id=name, task_queue="backstay")
        result = await handle.result()
        assert result["outcome"] == "completed", result
        return handle

    async def parked(self, count: int) -> float:
        before = memory_kb(self.pids["engine"])
        handles = [
            await self.client.start_workflow("RunTask", {"text": "park 1"}, id=f"parked-{i}", task_queue="backstay")
            for i in range(count)
        ]
        async with asyncio.timeout(300):
            for handle in handles:
                while not await handle.query("pending"):  # noqa: ASYNC110  # a query has nothing to wait on
                    await asyncio.sleep(0.2)
        per_run = (memory_kb(self.pids["engine"]) - before) / count
        for handle in handles:
            await handle.terminate()
        return per_run


async def replay_ms(workflows: list[Any], history: WorkflowHistory) -> float:
    replayer = Replayer(workflows=workflows, data_converter=DATA_CONVERTER, workflow_runner=UnsandboxedWorkflowRunner())
    times = []
    for _ in range(5):
        began = time.perf_counter()
        await replayer.replay_workflow(history)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def table(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for steps in SIZES:
        medians = {
            kind: {
                key: statistics.median(run[key] for run in runs if run["kind"] == kind and run["steps"] == steps)
                for key in ("wall_ms", "cpu_worker_ms", "cpu_server_ms", "events", "bytes")
            }
            for kind in ("floor", "engine")
        }
        floor, engine = medians["floor"], medians["engine"]
        cpu = {kind: m["cpu_worker_ms"] + m["cpu_server_ms"] for kind, m in medians.items()}
        rows.append(
            {
                "steps": steps,
                "floor": floor,
                "engine": engine,
                "wall_ratio": engine["wall_ms"] / floor["wall_ms"],
                "cpu_ratio": cpu["engine"] / cpu["floor"],
            }
        )
    return rows


async def measure(rounds: int, parked: int) -> dict[str, Any]:
    async with temporal() as (client, address, server):
        with ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            floor_pid = stack.enter_context(floor(address))
            url = stack.enter_context(model("benchmarks.reader:Reader"))
            bench = Bench(client, server, floor_pid, stack.enter_context(engine(home, address, url)))
            for kind in ("floor", "engine"):
                await bench.once(kind, 5)
            runs = [
                await bench.once(kind, steps) for _ in range(rounds) for steps in SIZES for kind in ("floor", "engine")
            ]
            kb = await bench.parked(parked)
        fifty = {run["kind"]: run["history"] for run in runs if run["steps"] == 50}
        replays = {
            "floor": await replay_ms([Floor], fifty["floor"]),
            "engine": await replay_ms(WORKFLOWS, fifty["engine"]),
        }
    return {"rows": table(runs), "parked_kb": kb, "parked_runs": parked, "replay_50_ms": replays, "rounds": rounds}


def render(result: dict[str, Any]) -> str:
    lines = [
        "| steps | wall ms, floor | engine | ratio | CPU ms, floor | engine | ratio | events | bytes |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        floor, engine = row["floor"], row["engine"]
        cpu = [part["cpu_worker_ms"] + part["cpu_server_ms"] for part in (floor, engine)]
        cells = [
            f"{row['steps']}",
            f"{floor['wall_ms']:.1f}",
            f"{engine['wall_ms']:.1f}",
            f"{row['wall_ratio']:.2f}",
            f"{cpu[0]:.1f}",
            f"{cpu[1]:.1f}",
            f"{row['cpu_ratio']:.2f}",
            f"{engine['events']:.1f}",
            f"{engine['bytes']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    replays = result["replay_50_ms"]
    ratio = replays["engine"] / replays["floor"]
    lines += [
        "",
        f"Memory per parked run: {result['parked_kb']:.0f} kB, over {result['parked_runs']} runs.",
        f"Replay of a 50-step history: {replays['engine']:.0f} ms; floor {replays['floor']:.0f} ms; ratio {ratio:.2f}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parked", type=int, default=50)
    options = parser.parse_args()
    result = asyncio.run(measure(options.rounds, options.parked))
    publish("steps", result, render(result))


if __name__ == "__main__":
    main()
