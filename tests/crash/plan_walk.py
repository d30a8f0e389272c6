"""The random walk of plans while their worker, a process of its own, is killed again and again."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from temporalio.client import WorkflowQueryFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.service import RPCError

from backstay.plans.plan_run import ENDED
from backstay.settings import Settings
from tests.crash.case import Case, open_case
from tests.e2e.plans.plan_walk import POLICY, SEED, Crowd, Walked, profiles_of, random_strolls, toolbox_in
from tests.engine import Engine, Scripts

LOST = (RPCError, WorkflowQueryFailedError, WorkflowUpdateRPCTimeoutOrCancelledError)
"""How a look or a word ends whose worker dies."""
SLOW_S = 0.6
SENT_BY_WORD = {"make", "post", "lose"}
"""The tools that are not idempotent."""


@dataclass
class Killer:
    """Raise workers and kill them, at any moment or amid a step; count the kills that met plans which had not ended."""

    case: Case
    crowd: Crowd
    folder: Path
    most: int
    dice: random.Random = field(default_factory=lambda: random.Random(SEED))
    kills: int = 0
    amid_steps: int = 0
    states: Counter[str] = field(default_factory=Counter)

    async def go_on(self):
        """Kill as often as is asked for, and leave a worker that lives."""
        while self.kills < self.most:
            doomed = await self.case.worker()
            await doomed.ready()
            await asyncio.sleep(self.dice.uniform(0, 5))
            # The last kill is amid a step where none was.
            last_chance = self.kills == self.most - 1 and not self.amid_steps
            if self.dice.random() < 0.6 or last_chance:
                await self._step_running()
            plans = [plan for stroll in self.crowd.going for plan in stroll.seen.values()]
            met = Counter(plan["state"] for plan in plans if plan["state"] not in ENDED)
            doomed.kill()
            async with asyncio.timeout(150):
                assert await asyncio.shield(doomed.died) == -9, doomed.said()
            running = list(self.folder.glob("*.running"))
            for mark in running:
                mark.unlink()
            if met:
                self.kills += 1
                self.states += met
                self.amid_steps += bool(running)
        await self.case.worker()

    async def _step_running(self):
        """Wait until a step is under way, and a part of its time; on a busy machine the step may be over then."""
        part_s = self.dice.uniform(0, SLOW_S)
        while not (begun := set(self.folder.glob("*.running"))) or not await self._still(begun, part_s):
            await asyncio.sleep(0.02)

    async def _still(self, begun, seconds):
        """Return whether one of these steps is still under way after so many seconds."""
        await asyncio.sleep(seconds)
        return any(mark.exists() for mark in begun)


async def walked_under_kills(temporal, nursery, folder, *, walks, kills):
    """Let so many runs walk to their ends under so many kills at most; return the runs, and who killed."""
    scripts, toolbox = Scripts(), toolbox_in(folder)
    strolls = random_strolls(walks, scripts, folder, Walked())
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "profiles.yaml").write_text(profiles_of(strolls), encoding="utf-8")
    environment = {
        "BACKSTAY_TOOLBOX": str(toolbox),
        "BACKSTAY_POLICY": str(folder / "policy.yaml"),
        "BACKSTAY_PROFILES": str(folder / "profiles.yaml"),
        "WALK_SLOW_SECONDS": str(SLOW_S),
    }
    for stroll in strolls:
        stroll.patience = timedelta(seconds=5)
    async with open_case(temporal, nursery, folder / "case", rules=scripts, **environment) as case:
        settings = Settings.load(
            None, home=folder / "case" / "home", task_queue=case.environment["BACKSTAY_TASK_QUEUE"]
        )
        opened = Engine(temporal, settings, case.mailbox, case.model)
        crowd = Crowd(strolls, lost=LOST)
        killer = Killer(case, crowd, folder, kills)
        killing = asyncio.create_task(killer.go_on())
        try:
            while not crowd.over:
                await crowd.round(opened)
                if killing.done():
                    await killing
        finally:
            killing.cancel()
    return strolls, killer


def sent_too_often(stroll):
    """Return the calls that were made more often than a person said: those that are not idempotent, by key."""
    sent = {
        log.stem: log.stat().st_size
        for log in stroll.folder.glob(f"*-{stroll.label}-*.log")
        if log.stem.split("-")[1] in SENT_BY_WORD
    }
    return {key: count for key, count in sent.items() if count > 1 + stroll.resends[key]}
