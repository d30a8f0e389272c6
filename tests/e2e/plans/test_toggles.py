"""What approvers do not let a plan do: start processes, and use more time, memory, processor or space than they say."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
import pytest_asyncio
from temporalio.client import WorkflowUpdateFailedError

from backstay.client import Backstay
from tests.cli.commands import environment_of, forked
from tests.e2e.approvals.doors.pages import Page
from tests.engine import Engine, Scripts, ended, engine, pending, share_images, update
from tests.requirements import promise
from tests.sizes import spread
from tests.slack.workspace import ANA, KEY, U1, door, slack_settings
from tests.slack_server import Slack, open_slack
from tests.web.pages import Served, behind_a_proxy, served_page
from tests.workspace.desk import WROTE_MUCH

POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}\n"
PLUGIN = """
import argparse
import json
from pathlib import Path


def make_parser():
    parser = argparse.ArgumentParser(description="Pings.")
    commands = parser.add_subparsers(dest="command", required=True)
    ping = commands.add_parser("ping", help="Ping somebody.")
    ping.add_argument("--who", required=True)
    return parser


def main():
    arguments = make_parser().parse_args()
    with (Path(__file__).parent / "pinged").open("a") as file:
        file.write(arguments.who + "\\n")
    print(json.dumps({"pinged": arguments.who}))


if __name__ == "__main__":
    main()
"""


LESS = {"memory_mb": "256", "cpu_s": "7", "artifacts_mb": "1"}
"""What people type at each door."""


class People(NamedTuple):
    """Hold the doors at which people decide."""

    engine: Engine
    page: Served
    slack: Slack
    nursery: Any
    folder: Path


async def with_the_client(people, handle, request):
    limits = {name: float(most) for name, most in LESS.items()}
    run = Backstay(people.engine.client, task_queue=people.engine.settings.task_queue).run(handle.id)
    said = {"request_id": request["id"], "verdict": "approve", "by": ANA}
    await run.decide(said | {"toggles": {"limits": limits}})


async def with_commands(people, handle, request):
    given = [part for name, most in LESS.items() for part in (f"--step-{name.rpartition('_')[0]}", most)]
    arguments = ("approve", handle.id, request["id"], *given, "--by", ANA)
    found = environment_of(people.engine)
    done = await forked(people.nursery, *arguments, environment=found, folder=people.folder)
    assert done.code == 0, done.err


async def on_the_page(people, handle, request):
    typed = {f"step_{name.rpartition('_')[0]}": most for name, most in LESS.items()}
    path = f"/requests/{quote(handle.id, safe='')}/{request['id']}"
    async with people.page.person(ANA) as person:
        drawn = Page((await person.get(path)).text)
        assert typed.keys() <= drawn.fields.keys()
        fields = drawn.fields | typed | {"verdict": "approve"}
        answer = await person.post(f"{path}/decide", data=fields, follow_redirects=True)
    assert f"decided: approved by {ANA}" in answer.text, answer.text


async def in_slack(people, handle, request):
    def found():
        shown = (each for each in people.slack.standing() if "backstay.choose" in each.buttons)
        return next((each for each in shown if handle.id in str(each.blocks)), None)

    message = await people.slack.until(found, 150)
    await people.slack.press(message, "backstay.choose", user=U1)
    view = await people.slack.view("without those that you leave out", user=U1)
    delivery = await people.slack.submit(view, LESS)
    assert (delivery.answer or {}).get("response_action") != "errors", delivery.answer


WAYS = (with_the_client, with_commands, on_the_page, in_slack)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, rooms):
    folder = tmp_path_factory.mktemp("toggles")
    share_images(folder / "home")
    place = folder / "plugins" / "pinger" / "cli.py"
    place.parent.mkdir(parents=True)
    place.write_text(PLUGIN, encoding="utf-8")
    toolbox = folder / "toolbox.json"
    tools = {"ping": {"safety": "write_safe"}}
    given = {"plugins": str(folder / "plugins"), "providers": {"pinger": {"tools": tools}}}
    toolbox.write_text(json.dumps(given), encoding="utf-8")
    async with engine(temporal, folder, Scripts(), policy=POLICY, workspaces=rooms, toolbox=toolbox) as found:
        yield found, place.parent / "pinged"


@pytest_asyncio.fixture(scope="module")
async def people(temporal, tmp_path_factory, rooms, nursery):
    folder = tmp_path_factory.mktemp("doors")
    share_images(folder / "home")
    toolbox = folder / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    async with open_slack(events_url="-") as slack:
        doors = {**slack_settings(slack, "http"), **behind_a_proxy(approver_key=KEY)}
        given = {"policy": POLICY, "toolbox": toolbox, "workspaces": rooms, **doors}
        async with (
            engine(temporal, folder, Scripts(), **given) as running,
            door(running, slack, running.settings),
            served_page(running) as page,
        ):
            yield People(running, page, slack, nursery, folder)


def step(tool, **arguments):
    return {"tool": tool, "arguments": arguments}


async def approve(handle, **more):
    (request,) = await pending(handle)
    return await update(handle, "decide", {"request_id": request["id"], "verdict": "approve", "by": "ana", **more})


async def refused(handle, **more):
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await approve(handle, **more)
    return caught.value.cause.message


@promise("plans:processes")
@pytest.mark.thorough
async def test_a_plan_that_may_start_no_processes_runs_no_plugin_either(opened, rooms):
    found, pinged = opened
    (rooms / "quiet").mkdir(parents=True)
    steps = [
        step("pinger.ping", who="ana"),
        step("fs.write_file", path="told", content="${steps.0.result.pinged}"),
        step("fs.write_file", path="kept", content="k"),
    ]
    handle = await found.start({"plan": {"steps": steps}, "workspace": "quiet", "filesystem": True})
    (request,) = await pending(handle)
    assert request["proposal"]["toggles"]["external_processes"] is True
    assert [step.get("starts_process", False) for step in request["proposal"]["steps"]] == [True, False, False]
    await approve(handle, toggles={"external_processes": False})
    assert (await ended(handle))["outcome"] == "completed"
    shown = await handle.query("plan")
    assert [each["reason"] for each in shown["steps"]] == ["rejected", "dependency_failed", ""]
    assert not pinged.exists()
    assert [path.name for path in (rooms / "quiet").iterdir()] == ["kept"]


@promise("plans:remember-made")
async def test_a_step_whose_process_a_person_does_not_let_start_is_not_remembered_as_allowed(opened, rooms):
    found, pinged = opened
    (rooms / "remembered").mkdir(parents=True)
    writes = step("fs.write_file", path="kept", content="k")
    given = {"workspace": "remembered", "filesystem": True}
    said = {"toggles": {"external_processes": False}, "remember": "run"}
    handle = await found.start({"plan": {"steps": [step("pinger.ping", who="cy"), writes]}, **given})
    answer = await approve(handle, **said)
    assert [line["tool"] for line in answer["remembered"]] == ["fs.write_file"]
    assert (await ended(handle))["outcome"] == "completed"
    alone = await found.start({"plan": {"steps": [step("pinger.ping", who="cy")]}})
    assert "remember: the decision says so of no call" in await refused(alone, **said)
    await approve(alone, verdict="reject")
    await ended(alone)
    assert not pinged.exists()


@promise("plans:toggles-offered")
async def test_a_toggle_that_could_not_hold_for_a_plan_is_not_offered_and_is_refused(opened, rooms):
    found, _ = opened
    (rooms / "plain").mkdir(parents=True)
    writes = {"plan": {"steps": [step("fs.write_file", path="kept", content="k")]}, "filesystem": True}
    handle = await found.start({**writes, "workspace": "plain"})
    (request,) = await pending(handle)
    limits = {"timeout_s": 30, "memory_mb": 2048, "cpu_s": 300, "artifacts_mb": 200}
    assert request["proposal"]["toggles"] == {"external_processes": None, "limits": limits}
    said = await refused(handle, toggles={"external_processes": False})
    assert said == "toggles.external_processes: no step of the plan starts a process; leave it out"
    for name, most in limits.items():
        more = await refused(handle, toggles={"limits": {name: most + 1}})
        assert more == f"toggles.limits.{name}: can only be narrowed; give at most {most}"
    await handle.terminate()
    pings = await found.start({"plan": {"steps": [step("pinger.ping", who="bo")]}})
    (request,) = await pending(pings)
    assert request["proposal"]["toggles"] == {"external_processes": True, "limits": {"timeout_s": 30}}
    for name in ("memory_mb", "cpu_s", "artifacts_mb"):
        said = await refused(pings, toggles={"limits": {name: 100}})
        assert said.startswith(f"toggles.limits.{name}: no step of the plan works in a jail")
    said = await refused(
        pings,
        verdict="modify",
        calls={"0": {"verdict": "modify", "arguments": {"who": "cy"}}},
        toggles={"external_processes": False},
    )
    assert said == "toggles: only with verdict approve, not modify; leave it out"
    await pings.terminate()


@promise("plans:toggles-limits")
@pytest.mark.parametrize("approve_at", spread(WAYS, 1))
async def test_an_approver_gives_the_steps_of_a_plan_less_memory_processor_and_space(people, rooms, approve_at):
    found = people.engine
    place = rooms / f"narrow-{approve_at.__name__}"
    place.mkdir(parents=True)
    commands = (
        "python3 -c 'print(len(bytearray(400 << 20)))'",
        "ulimit -t",
        "head -c 3M /dev/zero > plenty; sleep 3; rm plenty; head -c 2M /dev/zero > two",
    )
    steps = [step("shell.run", command=command) | {"continue_on_failure": True} for command in commands]
    handle = await found.start({"plan": {"steps": steps}, "workspace": place.name, "shell": True})
    (request,) = await pending(handle)
    await approve_at(people, handle, request)
    made = (await asyncio.wait_for(handle.result(), 150))["raw_outputs"]["steps"]
    assert "MemoryError" in made[0]["data"]["stderr"]
    assert made[1]["data"]["stdout"] == "7\n"
    assert re.search(WROTE_MUCH, made[2]["data"]), made[2]
