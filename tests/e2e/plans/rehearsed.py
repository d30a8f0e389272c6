"""Random plans and programs over the mailbox and a workspace, rehearsed, approved, and held to their forecasts."""

import asyncio
import json
import os
import random
import re
import sqlite3
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowFailureError

from backstay.testing import Reply
from examples.mailbox.faults import Faults
from sandbox.programs.sandbox import Sandbox
from tests.engine import Scripts, assert_no_task_failure, engine, pending, toolbox_of, update
from tests.mailbox_server import open_mailbox

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
CUSTOMER = 10_000
"""The first id of the customers that the cases bring."""
TOKEN = re.compile(r"⟦sim:(\d+):([^⟧]*)⟧")
FILE = "in.txt"
AT_ONCE = 4
USED = ("to", "message_id", "content", "customers")
"""The parts of answers to which later calls refer."""


@dataclass
class Case:
    """Hold one plan or program, the place it works in, and what is changed in between."""

    seed: int
    as_program: bool
    steps: list[dict[str, Any]] = field(default_factory=list)
    changes: str = ""
    """What is changed between the rehearsal and the real run: `customer`, `file` or nothing."""

    @property
    def name(self) -> str:
        return f"{'program' if self.as_program else 'plan'}-{self.seed}"

    @property
    def customer(self) -> int:
        return CUSTOMER + 2 * self.seed + self.as_program


def toolbox_with_files(folder: Path, address: str) -> Path:
    """Write a toolbox.json of a mailbox whose users also have the files of their workspaces."""
    path = toolbox_of(folder, folder / "mailbox.db", address=address)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["users"] = {"*": {"providers": ["mail", "fs"]}}
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def random_case(seed: int, *, as_program: bool) -> Case:
    """Return two to seven calls, of which at least one writes; later ones use what earlier ones answer."""
    chance = random.Random(f"{seed} {as_program}")
    case = Case(seed, as_program)
    kinds = [chance.choice(["customer", "file", "send", "send", "write", "sent", "back"]) for _ in range(6)]
    for kind in [*kinds[: chance.randint(1, 6)], "send"]:
        case.steps.append(_step(chance, case, kind))
    if chance.random() < 0.3:
        case.changes = chance.choice(["customer", "file"])
    return case


def _step(chance: random.Random, case: Case, kind: str) -> dict[str, Any]:
    index = len(case.steps)
    if kind == "sent" and (sends := _of(case, "send")):
        return {
            "kind": kind,
            "tool": "mail.list_sent",
            "arguments": {"to": _refer(chance.choice(sends), "to")},
        }
    if kind == "back" and (written := _of(case, "write")):
        path = case.steps[chance.choice(written)]["arguments"]["path"]
        return {"kind": kind, "tool": "fs.read_file", "arguments": {"path": path}}
    if kind == "customer":
        return {"kind": kind, "tool": "mail.list_customers", "arguments": {"limit": 1, "offset": "OFFSET"}}
    if kind == "file":
        return {"kind": kind, "tool": "fs.read_file", "arguments": {"path": FILE}}
    if kind == "write":
        arguments = {"path": f"out{index}.txt", "content": _text(chance, case, index)}
        return {"kind": kind, "tool": "fs.write_file", "arguments": arguments}
    to = [_refer(other, "customers.0.email") for other in _of(case, "customer")]
    to += [_refer(other, "to") for other in _of(case, "send")]
    recipient = chance.choice([*to, f"{case.name}-{index}@x.example"])
    arguments = {"to": recipient, "subject": f"{case.name} {index}", "body": _text(chance, case, index)}
    return {"kind": "send", "tool": "mail.send_email", "arguments": arguments}


def _text(chance: random.Random, case: Case, index: int) -> str:
    """Return a text that may hold what earlier calls answer."""
    found = [_refer(other, "content") for kind in ("file", "back") for other in _of(case, kind)]
    found += [_refer(other, "message_id") for other in _of(case, "send")]
    return f"text {index}: {chance.choice([*found, 'nothing'])}, {chance.choice([*found, 'nothing'])}"


def _of(case: Case, kind: str) -> list[int]:
    return [index for index, step in enumerate(case.steps) if step["kind"] == kind]


def _refer(index: int, path: str) -> str:
    return f"${{steps.{index}.result.{path}}}"


def deviating(case: Case) -> list[int]:
    """Return the writes that are not as foretold: they use what was changed, or a file that such a write made."""
    found: list[int] = []
    for index, step in enumerate(case.steps):
        used = {int(number) for number in re.findall(r"\$\{steps\.(\d+)\.", json.dumps(step["arguments"]))}
        for other in used:
            kind = case.steps[other]["kind"]
            made = [case.steps[write]["arguments"]["path"] for write in found if case.steps[write]["kind"] == "write"]
            changed = kind == case.changes or (kind == "back" and case.steps[other]["arguments"]["path"] in made)
            if changed and step["kind"] in {"send", "write"} and index not in found:
                found.append(index)
    return found


def task_of(case: Case, offset: int) -> dict[str, Any]:
    """Return the task of a plan; that of a program holds its source, too."""
    steps = json.loads(json.dumps([{"tool": s["tool"], "arguments": s["arguments"]} for s in case.steps]))
    for step in steps:
        if "offset" in step["arguments"]:
            step["arguments"]["offset"] = offset
    more = {"rehearse": True, "workspace": case.name, "filesystem": True}
    if not case.as_program:
        return {"plan": {"title": case.name, "steps": steps}, **more}
    return {"source": _source(steps), **more}


def _source(steps: list[dict[str, Any]]) -> str:
    lines = ["found = []"]
    for step in steps:
        given = ", ".join(f"{name}={_expression(value)}" for name, value in step["arguments"].items())
        lines.append(f"found.append(await {step['tool']}({given}))")
    last = [f"names = {USED}", "return [{name: each[name] for name in names if name in each} for each in found]"]
    return "\n".join([*lines, *last])


def _expression(value: Any) -> str:
    """Return what stands for an argument of a plan in a program."""
    if not isinstance(value, str):
        return repr(value)
    parts = re.split(r"\$\{steps\.(\d+)\.result\.([^}]*)\}", value)
    if parts[0] == parts[-1] == "" and len(parts) == 4:
        return _looked_up(parts[1], parts[2])
    shown = [repr(parts[0])]
    for index, path, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        shown += [f"str({_looked_up(index, path)})", repr(text)]
    return " + ".join(shown)


def _looked_up(index: str, path: str) -> str:
    keys = "".join(f"[{int(key) if key.isdecimal() else key!r}]" for key in path.split("."))
    return f"found[{index}]{keys}"


class World:
    """Look at, and change, what the cases work on."""

    def __init__(self, engine: Any, rooms: Any) -> None:
        self.engine = engine
        self.rooms = rooms

    def prepare(self, cases: list[Case]) -> dict[str, int]:
        """Give each case a customer and a workspace of its own; return the customers' places in the list."""
        with sqlite3.connect(self.engine.mailbox.path, timeout=10) as connection:
            for case in cases:
                row = (case.customer, case.name, f"{case.name}@before.example")
                connection.execute("INSERT INTO customers (id, name, email) VALUES (?, ?, ?)", row)
                place = self.rooms / case.name
                place.mkdir(parents=True)
                (place / FILE).write_text(f"before {case.name}", encoding="utf-8")
            ids = [row[0] for row in connection.execute("SELECT id FROM customers ORDER BY id")]
        return {case.name: ids.index(case.customer) for case in cases}

    def change(self, case: Case) -> None:
        if case.changes == "file":
            (self.rooms / case.name / FILE).write_text(f"after {case.name}", encoding="utf-8")
        if case.changes == "customer":
            with sqlite3.connect(self.engine.mailbox.path, timeout=10) as connection:
                email = f"{case.name}@after.example"
                connection.execute("UPDATE customers SET email = ? WHERE id = ?", (email, case.customer))

    def sent(self, case: Case) -> dict[int, dict[str, Any]]:
        """Return the arguments of the letters that the server was asked to send, by the number of the call."""
        rows = self.engine.mailbox.rows(
            "SELECT arguments FROM requests WHERE tool = 'send_email' AND json_extract(arguments, '$.subject') LIKE ?",
            f"{case.name} %",
        )
        found = [json.loads(row[0]) for row in rows]
        by_number = {int(given["subject"].split(" ")[1]): given for given in found}
        assert len(by_number) == len(found), f"{case.name}: a letter was sent twice"
        return by_number

    def files(self, case: Case) -> dict[str, str]:
        place = self.rooms / case.name
        return {str(path.relative_to(place)): path.read_text(encoding="utf-8") for path in place.rglob("*.txt")}


async def decide(handle: Any, request: dict[str, Any]) -> None:
    await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana@example.com"})


async def to_its_end(handle: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Approve whatever is asked about; return the Result and the requests."""
    asked: list[dict[str, Any]] = []
    ending = asyncio.ensure_future(handle.result())
    while not ending.done():
        for request in await handle.query("pending"):
            if all(request["id"] != other["id"] for other in asked):
                asked.append(request)
                await decide(handle, request)
        await asyncio.wait([ending], timeout=0.1)
    try:
        result = ending.result()
    except WorkflowFailureError as error:
        raise AssertionError(str(error)) from error
    assert_no_task_failure(await handle.fetch_history())
    return result, asked


async def check(case: Case, world: World, scripts: Any, offset: int) -> dict[str, int]:
    """Rehearse one case, change the world, let it run, and compare; return how many of what there were."""
    task = task_of(case, offset)
    if case.as_program:
        source = task.pop("source")
        task = scripts.task(Reply(calls=[("run_program", {"code": source})]), _finish, **task)
    handle = await world.engine.start(task)
    (request,) = await pending(handle, within_s=150)
    assert world.sent(case) == {}, case
    assert world.files(case) == {FILE: f"before {case.name}"}, case
    forecast = {entry["idx"]: entry for entry in request["forecast"]}
    assert [entry["tool"] for entry in forecast.values()] == [step["tool"] for step in case.steps], case
    # In a thread: the mailbox that may hold the lock runs in this loop, so waiting here would block it.
    await asyncio.to_thread(world.change, case)
    await decide(handle, request)
    result, asked = await to_its_end(handle)
    assert result["outcome"] == "completed", (case, result["error"])
    expected = deviating(case)
    assert [(each["kind"], each["calls"][0]["tool"]) for each in asked] == [
        ("call", case.steps[index]["tool"]) for index in expected
    ], (case, [each["rule"] for each in asked])
    answers = _answers(case, result)
    made = _made(case, world)
    for index, arguments in made.items():
        told = real(forecast[index]["arguments"], answers)
        same = all(told[key] == value for key, value in arguments.items() if key != "client_token")
        assert same is (index not in expected), (case, index, told, arguments)
    for request, index in zip(asked, expected, strict=True):
        shown = request["calls"][0]["arguments"]
        assert {key: shown[key] for key in made[index] if key != "client_token"} == {
            key: value for key, value in made[index].items() if key != "client_token"
        }, case
    return {"runs": 1, "changed_worlds": int(bool(case.changes)), "writes": len(made), "asked_again": len(asked)}


async def checked_all(cases: list[Case], world: World, scripts: Any) -> dict[str, int]:
    """Check all cases, some at a time; return how many there were of what."""
    offsets = world.prepare(cases)
    room, total = asyncio.Semaphore(AT_ONCE), Counter[str]()

    async def checked(case: Case) -> None:
        async with room:
            total.update(await check(case, world, scripts, offsets[case.name]))

    await asyncio.gather(*map(checked, cases))
    return dict(total)


@asynccontextmanager
async def opened_world(temporal: Client, sandbox: Sandbox, place: Path) -> AsyncGenerator[tuple[World, Scripts]]:
    """Open an engine with a mailbox, workspaces and programs."""
    scripts = Scripts()
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        await asyncio.to_thread(os.chmod, folder, 0o755)  # so that the users of jails can reach it
        rooms = Path(folder) / "rooms"
        async with open_mailbox(place / "mailbox.db", Faults.read({})) as address:
            more: dict[str, Any] = {"toolbox": toolbox_with_files(place, address), "workspaces": rooms}
            async with engine(temporal, place, scripts, policy=POLICY, sandbox=sandbox, **more) as opened:
                yield World(opened, rooms), scripts


def _finish(seen: Any) -> Reply:
    answer = seen.calls("run_program")[-1].answer
    return Reply(calls=[("finish", {"summary": "done", "outputs": {"answer": answer}})])


def _answers(case: Case, result: dict[str, Any]) -> dict[int, Any]:
    if case.as_program:
        told = result["raw_outputs"]["answer"]
        assert "data" in told, (case, told)
        found = told["data"]["result"]
        assert len(found) == len(case.steps), result["raw_outputs"]
        return dict(enumerate(found))
    return {step["idx"]: step["data"] for step in result["raw_outputs"]["steps"]}


def _made(case: Case, world: World) -> dict[int, dict[str, Any]]:
    """Return the arguments of all writes that took place, as the servers saw them."""
    found = world.sent(case)
    files = world.files(case)
    for index in _of(case, "write"):
        path = case.steps[index]["arguments"]["path"]
        found[index] = {"path": path, "content": files[path]}
    assert sorted(found) == sorted([*_of(case, "send"), *_of(case, "write")]), case
    return found


def real(foretold: Any, answers: dict[int, Any]) -> Any:
    """Return what is foretold with the real values in place of the tokens."""
    if isinstance(foretold, dict):
        return {key: real(value, answers) for key, value in foretold.items()}
    if not isinstance(foretold, str):
        return foretold

    def value(match: re.Match[str]) -> str:
        found = answers[int(match[1])]
        for key in match[2].split("/")[1:]:
            found = found[int(key)] if isinstance(found, list) else found[key]
        return str(found)

    return TOKEN.sub(value, foretold)
