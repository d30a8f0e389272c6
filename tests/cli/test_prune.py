"""`backstay prune`: what ended long ago goes, and nothing that anybody can still need."""

import asyncio
import json
import sqlite3
import uuid

import pytest
import pytest_asyncio
from temporalio.client import WorkflowFailureError

from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.effects import WorkspaceEffects
from sandbox.workspaces.workspace import WorkspaceCall
from store.blobs.shown import folder_of
from store.opening import open_store
from tests.cli.commands import environment_of, forked
from tests.engine import Scripts, ended, pending, reset
from tests.requirements import promise
from tests.s3_server import ACCESS
from tests.sizes import spread

POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
allow: [{tool: "mail.send_email", when: {to: {ends_with: "@free.example"}}}]
undo: {default: ask}
"""


@pytest_asyncio.fixture
async def opened(open_engine):
    async with open_engine(Scripts(), policy=POLICY) as opened:
        yield opened


@pytest.fixture
def command(opened, nursery, tmp_path):
    async def command(*arguments, **more):
        return await forked(nursery, *arguments, environment=environment_of(opened, **more), folder=tmp_path)

    return command


@pytest.fixture
def prune(command):
    async def prune(*arguments, window="1s"):
        done = await command("prune", "--older-than", window, "--output", "json", *arguments)
        assert done.code == 0, done.err
        return json.loads(done.out)

    return prune


def plan(*recipients):
    return {
        "plan": {
            "steps": [
                {"tool": "mail.send_email", "arguments": {"to": to, "subject": "s", "body": "b"}} for to in recipients
            ]
        }
    }


def rows(opened, query, *values):
    with sqlite3.connect(opened.settings.home / "backstay.db", timeout=10) as connection:
        return connection.execute(query, values).fetchall()


def payloads(opened, handle):
    run = f"{handle.id}/{handle.first_execution_run_id}"
    folder = folder_of(opened.settings.home / "blobs", run)
    files = {file.name: file.read_bytes() for file in folder.iterdir()} if folder.exists() else {}
    return files | dict(rows(opened, "SELECT name, data FROM payloads WHERE run = ?", run))


async def until_due(prune, count):
    """Wait until so many runs ended longer ago than the window."""
    # Sooner none of them can be, and to ask costs a process.
    await asyncio.sleep(1)
    async with asyncio.timeout(150):
        while (account := await prune("--dry-run"))["runs"] < count:
            await asyncio.sleep(0.2)
    return account


async def undo(opened, handle, workflow_id):
    return await opened.client.start_workflow(
        "UndoRun", {"workflow_id": handle.id}, id=workflow_id, task_queue=opened.settings.task_queue
    )


async def failure_of(handle):
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 150)
    return caught.value.cause.type


async def approve(handle):
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})


@promise("store:pruned")
async def test_an_ended_run_goes_and_an_open_one_with_the_same_payloads_stays(opened, prune):
    old = await opened.start(plan("a@free.example"))
    assert (await ended(old))["outcome"] == "completed"
    waiting = await opened.start(plan("a@free.example", "b@x.example"))
    await pending(waiting)
    before, shared = payloads(opened, waiting), payloads(opened, old).keys() & payloads(opened, waiting).keys()
    told = await until_due(prune, 1)

    assert shared
    assert payloads(opened, old)
    account = await prune()

    assert account == told | {"dry_run": False}
    assert (account["runs"], account["effects"]) == (1, 1)
    assert account["payloads"] > 0 < account["bytes"]
    assert payloads(opened, old) == {}
    assert payloads(opened, waiting) == before
    assert rows(opened, "SELECT count(*) FROM events WHERE run LIKE ?", f"{old.id}/%") == [(0,)]
    assert rows(opened, "SELECT text, result, pruned_at > 0 FROM runs WHERE workflow_id = ?", old.id) == [("", None, 1)]
    assert await prune() == dict.fromkeys(account, 0) | {"dry_run": False}
    await approve(waiting)
    assert (await ended(waiting))["outcome"] == "completed"
    undoing = await undo(opened, waiting, f"undo-{waiting.id}")
    for _ in range(2):
        await approve(undoing)
    assert (await ended(undoing))["outcome"] == "rolled_back"


@promise("store:tombstone-said")
@pytest.mark.thorough
async def test_every_command_and_undorun_say_that_a_run_was_pruned(opened, command, prune):
    run = await opened.start(plan("a@free.example"))
    await ended(run)
    await until_due(prune, 1)
    await prune()

    shown, listed = await command("show", run.id), await command("list", "--output", "json")
    undone, previewed = await command("undo", run.id, "--yes"), await command("undo", run.id, "--preview")

    assert "pruned 20" in shown.out
    assert "undo would do" not in shown.out
    assert [row["state"] for row in json.loads(listed.out) if row["id"] == run.id] == ["pruned"]
    assert (previewed.code, undone.code) == (1, 1), (previewed, undone)
    assert "was pruned on" in previewed.err
    assert "was pruned on" in undone.err
    assert await failure_of(await undo(opened, run, f"again-{run.id}")) == "Pruned"
    assert len(opened.mailbox.sent()) == 1


@promise("store:tombstone-reset")
async def test_a_reset_of_a_pruned_run_sends_nothing(opened, prune):
    run = await opened.start(plan("a@free.example", "b@free.example"))
    await ended(run)
    await until_due(prune, 1)
    await prune()
    sent = opened.mailbox.requests("send_email")

    result = await ended(await reset(opened, run, task=1))

    assert (result["outcome"], result["error"]["type"]) == ("failed", "Pruned")
    assert opened.mailbox.requests("send_email") == sent == 2
    assert rows(opened, "SELECT count(*) FROM effects") == [(0,)]


@promise("store:tombstone-said")
async def test_a_pruned_run_that_finds_nothing_of_its_own_says_that_it_was_pruned(open_engine, nursery, tmp_path):
    scripts, queue = Scripts(), f"queue-{uuid.uuid4()}"
    async with open_engine(scripts, policy=POLICY, task_queue=queue) as first:
        run = await first.start(scripts.task())
        await ended(run)
        arguments = ("prune", "--older-than", "1s", "--output", "json")
        async with asyncio.timeout(150):
            while True:
                done = await forked(nursery, *arguments, environment=environment_of(first), folder=tmp_path)
                if json.loads(done.out)["runs"]:
                    break
    # The first worker has the run's payloads in memory.
    async with open_engine(scripts, policy=POLICY, task_queue=queue) as second:
        result = await ended(await reset(second, run, task=1))

    assert (result["outcome"], result["error"]["type"]) == ("failed", "Pruned")


@promise("store:retention-ended")
async def test_a_terminated_run_counts_from_when_it_was_closed(opened, prune):
    run = await opened.start(plan("a@free.example", "b@x.example"))
    await pending(run)
    assert (await prune())["runs"] == 0
    await run.terminate("an operator's hand")
    with sqlite3.connect(opened.settings.home / "backstay.db", timeout=10) as connection:
        # As far as the store can tell, nothing has happened for years.
        connection.execute("UPDATE runs SET opened_at = 1000")
        connection.execute("UPDATE effects SET updated_at = 1000")
        connection.execute("UPDATE events SET at = '2001-01-01T00:00:00.000+00:00'")
    assert (await prune(window="1h"))["runs"] == 0
    await until_due(prune, 1)
    assert (await prune())["runs"] == 1


@promise("store:undoing")
@pytest.mark.parametrize("name", spread(["by-another-name-{}", "undo-{}"], 1))
async def test_an_open_undo_keeps_its_run(opened, prune, name):
    run = await opened.start(plan("a@free.example"))
    await ended(run)
    undoing = await undo(opened, run, name.format(run.id))
    await pending(undoing)
    other = await opened.start(plan("b@free.example"))
    await ended(other)
    # The other run is due only when this one would be, too.
    await until_due(prune, 1)

    assert (await prune())["runs"] == 1
    assert payloads(opened, run)
    await approve(undoing)
    assert (await ended(undoing))["outcome"] == "rolled_back"
    assert opened.mailbox.sent() == ["b@free.example"]


@promise("store:unanswered")
async def test_without_temporal_nothing_is_removed(opened, command, prune):
    run = await opened.start(plan("a@free.example"))
    await ended(run)
    await until_due(prune, 1)

    done = await command("prune", "--older-than", "1s", TEMPORAL_ADDRESS="127.0.0.1:1")

    assert (done.code, done.out) == (2, "")
    assert "Temporal cannot be reached" in done.err
    assert payloads(opened, run)
    assert rows(opened, "SELECT count(*) FROM effects") == [(1,)]


async def remember(opened, run_id, *, closed):
    """Record a run of long ago that this Temporal never had."""
    async with open_store(database_url=None, home=opened.settings.home, clock=lambda: 1000.0) as store:
        of_run = {"workflow_id": "long-ago", "workflow_run_id": run_id, "user_id": "ana", "text": "t", "opened": {}}
        await store.runs.opened(run=f"long-ago/{run_id}", **of_run)
        if closed:
            await store.runs.closed(f"long-ago/{run_id}", {})


@promise("store:unanswered-kept")
async def test_a_run_about_which_temporal_gives_no_answer_is_kept(opened, command):
    await remember(opened, "no-uuid", closed=True)
    await remember(opened, str(uuid.uuid4()), closed=True)

    done = await command("prune")

    assert done.code == 1
    assert "long-ago/no-uuid is kept, because Temporal gives no answer" in done.err
    assert done.out.startswith("pruned 1 runs: ")
    assert rows(opened, "SELECT run FROM runs WHERE pruned_at IS NULL") == [("long-ago/no-uuid",)]


@promise("store:prune-broken")
async def test_a_run_whose_records_cannot_be_read_is_named_and_keeps_no_other_from_being_pruned(opened, command):
    names = [str(uuid.uuid4()) for _ in range(3)]
    for name in names:
        await remember(opened, name, closed=True)
    with sqlite3.connect(opened.settings.home / "backstay.db", timeout=10) as connection:
        broken = (f"long-ago/{names[1]}", "p1", "done", '"no plan"', "{}", 1000, 1000)
        connection.execute(
            "INSERT INTO plans (run, plan_id, state, body, proposal, created_at, updated_at) VALUES (?,?,?,?,?,?,?)",
            broken,
        )

    done = await command("prune")

    assert done.code == 1
    assert f"{broken[0]} is kept, because its records cannot be removed: " in done.err
    assert done.out.startswith("pruned 2 runs: ")
    assert rows(opened, "SELECT run FROM runs WHERE pruned_at IS NULL") == [(broken[0],)]


@promise("store:prune-bucket")
async def test_a_bucket_that_does_not_answer_is_named_and_all_else_is_pruned(opened, command, tmp_path):
    home, name = opened.settings.home, str(uuid.uuid4())
    await remember(opened, name, closed=True)
    run = f"long-ago/{name}"
    async with open_store(database_url=None, home=home) as store:
        await store.blobs.of(run).put(b"in a file" * 20_000)
    snapshots = home / "snapshots" / "key"
    files = WorkspaceEffects(
        tmp_path / "files", Snapshots(snapshots), home / "workspace-state" / "written" / "key", written_mb=1
    )
    (tmp_path / "files").mkdir()

    async def wrote():
        (tmp_path / "files" / "a").write_text("of the run", encoding="ascii")
        return {"ok": {}}

    await files.write(WorkspaceCall(workspace="w", run=run, tool="write_file", effect=f"{run}/1"), wrote)
    assert any((snapshots / "blobs").iterdir())
    away = {"BACKSTAY_PAYLOADS": "s3://bucket-away/p", "BACKSTAY_S3_ENDPOINT": "http://127.0.0.1:9", **ACCESS}

    done = await command("prune", "--output", "json", **away)

    told = json.loads(done.out)
    assert (done.code, told["runs"], told["payloads"], told["bytes"]) == (1, 1, 1, 180_000)
    assert told["snapshots"] > 0 < told["snapshot_bytes"]
    assert not folder_of(home / "blobs", run).exists()
    assert not any((snapshots / "blobs").iterdir())
    assert "payloads are kept for the next pruning: store: s3://bucket-away/p" in done.err


@promise("store:unanswered-unseen")
async def test_a_run_that_nobody_saw_end_goes_only_where_temporal_is_the_right_one(opened, command):
    await remember(opened, str(uuid.uuid4()), closed=False)

    doubted = await command("prune")
    await ended(await opened.start(plan("a@free.example")))
    known = await command("prune")

    assert "this Temporal knows no run of the store; check TEMPORAL_ADDRESS" in doubted.err
    assert doubted.out.startswith("pruned 0 runs: ")
    assert known.out.startswith("pruned 1 runs: ")


@promise("store:usage")
async def test_a_window_that_is_no_duration_is_refused_by_its_flag(opened, command):
    for window in ("30", "-1d", "0d", "1y", "", "30 d"):
        done = await command("prune", f"--older-than={window}")
        assert (window, done.code, "--older-than: " in done.err) == (window, 2, True)


@promise("store:usage")
async def test_a_home_without_a_store_is_named_and_gets_none(opened, command, tmp_path):
    for arguments in (("prune",), ("store", "new-epoch", "--yes")):
        done = await command(*arguments, BACKSTAY_HOME=str(tmp_path / "nowhere"))
        assert (done.code, "there is no store in" in done.err) == (2, True)
    assert not (tmp_path / "nowhere").exists()


@promise("plans:retention")
async def test_the_plans_and_decisions_of_a_pruned_run_stay_until_they_are_old_enough_themselves(
    opened, command, prune
):
    task = plan("one@kept.example", "two@kept.example")
    handle = await opened.start(task)
    (request,) = await pending(handle)
    said = {"request_id": request["id"], "verdict": "approve", "by": "ana", "comment": "as agreed"}
    await handle.execute_update("decide", said)
    await ended(handle)
    await until_due(prune, 1)
    first = await prune()
    shown = await command("plan", "show", handle.id, "--output", "json")
    again = await prune()
    dry = await command("prune", "--older-than", "1s", "--dry-run", "--output", "json", BACKSTAY_PLANS_DAYS="0")
    last = await command("prune", "--older-than", "1s", "--output", "json", BACKSTAY_PLANS_DAYS="0")

    assert (first["runs"], first["plans"], first["decisions"]) == (1, 0, 0)
    assert (again["runs"], again["plans"], again["decisions"]) == (0, 0, 0)
    story = json.loads(shown.out)
    assert [approval["comment"] for approval in story["approvals"]] == ["as agreed"]
    assert "the run was pruned" in shown.err
    counted = [(json.loads(done.out)["plans"], json.loads(done.out)["decisions"]) for done in (dry, last)]
    assert counted == [(1, 1), (1, 1)]
    assert rows(opened, "SELECT count(*) FROM plans") == rows(opened, "SELECT count(*) FROM decisions") == [(0,)]
