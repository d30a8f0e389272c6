"""Runs at work in workspaces: what a call would change is shown, what it changed is undone, others stay out."""

import asyncio
import json
import re

import pytest
import pytest_asyncio

from backstay.approvals.proposal import ProposedStep
from backstay.approvals.proposal_words import step_marks
from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.e2e.labelled import DONE, Labelled
from tests.engine import PLANS, ended, engine, pending, share_images
from tests.requirements import promise
from tests.workspace.desk import WROTE_MUCH

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: shell.run, when: {command: {starts_with: "curl "}}}]
network: {allow: [listed.example]}
"""
DENIED_STEP = {"tool": "shell.run", "arguments": {"command": "docker ps"}}
FETCH = "curl -s http://other.example/"
FORBIDDEN = {
    "fs__write_file": {"path": "names.txt", "content": "cy"},
    "fs__edit_file": {"path": "names.txt", "old": "ana", "new": "cy"},
    "fs__move": {"source": "names.txt", "destination": "moved.txt"},
    "fs__delete": {"path": "names.txt"},
    "shell__run": {"command": "touch ran"},
}
"""What nothing may do while the model only plans."""
SCRIPTS = Labelled(
    shell=[
        Reply(calls=[("shell__run", {"command": "sort -r names.txt > sorted.txt && cat sorted.txt"})]),
        DONE,
    ],
    reaching=[
        Reply(calls=[("shell__run", {"command": FETCH, "network": ["new.example", "listed.example"]})]),
        Reply(calls=[("shell__run", {"command": FETCH, "network": ["listed.example"]})]),
        Reply(calls=[("shell__run", {"command": FETCH, "network": ["127.0.0.1"]})]),
        DONE,
    ],
    waiting=[Reply(calls=[("fs__delete", {"path": "names.txt"})]), DONE],
    denied=[
        Reply(calls=[("shell__run", {"command": "ssh host"})]),
        Reply(
            calls=[
                ("propose_plan", {"plan": {"steps": [{"tool": "shell.run", "arguments": {"command": "docker ps"}}]}})
            ]
        ),
        DONE,
    ],
    **{
        name: [Reply(calls=[("fs__delete", {"path": "names.txt"})]), DONE]
        for name in ("terminated", "nightly", "around")
    },
    planning=[
        Reply(calls=list(FORBIDDEN.items())),
        Reply(calls=[("fs__read_file", {"path": "names.txt"}), ("fs__list_directory", {})]),
        Reply(
            calls=[("propose_plan", {"plan": {"steps": [{"tool": "fs.delete", "arguments": {"path": "names.txt"}}]}})]
        ),
        DONE,
    ],
)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory, rooms):
    folder = tmp_path_factory.mktemp("workspaces")
    share_images(folder / "home")
    toolbox = folder / "toolbox.json"
    toolbox.write_text("{}", encoding="utf-8")
    places = {"workspaces": rooms, "toolbox": toolbox}
    async with engine(
        temporal, folder, SCRIPTS, policy=POLICY, profiles=PLANS, request_deadline_seconds=30, **places
    ) as found:
        yield found, rooms


def plan(workspace, *steps, **fields):
    listed = [{"tool": tool, "arguments": arguments} for tool, arguments in steps]
    return {"plan": {"steps": listed}, "workspace": workspace, "filesystem": True, **fields}


def room(opened, name, **files):
    place = opened[1] / name
    place.mkdir(parents=True)
    for file, text in files.items():
        (place / f"{file}.txt").write_text(text, encoding="utf-8")
    return place


async def approved(handle):
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    return request


async def undone(opened, handle):
    found, _ = opened
    undoing = await found.client.start_workflow(
        "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=found.settings.task_queue
    )
    return await ended(undoing)


@promise("workspaces:diff-asked")
async def test_people_see_what_would_change_and_an_undo_brings_every_byte_back(opened):
    found, _ = opened
    place = room(opened, "letters", draft="Dear Ana,\nsee you on monday\n", old="nothing\n")
    steps = (
        ("fs.edit_file", {"path": "draft.txt", "old": "monday", "new": "friday"}),
        ("fs.write_file", {"path": "new/note.txt", "content": "a note\n"}),
        ("fs.delete", {"path": "old.txt"}),
    )
    handle = await found.start(plan("letters", *steps))
    diffs = [call["diff"] for call in (await approved(handle))["calls"]]
    assert "-see you on monday\n+see you on friday" in diffs[0]
    assert "+a note" in diffs[1]
    assert "-nothing" in diffs[2]
    result = await ended(handle)
    assert [effect["state"] for effect in result["effects"]] == ["applied"] * 3
    assert (place / "draft.txt").read_text(encoding="utf-8") == "Dear Ana,\nsee you on friday\n"
    assert not (place / "old.txt").exists()
    assert (await undone(opened, handle))["outcome"] == "rolled_back"
    left = {str(path.relative_to(place)): path.read_text(encoding="utf-8") for path in place.rglob("*.txt")}
    assert left == {"draft.txt": "Dear Ana,\nsee you on monday\n", "old.txt": "nothing\n"}


@promise("plans:files")
async def test_a_proposal_names_the_files_that_it_changes_and_its_diffs_are_kept(opened, nursery, tmp_path):
    found, _ = opened
    room(opened, "named", draft="monday\n", old="nothing\n", here="stays\n")
    steps = (
        ("fs.edit_file", {"path": "draft.txt", "old": "monday", "new": "friday"}),
        # Its text looks like the head of a diff of another file.
        ("fs.write_file", {"path": "new/note.txt", "content": "++ b/harmless.txt\n"}),
        ("fs.write_file", {"path": "empty.txt", "content": ""}),
        ("fs.delete", {"path": "old.txt"}),
        ("fs.move", {"source": "here.txt", "destination": "there.txt"}),
        ("fs.delete", {"path": "not-there.txt"}),
        ("fs.list_directory", {"path": "."}),
    )
    handle = await found.start(plan("named", *steps))
    (request,) = await pending(handle)
    assert request["proposal"]["estimated_side_effects"] == [
        "draft.txt modified",
        "new/note.txt created",
        "new empty file empty.txt",
        "old.txt deleted",
        "here.txt renamed to there.txt",
        "fs.delete",
    ]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "stop": True, "by": "ana"})
    assert (await ended(handle))["outcome"] == "rejected"
    arguments = ("plan", "export", handle.id, "--format")
    kept = {"environment": environment_of(found), "folder": tmp_path}
    (story,) = json.loads((await forked(nursery, *arguments, "json", **kept)).out)["plans"]
    shown = [step["diff_preview"] for step in request["proposal"]["steps"]]
    assert "-monday\n+friday" in shown[0]
    assert [step["diff_preview"] for step in story["steps"]] == shown
    words = (await forked(nursery, *arguments, "markdown", **kept)).out
    assert "\\-monday" in words, words


@promise("workspaces:shell")
async def test_a_model_runs_a_command_in_its_workspace_and_reads_what_it_said(opened):
    found, _ = opened
    place = room(opened, "sorting", names="ana\nbo\ncy\n")
    handle = await found.start({"text": "<shell>", "workspace": "sorting", "shell": True})
    request = await approved(handle)
    assert request["calls"][0]["undoable"] is True
    result = await ended(handle)
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    assert (place / "sorted.txt").read_text(encoding="utf-8") == "cy\nbo\nana\n"
    told = [request["messages"] for request in found.model.requests if "<shell>" in str(request["messages"])]
    assert "cy\\\\nbo\\\\nana" in str(told[-1]) or "cy\\nbo\\nana" in str(told[-1])


def asked_about(found, label):
    """Return what the model was asked with, request by request, in the run of a label."""
    return [request for request in found.model.requests if f"<{label}>" in str(request["messages"])]


def offered(request):
    return {name for tool in request["tools"] if (name := tool["function"]["name"]).startswith(("fs__", "shell__"))}


def answers(request):
    return [message["content"] for message in request["messages"] if message["role"] == "tool"]


@promise("workspaces:plan")
async def test_a_model_that_plans_first_reads_files_and_neither_writes_nor_starts_a_command(opened):
    found, _ = opened
    place = room(opened, "planning", names="ana\nbo\n")
    before = everything(place)
    task = {"text": "<planning>", "workspace": "planning", "filesystem": True, "shell": True, "mode": "plan_first"}
    handle = await found.start(task)
    await pending(handle)
    first, second, third = asked_about(found, "planning")
    for asked in (first, second, third):
        assert offered(asked) == {"fs__read_file", "fs__list_directory", "fs__search"}
    for name, said in zip(FORBIDDEN, answers(second), strict=True):
        assert f"{name}: nothing is done before a plan is approved; put the call into propose_plan" in said
    read, listed = answers(third)[-2:]
    assert "ana\nbo\n" in read
    assert "names.txt" in listed
    assert everything(place) == before
    await approved(handle)
    result = await ended(handle)
    assert [(effect["tool"], effect["state"]) for effect in result["effects"]] == [("fs.delete", "applied")]
    assert everything(place) == {}
    assert offered(asked_about(found, "planning")[-1]) > {"fs__write_file", "shell__run"}


@promise("plans:processes")
async def test_a_plan_that_may_start_no_processes_goes_on_without_its_commands(opened, nursery, tmp_path):
    found, _ = opened
    place = room(opened, "unprocessed", names="b\na\n")
    command = {"tool": "shell.run", "arguments": {"command": "touch ran"}}
    told = {"tool": "fs.write_file", "arguments": {"path": "told", "content": "${steps.0.result.stdout}"}}
    writes = {"tool": "fs.write_file", "arguments": {"path": "kept", "content": "k"}}
    given = {
        "plan": {"steps": [command, told, writes]},
        "filesystem": True,
        "shell": True,
    }
    handle = await found.start({**given, "workspace": "unprocessed"})
    (request,) = await pending(handle)
    assert request["proposal"]["toggles"]["external_processes"] is True
    arguments = ("approve", handle.id, request["id"], "--no-processes", "--by", "ana")
    done = await forked(nursery, *arguments, environment=environment_of(found), folder=tmp_path)
    assert done.code == 0, done.err
    result = await ended(handle)
    assert result["outcome"] == "completed"
    shown = await handle.query("plan")
    assert [(step["status"], step["reason"]) for step in shown["steps"]] == [
        ("pending", "rejected"),
        ("pending", "dependency_failed"),
        ("success", ""),
    ]
    assert "ana lets the plan start no processes" in shown["steps"][0]["error"]
    assert sorted(path.name for path in place.iterdir()) == ["kept", "names.txt"]


@promise("workspaces:network-run")
async def test_a_person_is_asked_for_a_new_host_and_the_model_is_told_which_was_refused(opened):
    found, _ = opened
    room(opened, "reaching")
    handle = await found.start({"text": "<reaching>", "workspace": "reaching", "shell": True})
    (request,) = await pending(handle)
    assert request["rule"] == "network: reaches new.example; not in network.allow, which could list it: [new.example]"
    assert request["calls"][0]["arguments"]["network"] == ["new.example", "listed.example"]
    await approved(handle)
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert [effect["tool"] for effect in result["effects"]] == ["shell.run"] * 2
    asked = json.dumps(asked_about(found, "reaching")[-1])
    assert "other.example:80 is not in `network` of this call; to ask for it, add" in asked
    assert "127.0.0.1" in asked
    assert "is not the name of a host" in asked
    reached = [event["data"] for event in result["events"] if event["name"] == "network.reached"]
    assert [(data["reached"], data["refused"]) for data in reached] == [([], 1), ([], 1)]


@promise("workspaces:one-run")
async def test_a_second_run_is_kept_out_until_the_first_has_ended(opened):
    found, _ = opened
    place = room(opened, "shared", names="ana\n")
    first = await found.start({"text": "<waiting>", "workspace": "shared", "filesystem": True})
    (request,) = await pending(first)
    second = await found.start(plan("shared", ("fs.read_file", {"path": "names.txt"})))
    refused = await ended(second)
    assert (refused["outcome"], refused["error"]["type"]) == ("failed", "WorkspaceBusy")
    assert first.id in refused["error"]["message"]
    await first.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    await ended(first)
    assert (place / "names.txt").exists()
    third = await found.start(plan("shared", ("fs.read_file", {"path": "names.txt"})))
    assert (await ended(third))["outcome"] == "completed"


@promise("workspaces:lifecycle")
async def test_a_workspace_whose_run_was_terminated_is_free_again(opened):
    found, _ = opened
    room(opened, "left", names="ana\n")
    first = await found.start({"text": "<terminated>", "workspace": "left", "filesystem": True})
    await pending(first)
    await first.terminate()
    second = await found.start(plan("left", ("fs.read_file", {"path": "names.txt"})))
    assert (await ended(second))["outcome"] == "completed"


@promise("workspaces:lifecycle")
async def test_a_run_that_is_started_again_after_it_was_terminated_has_its_workspace_back(opened):
    found, _ = opened
    room(opened, "nightly", names="ana\n")
    first = await found.start({"text": "<nightly>", "workspace": "nightly", "filesystem": True}, "nightly")
    await pending(first)
    await first.terminate()
    second = await found.start(plan("nightly", ("fs.read_file", {"path": "names.txt"})), "nightly")
    assert (await ended(second))["outcome"] == "completed"


@promise("workspaces:lifecycle")
async def test_a_run_that_was_terminated_in_a_workspace_keeps_no_other_run_from_being_undone_there(opened):
    found, _ = opened
    place = room(opened, "around/undone", names="ana\n")
    before = everything(place)
    first = await found.start(plan("around/undone", ("fs.write_file", {"path": "new.txt", "content": "new\n"})))
    await approved(first)
    assert (await ended(first))["outcome"] == "completed"
    # This one holds the folder around it.
    second = await found.start({"text": "<around>", "workspace": "around", "filesystem": True})
    await pending(second)
    await second.terminate()
    assert (await undone(opened, first))["outcome"] == "rolled_back"
    assert everything(place) == before


@promise("workspaces:engine-only")
@pytest.mark.parametrize("tool", ["fs.restore", "fs.outcome"])
async def test_what_only_the_engine_calls_is_no_tool_for_a_plan(opened, tool):
    found, _ = opened
    room(opened, f"own-{tool}")
    handle = await found.start(plan(f"own-{tool}", (tool, {"effect": "anything"})))
    result = await ended(handle)
    assert (result["outcome"], result["effects"]) == ("failed", [])
    assert "there is no tool" in result["error"]["message"]


@promise("workspaces:opt-in")
async def test_a_run_without_a_workspace_has_no_files(opened):
    found, _ = opened
    handle = await found.start({"plan": {"steps": [{"tool": "fs.read_file", "arguments": {"path": "x"}}]}})
    result = await ended(handle)
    assert result["outcome"] == "failed"
    assert "there is no tool fs.read_file" in result["error"]["message"]


@promise("workspaces:outside")
@pytest.mark.parametrize("name", ["../letters", "/etc", "a/../../b", "."])
async def test_a_name_that_leads_out_is_refused(opened, name):
    found, _ = opened
    handle = await found.start(plan(name, ("fs.list_directory", {})))
    result = await ended(handle)
    assert result["outcome"] == "failed"
    assert "workspace" in result["error"]["message"]


def everything(place):
    return {
        str(path.relative_to(place)): path.read_bytes() if path.is_file() else None for path in sorted(place.rglob("*"))
    }


def copies(opened):
    return list((opened[1] / ".rehearsals").glob("*/*"))


@promise("approvals:rehearsal-workspace")
@pytest.mark.thorough
async def test_a_workspace_is_rehearsed_on_a_copy_that_is_thrown_away(opened):
    found, _ = opened
    place = room(opened, "rehearsed", names="bo\nana\n")
    before = everything(place)
    steps = (
        ("shell.run", {"command": "sort names.txt > sorted.txt; cat sorted.txt"}),
        ("fs.read_file", {"path": "sorted.txt"}),
        ("fs.write_file", {"path": "copy.txt", "content": "${steps.0.result.stdout}"}),
    )
    handle = await found.start(plan("rehearsed", *steps, rehearse=True, shell=True))
    (request,) = await pending(handle)
    assert everything(place) == before
    assert copies(opened) == []
    assert [entry["assumed"] for entry in request["forecast"]] == [False, True, False]
    assert request["forecast"][2]["arguments"]["content"] == "ana⏎bo⏎"
    (place / "names.txt").write_text("cy\n", encoding="utf-8")
    await approved(handle)
    (request,) = await pending(handle)
    assert "/content: foretold 'ana\\nbo\\n', now 'cy\\n'" in request["rule"]
    await approved(handle)
    assert (await ended(handle))["outcome"] == "completed"
    assert (place / "copy.txt").read_text(encoding="utf-8") == "cy\n"


@promise("approvals:rehearsal-workspace")
async def test_the_copy_of_a_run_that_was_terminated_goes_with_its_claim(opened):
    found, _ = opened
    place = room(opened, "cut", names="ana\n")
    steps = [("fs.delete", {"path": "names.txt"}), ("shell.run", {"command": "sleep 3"})]
    first = await found.start(plan("cut", *steps, rehearse=True, shell=True))
    async with asyncio.timeout(150):
        while not copies(opened):
            await asyncio.sleep(0.05)
    await first.terminate()
    second = await found.start(plan("cut", ("fs.read_file", {"path": "names.txt"})))
    assert (await ended(second))["outcome"] == "completed"
    assert copies(opened) == []
    assert (place / "names.txt").exists()
    third = await found.start(plan(".rehearsals/x", ("fs.list_directory", {})))
    assert "the engine's own" in (await ended(third))["error"]["message"]


@promise("workspaces:denied-before")
async def test_nobody_is_asked_about_a_command_that_the_operator_denies(opened):
    found, _ = opened
    room(opened, "denied")
    handle = await found.start({"text": "<denied>", "workspace": "denied", "shell": True})
    result = await asyncio.wait_for(handle.result(), 150)
    assert result["success"], result
    assert not [event for event in result["events"] if "approval" in event["name"]]
    said = str(SCRIPTS.heard["denied"])
    assert "'ssh' is on the list of commands that are not allowed" in said
    assert "'docker' is on the list of commands that are not allowed" in said


@promise("workspaces:denied-before")
async def test_a_plan_with_a_denied_command_ends_before_anybody_is_asked(opened):
    found, _ = opened
    room(opened, "planned")
    handle = await found.start({"plan": {"steps": [DENIED_STEP]}, "workspace": "planned", "shell": True})
    result = await asyncio.wait_for(handle.result(), 150)
    assert not result["success"]
    assert "'docker' is on the list of commands that are not allowed" in str(result)


@promise("workspaces:denied-before")
@pytest.mark.thorough
async def test_a_program_is_told_of_a_denied_command_and_nobody_is_asked(opened, temporal, tmp_path, rooms, sandbox):
    share_images(tmp_path / "home")
    (tmp_path / "toolbox.json").write_text("{}", encoding="utf-8")
    source = (
        "from sandbox_py.client import ToolError\n"
        "try:\n    await shell.run(command='ssh host')\nexcept ToolError as error:\n    return str(error)"
    )
    script = [Reply(calls=[("run_program", {"code": source})]), DONE]
    rules = Labelled(programmed=script)
    given = {"policy": POLICY, "workspaces": rooms, "toolbox": tmp_path / "toolbox.json", "sandbox": sandbox}
    async with engine(temporal, tmp_path, rules, **given) as found:
        room(opened, "programmed")
        task = {"text": "<programmed>", "workspace": "programmed", "shell": True}
        handle = await found.start(task)
        result = await asyncio.wait_for(handle.result(), 150)
        assert result["success"], result
        assert "not allowed: 'ssh'" in str(rules.heard["programmed"])


def words(step):
    return [said for said in step_marks(ProposedStep.model_validate(step), several=False) if "at most" in said]


def narrowed(command, **limits):
    step = {"tool": "shell.run", "arguments": {"command": command}, "continue_on_failure": True}
    return [step, {**step, "limits": limits}]


@promise("workspaces:narrowed")
@pytest.mark.thorough
async def test_a_step_gets_no_more_of_its_jail_than_its_limits_say(opened):
    found, _ = opened
    place = room(opened, "narrowed")
    steps = [
        *narrowed("python3 -c 'print(len(bytearray(400 << 20)))'", memory_mb=256),
        *narrowed("case $(ulimit -t) in 1) while :; do :; done;; esac", cpu_s=1),
        *narrowed("head -c 3M /dev/zero > plenty; sleep 3; rm plenty; head -c 2M /dev/zero > two", artifacts_mb=1),
    ]
    handle = await found.start({"plan": {"steps": steps}, "workspace": "narrowed", "shell": True})
    request = await approved(handle)
    assert [step["limits"] and words(step) for step in request["proposal"]["steps"]] == [
        None,
        ["gets at most 256 MB of memory"],
        None,
        ["gets at most 1 s of processor time"],
        None,
        ["gets at most 1 MB written"],
    ]
    result = await asyncio.wait_for(handle.result(), 150)
    made = result["raw_outputs"]["steps"]
    assert [made[index]["data"]["exit_code"] for index in (0, 1, 3)] == [0, 1, 137], made
    assert "MemoryError" in made[1]["data"]["stderr"]
    assert [step["status"] for step in made[4:]] == ["success", "failed"], made
    assert re.search(WROTE_MUCH, made[5]["data"]), made[5]
    assert sorted(path.name for path in place.iterdir()) == ["two"]
