"""Random plans against a model of a few lines: outputs, order, states and what is undone."""

import asyncio
import json
import random
from itertools import groupby

import pytest
import pytest_asyncio

from tests.engine import Scripts, ended, engine
from tests.requirements import promise
from tests.sizes import sized

PLANS = sized(100, 5)
AT_ONCE = 10
WORK = """
from pathlib import Path
from typing import Any

from backstay import ToolContext, ToolError, tool

FOLDER = Path(__file__).parent


def note(plan: str, line: str) -> int:
    with (FOLDER / f"{plan}.log").open("a") as file:
        file.write(line + "\\n")
    return (FOLDER / f"{plan}.log").read_text().splitlines().count(line)


def done(what: str, plan: str, key: str, fail: int) -> dict[str, Any]:
    if note(plan, f"{what} {key}") <= fail:
        raise ToolError("not this time")
    return {"id": f"{what}-{key}", "plan": plan, "key": key}


def unmake(result: dict[str, Any], arguments: dict[str, Any], context: ToolContext) -> None:
    note(result["plan"], f"undo {result['key']}")


@tool(safety="read_only")
def look(plan: str, key: str, fail: int = 0, given: Any = None) -> dict[str, Any]:
    \"\"\"Look at something.\"\"\"
    return done("look", plan, key, fail)


@tool(safety="write_safe", undo=unmake)
def make(plan: str, key: str, fail: int = 0, given: Any = None) -> dict[str, Any]:
    \"\"\"Make something.\"\"\"
    return done("make", plan, key, fail)


@tool(safety="write_safe", undo=unmake)
def place(plan: str, key: str, fail: int = 0, given: Any = None) -> dict[str, Any]:
    \"\"\"Make something, once for each effect id.\"\"\"
    return done("place", plan, key, fail)
"""
TOOLS = {
    "python": {"work": {"module": "work.py"}},
    "providers": {"work": {"tools": {"place": {"idempotent": True}}}},
}


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan_model")
    (folder / "work.py").write_text(WORK, encoding="utf-8")
    toolbox = folder / "toolbox.json"
    toolbox.write_text(json.dumps(TOOLS), encoding="utf-8")
    policy = "default: {read_only: allow, write_safe: allow, restricted_write: ask}"
    async with engine(temporal, folder, Scripts(), policy=policy, toolbox=toolbox) as found:
        yield found, folder


def random_plan(chance, name):
    """Return a plan of one to eight steps, some of which fail, depend on others or belong to groups."""
    steps = []
    for index in range(chance.randint(1, 8)):
        tool = chance.choice(["look", "look", "make", "make", "place"])
        arguments = {"plan": name, "key": str(index), "fail": chance.choice([0] * 6 + [1, 9])}
        if index and chance.random() < 0.4:
            arguments["given"] = f"${{steps.{chance.randrange(index)}.result.id}}"
        step = {"tool": f"work.{tool}", "arguments": arguments}
        if chance.random() < 0.3:
            step["continue_on_failure"] = True
        if tool != "look" and chance.random() < 0.4:
            step["transactional"] = chance.choice(["a", "b"])
        if tool != "make" and arguments["fail"] == 1 and chance.random() < 0.7:
            step["retries"] = 1
        steps.append(step)
    plan = {"id": name, "steps": steps}
    if chance.random() < 0.4:
        plan |= {"continue_on_failure": True, "allowed_side_effects": chance.choice([[], ["work.make"], ["work.*"]])}
    return plan


class Model:
    """What must become of a plan, step by step."""

    def __init__(self, plan):
        self.plan = plan
        self.steps = plan["steps"]
        self.status = ["pending"] * len(self.steps)
        self.reason = [""] * len(self.steps)
        self.log = []
        self.failed = not self.carried_out()
        if self.failed:
            self.reason = [
                "stopped" if status == "pending" and not reason else reason
                for status, reason in zip(self.status, self.reason, strict=True)
            ]
            self.undo(range(len(self.steps)))

    def carried_out(self):
        """Return whether the plan comes to its end; reads beside each other run together, and all of them are made."""
        index = 0
        while index < len(self.steps):
            wave = [index]
            while self.reads(wave[0]) and wave[-1] + 1 < len(self.steps) and self.joins(wave):
                wave.append(wave[-1] + 1)
            going_on = [self.makes(step) for step in wave]
            if not all(going_on):
                return False
            index = wave[-1] + 1
        return True

    def reads(self, index):
        return self.steps[index]["tool"].endswith("look")

    def joins(self, wave):
        needed = self.needed(wave[-1] + 1)
        return self.reads(wave[-1] + 1) and (
            needed is None or (needed not in wave and self.status[needed] in {"success", "rolled_back"})
        )

    def needed(self, index):
        given = self.steps[index]["arguments"].get("given")
        return None if given is None else int(given.split(".")[1])

    def makes(self, index):
        """Make one step; return whether the plan goes on."""
        step = self.steps[index]
        bears = step.get("continue_on_failure", False) or self.plan.get("continue_on_failure", False)
        group = step.get("transactional")
        others = [i for i in range(len(self.steps)) if group and self.steps[i].get("transactional") == group]
        needed = self.needed(index)
        if needed is not None and self.status[needed] not in {"success", "rolled_back"}:
            self.reason[index] = "dependency_failed"
            self.undo(others)
            return True
        if any(self.status[i] == "failed" or self.reason[i] == "dependency_failed" for i in others if i != index):
            self.reason[index] = "dependency_failed"
            return True
        loud = [i for i in range(index) if self.status[i] == "failed"]
        loud = [i for i in loud if not self.steps[i].get("continue_on_failure")]
        writes = not step["tool"].endswith("look")
        allowed = self.plan.get("allowed_side_effects", [])
        if loud and writes and step["tool"] not in allowed and "work.*" not in allowed:
            self.reason[index] = "stopped"
            return True
        what = step["tool"].partition(".")[2]
        tries = min(step["arguments"]["fail"], step.get("retries", 0)) + 1
        self.log += [f"{what} {index}"] * tries
        if step["arguments"]["fail"] < tries:
            self.status[index] = "success"
            return True
        self.status[index] = "failed"
        self.undo(others)
        return bears

    def undo(self, indexes):
        for index in sorted(indexes, reverse=True):
            if self.status[index] == "success" and not self.steps[index]["tool"].endswith("look"):
                self.status[index] = "rolled_back"
                self.log.append(f"undo {index}")


def without_order_of_reads(log):
    """Return the log with reads that no write stands between in a fixed order; those of one wave run together."""
    groups = [(reads, list(lines)) for reads, lines in groupby(log, lambda line: line.startswith("look"))]
    return [line for reads, lines in groups for line in (sorted(lines) if reads else lines)]


@promise("plans:model")
@pytest.mark.timeout(400)
async def test_random_plans_come_to_what_a_simple_model_says(opened):
    engine_, folder = opened
    chance = random.Random(20261128)
    gate = asyncio.Semaphore(AT_ONCE)

    async def carried_out(plan):
        async with gate:
            handle = await engine_.start({"plan": plan})
            return await ended(handle, 120), await handle.query("plan")

    plans = [random_plan(chance, f"plan{number}") for number in range(PLANS)]
    seen = set()
    for plan, (result, shown) in zip(plans, await asyncio.gather(*map(carried_out, plans)), strict=True):
        model = Model(plan)
        log = folder / f"{plan['id']}.log"
        happened = log.read_text().splitlines() if log.exists() else []
        about = json.dumps(plan)
        assert without_order_of_reads(happened) == without_order_of_reads(model.log), about
        assert [step["status"] for step in shown["steps"]] == model.status, about
        assert [step["reason"] for step in shown["steps"]] == model.reason, about
        undone = any(line.startswith("undo") for line in model.log)
        rolled = "rolled_back" if model.failed and undone else "failed" if model.failed else "completed"
        assert result["outcome"] == rolled, about
        outputs = result["raw_outputs"]["steps"]
        assert [(output["idx"], output["status"]) for output in outputs] == list(enumerate(model.status)), about
        seen |= {result["outcome"], shown["state"], *model.status, *model.reason}
    assert seen >= {
        *["completed", "failed", "rolled_back", "COMPLETED", "FAILED", "ROLLBACK_COMPLETED"],
        *["success", "pending", "dependency_failed", "stopped"],
    }
