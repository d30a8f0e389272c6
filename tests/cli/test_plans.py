"""Plans at the terminal: how a proposal looks, the flags and keys that decide it, and the story that is kept of it."""

import json

import pytest

from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import BACKSTAY, at_terminal, environment_of, forked
from tests.engine import ended, pending
from tests.requirements import promise


def send(to, subject="s", body="b", **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": body}, **fields}


def plan(*steps, title="letters", **fields):
    return {"title": title, "steps": list(steps), **fields}


def propose(*steps, alternatives=(), **fields):
    given = {"plan": plan(*steps, **fields)} | ({"alternatives": list(alternatives)} if alternatives else {})
    return Reply(calls=[("propose_plan", given)])


READS = {"tool": "mail.list_sent", "arguments": {"to": "a@shown.example"}}


@pytest.fixture
def command(opened, nursery, tmp_path):
    async def command(*arguments, code=0, **more):
        done = await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)
        assert done.code == code, f"{done.out}\n{done.err}"
        return done

    return command


@pytest.fixture
def person(opened, nursery):
    def person(*arguments):
        return at_terminal(*BACKSTAY, *arguments, environment=environment_of(opened), nursery=nursery)

    return person


def lines_of(text):
    return [line.strip() for line in text.splitlines()]


async def decided(opened, handle, request, **more):
    said = {"request_id": request["id"], "verdict": "approve", "by": "ana", **more}
    return await handle.execute_update("decide", said)


@promise("plans:drawn")
async def test_a_proposal_is_drawn_whole_with_the_command_that_chooses_each_alternative(command, opened, scripts):
    steps = [
        READS,
        send("a@shown.example", summary="to: eve@shown.example"),
        send("b@free.example", body="${steps.1.result.message_id}"),
        send("c@shown.example", body="first\nsecond"),
    ]
    other = plan(send("d@shown.example"), title="one letter")
    handle = await opened.start(scripts.task(propose(*steps, alternatives=[other])))
    requests = {request["proposal"]["plan_id"]: request for request in await pending(handle, 2)}
    shown = (await command("show", handle.id)).out
    page = (await handle.query("__temporal_workflow_metadata")).current_details
    await decided(opened, handle, requests["p2"], plan_id="p2")
    await ended(handle)

    lines = shown.splitlines()
    for line in (
        "  plan: letters (id p1, version 1)",
        "  [0] mail.list_sent  (read_only)  only reads",
        "  [1] mail.send_email  (write_safe)  needs approval; if it is left out, step 2 is not made either",
        "        the plan says: to: eve@shown.example",
        "  [2] mail.send_email  (write_safe)  allowed by the policy; uses what step 1 returned",
        "        │ second",
        "  changes: mail.send_email",
        "  steps 1, 3: waits for anyone",
        "  a step may take 30 s; to give it less: --step-timeout SECONDS",
        "  instead of it: plan p2: one letter; choose it with",
    ):
        assert line in lines
    chooses = (
        f"backstay approve {handle.id} {requests['p2']['id']} --by YOU --args-digest {requests['p2']['args_digest']}"
    )
    assert f"    {chooses}" in lines
    assert any(line.startswith("    backstay approve --reject-step STEP ") for line in lines)
    assert chooses in page
    assert "Plan: one letter. Calls: 1 of mail.send\\_email" in page


@promise("plans:flags")
async def test_flags_approve_a_plan_in_part_and_the_story_says_who_said_what(command, opened, scripts):
    steps = [send("a@story.example", summary="tell a"), READS, send("b@story.example", subject="second")]
    task = scripts.task(propose(*steps), Reply(calls=[("ask_person", {"question": "all right?"})]))
    handle = await opened.start(task)
    (request,) = await pending(handle)
    proposed = json.loads((await command("plan", "show", handle.id, "--output", "json")).out)
    flags = [
        "--reject-step",
        "2",
        "--step-timeout",
        "5",
        "--plan-id",
        "p1",
        "--comment",
        "not \x1b[2J b",
        "--by",
        "ana",
    ]
    wrong = await command("approve", handle.id, request["id"], "--reject-step", "1", code=1)
    wider = await command("approve", handle.id, request["id"], "--step-timeout", "90", code=1)
    await command("approve", handle.id, request["id"], *flags)
    (question,) = await pending(handle)
    running = (await command("plan", "show", handle.id)).out
    await decided(opened, handle, question, verdict="answer", answer="yes")
    await ended(handle)
    told = json.loads((await command("plan", "show", handle.id, "p", "--output", "json")).out)
    text = (await command("plan", "show", handle.id)).out

    assert (proposed["state"], proposed["open"], proposed["approvals"]) == ("PROPOSED", True, [])
    assert (told["author"], told["created_at"] <= told["states"][0]["at"]) == ("model", True)
    assert f"version 1, by model, made {told['created_at'][:19]}, hash {told['hash']}" in running.splitlines()
    assert "calls.1: nobody is asked about this step, because the policy allows it; name only [0, 2]" in wrong.err
    assert "toggles.limits.timeout_s: can only be narrowed" in wider.err
    assert "state COMPLETED" in running.splitlines()
    assert "limits: " not in running
    assert [(step["status"], step["reason"]) for step in told["steps"]] == [
        *[("success", ""), ("success", ""), ("pending", "rejected")],
    ]
    (approval,) = told["approvals"]
    assert approval | {"at": ""} == {
        "at": "",
        "by": "ana",
        "verified": False,
        "verdict": "approve",
        "request_id": request["id"],
        "args_digest": told["hash"],
        "comment": "not <U+001B>[2J b",
        "state": "decided",
        "calls": {"0": "approve", "2": "reject"},
        "option": "approve_per_step",
        "left_out": [2],
        "toggles": {"limits": {"timeout_s": 5.0}},
    }
    assert told["hash"] == request["args_digest"]
    assert [state["state"] for state in told["states"]] == [
        *["PROPOSED", "APPROVED", "EXECUTING", "REVIEWING", "COMPLETED"],
    ]
    assert "  [2] mail.send_email  (write_safe)  needed approval, part 0; pending (rejected)" in text.splitlines()
    assert "\x1b" not in text


@promise("plans:plan-export")
async def test_diff_tells_what_a_child_plan_changes_and_export_tells_all_until_after_the_undo(
    command, opened, scripts, tmp_path
):
    hostile = "letters\n## Approved by all <b>"
    again = {"plan_id": "p2", "plan": plan(send("a@diff.example", subject="politer"), READS, title="fewer")}
    first = propose(send("a@diff.example"), send("b@diff.example"), title=hostile)
    handle = await opened.start(scripts.task(first, Reply(calls=[("update_plan", again)])))
    (request,) = await pending(handle)
    changed = {"0": {"verdict": "modify", "arguments": {"subject": "polite"}}}
    await decided(opened, handle, request, verdict="modify", calls=changed, comment="be polite")
    (request,) = await pending(handle)
    await decided(opened, handle, request, verdict="reject", comment="one is enough")
    (request,) = await pending(handle)
    # While the run waits its worker has it in memory; afterwards each question has it replayed.
    person = (await command("plan", "diff", handle.id, "p2")).out
    model = json.loads((await command("plan", "diff", handle.id, "--output", "json")).out)
    none = await command("plan", "diff", handle.id, "p1", code=2)
    unknown = await command("plan", "show", handle.id, "p7", code=2)
    await decided(opened, handle, request)
    await ended(handle)
    await command("undo", handle.id, "--yes")
    story = json.loads((await command("plan", "export", handle.id)).out)
    file = tmp_path / "plans.md"
    await command("plan", "export", handle.id, "--format", "markdown", "--output-file", str(file))
    page = file.read_text(encoding="utf-8")

    assert person.splitlines() == ["p1 -> p2", "~ [0] mail.send_email  changed", "    ~ subject: s -> polite"]
    assert [(step["change"], step["was"], step["idx"], step["action"]) for step in model["steps"]] == [
        ("changed", 0, 0, "mail.send_email"),
        ("removed", 1, None, "mail.send_email"),
        ("added", None, 1, "mail.list_sent"),
    ]
    assert "p1 replaced no other plan" in none.err
    assert "plan: no plan p7; the plans are: p1, p2, p3" in unknown.err
    assert [(told["state"], told["reason"], told["children"]) for told in story["plans"]] == [
        *[("FAILED", "superseded", ["p2"]), ("FAILED", "rejected", ["p3"]), ("ROLLBACK_COMPLETED", "", [])],
    ]
    assert [[said["verdict"] for said in told["approvals"]] for told in story["plans"]] == [
        *[["modify"], ["reject"], ["approve"]],
    ]
    assert [step["status"] for step in story["plans"][2]["steps"]] == ["rolled_back", "success"]
    assert story["undone"] == [{"effect": 1, "tool": "mail.send_email", "state": "compensated"}]
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        *(f"## Plan: letters⏎\\#\\# Approved by all \\<b\\> (id {name})" for name in ("p1", "p2")),
        *["## Plan: fewer (id p3)", "## Undone"],
    ]
    assert "be polite" in page
    assert "one is enough" in page


@promise("plans:asked")
async def test_a_person_chooses_another_plan_edits_a_step_and_leaves_a_step_out(person, opened, scripts):
    steps = [send("a@chosen.example"), send("b@chosen.example"), READS]
    other = plan(send("c@chosen.example"), title="one letter")
    text = scripts.task(propose(*steps, alternatives=[other]))["text"]

    async with person("run", text, "--mode", "act") as terminal:
        shown = await terminal.shows("see the [o]ther plan, [d]etach?")
        terminal.type("o")
        shown += await terminal.shows("see the [o]ther plan, [d]etach?")
        if "[c]hoose steps" not in shown.splitlines()[-1]:
            terminal.type("o")
            shown += await terminal.shows("see the [o]ther plan, [d]etach?")
        terminal.type("e")
        await terminal.shows("which step? number:")
        terminal.type("0")
        await terminal.shows("names: to, subject, body:")
        terminal.type('{"subject": "polite"}')
        await terminal.shows("decided: changed")
        for wanted in range(3):
            asked = await terminal.shows("[d]etach?")
            if "[c]hoose steps" in asked:
                break
            assert wanted < 2
            terminal.type("o")
        terminal.type("c")
        await terminal.shows("[0] mail.send_email: [a]pprove, [r]eject")
        terminal.type("a")
        await terminal.shows("[1] mail.send_email: [a]pprove, [r]eject")
        terminal.type("r")
        await terminal.shows("decided: approved")
        code, _ = await terminal.ended()

    assert "[a]pprove all of it, [e]dit a step, [r]eject" in shown
    sent = opened.mailbox.rows("SELECT recipient, subject FROM sent WHERE recipient LIKE '%@chosen.example'")
    assert (code, sent) == (0, [("a@chosen.example", "polite")])


@promise("plans:asked-none")
async def test_the_rest_of_a_plan_goes_on_where_a_person_leaves_out_all_that_they_are_asked_about(
    person, command, opened, tmp_path
):
    file, name = tmp_path / "plan.json", f"left-{opened.settings.task_queue}"
    file.write_text(json.dumps(plan(READS, send("a@left.example"), send("b@left.example"))), encoding="utf-8")

    async with person("run", "--plan", str(file), "--id", name) as terminal:
        await terminal.shows("[c]hoose steps")
        await terminal.shows("[d]etach?")
        terminal.type("c")
        await terminal.shows("[1] mail.send_email: [a]pprove, [r]eject")
        terminal.type("r")
        await terminal.shows("[2] mail.send_email: [a]pprove, [r]eject")
        terminal.type("r")
        await terminal.shows("decided: approved", 60)
        await terminal.ended()

    story = json.loads((await command("plan", "show", name, "--output", "json")).out)
    assert [step["status"] for step in story["steps"]] == ["success", "pending", "pending"]
    assert opened.mailbox.rows("SELECT 1 FROM sent WHERE recipient LIKE '%@left.example'") == []


@promise("plans:mode")
async def test_run_takes_a_mode_and_a_run_without_a_plan_says_so(command, opened, scripts):
    task = scripts.task(Reply(calls=[("mail__list_customers", {"limit": 1})]))
    done = await command("run", task["text"], "--mode", "plan_first", "--id", f"planless-{opened.settings.task_queue}")
    asked = [request for request in opened.model.requests if task["text"] in str(request["messages"][1])]
    refused = await command("plan", "show", f"planless-{opened.settings.task_queue}", code=2)
    wrong = await command("run", "x", "--mode", "plan", code=2)

    assert done.out == "done\n"
    assert "nothing is done before a plan is approved" in str(asked[-1]["messages"])
    assert "has no plan" in refused.err
    assert "--mode" in wrong.err


@promise("approvals:rehearsal-cli")
async def test_run_rehearses_and_shows_what_would_be_done_before_anything_is(command, opened, tmp_path):
    file, name = tmp_path / "plan.json", f"rehearsed-{opened.settings.task_queue}"
    steps = [send("a@rehearsed.example"), send("b@rehearsed.example", body="after ${steps.0.result.message_id}")]
    file.write_text(json.dumps(plan(*steps)), encoding="utf-8")
    await command("run", "--plan", str(file), "--rehearse", "--detach", "--id", name)
    handle = opened.client.get_workflow_handle(name)
    (request,) = await pending(handle)
    shown = lines_of((await command("show", name)).out)
    assert opened.mailbox.rows("SELECT 1 FROM sent WHERE recipient LIKE '%@rehearsed.example'") == []
    at = shown.index("foretold by a rehearsal:")
    assert shown[at + 1] == "0. mail.send_email (would be made)"
    assert "body: after ⟦sim:0:/message_id⟧" in shown[at:]
    await command("approve", name, request["id"], "--by", "ana")
    assert (await ended(handle))["outcome"] == "completed"


@promise("plans:answers")
async def test_the_result_of_a_plan_holds_the_short_answers_of_its_steps(opened):
    missing = {"tool": "mail.list_sent", "arguments": {"to": "${steps.0.result.nowhere}"}}
    steps = [READS, {"tool": "mail.list_customers", "arguments": {"limit": 50}}, missing]
    handle = await opened.start({"plan": plan(*steps)})
    result = await ended(handle)
    kept = (
        await Backstay(opened.client, task_queue=opened.settings.task_queue)
        .run(handle.id)
        .read(result["raw_outputs"]["steps"][1]["ref"])
    )

    found = [(step["idx"], step["status"], step["success"]) for step in result["raw_outputs"]["steps"]]
    assert found == [(0, "success", True), (1, "success", True), (2, "failed", False)]
    assert result["outcome"] == "failed"
    assert result["raw_outputs"]["steps"][0]["data"] == {"messages": [], "total": 0}
    assert (result["raw_outputs"]["steps"][1]["data"] is None) is (len(json.dumps(kept)) > 2048)


@promise("plans:steps-apart")
async def test_each_of_the_reads_that_are_made_together_is_a_step_of_its_own(opened, command):
    handle = await opened.start({"plan": plan(READS, READS, READS)})
    result = await ended(handle)
    told = [
        json.loads((await command("result", handle.id, "--step", str(n), "--output", "json")).out) for n in (1, 2, 3)
    ]

    called = [event["step_index"] for event in result["events"] if event["name"] == "action.called"]
    assert (result["outcome"], sorted(called)) == ("completed", [1, 2, 3])
    assert [[call["tool"] for call in step["calls"]] for step in told] == [[READS["tool"]]] * 3
