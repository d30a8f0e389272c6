"""The command `result`, and the ways to name a run."""

import json

import pytest

from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.requirements import promise


@pytest.fixture
def run(opened, nursery, tmp_path):
    async def run(*arguments, **more):
        return await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)

    return run


@pytest.fixture
def plan(tmp_path):
    steps = [
        {"tool": "mail.list_customers", "arguments": {"limit": 2}},
        {"tool": "mail.send_email", "arguments": {"to": "no address", "subject": "s", "body": "b"}},
        {"tool": "mail.send_email", "arguments": {"to": "a@undo.example", "subject": "s", "body": "b"}},
    ]
    path = tmp_path / "plan.json"
    path.write_text(
        json.dumps({"steps": [steps[0], steps[1] | {"continue_on_failure": True}, steps[2]]}), encoding="utf-8"
    )
    return path


@promise("clients:cli-reading")
@pytest.mark.thorough
async def test_the_answers_of_a_plan_are_read_whole_or_by_step_and_a_failed_call_says_so(run, plan, tmp_path):
    started = await run("run", "--plan", str(plan), "--yes", "--id", "reading-plan")
    assert started.code == 0
    # What short answers say is readable at once.
    assert '"customers": [' in started.out

    whole = json.loads((await run("result", "reading-plan", "--output", "json")).out)
    assert [step["success"] for step in whole["raw_outputs"]["steps"]] == [True, False, True]
    assert len(whole["raw_outputs"]["steps"][0]["data"]["customers"]) == 2

    step = await run("result", "last", "--step", "1")
    assert step.out.splitlines()[0] == 'mail.list_customers {"limit":2}'
    assert '"customers": [' in step.out
    failed = await run("result", "reading-pl", "--step", "2")
    assert "  failed: " in failed.out
    (call,) = json.loads((await run("result", "reading-plan", "--step", "2", "--output", "json")).out)["calls"]
    assert (call["success"], call["context"]["tool"], call["context"]["effect"]) == (False, "mail.send_email", 1)
    assert call["trace"] == ["called mail.send_email", "as effect 1", "failed: ToolError"]
    assert "'no address' is not an e-mail address" in call["error"]
    (call,) = json.loads((await run("result", "reading-plan", "--step", "1", "--output", "json")).out)["calls"]
    assert len(call["data"]["customers"]) == 2
    assert call["context"] == {
        "tool": "mail.list_customers",
        "effect": None,
        "ref": whole["raw_outputs"]["steps"][0]["ref"],
        "undo": None,
        "cached": False,
        "simulated": False,
    }
    (call,) = json.loads((await run("result", "reading-plan", "--step", "3", "--output", "json")).out)["calls"]
    assert call["context"]["undo"] == f'mail.recall_email(message_id="{call["data"]["message_id"]}")'
    file = tmp_path / "out.json"
    assert (await run("result", "reading-plan", "--step", "1", "--output-file", str(file))).out == ""
    assert json.loads(file.read_text(encoding="utf-8"))["calls"][0]["tool"] == "mail.list_customers"


@promise("clients:response")
async def test_every_call_is_told_in_one_shape_also_one_that_was_only_rehearsed(run, tmp_path):
    file = tmp_path / "rehearsed.json"
    steps = [{"tool": "mail.send_email", "arguments": {"to": "a@x.example", "subject": "s", "body": "b"}}]
    file.write_text(json.dumps({"title": "dry", "steps": steps, "dry_run": True}), encoding="utf-8")
    assert (await run("run", "--plan", str(file), "--id", "reading-dry")).code == 0
    ended = json.loads((await run("result", "reading-dry", "--output", "json")).out)
    (event,) = [event for event in ended["events"] if event["name"] == "action.rehearsed"]
    step = str(event["step_index"])
    (call,) = json.loads((await run("result", "reading-dry", "--step", step, "--output", "json")).out)["calls"]
    assert list(call) == ["tool", "arguments", "success", "data", "context", "error", "trace"]
    assert (call["success"], call["context"]["simulated"], call["context"]["effect"]) == (True, True, None)
    assert call["data"]["message_id"] == "⟦sim:0:/message_id⟧"
    assert "  simulated" in (await run("result", "reading-dry", "--step", step)).out.splitlines()


@promise("clients:cli-reading")
async def test_outputs_that_look_like_a_stored_answer_are_shown_as_they_are(run, scripts):
    outputs = {"ref": "INV-2041", "note": "paid"}
    task = scripts.task(Reply(calls=[("finish", {"summary": "done", "outputs": outputs})]))
    done = await run("run", task["text"], "--id", "alike")
    told = await run("result", "alike", "--output", "json")

    assert (done.code, told.code) == (0, 0), told.err
    assert '"INV-2041"' in told.out


@promise("clients:cli-reading")
@pytest.mark.thorough
async def test_all_that_a_model_was_told_and_said_is_exported_line_by_line(run, scripts, tmp_path):
    read = Reply(text="I look.", calls=[("mail__list_customers", {"limit": 2})])
    await run("run", scripts.task(read)["text"], "--id", "exported")
    file = tmp_path / "chat.jsonl"

    printed = await run("export", "exported", "--format", "jsonl")
    written = await run("export", "export", "--output-file", str(file))
    messages = [json.loads(line) for line in printed.out.splitlines()]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool", "assistant"]
    assert messages[2]["content"] == "I look."
    assert len(json.loads(messages[3]["content"])["customers"]) == 2
    assert messages[2]["usage"]["cost_usd"] > 0
    assert (written.out, file.read_text(encoding="utf-8")) == ("", printed.out)
    assert written.err == f"5 messages as jsonl, written to {file}\n"
    unwritable = await run("export", "exported", "--output-file", str(tmp_path))
    assert (unwritable.code, "--output-file: " in unwritable.err) == (2, True)


@promise("clients:cli-reading")
@pytest.mark.thorough
async def test_a_run_is_named_by_the_beginning_of_its_id_and_a_wrong_name_says_what_to_do(run, scripts):
    for name in ("named-one", "named-two"):
        started = await run("run", scripts.task()["text"], "--id", name, "--detach")
        assert (started.code, started.out) == (0, f"{name}\n")
        assert f"backstay attach {name}" in started.err
        assert (await run("attach", name)).code == 0

    assert "outcome completed" in (await run("show", "named-o")).out
    unclear = await run("result", "named-")
    assert unclear.code == 2
    assert "several runs begin with named-" in unclear.err
    missing = await run("result", "named-one", "--step", "7")
    assert (missing.code, "step 7 made no call" in missing.err) == (2, True)
    assert (await run("result", "nobody-of-that-name")).code != 0
    quoted = await run("result", "x' OR WorkflowId != '")
    assert quoted.code != 0
    assert "several runs" not in quoted.err
