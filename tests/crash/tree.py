"""A tree of runs that delegate to each other, under a worker that dies: what it must have done when it has ended."""

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from backstay.starting import subrun_id
from backstay.testing import Conversation, Reply
from tests.crash.case import BILL, Case, check_killed, open_case
from tests.crash.points import Point
from tests.engine import assert_no_task_failure
from tests.nursery.nursery import Nursery

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
delegation: {max_depth: 3, max_runs: 8}
"""
PROFILES = "default: {delegation: true}\n"
SMALL = {"r": 2, "r.1": 1}
"""How many sub-runs each run of the tree has; those that are not named have none."""
LARGE = {"r": 4, "r.1": 3, "r.2": 3, "r.3": 3, "r.4": 3, "r.1.1": 1, "r.2.2": 1, "r.4.3": 1}
BUDGET = {"max_steps": 2000, "max_tool_calls": 2000, "max_llm_cost_usd": 50}


def names_in(shape: dict[str, int], node: str = "r") -> list[str]:
    """Return the runs of a tree, each before its sub-runs."""
    below = [name for n in range(1, shape.get(node, 0) + 1) for name in names_in(shape, f"{node}.{n}")]
    return [node, *below]


class Rules:
    """Each run sends a mail, gives the rest to its sub-runs, sends another mail where it had some, and ends."""

    def __init__(self, shape: dict[str, int], *, success: bool) -> None:
        self.shape = shape
        self.success = success

    def __call__(self, talk: Conversation) -> Reply:
        if not talk.tools:
            return Reply(text="It was cut short.")
        node = talk.task.partition("\n")[0].removeprefix("node ")
        children = [f"{node}.{n}" for n in range(1, self.shape.get(node, 0) + 1)]
        sent = len(talk.calls("mail__send_email"))
        if not sent:
            return _send(node, "first")
        if children and not talk.calls("delegate"):
            return Reply(calls=[("delegate", {"task": f"node {child}"}) for child in children])
        if children and sent == 1:
            return _send(node, "last")
        success = self.success or node != "r"
        return Reply(calls=[("finish", {"summary": node, "outputs": {}, "success": success})])


def _send(node: str, which: str) -> Reply:
    mail = {"to": f"{node}@example.com", "subject": which, "body": "b"}
    return Reply(calls=[("mail__send_email", mail)])


class Tree:
    """Attend the runs of one tree until its root has ended, and check all of it."""

    def __init__(self, case: Case, shape: dict[str, int]) -> None:
        self.case = case
        self.shape = shape
        self.ids: dict[str, str] = {}

    async def drive(self) -> dict[str, Any]:
        """Start the root and decide what any of its runs asks; return the Result of the root."""
        root = await self.case.start(text="node r", budget=BUDGET)
        self.ids["r"] = root.id
        ending = asyncio.create_task(self.case.person.attend(root))
        try:
            while not ending.done():
                await asyncio.wait([ending], timeout=0.5)
                await self._look_for_more()
                for node in [] if ending.done() else list(self.ids)[1:]:
                    handle = self.handle(node)
                    for request in await self.case.person.pending(handle):
                        await self.case.person.decide(handle, request)
            return ending.result()
        finally:
            ending.cancel()

    def handle(self, node: str) -> WorkflowHandle[Any, Any]:
        return self.case.client.get_workflow_handle(self.ids[node])

    async def _look_for_more(self) -> None:
        """Name the sub-runs of the runs that have begun; some of them may not have."""
        for node, workflow_id in list(self.ids.items()):
            if not self.shape.get(node) or f"{node}.1" in self.ids:
                continue
            with suppress(RPCError):
                described = await self.case.client.get_workflow_handle(workflow_id).describe()
                first = described.raw_description.workflow_execution_info.first_run_id or described.run_id
                for n in range(1, self.shape[node] + 1):
                    self.ids[f"{node}.{n}"] = subrun_id(workflow_id, first, n)

    async def check(self, result: dict[str, Any]) -> None:
        """Every mail was sent once and recalled once, last first; the sums of all budgets are exact."""
        await self._look_for_more()
        names = names_in(self.shape)
        assert sorted(self.ids) == sorted(names)
        results = {node: await self.handle(node).result() for node in names}
        for node in names:
            assert_no_task_failure(await self.handle(node).fetch_history())
        self.check_mail(names)
        self.check_sums(results)
        self.check_undone(result)

    def check_mail(self, names: list[str]) -> None:
        wanted = Counter(f"{node}@example.com" for node in names)
        wanted.update(f"{node}@example.com" for node in names if self.shape.get(node))
        sent = Counter(row[0] for row in self.case.mailbox.rows("SELECT recipient FROM sent"))
        assert sent == wanted, sent

    def check_sums(self, results: dict[str, dict[str, Any]]) -> None:
        """What each run counts is its own and all that its sub-runs count, and no more was charged than was given."""
        own = {node: _figures(result) for node, result in results.items()}
        with sqlite3.connect(self.case.folder / "home/backstay.db") as store:
            rows = store.execute("SELECT workflow_id, spent, share FROM subruns").fetchall()
        spent = {row[0]: json.loads(row[1]) for row in rows}
        shares = {row[0]: json.loads(row[2]) for row in rows}
        assert len(rows) == len(results) - 1
        for node, result in results.items():
            children = [f"{node}.{n}" for n in range(1, self.shape.get(node, 0) + 1)]
            assert result["usage"].get("delegated_steps", 0) == sum(own[child]["steps"] for child in children)
            assert own[node]["micro"] >= sum(own[child]["micro"] for child in children)
            for child in children:
                name = self.ids[child]
                assert spent[name]["micro"] == own[child]["micro"] <= shares[name]["micro"]
            together = sum(shares[self.ids[child]]["micro"] for child in children)
            assert together <= round(result["budget"]["max_llm_cost_usd"] * 1_000_000)
        charged, billed = own["r"]["micro"], self.case.model.billed_micro(BILL)
        assert billed <= charged <= BUDGET["max_llm_cost_usd"] * 1_000_000, (billed, charged)
        models = results["r"]["usage"]["models"].values()
        # The bill of each call is rounded up; what was lost with a worker is charged, and no model is named for it.
        known, calls = sum(round(model["cost_usd"] * 1e6) for model in models), sum(model["calls"] for model in models)
        assert known <= billed + calls, (known, billed, calls)

    def check_undone(self, result: dict[str, Any]) -> None:
        """The root has undone all of the tree in the order of the store's clock, last first."""
        with sqlite3.connect(self.case.folder / "home/backstay.db") as store:
            query = "SELECT effect_id, state FROM effects WHERE undo = 0 ORDER BY first_sent_at, effect_id"
            rows = store.execute(query).fetchall()
        states = Counter(state for _, state in rows)
        parked = sum(effect["state"] == "parked" for effect in result["undone"])
        assert states["compensated"] + parked == len(rows), (states, result["undone"])
        order = [effect["effect"] for effect in result["undone"]]
        assert order == sorted(order, reverse=True), order
        by_effect = dict(self.case.mailbox.rows("SELECT effect_id, id FROM sent"))
        asked = self.case.mailbox.rows("SELECT arguments FROM requests WHERE tool = 'recall_email' ORDER BY rowid")
        recalled = [json.loads(row[0])["message_id"] for row in asked]
        wanted = [f"mail-{by_effect[effect]}" for effect, _ in rows[::-1] if effect in by_effect]
        assert recalled == wanted, (recalled, wanted)
        assert result["outcome"] == ("rollback_failed" if parked else "rolled_back"), result


def _figures(result: dict[str, Any]) -> dict[str, int]:
    usage = result["usage"]
    steps = usage["steps"] - usage["lifelines"] + usage.get("delegated_steps", 0)
    return {"micro": round(usage["llm_cost_usd"] * 1e6), "steps": steps}


@asynccontextmanager
async def open_tree(
    client: Client, nursery: Nursery, folder: Path, shape: dict[str, int], **more: Any
) -> AsyncGenerator[Tree]:
    """Lay out a tree of runs, of which the root takes all back at its end."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "profiles.yaml").write_text(PROFILES, encoding="utf-8")
    settings = {"BACKSTAY_POLICY": str(folder / "policy.yaml"), "BACKSTAY_PROFILES": str(folder / "profiles.yaml")}
    rules = Rules(shape, success=False)
    async with open_case(client, nursery, folder, shape="tree", rules=rules, **settings, **more) as case:
        case.person.timeout_s = 600
        yield Tree(case, shape)


async def killed_at(tree: Tree, point: Point) -> None:
    """Drive a tree whose first worker dies at the point, and check everything."""
    await check_killed(tree.case, point, tree.drive, tree.check, within_s=200)
