"""Measure many runs at once: when they end, what a worker holds meanwhile, and how long a second user waits.

python -m benchmarks.crowd [--runs 2000] [--others 500]

Each run has two steps, a call of a tool and the end. A run's time is from its start to its end at the server.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.common import Priority

from benchmarks.page import publish
from benchmarks.processes import family_memory_kb
from benchmarks.stage import engine, model, temporal

STARTED_AT_ONCE = 50
AWAITED_AT_ONCE = 100
FEW = 5
"""How many runs the second user starts."""
LONGEST_S = 1800


@dataclass(frozen=True)
class Span:
    """Hold when a run was started and when it ended, in seconds of the server's clock."""

    began: float
    ended: float

    @property
    def took(self) -> float:
        """Return the seconds between."""
        return self.ended - self.began


class Bench:
    """Start runs of users on one worker, and wait for their ends."""

    def __init__(self, client: Client, worker: int) -> None:
        self.client, self.worker = client, worker
        self.number = 0
        self.failed = 0

    async def all_of(self, user: str, count: int) -> list[Span]:
        """Start runs as fast as the server takes them; return what each took."""
        starting, waiting = asyncio.Semaphore(STARTED_AT_ONCE), asyncio.Semaphore(AWAITED_AT_ONCE)

        async def whole() -> Span:
            self.number += 1
            name = f"{user}-{self.number}"
            task = {"text": "read 2", "user_id": user}
            async with starting:
                handle = await self.client.start_workflow(
                    "RunTask", task, id=name, task_queue="backstay", priority=Priority(fairness_key=user)
                )
            async with waiting:
                result = await handle.result()
            self.failed += result["outcome"] != "completed"
            told = await handle.describe()
            assert told.close_time is not None
            return Span(told.start_time.timestamp(), told.close_time.timestamp())

        async with asyncio.timeout(LONGEST_S):
            return await asyncio.gather(*(whole() for _ in range(count)))

    async def memory_mb(self, stop: asyncio.Event) -> float:
        """Return the most that the worker and its children held until the event."""
        most = 0
        while not stop.is_set():
            most = max(most, await asyncio.to_thread(family_memory_kb, self.worker))
            await asyncio.sleep(0.5)
        return most / 1024


async def measure(runs: int, others: int) -> dict[str, Any]:
    """Measure a crowd of one user, and then a few runs of a user beside many of another."""
    async with temporal() as (client, address, _):
        with ExitStack() as stack:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            url = stack.enter_context(model("benchmarks.reader:Reader"))
            bench = Bench(client, stack.enter_context(engine(home, address, url)))
            await bench.all_of("warm", FEW)
            alone = await bench.all_of("bo", FEW)
            stop = asyncio.Event()
            memory = asyncio.create_task(bench.memory_mb(stop))
            began = time.perf_counter()
            spans = await bench.all_of("ana", runs)
            wall = time.perf_counter() - began
            stop.set()
            many = asyncio.create_task(bench.all_of("ana", others))
            await asyncio.sleep(2)
            few = await bench.all_of("bo", FEW)
            await many
            whole = max(span.ended for span in spans) - min(span.began for span in spans)
            median = statistics.median(span.took for span in spans)
            return {
                "runs": runs,
                "failed": bench.failed,
                "runs_per_s": runs / wall,
                "median_s": median,
                "whole_s": whole,
                "ratio": median / whole,
                "memory_mb": await memory,
                "others": others,
                "alone_s": statistics.median(span.took for span in alone),
                "beside_s": statistics.median(span.took for span in few),
            }


def render(result: dict[str, Any]) -> str:
    """Return the table."""
    rows = {
        f"{result['runs']:,} runs at once: that failed": f"{result['failed']}",
        "runs a second": f"{result['runs_per_s']:.1f}",
        "median time of a run / time of all": f"{result['ratio']:.2f}",
        "most memory of the worker, MB": f"{result['memory_mb']:.0f}",
        f"{FEW} runs of a user alone, median s": f"{result['alone_s']:.2f}",
        f"the same beside {result['others']} of another user": f"{result['beside_s']:.2f}",
    }
    return "\n".join(["| what | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def main() -> None:
    """Measure, and rewrite the table of the docs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--others", type=int, default=500)
    parser.add_argument("--only-print", action="store_true")
    options = parser.parse_args()
    result = asyncio.run(measure(options.runs, options.others))
    if options.only_print:
        print(render(result))
    else:
        publish("crowd", result, render(result))


if __name__ == "__main__":
    main()
