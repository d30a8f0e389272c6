"""Runs of random shape whose workers are killed again and again, at random points and after random delays.

SOAK_KILLS (160 for each kind of store), SOAK_MINUTES (40), SOAK_AT_ONCE (10) and SOAK_SEED (the time) shape it; the
figures are written as JSON to SOAK_SUMMARY (build/soak.json), which names the kind of store too.
"""

import asyncio
import json
import os
import random
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from tests.crash.case import Case, open_case
from tests.crash.matrix import open_receiver, settings_of
from tests.crash.points import MORE_POINTS, POINTS
from tests.nursery.nursery import Nursery
from tests.postgres import PostgresServer
from tests.requirements import promise

pytestmark = pytest.mark.soak

SETTINGS = os.environ
KILLS = int(SETTINGS.get("SOAK_KILLS", "160"))
MINUTES = float(SETTINGS.get("SOAK_MINUTES", "40"))
AT_ONCE = int(SETTINGS.get("SOAK_AT_ONCE", "10"))
SEED = SETTINGS.get("SOAK_SEED") or str(int(time.time()))
SUMMARY = Path(SETTINGS.get("SOAK_SUMMARY", "build/soak.json"))

SHAPES = ("reminders", "reminders", "lost", "rollback", "undo_run", "plan")
PLACES = sorted({(point.when, point.place) for point in (*POINTS, *MORE_POINTS)} - {("during", "model.request")})
MOST_KILLS_A_RUN = 6


@dataclass
class Soak:
    """Count."""

    client: Client
    nursery: Nursery
    notify: str
    folder: Path
    ends_at: float
    postgres: PostgresServer | None
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    mails: int = 0
    requests: int = 0
    resends_by_word: int = 0
    billed_micro: int = 0
    charged_micro: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    async def go_on(self) -> None:
        """Do one run after the other until there were enough kills or the time is over."""
        while self.kills.total() < KILLS and time.monotonic() < self.ends_at:
            self.runs += 1
            number = self.runs
            try:
                await self.run(number, random.Random(f"{SEED}-{number}"))
            except Exception as fault:
                story = "".join(traceback.format_exception(fault))[-3000:]
                self.failures.append({"run": number, "folder": str(self.folder / str(number)), "fault": story})

    async def run(self, number: int, dice: random.Random) -> None:
        shape = dice.choice(SHAPES)
        transport = "stdio" if shape == "lost" else dice.choice(("http", "http", "stdio"))
        options: dict[str, Any] = {"shape": shape, "transport": transport, "ceiling_usd": 4, "notify": self.notify}
        if self.postgres is not None:
            options |= await settings_of(self.postgres)
        async with open_case(self.client, self.nursery, self.folder / str(number), **options) as case:
            case.person.timeout_s = 500
            driving = asyncio.create_task(case.drive())
            try:
                for _ in range(dice.randint(2, MOST_KILLS_A_RUN)):
                    if not driving.done():
                        await self.kill(case, driving, dice)
                await case.worker()
                ended = await driving
            finally:
                driving.cancel()
            await case.check(ended)
            self.shapes[shape] += 1
            self.outcomes[ended[-1][1]["outcome"]] += 1
            self.count(case, ended[0][1])

    async def kill(self, case: Case, driving: "asyncio.Task[Any]", dice: random.Random) -> None:
        """Raise a worker and see it killed: at a random point, or after a random delay if that comes first."""
        when, place = dice.choice(PLACES)
        spec = f"{when}:{place}:{dice.choice((1, 1, 1, 2, 3))}"
        doomed = await case.worker(spec)
        delay = dice.choice((45, dice.uniform(2, 20)))
        await asyncio.wait([doomed.died, driving], timeout=delay, return_when=asyncio.FIRST_COMPLETED)
        by_itself = doomed.died.done()
        await doomed.end()
        assert doomed.died.result() == -9, doomed.said()
        self.kills[f"{when}:{place}" if by_itself else "after a delay"] += 1

    def count(self, case: Case, result: dict[str, Any]) -> None:
        self.questions += sum(1 for request in case.person.asked.values() if request["kind"] == "outcome")
        self.mails += len(case.mailbox.rows("SELECT id FROM sent"))
        self.requests += case.mailbox.requests("send_email")
        self.resends_by_word += case.person.resent.total()
        self.billed_micro += case.model.billed_micro({"scripted": (1.0, 0.1, 4.0)})
        self.charged_micro += round(result["usage"]["llm_cost_usd"] * 1_000_000)

    def summary(self, began: float) -> dict[str, Any]:
        figures = {name: value for name, value in vars(self).items() if isinstance(value, int | list | Counter)}
        return {
            "seed": SEED,
            "minutes": round((time.monotonic() - began) / 60, 1),
            "kills_in_all": self.kills.total(),
            "points_hit": len(self.kills),
            **figures,
        }


def write(summary: dict[str, Any], kind: str) -> None:
    path = SUMMARY.with_stem(f"{SUMMARY.stem}-{kind}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(summary, indent=1), encoding="utf-8")


@promise("recovery:effect-soak")
@pytest.mark.timeout(int(MINUTES * 60) + 900)
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_runs_end_and_every_mail_is_sent_once_however_often_their_workers_are_killed(
    temporal, nursery, postgres, tmp_path, kind
):
    began = time.monotonic()
    async with open_receiver() as notify:
        given = postgres if kind == "postgres" else None
        soak = Soak(temporal, nursery, notify, tmp_path, began + MINUTES * 60, given)
        await asyncio.gather(*(soak.go_on() for _ in range(AT_ONCE)))
    summary = soak.summary(began)
    write(summary, kind)
    assert soak.failures == []
    assert soak.kills.total() >= KILLS, f"the time was over after {soak.kills.total()} kills; give SOAK_MINUTES more"
