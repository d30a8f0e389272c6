"""Runs on two workers, one with a wrong clock, while workers, Temporal and Postgres are killed at random moments."""

import asyncio
import random
import traceback
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client

from examples.mailbox.faults import Faults
from tests.crash.case import Case, open_case
from tests.crash.matrix import open_receiver
from tests.crash.temporal_server import client_of, server
from tests.nursery.nursery import Child, Nursery
from tests.ports import own_port
from tests.postgres import PostgresServer, open_postgres

SHAPES = ("reminders", "reminders", "rollback", "undo_run", "plan")
VICTIMS = ("honest worker", "skewed worker", "temporal", "postgres")


@dataclass
class Hosts:
    """Keep the two servers, which come back on what they have written after they are killed."""

    folder: Path
    postgres: PostgresServer
    port: int = field(default_factory=own_port)
    temporal: AsyncExitStack = field(default_factory=AsyncExitStack)
    quiet: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by whoever must not find a server away: to start a run twice would be the test's fault."""

    async def start_temporal(self) -> Client:
        await self.temporal.enter_async_context(server(self.port, self.folder / "temporal.db"))
        return await client_of(self.port)

    async def kill(self, victim: str) -> None:
        async with self.quiet:
            if victim == "temporal":
                await self.temporal.aclose()
                await self.start_temporal()
            else:
                await self.postgres.kill()
                await self.postgres.start()


class Pair:
    """Keep two workers of one case alive: one killed, or that found no server when it began, is raised again."""

    def __init__(self, case: Case, dice: random.Random) -> None:
        self.case = case
        self.skews = (0, 120 * dice.choice((1, -1)))
        self.living: dict[float, Child] = {}
        self.over = False
        self.keeping = [asyncio.create_task(self._keep(skew)) for skew in self.skews]

    async def _keep(self, skew: float) -> None:
        while not self.over:
            # A host of its own: nothing but Postgres and Temporal is shared.
            home = self.case.folder / f"home {skew}"
            self.living[skew] = child = await self.case.worker(skew=skew, BACKSTAY_HOME=str(home))
            await asyncio.shield(child.died)

    def kill(self, victim: str) -> None:
        child = self.living.get(self.skews[VICTIMS.index(victim)])
        if child is not None:
            child.kill()

    async def end(self) -> None:
        self.over = True
        while not all(task.done() for task in self.keeping):
            for child in self.living.values():
                child.kill()
            await asyncio.wait(self.keeping, timeout=0.2)


@dataclass
class Chaos:
    """Drive runs one after the other, several at once, until so many kills were made; count what came of them."""

    client: Client
    nursery: Nursery
    hosts: Hosts
    notify: str
    dice: random.Random
    pairs: set[Pair] = field(default_factory=set)
    over: bool = False
    runs: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    mails: int = 0
    requests: int = 0
    resends_by_word: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)

    async def go(self, victims: Sequence[str], *, at_once: int) -> None:
        """Kill the victims in turn, after a random while each, during runs; then let the runs end."""
        driving = [asyncio.create_task(self._drive()) for _ in range(at_once)]
        for victim in victims:
            await asyncio.sleep(self.dice.uniform(1, 6))
            await self._kill(victim)
        self.over = True
        await asyncio.gather(*driving)

    async def _kill(self, victim: str) -> None:
        self.kills[victim] += 1
        if victim in {"temporal", "postgres"}:
            await self.hosts.kill(victim)
        else:
            for pair in self.pairs:
                pair.kill(victim)

    async def _drive(self) -> None:
        while not self.over:
            self.runs += 1
            number = self.runs
            try:
                await self._run(number)
            except Exception as fault:
                story = "".join(traceback.format_exception(fault))[-3000:]
                self.failures.append({"run": number, "folder": str(self.hosts.folder / str(number)), "fault": story})

    async def _run(self, number: int) -> None:
        shape = self.dice.choice(SHAPES)
        async with self.hosts.quiet:
            database = await self.hosts.postgres.new_database()
        options: dict[str, Any] = {"shape": shape, "ceiling_usd": 4, "notify": self.notify}
        # A mailbox that takes its time, so that many kills find a mail under way.
        options["faults"] = Faults(slow_seconds=0.5)
        options |= {"BACKSTAY_DATABASE_URL": database, "BACKSTAY_PAYLOADS": "database"}
        async with open_case(self.client, self.nursery, self.hosts.folder / str(number), **options) as case:
            case.person.patience_s = 300
            pair = Pair(case, self.dice)
            self.pairs.add(pair)
            try:
                ended = await self._ended(case)
                await case.check(ended)
            finally:
                self.pairs.discard(pair)
                await pair.end()
            self.shapes[shape] += 1
            self.outcomes[ended[-1][1]["outcome"]] += 1
            self.questions += sum(1 for request in case.person.asked.values() if request["kind"] == "outcome")
            self.mails += len(case.mailbox.rows("SELECT id FROM sent"))
            self.requests += case.mailbox.requests("send_email")
            self.resends_by_word += case.person.resent.total()

    async def _ended(self, case: Case) -> list[Any]:
        async with self.hosts.quiet:
            run = await case.start()
        ended = [(run, await case.person.attend(run))]
        if case.shape == "undo_run":
            async with self.hosts.quiet:
                undo = await case.start_undo(run.id)
            ended.append((undo, await case.person.attend(undo)))
        return ended

    def summary(self) -> dict[str, Any]:
        """Return the figures."""
        named = ("runs", "kills", "shapes", "outcomes", "questions", "mails", "requests", "resends_by_word", "failures")
        return {"kills_in_all": self.kills.total(), **{name: getattr(self, name) for name in named}}


@asynccontextmanager
async def open_chaos(nursery: Nursery, folder: Path, seed: str) -> AsyncGenerator[Chaos]:
    """Start a Temporal server and a Postgres of their own; at the end nothing of it is left."""
    async with open_postgres() as postgres, open_receiver() as notify:
        hosts = Hosts(folder, postgres)
        try:
            client = await hosts.start_temporal()
            yield Chaos(client, nursery, hosts, notify, random.Random(seed))
        finally:
            await hosts.temporal.aclose()
