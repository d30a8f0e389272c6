"""The commands for scripts: streams, exit codes, and every way to decide, look and steer."""

import asyncio
import json

import pytest
from temporalio.client import WorkflowFailureError

import opening
from backstay.client import Backstay
from backstay.testing import Reply
from tests.cli.commands import bare, command, environment_of, forked
from tests.engine import share_images
from tests.nursery.nursery import COMMAND
from tests.requirements import promise
from tests.skew import skewed


def mails(*recipients, body="b"):
    return Reply(
        text="I write.", calls=[("mail__send_email", {"to": to, "subject": "s", "body": body}) for to in recipients]
    )


@pytest.fixture
def run(opened, nursery, tmp_path):
    async def run(*arguments, **more):
        return await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)

    return run


@pytest.fixture
def backstay(opened):
    return Backstay(opened.client, task_queue=opened.settings.task_queue)


async def waiting(run, workflow_id):
    """Wait until a request is open; return its id."""
    async with asyncio.timeout(150):
        async for event in run.run(workflow_id).events():
            if event.name == "approval.asked":
                return event.data["request"]
    raise AssertionError("the run ended without asking")


@promise("clients:cli-streams")
async def test_people_read_stderr_and_programs_read_stdout(run, scripts, opened):
    task = scripts.task(mails("one@streams.example"))

    done = await run("run", task["text"], "--yes", "--by", "ana", "--output", "json", "--id", "streams")

    result = json.loads(done.out)
    assert (done.code, result["outcome"], result["workflow_id"]) == (0, "completed", "streams")
    lines = done.err.splitlines()
    assert lines[0] == "run streams"
    assert next(line for line in lines if "approval.asked" in line)
    assert "  [0] mail.send_email  (write_safe)" in lines
    assert "        can be undone: recall_email, with message_id from its answer" in lines
    assert next(line for line in lines if line.startswith("  asked by rule: "))
    assert "approved r1 without asking: --yes was given" in lines
    assert opened.mailbox.sent().count("one@streams.example") == 1


@promise("clients:result-text")
async def test_a_result_as_text_is_the_summary_and_the_outputs(run, scripts):
    finish = Reply(calls=[("finish", {"summary": "Two.\nThree.", "outputs": {"n": 2}, "success": True})])

    done = await run("run", scripts.task(finish)["text"])

    assert (done.code, done.out) == (0, 'Two.\nThree.\n{\n  "n": 2\n}\n')


@promise("clients:codes")
@pytest.mark.parametrize(
    ("replies", "flags", "code"),
    [
        ([Reply(calls=[("finish", {"summary": "no", "outputs": {}, "success": False})])], [], 1),
        ([mails("one@free.example")] * 3, ["--budget.max-steps", "1"], 3),
        (
            [mails("two@free.example"), Reply(calls=[("finish", {"summary": "no", "outputs": {}, "success": False})])],
            [],
            5,
        ),
        (
            [mails("two@free.example"), Reply(calls=[("finish", {"summary": "no", "outputs": {}, "success": False})])],
            ["--on-failure", "keep"],
            1,
        ),
    ],
    ids=["failed", "budget", "rolled back", "kept"],
)
async def test_the_exit_code_says_how_the_run_ended(run, scripts, replies, flags, code):
    done = await run("run", scripts.task(*replies)["text"], *flags)

    assert done.code == code, done.err


@promise("clients:no-terminal")
async def test_without_a_terminal_the_commands_that_decide_are_printed_and_one_of_them_decides(
    run, scripts, backstay, opened, nursery, tmp_path
):
    text = scripts.task(mails("one@elsewhere.example"))["text"]
    environment, log = environment_of(opened), tmp_path / "said"
    arguments, out = ("run", text, "--id", "elsewhere"), tmp_path / "printed"
    started = await nursery.raised(COMMAND, *arguments, environment=environment, log=log, out=out)
    await _begun(backstay, "elsewhere")
    request = await waiting(backstay, "elsewhere")

    shown = await run("show", "elsewhere")
    printed = next(line.strip() for line in shown.out.splitlines() if line.strip().startswith("backstay approve"))
    assert printed.startswith(f"backstay approve elsewhere {request} --by YOU --args-digest ")
    async with asyncio.timeout(150):
        while f"    {printed}" not in started.said().splitlines():
            await asyncio.sleep(0.05)
    decided = await run(*printed.replace("YOU", "ana").split()[1:])
    twice = await run(*printed.replace("YOU", "bo").split()[1:])
    code = await started.ended(50)

    assert (decided.code, decided.err) == (0, "decided: approved r1\n")
    assert twice.code == 1
    assert "decided already" in twice.err or "has ended" in twice.err
    assert (code, opened.mailbox.sent().count("one@elsewhere.example")) == (0, 1)


@promise("clients:codes")
async def test_rejecting_with_stop_ends_the_run_and_attach_tells_how(run, scripts, backstay):
    await backstay.start(scripts.task(mails("one@stopped.example")), id="stopped")
    request = await waiting(backstay, "stopped")

    rejected = await run("reject", "stopped", request, "--by", "ana", "--stop", "--comment", "not today")
    done = await run("attach", "stopped")

    assert (rejected.code, done.code) == (0, 4)
    assert "rejected by ana: not today" in done.out


@promise("clients:answers")
async def test_a_question_is_answered_with_json_and_a_clipped_batch_with_its_digest(run, scripts, backstay, opened):
    asks = Reply(calls=[("ask_person", {"question": "Which?"})])
    replies = (asks, asks, asks, mails("one@clipped.example", body="x" * 3000))
    started = await backstay.start(scripts.task(*replies), id="asked")
    request = await waiting(backstay, "asked")
    for typed in ("3.10", "true"):
        assert (await run("answer", "asked", request, "--answer", typed)).code == 0
        request = (await following(started, request)).id

    neither = await run("answer", "asked", request, "--by", "ana")
    answered = await run("answer", "asked", request, "--answer", '{"which": 2}', "--by", "ana")
    async with asyncio.timeout(150):
        while not (open_now := await started.pending()):
            await asyncio.sleep(0.1)
    clipped = open_now[0]
    short, whole = await run("show", "asked"), await run("show", "asked", clipped.id)
    as_json, unknown = await run("show", "asked", clipped.id, "--output", "json"), await run("show", "asked", "r77")
    unseen = await run("approve", "asked", clipped.id, "--by", "ana")
    seen = await run("approve", "asked", clipped.id, "--by", "ana", "--args-digest", clipped.args_digest)

    assert (neither.code, answered.code, unseen.code, seen.code) == (2, 0, 1, 0)
    assert f"all of it: backstay show asked {clipped.id}" in short.out
    assert "x" * 3000 not in short.out
    assert f"        body: {'x' * 3000}" in whole.out.splitlines()
    assert "characters clipped" not in whole.out
    assert json.loads(as_json.out)["calls"][0]["arguments"]["body"] == "x" * 3000
    assert (unknown.code, f"open requests: {clipped.id}" in unknown.err) == (1, True)
    told = json.dumps(opened.model.requests[-1]["messages"]).replace("\\", "")
    assert [answer for answer in ('"3.10"', '"true"', '{"which":2}') if answer not in told] == []
    assert "args_digest: required" in unseen.err


@promise("clients:foreign-digest")
@pytest.mark.thorough
async def test_a_digest_that_was_printed_for_something_else_decides_nothing(run, scripts, backstay, opened):
    question = Reply(calls=[("ask_person", {"question": "Which?"})])
    asks = scripts.task(mails("one@digest.example"), mails("one@digest.example", body="changed"), question)
    first = await backstay.start(asks, id="digest one")
    await waiting(backstay, "digest one")
    await backstay.start(scripts.task(mails("two@digest.example")), id="digest two")
    await waiting(backstay, "digest two")
    (old,), (other,) = await first.pending(), await backstay.run("digest two").pending()

    async def refused(decides, request, digest, *more):
        done = await run(decides, "digest one", request, "--args-digest", digest, "--by", "ana", *more)
        assert done.code == 2, done.err
        return done.err

    for decides in ("approve", "reject"):
        said = await refused(decides, old.id, other.args_digest)
        assert "stale, or of another request or run: r1 of digest one" in said
    assert "it is cut; give all 64 characters" in await refused("approve", old.id, old.args_digest[:16])
    assert "--args-digest" in await refused("approve", old.id, "")
    assert (await run("approve", "digest one", old.id, "--args-digest", old.args_digest, "--by", "ana")).code == 0
    changed = await following(first, old.id)
    said = await refused("approve", changed.id, old.args_digest)
    assert f"look at it with: backstay show 'digest one' {changed.id}" in said
    assert (await run("approve", "digest one", changed.id, "--args-digest", changed.args_digest)).code == 0
    asked = await following(first, changed.id)
    said = await refused("answer", asked.id, changed.args_digest, "--answer", "1")
    assert f"{asked.id} of digest one asks about no arguments; leave it out" in said
    assert (await run("answer", "digest one", asked.id, "--answer", "1")).code == 0
    await asyncio.wait_for(first.result(), 150)
    assert opened.mailbox.sent().count("one@digest.example") == 2
    assert "two@digest.example" not in opened.mailbox.sent()


@promise("clients:foreign-digest")
async def test_a_digest_of_the_request_beside_it_is_named(run, scripts, backstay):
    others = [{"title": "other", "steps": [mail_step("b@beside.example")]}]
    plan = {"title": "one", "steps": [mail_step("a@beside.example")]}
    proposes = Reply(calls=[("propose_plan", {"plan": plan, "alternatives": others})])
    await backstay.start(scripts.task(proposes), id="beside")
    async with asyncio.timeout(150):
        while len(both := await backstay.run("beside").pending()) < 2:
            await asyncio.sleep(0.1)
    done = await run("approve", "beside", both[0].id, "--args-digest", both[1].args_digest, "--by", "ana")
    assert (done.code, f"it is that of {both[1].id}, and not of {both[0].id}" in done.err) == (2, True)
    assert len(await backstay.run("beside").pending()) == 2


def mail_step(to):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}}


async def following(run, request):
    """Wait for the request after another one."""
    async with asyncio.timeout(150):
        while not (found := [each for each in await run.pending() if each.id != request]):
            await asyncio.sleep(0.1)
    return found[0]


@promise("clients:steers")
async def test_a_run_is_held_resumed_topped_up_previewed_undone_and_cancelled(run, scripts, backstay, opened):
    await backstay.start(scripts.task(mails("one@free.example"), mails("two@steered.example")), id="steered")
    await waiting(backstay, "steered")

    assert (await run("pause", "steered", "--reason", "a walk", "--by", "ana")).code == 0
    assert (await run("top-up", "steered", "--max-steps", "7", "--by", "ana")).code == 0
    shown = await run("show", "steered")
    assert "steps 2/17" in shown.out
    assert "state waiting for r1 and paused (a walk), step 2" in shown.out.splitlines()
    assert (await run("resume", "steered")).code == 0
    preview = await run("undo", "steered", "--preview")
    assert preview.out.startswith(
        '1. mail.send_email {"to":"one@free.example","body":"b","subject":"s"} (step 1): mail.recall_em'
    )
    undone = await run("undo", "steered", "--by", "ana")
    target = 'mail.send_email {"to":"one@free.example","body":"b","subject":"s"}'
    assert f"{target}: undone by mail.recall_email(" in undone.err
    assert undone.code == 0
    shown = await run("show", "steered")
    assert f"undone: 1. {target}" in shown.out.splitlines()
    assert (await run("cancel", "steered")).code == 0
    assert (await run("attach", "steered")).code == 7


@promise("clients:ended")
async def test_what_is_asked_of_an_ended_run_is_refused_with_the_way_on(run, scripts):
    await run("run", scripts.task(mails("one@free.example"))["text"], "--id", "over-and-done", "--yes")
    cancelled = await run("cancel", "over-and-done")
    assert (cancelled.code, "has ended" in cancelled.err, "backstay undo over-and-done" in cancelled.err) == (
        1,
        True,
        True,
    )
    more = await run("top-up", "over-and-done", "--max-steps", "5")
    assert more.code == 1
    assert "backstay run --continue over-and-done TEXT" in more.err
    assert "--budget.on-exhausted ask" in more.err


@promise("undo:preview-step")
async def test_the_preview_of_an_undo_to_a_step_lists_what_that_undo_covers(run, scripts):
    steps = [mails("one@free.example"), mails("two@free.example")]
    await run("run", scripts.task(*steps)["text"], "--id", "two-steps", "--yes")
    every = json.loads((await run("undo", "two-steps", "--preview", "--output", "json")).out)
    later = json.loads((await run("undo", "two-steps", "--to-step", "1", "--preview", "--output", "json")).out)
    assert ([row["effect"] for row in every], [row["effect"] for row in later]) == ([2, 1], [2])


@promise("undo:by-hand")
@pytest.mark.thorough
async def test_what_a_person_must_undo_by_hand_is_named_with_its_call(run, scripts, backstay, opened):
    await backstay.start(scripts.task(mails("one@free.example"), mails("two@parked.example")), id="parked")
    await waiting(backstay, "parked")
    await opened.mailbox.refuse_recall("parked")
    assert (await run("reject", "parked", "r1", "--stop", "--by", "ana")).code == 0
    in_run = [(await run("attach", "parked")).err, (await run("show", "parked")).out]
    await run("run", scripts.task(mails("one@free.example"))["text"], "--yes", "--id", "over-parked")
    await opened.mailbox.refuse_recall("over-parked")
    after_end = await run("undo", "over-parked", "--by", "ana")
    shown = (await run("show", "over-parked")).out
    await backstay.start(scripts.task(mails("one@free.example"), mails("two@parked.example")), id="open-parked")
    await waiting(backstay, "open-parked")
    await opened.mailbox.refuse_recall("open-parked")
    while_open = await run("undo", "open-parked", "--by", "ana")
    await run("cancel", "open-parked")

    target = 'mail.send_email {"to":"one@free.example","body":"b","subject":"s"}'
    for told in (*in_run, after_end.err, while_open.err):
        (line,) = [line for line in told.splitlines() if "a person must undo it by hand" in line]
        assert f"{target}: not undone; a person must undo it by hand (" in line
        assert "was already recalled; to undo it by hand: mail.recall_email(message_id=" in line
    assert (after_end.code, while_open.code) == (6, 6)
    listed, why = shown.partition("can be undone, newest first")[2].splitlines()[1:3]
    assert listed.strip().startswith(f"1. {target} (step 1): mail.recall_email(message_id=")
    assert "an undo of it has failed; a person must undo it by hand, or undo the run again" in why


@promise("undo:done-by-hand")
@pytest.mark.thorough
async def test_a_parked_effect_is_recorded_as_undone_by_hand(run, scripts, opened):
    await run("run", scripts.task(mails("one@free.example"))["text"], "--yes", "--id", "by-hand")
    await opened.mailbox.refuse_recall("by-hand")
    early = await run("undo", "by-hand", "--done", "1", "--by", "ana")
    assert (await run("undo", "by-hand", "--by", "ana")).code == 6
    wrong = await run("undo", "by-hand", "--done", "1", "--to-step", "1", "--by", "ana")
    silent = await run("undo", "by-hand", "--comment", "so", "--by", "ana")
    done = await run("undo", "by-hand", "--done", "1", "--comment", "deleted it myself", "--by", "ana")
    shown = (await run("show", "by-hand")).out

    assert (early.code, wrong.code, silent.code, done.code) == (1, 2, 2, 0)
    assert "the undo of effect 1 is not parked" in early.err
    assert "done: is about one effect; leave --preview and --to-step out" in wrong.err
    assert "comment: only with --done; leave it out" in silent.err
    assert "undone by hand, ana says so: deleted it myself" in done.err
    assert "can be undone" not in shown


@promise("clients:steers")
@pytest.mark.thorough
async def test_what_an_ended_run_did_is_undone(run, scripts, opened):
    await run("run", scripts.task(mails("one@ended.example"))["text"], "--yes", "--id", "over")
    assert "one@ended.example" in opened.mailbox.sent()

    assert "undo it with: backstay undo over" in (await run("attach", "over")).err
    undone = await run("undo", "over", "--by", "ana")
    # Whoever comes back to the undo hears the same as whoever asked for it.
    back = await run("attach", "undo-over", "--output", "json")
    assert (json.loads(back.out)["outcome"], json.loads(back.out)["success"], back.code) == ("rolled_back", True, 0)
    target = 'mail.send_email {"to":"one@ended.example","body":"b","subject":"s"}'
    assert f"undo of {target}: undone by mail.recall_email(" in undone.err
    # What was undone is promised nowhere any more.
    shown, followed = await run("show", "over"), await run("attach", "over")
    assert ("can be undone" in shown.out, f"undone: 1. {target}" in shown.out) == (False, True)
    assert ("undo them with" in followed.err, "were undone since: 1" in followed.err) == (False, True)
    assert (await run("undo", "over", "--preview")).err == "nothing to undo\n"
    again = await run("undo", "over", "--by", "ana")

    assert undone.code == 0
    assert undone.err.splitlines()[0] == "run undo-over"
    assert "one@ended.example" not in opened.mailbox.sent()
    assert (again.code, again.out) == (0, "already undone\n")


@promise("clients:undo-nothing")
async def test_an_undo_of_a_run_that_did_nothing_says_so_and_starts_nothing(run, scripts, opened):
    reads = Reply(calls=[("mail__list_customers", {"limit": 1})])
    await run("run", scripts.task(reads, mails("nobody"))["text"], "--yes", "--id", "harmless")
    undone = await run("undo", "harmless")
    told = await run("undo", "harmless", "--output", "json")

    assert (undone.code, undone.out, undone.err) == (0, "the run has no effect that could be undone\n", "")
    assert json.loads(told.out)["final_summary"] == "the run has no effect that could be undone"
    assert "no run undo-harmless" in (await run("show", "undo-harmless")).err


@promise("clients:told-truly")
async def test_an_invalid_task_is_shown_as_invalid_with_the_field_and_the_fix(run, opened):
    # Another program may start what no command of ours would send.
    handle = await opened.start({"text": "x", "mode": "fly"}, workflow_id="not-valid")
    with pytest.raises(WorkflowFailureError):
        await handle.result()
    shown = await run("show", "not-valid")
    data = json.loads((await run("show", "not-valid", "--output", "json")).out)

    assert shown.out.splitlines()[0] == "not-valid: invalid"
    assert shown.out.splitlines()[1].startswith("invalid: mode: ")
    assert "starting" not in shown.out
    # What other programs read stays as it is.
    assert (data["status"]["state"], data["invalid"][:6]) == ("starting", "mode: ")


@promise("clients:told-truly")
@pytest.mark.thorough
async def test_a_call_that_fails_is_told_in_one_line_with_what_it_was_called_with_and_why(run, scripts):
    replies = (Reply(calls=[("mail__list_customers", {"limit": 1})]), mails("nobody"))
    done = await run("run", scripts.task(*replies)["text"], "--yes")

    lines = done.err.splitlines()
    assert next(line for line in lines if 'mail.list_customers {"limit":1} -> {"customers":[{' in line)
    failed = next(line for line in lines if "action.failed" in line)
    assert 'mail.send_email {"to":"nobody","body":"b","subject":"s"}: ' in failed
    assert "is not an e-mail address" in failed


@promise("clients:cli-plan")
async def test_a_plan_from_a_file_runs_without_a_model(run, opened, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "steps: [{tool: mail.send_email, arguments: {to: '${input.who}', subject: s, body: b}}]", encoding="utf-8"
    )
    asked_before = len(opened.model.requests)

    done = await run("run", "--plan", str(plan), "--input", '{"who": "one@free.example"}', "--yes")

    assert (done.code, len(opened.model.requests)) == (0, asked_before)
    assert done.out.startswith("1 of 1 steps of the plan done\n")


@promise("models:cli")
async def test_the_output_fits_the_schema_from_a_file(run, scripts, tmp_path):
    schema = tmp_path / "count.yaml"
    schema.write_text("{type: object, properties: {n: {type: integer}}, required: [n]}", encoding="utf-8")
    replies = [Reply(calls=[("finish", {"summary": "Two.", "output": output})]) for output in ({"n": "two"}, {"n": 2})]

    done = await run("run", scripts.task(*replies)["text"], "--output-schema", str(schema))

    assert (done.code, done.out) == (0, 'Two.\n{\n  "n": 2\n}\n')
    assert "answer 1 was not taken: output.n: must be integer, not string" in done.err
    read = await run("result", "last")
    assert '{\n  "n": 2\n}' in read.out


@promise("clients:cli-plan")
async def test_a_policy_of_the_task_only_tightens(run, scripts, tmp_path):
    policy = tmp_path / "tight.yaml"
    policy.write_text("deny: ['mail.*']", encoding="utf-8")

    done = await run("run", scripts.task(mails("one@free.example"))["text"], "--policy", str(policy))

    assert "action.failed" in done.err


@promise("clients:list")
async def test_runs_are_listed_from_temporal_and_without_it_from_the_store(run, scripts, opened):
    await run("run", scripts.task()["text"], "--id", "listed")

    visible = await run("list", "--output", "json")
    remembered = await run("list", TEMPORAL_ADDRESS="127.0.0.1:9")
    shown = await run("show", "listed", TEMPORAL_ADDRESS="127.0.0.1:9")

    row = next(row for row in json.loads(visible.out) if row["id"] == "listed")
    assert (row["state"], row["text"][:6]) == ("completed", "script")
    assert any("  listed  " in line for line in remembered.out.splitlines())
    assert "shown from the store" in remembered.err
    assert "outcome completed" in shown.out


@promise("clients:list")
@pytest.mark.thorough
async def test_who_decided_is_shown_also_where_only_the_store_answers(run, scripts, backstay):
    await backstay.start(scripts.task(mails("one@stored.example")), id="decided-before")
    await waiting(backstay, "decided-before")
    await run("reject", "decided-before", "r1", "--by", "bo", "--comment", "not now")
    await run("attach", "decided-before")
    shown = await run("show", "decided-before", TEMPORAL_ADDRESS="127.0.0.1:9")

    assert "shown from the store" in shown.err
    assert "decide r1 reject by bo" in shown.out


@promise("clients:light-list")
@pytest.mark.thorough
async def test_a_list_loads_no_database_library(opened, scripts, run, tmp_path):
    await run("run", scripts.task()["text"], "--id", "listed-lightly")
    done = await command("list", environment=environment_of(opened, PYTHONPROFILEIMPORTTIME="1"), folder=tmp_path)

    loaded = {line.rpartition("|")[2].strip() for line in done.err.splitlines() if line.startswith("import time:")}
    assert "listed-lightly" in done.out
    assert "sqlite3" in loaded
    assert not loaded & {"sqlalchemy", "alembic", "mcp", "openai", "jinja2"}


@promise("clients:tools")
async def test_the_tools_are_listed_and_searched(run):
    listed = await run("tools", "list", "--output", "json")
    found = await run("tools", "search", "send mail", "--limit", "1")

    assert {row["tool"]: row["safety"] for row in json.loads(listed.out)}["mail.delete_message"] == "restricted_write"
    assert found.out.splitlines()[0].split() == ["mail.send_email", *found.out.splitlines()[0].split()[1:]]


@promise("clients:hostile")
async def test_hostile_text_reaches_a_terminal_only_as_text(run, scripts):
    hostile = "\x1b[31mred\x1b[0m \u202eback [bold]b[/bold]"
    finish = Reply(calls=[("finish", {"summary": hostile, "outputs": {}, "success": True})])

    done = await run("run", scripts.task(mails(f"{hostile}@free.example"), finish)["text"], "--yes")

    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
    assert done.out == "<U+001B>[31mred<U+001B>[0m <U+202E>back [bold]b[/bold]\n"


@promise("clients:cli-doctor")
@pytest.mark.thorough
async def test_doctor_finds_every_part_well_and_asks_the_model_nothing(run, opened):
    async with opening.open_store(opened.settings) as store:
        # As each worker does at its start; engines of tests mark no folder.
        await store.fitness.mark()
    asked_before = len(opened.model.requests)
    model = {
        "OPENAI_BASE_URL": opened.model.base_url,
        "BACKSTAY_MODEL": "scripted",
        "BACKSTAY_PRICES": '{"scripted": {"input": 1, "output": 4}}',
    }
    done, short = await run("doctor", "--all", **model), await run("doctor", **model)
    # Its worker has asked for work two minutes ago: Temporal still names it.
    late = await command("doctor", environment=environment_of(opened, **model, **skewed(120), BACKSTAY_NSJAIL="/none"))

    *lines, summary = done.out.splitlines()
    told = [line.split()[:2] for line in lines]
    # Without --all, one line says that all is well; what is only noted depends on the machine.
    assert short.out.splitlines() == [*(line for line in lines if not line.startswith("ok ")), summary]
    well = sum(state == "ok" for state, _ in told)
    assert summary.startswith(f"ok       {well} checks passed")
    states = {part: state for state, part in told if part != "jail"}
    # Whether cgroups bound a jail as well depends on the machine; programs run without.
    assert {state for state, part in told if part == "jail"} <= {"ok", "note"}
    assert sum(part == "jail" and state == "ok" for state, part in told) > 15
    # Whether the users of jails may enter the folder above the home depends on who made it.
    assert states.pop("workspaces") in {"ok", "note"}
    assert done.code == 0, done.out
    parts = [
        "temporal",
        "updates",
        "search",
        "worker",
        "store",
        "payloads",
        "policy",
        "profiles",
        "server",
        "model",
        "price",
        "files",
    ]
    assert states == dict.fromkeys(parts, "ok")
    assert len(opened.model.requests) == asked_before
    assert "missing  worker             no worker polls task queue" in late.out


@promise("clients:cli-doctor")
async def test_doctor_names_cause_and_fix_of_every_part_that_is_missing(nursery, tmp_path):
    share_images(tmp_path / ".backstay")
    (tmp_path / "policy.yaml").write_text("deny: 7", encoding="utf-8")
    (tmp_path / "profiles.yaml").write_text("keeping: {memory: {write: true}}", encoding="utf-8")
    servers = '{"mcpServers": {"gone": {"command": "no-such-program"}}}'
    (tmp_path / "toolbox.json").write_text(servers, encoding="utf-8")

    done = await forked(
        nursery,
        "doctor",
        environment=bare(
            TEMPORAL_ADDRESS="127.0.0.1:9",
            BACKSTAY_MODEL="nobody-knows",
            BACKSTAY_NSJAIL=str(tmp_path / "no-nsjail"),
            BACKSTAY_TRUSTED=str(tmp_path),
            BACKSTAY_NOTIFY_URLS="http://127.0.0.1:9/take",
            BACKSTAY_SMTP_URL="smtp://127.0.0.1:9",
        ),
        folder=tmp_path,
    )

    *every, summary = done.out.splitlines()
    lines = {line.split()[1]: line for line in every if line.startswith("missing")}
    assert done.code == 1
    assert summary.startswith("missing  ")
    assert not any(line.startswith("ok") for line in every)
    assert "127.0.0.1:9; start one with `backstay dev`" in lines["temporal"]
    assert "deny" in lines["policy"]
    assert "no-such-program" in lines["server"]
    assert "OPENAI_API_KEY" in lines["model"]
    assert "BACKSTAY_PRICES" in lines["price"]
    assert "no-nsjail" in lines["jail"]
    assert "BACKSTAY_MAIL_FROM" in lines["told"]
    assert "BACKSTAY_WEBHOOK_KEY" in next(line for line in every if line.split()[:2] == ["note", "webhooks"])
    assert "BACKSTAY_APPROVER_KEY" in next(line for line in every if line.split()[:2] == ["note", "memory"])


async def _begun(backstay, workflow_id):
    """Wait until a run exists that another process is about to start."""
    async with asyncio.timeout(150):
        while not [workflow async for workflow in backstay.client.list_workflows(f"WorkflowId = '{workflow_id}'")]:
            await asyncio.sleep(0.1)


@promise("clients:calls")
async def test_calls_that_the_flag_changes_are_named_all_or_asked_about_again_and_every_name_is_known(
    run, backstay, scripts, opened
):
    names = [f"{name}@flags.example" for name in ("a", "b", "c")]
    asked = await backstay.start(scripts.task(mails(*names)), id="flags")
    await waiting(backstay, "flags")
    change = {"verdict": "modify", "arguments": {"to": "d@flags.example"}}

    unknown = {"1": change | {"arguments": {"too": "d@flags.example"}}}
    refused = await run("approve", "flags", "r1", "--by", "ana", "--calls", json.dumps(unknown))
    again = await run("approve", "flags", "r1", "--by", "ana", "--calls", json.dumps({"1": change}))
    before = [to for to in opened.mailbox.sent() if to.endswith("@flags.example")]
    rest = {"0": {"verdict": "approve"}, "1": change | {"arguments": {"to": "e@flags.example"}}}
    async with asyncio.timeout(150):
        while [request.id for request in await asked.pending()] != ["r2"]:
            await asyncio.sleep(0.1)
    all_named = await run(
        "approve", "flags", "r2", "--by", "ana", "--calls", json.dumps(rest | {"2": {"verdict": "reject"}})
    )
    await asked.result()

    assert "arguments.too: unknown name; did you mean to?" in refused.err
    assert "it is asked again with the change, and nothing is sent before that" in again.err
    assert before == []
    assert (all_named.code, all_named.err) == (0, "decided: changed r2\n")
    sent = sorted(to for to in opened.mailbox.sent() if to.endswith("@flags.example"))
    assert sent == ["a@flags.example", "e@flags.example"]
