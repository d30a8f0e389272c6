"""Ten thousand generated programs, live and replayed, and a million forged frames.

SOAK_PROGRAMS (10000), SOAK_FRAMES (1000000) and SOAK_SEED (the time) shape it; the figures are written as JSON to
SOAK_PROGRAMS_SUMMARY (build/soak-programs.json).
"""

import asyncio
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sandbox.programs.frames import READY
from tests.requirements import promise
from tests.sandbox.forging import Forger, judged
from tests.sandbox.peers import ENDINGS, SAYING, converse, framed, led, wire
from tests.sandbox.playing import opened
from tests.sandbox.tracing import compare

pytestmark = pytest.mark.soak

SETTINGS = os.environ
PROGRAMS = int(SETTINGS.get("SOAK_PROGRAMS", "10000"))
FRAMES = int(SETTINGS.get("SOAK_FRAMES", "1000000"))
SEED = int(SETTINGS.get("SOAK_SEED") or time.time())
SUMMARY = Path(SETTINGS.get("SOAK_PROGRAMS_SUMMARY", "build/soak-programs.json"))

PROGRAMS_AT_ONCE = 3
PEERS_AT_ONCE = 8
MOST_SHOWN = 20
WRITTEN_EVERY = 500


@pytest_asyncio.fixture(scope="module")
async def other(tmp_path_factory):
    """Another worker: its own jails, its own folder, its own copy of the image."""
    async with opened(tmp_path_factory.mktemp("jails")) as made:
        yield made


@promise("programs:generated")
@pytest.mark.timeout(600 + PROGRAMS * 3)
async def test_programs_say_the_same_live_and_replayed_up_to_any_round_on_another_worker(sandbox, other):
    began, failures, kinds, rounds = time.monotonic(), [], Counter(), Counter()
    numbers = iter(range(SEED * 100_000, SEED * 100_000 + PROGRAMS))

    async def lane() -> None:
        for number in numbers:
            try:
                live = await compare(sandbox, other, number)
            except Exception as fault:
                failures.append(f"program {number}: {type(fault).__name__}: {fault}"[:6000])
                continue
            kinds[live.end()["kind"]] += 1
            rounds["all"] += len(live.rounds)
            rounds["most"] = max(rounds["most"], len(live.rounds))
            if kinds.total() % WRITTEN_EVERY == 0:
                write("programs", began, kinds=kinds, rounds=rounds, failures=failures[:MOST_SHOWN])

    await asyncio.gather(*(lane() for _ in range(PROGRAMS_AT_ONCE)))
    write("programs", began, kinds=kinds, rounds=rounds, failures=failures[:MOST_SHOWN])
    assert failures == []
    assert kinds.total() == PROGRAMS


@promise("sandbox:frames-forged")
@pytest.mark.timeout(600 + FRAMES // 200)
async def test_forged_frames_never_lead_to_anything_but_declared_calls_an_end_or_a_refusal(tmp_path):
    began, failures, found = time.monotonic(), [], Counter()
    forger = Forger(f"soak {SEED}")
    for _ in range(FRAMES * 95 // 100):
        kind, frame = forger.frame()
        try:
            found[judged(frame, forger.first_call)] += 1
        except Exception as fault:
            failures.append(f"{kind}, {forger.first_call}: {frame[:500]!r}: {fault!r}"[:2000])
    (tmp_path / "ready").write_bytes(framed(READY))
    read, left = found.total(), iter(range(FRAMES - FRAMES * 95 // 100))

    async def talk(lane: int) -> None:
        forger, said = Forger(f"soak {SEED} {lane}"), tmp_path / f"said-{lane}"
        for number in left:
            if number % 20:
                found.update(await converse(forger))
                continue
            said.write_bytes(wire(forger))
            script = SAYING + forger.dice.choice(ENDINGS)
            found[await led(("/bin/sh", "-c", script, "sh", str(tmp_path / "ready"), str(said)), forger)] += 1

    await asyncio.gather(*map(talk, range(PEERS_AT_ONCE)))
    write("frames", began, read=read, exchanged=found.total() - read, found=found, failures=failures[:MOST_SHOWN])
    assert failures == []
    assert found.total() >= FRAMES


def write(what: str, began: float, **figures: Any) -> None:
    """Add the figures of one test to the file."""
    SUMMARY.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(SUMMARY.read_text(encoding="utf-8")) if SUMMARY.exists() else {}
    minutes = round((time.monotonic() - began) / 60, 1)
    known[what] = {"seed": SEED, "minutes": minutes, **figures}
    SUMMARY.write_text(json.dumps(known, indent=1), encoding="utf-8")
