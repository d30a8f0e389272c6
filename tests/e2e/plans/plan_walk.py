"""Drive one run with plans at random, and hold every state that it shows against the tables of edges."""

import asyncio
import json
import os
import random
import uuid
from collections import Counter, defaultdict
from datetime import timedelta
from itertools import pairwise
from typing import Any, get_args

from temporalio.client import WorkflowUpdateFailedError

from backstay.plans.plan_run import PLAN_EDGES, STEP_EDGES, PlanReason, PlanState, StepStatus
from backstay.testing import Reply
from tests.engine import assert_no_task_failure

POLICY = """
default: {read_only: allow, write_safe: allow, restricted_write: ask}
deny: [{tool: "work.*", when: {key: {starts_with: deny}}}]
ask:
  - {tool: "work.*", when: {key: {starts_with: ask}}}
  - {tool: "work.*", when: {key: {starts_with: late}}, timeout: 1s}
  - {tool: "work.*", when: {key: {starts_with: lapse}}, timeout: 1s, on_expiry: fail}
"""
WORK = '''
import os
import time
from pathlib import Path
from typing import Any

from backstay import ToolContext, ToolError, tool

FOLDER = Path(__file__).parent
SLOW_S = float(os.environ.get("WALK_SLOW_SECONDS", "0"))


def note(key: str) -> int:
    with (FOLDER / f"{key}.log").open("a") as file:
        file.write("x")
    return (FOLDER / f"{key}.log").stat().st_size


def done(key: str, fail: int, hold: str) -> dict[str, Any]:
    # It stays where the worker dies meanwhile.
    mark = FOLDER / f"{key}.running"
    mark.touch()
    try:
        return worked(key, fail, hold)
    finally:
        mark.unlink(missing_ok=True)


def worked(key: str, fail: int, hold: str) -> dict[str, Any]:
    # A race is over when the run is cancelled, however long a busy machine takes for that.
    ends = time.monotonic() + (250 if hold.startswith("race") else 4)
    if hold:
        (FOLDER / f"{hold}.begun").touch()
    while hold and not (FOLDER / f"{hold}.go").exists() and time.monotonic() < ends:
        time.sleep(0.02)
    time.sleep(SLOW_S / 2)
    made = note(key)
    time.sleep(SLOW_S / 2)
    if made <= fail:
        raise ToolError("not this time")
    return {"id": key}


def unmake(result: dict[str, Any], arguments: dict[str, Any], context: ToolContext) -> None:
    if (FOLDER / f"{arguments['key']}.stuck").exists():
        raise ToolError("it is stuck")


@tool(safety="read_only")
def look(key: str, fail: int = 0, hold: str = "", given: Any = None) -> dict[str, Any]:
    """Look at something."""
    return done(key, fail, hold)


@tool(safety="read_only")
def judge(key: str, bad: int) -> dict[str, Any]:
    """Say whether a plan did well; the first times it did not."""
    return {"good": note(key) > bad}


@tool(safety="write_safe", undo=unmake)
def make(key: str, fail: int = 0, hold: str = "", given: Any = None) -> dict[str, Any]:
    """Make something."""
    return done(key, fail, hold)


@tool(safety="write_safe", undo=unmake)
def place(key: str, fail: int = 0, hold: str = "", given: Any = None) -> dict[str, Any]:
    """Make something, once for each effect id."""
    return done(key, fail, hold)


@tool(safety="write_safe")
def post(key: str, fail: int = 0, hold: str = "", given: Any = None) -> dict[str, Any]:
    """Make something that cannot be undone."""
    return done(key, fail, hold)


@tool(safety="write_safe", undo=unmake)
def lose(key: str, fail: int = 0, hold: str = "", given: Any = None) -> dict[str, Any]:
    """Make something, and nobody knows whether it was made."""
    note(key)
    raise RuntimeError("the line went dead")
'''
TOOLS = {
    "python": {"work": {"module": "work.py"}},
    "providers": {"work": {"tools": {"place": {"idempotent": True}}}},
}
OUTCOMES = {
    "COMPLETED": {"completed"},
    "FAILED": {"failed", "rejected", "cancelled"},
    "ROLLBACK_COMPLETED": {"rolled_back", "cancelled"},
    "ROLLBACK_FAILED": {"rollback_failed"},
}
"""How a run ends that is given its plan, by the state in which it leaves that."""
TRIES = 3
SEED = int(os.environ.get("WALK_SEED", "20261124"))
AT_ONCE = 8


def profiles_of(strolls):
    """Return the profiles that runs name, as `name-count`: their reviews find so many plans bad before a good one."""
    rules: dict[str, Any] = {"default": {"plans": True}}
    for label in sorted({stroll.task["profile"] for stroll in strolls if "profile" in stroll.task}):
        name, _, bad = label.rpartition("-")
        call = {"tool": "work.judge", "arguments": {"key": f"judge-{name}", "bad": int(bad)}}
        check = {"name": "custom", **call, "condition": {"result.good": {"equals": True}}}
        rules[label] = {"review": {"max_corrections": 1, "checks": [check]}}
    return json.dumps(rules)


class Walked:
    """The edges that were seen, of plans and of steps."""

    def __init__(self):
        self.plans, self.steps, self.reasons = set(), set(), set()

    def plan(self, before, after):
        assert after in PLAN_EDGES[before], f"a plan went from {before} to {after}"
        self.plans.add((before, after))

    def step(self, before, after, error):
        """Note how a step came from one state to another between two looks."""
        between = [StepStatus.PENDING, StepStatus.RUNNING, StepStatus.FAILED if error else StepStatus.SUCCESS]
        between.append(StepStatus.ROLLED_BACK)
        assert before in between, f"a step went from {before} to {after}"
        assert after in between, f"a step went from {before} to {after}"
        path = between[between.index(before) : between.index(after) + 1]
        assert path, f"a step went back from {before} to {after}"
        for edge in pairwise(path):
            assert edge[1] in STEP_EDGES[edge[0]], edge
            self.steps.add(edge)


class Stroll:
    """One run, its plans as they were last seen, and all that was done to it."""

    def __init__(self, name, task, dice, folder, walked, **acts):
        self.label, self.name = name, f"{name}-{uuid.uuid4()}"
        self.task, self.dice, self.folder, self.walked, self.acts = task, dice, folder, walked, acts
        self.handle: Any = None
        self.seen: dict[str, Any] = {}
        self.told: list[str] = []
        self.decisions: dict[str, dict[str, Any]] = {}
        self.answered: set[str] = set()
        self.resends: Counter[str] = Counter()
        self.ticks = 0
        self.patience: timedelta | None = None
        self.known: tuple[str, int] | None = None
        self.over = self.cancelled = self.undone = False
        self.result: Any = None

    def __str__(self):
        return f"{self.label}: {json.dumps(self.task)} {self.acts}\n" + "\n".join(self.told)

    def say(self, text):
        self.told.append(f"{self.ticks}: {text}")

    async def begin(self, opened):
        self.handle = await opened.start(self.task, self.name)

    async def tick(self, opened):
        """Look at the run, and do one thing to it; at the end, look at what it says of itself.

        A run whose history is as long as at the last look shows and asks nothing else.
        """
        self.ticks += 1
        self.handle = opened.client.get_workflow_handle(self.name)
        described = await self.handle.describe()
        is_deciding = described.raw_description.HasField("pending_workflow_task")
        written = None if is_deciding else (described.run_id, described.history_length)
        if written is not None and written == self.known and described.close_time is None:
            await self.act(asks=False)
            return
        self.known = None
        is_certain = await self.look()
        if described.close_time is None:
            await self.act()
        elif is_certain:
            await self.conclude()
        self.known = written if is_certain else None

    async def look(self):
        """Compare what the run shows with what it showed; return whether what it shows is certain.

        A query can be answered from a workflow task that is still under way, and is lost when the worker dies.
        """
        shown, before = {}, await self._written()
        for plan_id in ("plan", *(f"p{number}" for number in range(1, 12))):
            plan = await self._asked("plan", {"plan_id": plan_id})
            if plan is not None:
                shown[plan_id] = plan
            elif plan_id != "plan":
                break
        if before is None or await self._written() != before:
            return False
        for plan_id, plan in shown.items():
            self._compare(plan_id, plan)
        self.seen = shown
        return True

    async def _asked(self, name, *given):
        return await self.handle.query(name, *given, rpc_timeout=self.patience)

    async def _written(self):
        """Return how long the history is, or None while a workflow task is under way."""
        described = await self.handle.describe()
        is_deciding = described.raw_description.HasField("pending_workflow_task")
        return None if is_deciding else described.history_length

    def _compare(self, plan_id, plan):
        before = self.seen.get(plan_id)
        steps = before["steps"] if before else [{"status": "pending"}] * len(plan["steps"])
        statuses = [step["status"] for step in plan["steps"]]
        if before is None or before["state"] != plan["state"] or statuses != [step["status"] for step in steps]:
            self.say(f"{plan_id} {plan['state']} {plan['reason']} {statuses}")
        for earlier, now in zip(steps, plan["steps"], strict=True):
            self.walked.step(StepStatus(earlier["status"]), StepStatus(now["status"]), now["error"])
        assert _reaches(PlanState(before["state"] if before else "DRAFT"), PlanState(plan["state"]))

    async def act(self, *, asks=True):
        """Do what is due by now; `asks`: whether the run may ask something that is not answered."""
        release, cancel = self.acts.get("release", 0), self.acts.get("cancel")
        if self.ticks >= release:
            (self.folder / f"{self.label}.go").touch()
        race = self.acts.get("race", ())
        for name in race if self.cancelled else ():
            (self.folder / f"{name}.go").touch()
        begun = [name for name in race if (self.folder / f"{name}.begun").exists()]
        if begun and not any((self.folder / f"{name}.go").exists() for name in race):
            # One goes on and the other one is held, also where both have begun between two looks.
            (self.folder / f"{begun[0]}.go").touch()
        states = {(plan_id, plan["state"]) for plan_id, plan in self.seen.items()}
        running = any(step["status"] == "running" for plan in self.seen.values() for step in plan["steps"])
        due = (
            (isinstance(cancel, set) and cancel & states)
            or (cancel == "running" and running)
            or (isinstance(cancel, int) and self.ticks > cancel)
        )
        if due and not self.cancelled:
            self.say("cancel")
            await self.handle.cancel()
            self.cancelled = True
            return
        for request in await self._asked("pending") if asks else ():
            if request["id"] not in self.answered:
                await self._answer(request)

    async def _answer(self, request):
        if request["kind"] == "question" and self.acts.get("undo") and not self.undone:
            self.say("undo")
            await self._update("undo", {"by": "ana"}, "undo")
            self.undone = True
            return
        if (request["rule"] or "").startswith("expires") or self.ticks < self.acts.get("wait", 0):
            return
        if request["id"] not in self.decisions:
            self._decide(request)
        given = {"request_id": request["id"], "by": "ana", **self.decisions[request["id"]]}
        # It is lost with a worker that dies, and is then sent again as it was.
        await self._update("decide", given, request["id"])
        self.answered.add(request["id"])

    def _decide(self, request):
        self.decisions[request["id"]] = approval = self._verdict(request)
        self.say(f"{request['kind']} {request['id']}: {json.dumps(approval)}; {request['rule']}")
        if approval["verdict"] == "retry" and request["calls"]:
            self.resends[request["calls"][0]["arguments"]["key"]] += 1

    async def _update(self, name, payload, update_id):
        try:
            await self.handle.execute_update(name, payload, id=update_id, rpc_timeout=self.patience)
        except WorkflowUpdateFailedError as error:
            # The run may have gone on since it was looked at.
            self.say(f"refused: {error.cause}")

    def _verdict(self, request):
        if request["kind"] in self.acts.get("verdicts", {}):
            given = self.acts["verdicts"][request["kind"]]
            return given.pop(0) if given else {"verdict": "approve"}
        match request["kind"]:
            case "plan":
                return self._said_of_plan(request)
            case "question":
                return {"verdict": "answer", "answer": "yes"}
            case "outcome":
                return {"verdict": self.dice.choice(request["options"])}
        return {"verdict": self.dice.choice(["approve", "approve", "reject"])}

    def _said_of_plan(self, request):
        # A call that was changed before is changed anew: the same change again is refused.
        changed = {"given": f"more of {request['id']}"}
        index = str(self.dice.choice([call["index"] for call in request["calls"]]))
        said = {
            "approve": {"verdict": "approve"},
            "per_step": {"option": "approve_per_step", "calls": {index: {"verdict": "reject"}}, "verdict": "approve"},
            "left_out": {"verdict": "approve", "calls": {index: {"verdict": "reject"}}},
            "modify": {"verdict": "modify", "calls": {index: {"verdict": "modify", "arguments": changed}}},
            "reject": {"verdict": "reject"},
            "stop": {"verdict": "reject", "stop": True},
            "dry_run": {"verdict": "approve", "option": "dry_run_only"},
        }
        names = [name for name in said if name != "modify" or len(self.answered) < 2]
        name = self.dice.choice([*names, *["approve"] * 5])
        if name == "dry_run" and "dry_run_only" not in request["proposal"]["approve_options"]:
            name = "approve"
        return said[name]

    async def conclude(self):
        """Hold the Result and its events against what was seen."""
        self.result = await self._asked("result")
        assert_no_task_failure(await self.handle.fetch_history())
        moves = defaultdict(list)
        for event in (await self._asked("timeline"))["events"]:
            if event["name"] == "plan.changed":
                data = event["data"]
                moves[data["plan"]].append(data["state"])
                assert data["reason"] in get_args(PlanReason)
                assert bool(data["reason"]) or data["state"] != "FAILED"
                self.walked.reasons.add(data["reason"])
        self.say(f"{self.result['outcome']} {self.result['error']} {dict(moves)}")
        for plan_id, states in moves.items():
            for before, after in pairwise(map(PlanState, ["DRAFT", *states])):
                self.walked.plan(before, after)
            assert self.seen[plan_id]["state"] == states[-1]
        assert set(moves) == set(self.seen)
        self._compare_result()
        self.over = True

    def _compare_result(self):
        for plan in self.seen.values():
            statuses = {step["status"] for step in plan["steps"]}
            assert "running" not in statuses
            if plan["state"] == "COMPLETED":
                assert not [step for step in plan["steps"] if step["status"] == "pending" and not step["reason"]]
        if "plan" in self.seen:
            last = list(self.seen.values())[-1]
            assert self.result["outcome"] in OUTCOMES[last["state"]]
            outputs = self.result["raw_outputs"].get("steps", [])
            assert [output["status"] for output in outputs] == [step["status"] for step in last["steps"]]


def _reaches(before, after):
    known = {before}
    for _ in PlanState:
        known |= {state for at in known for state in PLAN_EDGES[at]}
    return after in known


def call(name, args):
    return Reply(calls=[(name, args)])


def random_plan(dice, name, label):
    """Return a plan of one to five steps."""
    steps = []
    for index in range(dice.randint(1, 5)):
        tool = dice.choice(["look", "make", "make", "place", "post", *(["lose"] if dice.random() < 0.2 else [])])
        kind = dice.choice(["free"] * 6 + ["ask"] * 5 + (["deny", "late", "lapse"] if dice.random() < 0.2 else []))
        arguments = {"key": f"{kind}-{tool}-{name}-{label}-{index}", "fail": dice.choice([0] * 6 + [1, 9])}
        if index and dice.random() < 0.3:
            arguments["given"] = f"${{steps.{dice.randrange(index)}.result.id}}"
        if dice.random() < 0.15:
            arguments["hold"] = name
        step = {"tool": f"work.{tool}", "arguments": arguments}
        if dice.random() < 0.3:
            step["continue_on_failure"] = True
        if tool in {"make", "place"} and dice.random() < 0.3:
            step["transactional"] = dice.choice(["a", "b"])
        if tool in {"look", "place"} and dice.random() < 0.5:
            step["retries"] = 1
        steps.append(step)
    if dice.random() < 0.05:
        steps.append({"tool": "work.fly"})
    plan = {"title": f"{name} {label}", "steps": steps}
    if dice.random() < 0.3:
        plan |= {"continue_on_failure": True, "allowed_side_effects": dice.choice([[], ["work.make"], ["work.*"]])}
    return plan


def random_stroll(dice, name, scripts, folder, walked):
    """Return a run of a task that gives a plan, or whose model proposes some."""
    fields: dict[str, Any] = {}
    if dice.random() < 0.4:
        fields["profile"] = f"{name}-{dice.randrange(TRIES)}"
    if dice.random() < 0.15:
        fields["rehearse"] = True
    acts: dict[str, Any] = {"release": dice.randint(1, 6), "undo": dice.random() < 0.4}
    if dice.random() < 0.25:
        acts["cancel"] = dice.choice([1, 2, 4, 6, "running"])
    if dice.random() < 0.4:
        return Stroll(name, {"plan": random_plan(dice, name, "own"), **fields}, dice, folder, walked, **acts)
    proposal: dict[str, Any] = {"plan": random_plan(dice, name, "first")}
    if dice.random() < 0.4:
        proposal["alternatives"] = [random_plan(dice, name, "other")]
    replies = [call("propose_plan", proposal)]
    if dice.random() < 0.6:
        replies.append(call("update_plan", {"plan_id": "p1", "plan": random_plan(dice, name, "corrected")}))
    replies.append(call("ask_person", {"question": "all right?"}))
    return Stroll(name, scripts.task(*replies, **fields), dice, folder, walked, **acts)


def random_strolls(walks, scripts, folder, walked):
    names = [f"walk{number}" for number in range(walks)]
    return [random_stroll(random.Random(f"{SEED} {name}"), name, scripts, folder, walked) for name in names]


def toolbox_in(folder):
    """Write the tools into a folder, and return the file that declares them."""
    (folder / "work.py").write_text(WORK, encoding="utf-8")
    (folder / "toolbox.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    return folder / "toolbox.json"


class Crowd:
    """Runs that walk side by side, at most AT_ONCE of them.

    What `lost` names may happen to a look or a word where a worker dies; the next round looks again.
    """

    def __init__(self, strolls, *, lost=(), after=None):
        self.waiting, self.going = list(strolls), []
        self.lost, self.after = lost, after

    @property
    def over(self):
        return not self.waiting and not self.going

    @property
    def races(self):
        """Whether one of two calls is held until the run is cancelled."""
        racing = (stroll for stroll in self.going if not stroll.cancelled)
        return any(
            (stroll.folder / f"{name}.begun").exists() for stroll in racing for name in stroll.acts.get("race", ())
        )

    async def round(self, opened):
        """Let each run take one tick."""
        fresh, self.waiting = self.waiting[: AT_ONCE - len(self.going)], self.waiting[AT_ONCE - len(self.going) :]
        await asyncio.gather(*(stroll.begin(opened) for stroll in fresh))
        self.going += fresh
        await asyncio.gather(*(self._tick(stroll, opened) for stroll in self.going))
        self.going = [stroll for stroll in self.going if not stroll.over]
        await asyncio.sleep(0.1)

    async def _tick(self, stroll, opened):
        try:
            assert stroll.ticks < 1000, "the run does not end"
            await stroll.tick(opened)
            if stroll.over and self.after is not None:
                await self.after(opened, stroll)
        except self.lost as error:
            stroll.say(f"lost: {error}")
        except Exception as error:
            error.add_note(f"WALK_SEED={SEED}\n{stroll}")
            raise
