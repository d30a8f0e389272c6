"""What a worker serves at BACKSTAY_METRICS_ADDRESS."""

import asyncio
import json
import socket
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.testing import Reply, Tokens
from examples.mailbox.faults import Faults
from store.opening import open_store
from tests.engine import Scripts, ended, pending, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.nursery.nursery import OPERATORS_WORKER, plain_environment
from tests.ports import own_port
from tests.requirements import promise
from tests.telemetry.sites import open_site, scraped, value

LABELS = {"outcome", "plugin", "provider", "model", "jail"}
LIE = Tokens(prompt=100, completion=200_000)
FINISH = Reply(calls=[("finish", {"summary": "done"})])
GIVES_UP = Reply(calls=[("finish", {"summary": "no", "success": False})])


def mails(*recipients):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": "b"}) for to in recipients])


@pytest.fixture(scope="module")
def rooms():
    """A folder that the users of jails can reach."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "rooms"


@pytest_asyncio.fixture(scope="module")
async def served(temporal, nursery, tmp_path_factory, rooms):
    scripts, address = Scripts(), f"127.0.0.1:{own_port()}"
    folder = tmp_path_factory.mktemp("metrics")
    options = {"BACKSTAY_METRICS_ADDRESS": address, "BACKSTAY_WORKSPACES": str(rooms)}
    async with open_mailbox(folder / "mailbox.db", Faults()) as mailbox:
        toolbox = toolbox_of(folder, folder / "mailbox.db", address=mailbox)
        allowing = json.loads(toolbox.read_text(encoding="utf-8"))
        allowing["users"]["*"]["providers"].append("shell")
        toolbox.write_text(json.dumps(allowing), encoding="utf-8")
        async with open_site(temporal, nursery, folder, scripts, toolbox=toolbox, **options) as site:
            yield site, scripts, address


def task_of(scripts, *replies):
    """Without a limit in USD: what one test's endpoint bills would raise what the next one's runs reserve."""
    return scripts.task(*replies, budget={"max_llm_cost_usd": None})


async def shows(address, name, expected, **labels):
    """Wait until a metric has a value; the gauges of the store are looked up every few seconds."""
    async with asyncio.timeout(150):
        while (found := value(await scraped(address), name, **labels)) != expected:
            await asyncio.sleep(1)
    return found


@promise("operations:metrics")
async def test_runs_steps_calls_and_cost_are_counted_once_with_no_other_labels(served):
    site, scripts, address = served
    before = await scraped(address)
    result = await ended(await site.start(task_of(scripts, mails("one@free.example", "two@free.example"), FINISH)))
    await shows(address, "backstay_runs", value(before, "backstay_runs", outcome="completed") + 1, outcome="completed")
    after = await scraped(address)

    def grown(name, **labels):
        return value(after, name, **labels) - value(before, name, **labels)

    assert grown("backstay_steps", model="scripted") == 2
    assert grown("backstay_tool_calls", outcome="succeeded", provider="mail") == 2
    assert grown("backstay_tool_calls", outcome="unknown", provider="mail") == 0
    cost = grown("backstay_cost_usd", outcome="reserved", model="scripted")
    assert cost == pytest.approx(result["usage"]["llm_cost_usd"])
    named_by_a_task = await site.start(task_of(scripts, FINISH) | {"model": "text of a user"})
    assert (await ended(named_by_a_task))["outcome"] == "completed"
    assert await shows(address, "backstay_steps", value(after, "backstay_steps", model="other") + 1, model="other")
    after = await scraped(address)
    assert "text of a user" not in str(after)
    ours = {key for key in after if key[0].startswith("backstay_")}
    assert {name for _, labels in ours for name, _ in labels} == LABELS
    assert any(name.startswith("temporal_") for name, _ in after)


@promise("operations:metrics-outcomes")
async def test_a_refused_task_and_a_cancelled_run_are_counted_as_what_they_are(served):
    site, scripts, address = served
    before = await scraped(address)
    refused = await site.start({"text": ""})
    waiting = await site.start(task_of(scripts, mails("a@asked.example")))
    await pending(waiting)
    await waiting.cancel()
    for outcome in ("invalid", "cancelled"):
        await shows(address, "backstay_runs", value(before, "backstay_runs", outcome=outcome) + 1, outcome=outcome)
    assert (await refused.describe()).status.name == "FAILED"


@promise("operations:metrics-waiting")
async def test_what_waits_for_people_is_shown_with_its_age_and_goes_when_it_is_decided(served):
    site, scripts, address = served
    await shows(address, "backstay_approvals_waiting", 0)
    handle = await site.start(task_of(scripts, mails("a@asked.example"), FINISH))
    (request,) = await pending(handle)
    await shows(address, "backstay_approvals_waiting", 1)
    ages = []
    async with asyncio.timeout(150):
        while len(ages) < 2:
            age = value(await scraped(address), "backstay_approval_age_seconds")
            ages += [age] if age and age not in ages else []
            await asyncio.sleep(0.25)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    await ended(handle)
    await shows(address, "backstay_approvals_waiting", 0)

    assert 0 < ages[0] < ages[1] < 120
    assert await shows(address, "backstay_approval_age_seconds", 0) == 0


@promise("operations:metrics-overshot")
async def test_a_bill_above_its_reservation_is_shown_apart(served):
    site, scripts, address = served
    before = value(await scraped(address), "backstay_cost_usd", outcome="overshot", model="scripted")
    task = task_of(scripts, FINISH.model_copy(update={"usage": LIE}))
    result = await ended(await site.start(task))
    (event,) = [event for event in result["events"] if event["name"] == "budget.overshot"]
    over = event["data"]["billed_usd"] - event["data"]["reserved_usd"]
    after = value(await scraped(address), "backstay_cost_usd", outcome="overshot", model="scripted")

    assert after - before == pytest.approx(over)


@promise("operations:metrics-parked")
async def test_an_undo_that_fails_is_shown_until_it_succeeds(served):
    site, scripts, address = served
    await shows(address, "backstay_undos_parked", 0)
    handle = await site.start(
        task_of(scripts, mails("one@free.example", "two@free.example"), mails("b@asked.example"), GIVES_UP)
    )
    (request,) = await pending(handle)
    with sqlite3.connect(site.mailbox.path, timeout=10) as connection:
        connection.execute("UPDATE sent SET recalled_at = 'by hand' WHERE effect_id LIKE ?", (f"{handle.id}/%/2",))
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana", "stop": True})
    assert (await ended(handle))["outcome"] == "rollback_failed"
    await shows(address, "backstay_undos_parked", 1)
    with sqlite3.connect(site.mailbox.path, timeout=10) as connection:
        connection.execute("UPDATE sent SET recalled_at = NULL WHERE effect_id LIKE ?", (f"{handle.id}/%/2",))
    queue = site.environment["BACKSTAY_TASK_QUEUE"]
    undo = await site.client.start_workflow(
        "UndoRun", {"workflow_id": handle.id}, id=f"undo-{handle.id}", task_queue=queue
    )
    assert (await undo.result())["outcome"] == "rolled_back"
    await shows(address, "backstay_undos_parked", 0)


@promise("operations:metrics-unknown")
@pytest.mark.parametrize("state", ["dispatched", "unknown"])
async def test_an_effect_of_unknown_outcome_is_shown(served, state):
    site, scripts, address = served
    await ended(await site.start(task_of(scripts, mails("one@free.example"), FINISH)))
    await shows(address, "backstay_effects_unknown", 0)
    # No request of the mailbox is lost on demand for ever, so the row of another run is made unknown.
    with sqlite3.connect(site.folder / "home" / "backstay.db", timeout=10) as connection:
        row = connection.execute("SELECT effect_id, state, run, n FROM effects LIMIT 1").fetchone()
        connection.execute("UPDATE effects SET state = ?, lease = 0 WHERE effect_id = ?", (state, row[0]))
    await shows(address, "backstay_effects_unknown", 1)
    with sqlite3.connect(site.folder / "home" / "backstay.db", timeout=10) as connection:
        connection.execute("INSERT INTO parked_undos (run, effect) VALUES (?, ?)", row[2:])
    await shows(address, "backstay_effects_unknown", 0)
    assert value(await scraped(address), "backstay_undos_parked") == 1
    with sqlite3.connect(site.folder / "home" / "backstay.db", timeout=10) as connection:
        connection.execute("UPDATE effects SET state = ? WHERE effect_id = ?", row[1::-1])
        connection.execute("DELETE FROM parked_undos WHERE run = ?", row[2:3])


@promise("operations:metrics-address")
async def test_a_worker_says_so_when_it_cannot_listen_where_it_is_told_to(nursery, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = f"127.0.0.1:{listener.getsockname()[1]}"
        for address, why in [
            ("9464", "not host:port"),
            (taken, "already in use"),
            ("no.such.host.invalid:9464", "cannot listen"),
        ]:
            environment = plain_environment() | {"BACKSTAY_METRICS_ADDRESS": address, "BACKSTAY_HOME": str(tmp_path)}
            log = tmp_path / "log"
            child = await nursery.raised(OPERATORS_WORKER, "--role", "runs", environment=environment, log=log)
            assert await child.ended(50) == 2
            assert "BACKSTAY_METRICS_ADDRESS" in child.said()
            assert why in child.said()
            log.unlink()


@promise("operations:metrics-jails")
async def test_jails_are_shown_that_are_ready_and_what_those_used_that_ended(nursery, served, rooms, tmp_path):
    site, scripts, runs = served
    address = f"127.0.0.1:{own_port()}"
    environment = site.environment | {"BACKSTAY_METRICS_ADDRESS": address}
    child = await nursery.raised(OPERATORS_WORKER, "--role", "sandbox", environment=environment, log=tmp_path / "log")
    try:
        async with asyncio.timeout(150):
            while "backstay sandbox ready" not in child.said():
                assert not child.died.done(), child.said()
                await asyncio.sleep(0.1)
        await shows(address, "backstay_jail_pool", 2)
        (rooms / "metrics").mkdir(parents=True)
        command = Reply(calls=[("shell__run", {"command": "for i in $(seq 99999); do :; done; sleep 0.5; echo done"})])
        program = Reply(calls=[("run_program", {"code": "print('x' * 999)\nreturn sum(range(10**7))"})])
        handle = await site.start(task_of(scripts, command, program, FINISH) | {"workspace": "metrics", "shell": True})
        result = await ended(handle)
        used = {event["name"]: event["data"]["used"] for event in result["events"] if "used" in event["data"]}
        assert (used["action.called"]["output_bytes"], used["program.ended"]["output_bytes"]) == (5, 1000)
        assert all(use["cpu_s"] > 0 and 0.1 < use["memory_mb"] < 500 for use in used.values()), used
        after = await scraped(runs)
        for jail, name in (("command", "action.called"), ("program", "program.ended")):
            assert value(after, "backstay_jail_output_bytes", jail=jail) == used[name]["output_bytes"]
            assert value(after, "backstay_jail_cpu_seconds", jail=jail) == pytest.approx(used[name]["cpu_s"])
            assert value(after, "backstay_jail_peak_mb", jail=jail) == used[name]["memory_mb"]
    finally:
        await child.end()


@promise("operations:otel-nothing")
async def test_where_nothing_is_asked_for_nothing_is_loaded_or_put_between(tmp_path):
    program = """
import asyncio, sys
from activities.telemetry.opening import open_telemetry
from backstay.client.connecting import interceptors
from backstay.settings import Settings

async def main():
    async with open_telemetry(Settings.load(None), "runs") as telemetry:
        print(telemetry.interceptors, telemetry.runtime, telemetry.jails, telemetry.flags, interceptors())
        print([name for name in sys.modules if name.startswith("opentelemetry")])

asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        program,
        env=plain_environment() | {"PYTHONPATH": str(OPERATORS_WORKER).removesuffix("/worker.py")},
        cwd=tmp_path,
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(process.communicate(), 150)

    assert out.decode().splitlines() == ["[] None None [] []", "[]"]


@promise("operations:metrics-parked")
async def test_pruning_forgets_parked_undos(tmp_path):
    from backstay.task.event import Event
    from store.runs.pruning import Prunable

    async with open_store(database_url=None, home=tmp_path) as store:
        run = "w/r"
        known = {"workflow_id": "w", "workflow_run_id": "r", "user_id": "ana", "text": "t", "opened": {}}
        await store.runs.opened(run=run, **known)
        told = [
            Event(n=n, name="undo.ran", at="2020-01-01T00:00:00.000+00:00", data={"effect": effect, "state": state})
            for n, (effect, state) in enumerate([(1, "parked"), (2, "parked"), (1, "compensated"), (3, "kept")], 1)
        ]
        await store.events.append(run, told)
        await store.events.append(run, told)
        assert await store.parked.count() == 1
        (idle,) = await store.pruning.idle(4e9)
        assert isinstance(idle, Prunable)
        assert await store.pruning.prune(idle, 4e9) is not None
        assert await store.parked.count() == 0
