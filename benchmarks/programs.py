"""Measure programs in jails, without Temporal: how fast a program starts, continues, is replayed and ends.

python -m benchmarks.programs [--samples 60] [--paused 200]
"""

import argparse
import asyncio
import json
import os
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from benchmarks.page import publish
from sandbox.images.image import build_image
from sandbox.isolation.nsjail import Nsjail
from sandbox.programs.frames import Round
from sandbox.programs.jail import Jail
from sandbox.programs.sandbox import RoundOutcome, Sandbox

TOOLS = frozenset({"mail.find"})
FIND = "async def find(**others):\n    return await call('mail.find', others)\n"
ENDLESS = "n = 0\nwhile True:\n    await mail.find(n=n)\n    n += 1"
FED_ROUNDS = (10, 100)


class Figures:
    """Collect samples by name and say their spread."""

    def __init__(self) -> None:
        self.samples: dict[str, list[float]] = defaultdict(list)
        self.targets: dict[str, float] = {}

    def add(self, name: str, value: float, target: float | None = None) -> None:
        self.samples[name].append(value)
        if target is not None:
            self.targets[name] = target

    def rows(self) -> list[dict[str, Any]]:
        rows = []
        for name, samples in self.samples.items():
            ordered = sorted(samples)
            row = {"what": name, "n": len(ordered), "min": ordered[0], "median": statistics.median(ordered)}
            row |= {"p95": ordered[int(0.95 * (len(ordered) - 1))], "target": self.targets.get(name)}
            rows.append(row)
        return rows


def start_frame(source: str) -> bytes:
    frame = {"source": source, "bindings": {"mail": {"find": FIND}}, "seed": "s", "now": 1.7e9, "calls_from": 0}
    return json.dumps(frame).encode()


def answer(halted: RoundOutcome) -> bytes:
    results = [{"i": call.i, "ok": call.arguments} for call in halted.calls]
    return json.dumps({"now": 1.7e9 + halted.calls[0].i, "results": results}).encode()


async def advance(
    box: Sandbox, start: bytes, *, key: str | None = None, last: RoundOutcome | None = None
) -> RoundOutcome:
    async def rounds() -> list[Round]:
        return []

    return await box.advance(
        box.image_hash,
        start,
        key=key,
        frame=answer(last) if last else None,
        rounds=rounds,
        tools=TOOLS,
        first_call=last.calls[-1].i + 1 if last else 0,
    )


async def timed(work: Awaitable[Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    value = await work
    return value, (time.perf_counter() - began) * 1000


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what other processes do has no event
        await asyncio.sleep(0.002)


async def first_line(box: Sandbox, figures: Figures, samples: int) -> None:
    """Measure from a ready jail to the first call of a program, and from there to the end of its process."""
    start = start_frame(ENDLESS)
    for _ in range(samples):
        await until(lambda: box.ready == 1)
        halted, took = await timed(advance(box, start))
        figures.add("pool -> first call, ms", took, 2)
        assert halted.jail is not None
        await until(lambda: box.ready == 1)
        _, took = await timed(halted.jail.end())
        figures.add("paused -> gone, ms", took, 50)


async def going_on(box: Sandbox, figures: Figures, samples: int) -> None:
    """Measure from the answers for a paused program to its next calls, and the same by replay."""
    start, journal = start_frame(ENDLESS), []
    await until(lambda: box.ready == 1)
    halted = await advance(box, start)
    for _ in range(max(samples, FED_ROUNDS[-1])):
        journal.append(halted.round)
        key = str(len(journal))
        box.keep(key, halted)
        halted, took = await timed(advance(box, start, key=key, last=halted))
        figures.add("paused -> next call, ms", took, 0.5)
    box.discard(halted)
    for count in FED_ROUNDS:
        for _ in range(max(5, samples // 6)):
            await until(lambda: box.ready == 1)
            _, took = await timed(box.verify(box.image_hash, start, journal[:count], tools=TOOLS))
            figures.add(f"replayed round, of {count}, ms", took / count, 0.3)


async def cold(box: Sandbox, figures: Figures, samples: int) -> None:
    """Measure from no jail to the first call, and how long a computing jail takes to end."""
    for _ in range(samples):
        halted, took = await timed(advance(box, start_frame(ENDLESS)))
        figures.add("cold -> first call, ms", took, 150)
        box.discard(halted)
    for _ in range(samples // 2):
        halted = await advance(box, start_frame("await mail.find()\nwhile True: pass"))
        assert halted.jail is not None
        running = asyncio.create_task(advance(box, b"", key=_kept(box, halted), last=halted))
        await _computing(halted.jail)
        _, took = await timed(halted.jail.end())
        figures.add("computing -> gone, ms", took, 50)
        await asyncio.wait([running])
        running.exception()


async def _computing(jail: Jail) -> None:
    used = jail.cpu_s()
    await until(lambda: jail.cpu_s() > used + 0.02)


def _kept(box: Sandbox, halted: RoundOutcome) -> str:
    box.keep("one", halted)
    return "one"


async def many(box: Sandbox, figures: Figures, paused: int) -> None:
    """Pause many programs at once, continue each one, and measure their memory."""
    start = start_frame(ENDLESS)
    halts = {}
    for number in range(paused):
        halts[str(number)] = halted = await advance(box, start)
        assert halted.jail is not None
        figures.add("anonymous memory of a paused program, MB", halted.jail.anonymous_mb(), 12)
        figures.add("anonymous memory of its nsjail, MB", _anonymous_mb(halted.jail.pid))
        box.keep(str(number), halted)
    figures.add("paused at once", box.kept, paused)
    for key, halted in halts.items():
        next_one, took = await timed(advance(box, start, key=key, last=halted))
        figures.add(f"one of {paused} paused -> next call, ms", took)
        assert next_one.replayed == 0
        box.discard(next_one)


def _anonymous_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:")) / 1024


async def measure(samples: int, paused: int) -> dict[str, Any]:
    figures, busy = Figures(), os.getloadavg()
    with tempfile.TemporaryDirectory() as place:
        # Jails are other users than root, and must reach their image.
        home = Path(place)
        await asyncio.to_thread(home.chmod, 0o755)
        image = await asyncio.to_thread(build_image, "python", home / "images")
        parts: dict[str, Any] = {"nsjail": Nsjail.find(), "image": image, "images": home / "images", "folder": home}
        async with Sandbox(**parts, ready=1) as box:
            await first_line(box, figures, samples)
            await going_on(box, figures, samples)
        async with Sandbox(**parts, ready=0, kept=paused, kept_mb=64.0 * paused) as box:
            await cold(box, figures, samples // 2)
            await many(box, figures, paused)
    machine = {"cpus": os.cpu_count(), "load_before": round(busy[0], 2), "python": platform.python_version()}
    return {"machine": machine, "rows": figures.rows()}


def render(result: dict[str, Any]) -> str:
    lines = ["| what | samples | least | median | p95 | target |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        numbers = " | ".join(f"{row[name]:.3g}" for name in ("min", "median", "p95"))
        lines.append(f"| {row['what']} | {row['n']} | {numbers} | {row['target'] or ''} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=60)
    parser.add_argument("--paused", type=int, default=200)
    given = parser.parse_args()
    measured = asyncio.run(measure(given.samples, given.paused))
    publish("programs", measured, render(measured))
