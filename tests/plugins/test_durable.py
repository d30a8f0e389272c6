import asyncio
import json
import re
import shutil
import signal
from contextlib import asynccontextmanager

import httpx
import pytest
from temporalio.service import RPCError

from backstay.task.lane import lane_id
from store.opening import open_store
from system.locks import async_file_lock, folder_lock
from tests.plugins.client import PLUGINS
from tests.plugins.relay import relay
from tests.plugins.site import eventually, grant_of, is_locked, lines_of, site_of
from tests.ports import own_port
from tests.requirements import promise

CLICK = {"button-text": "Pay"}


@pytest.fixture
async def site(tmp_path, temporal, nursery):
    """Lay out plugins, and end every worker that the test raised."""
    raised = []

    async def lay(*names, workers=1, **more):
        laid = site_of(tmp_path, temporal, nursery, *(names or ("demo",)), **more)
        raised.extend([await laid.worker() for _ in range(workers)])
        return laid

    lay.workers = raised
    yield lay
    for worker in raised:
        await worker.end()


@promise("plugins:durable")
async def test_a_job_is_a_run_and_is_told_from_queued_to_its_end(site):
    laid = await site()
    async with laid.daemon() as client:
        client.run("a", "demo", "click-button", CLICK)
        client.run("b", "demo", "fail")
        client.run("c", "demo", "say", {"text": "plain words"})
        client.run("d", "demo", "say", {"text": '{"error": "soft"}'})
        await client.until("d")
        assert client.statuses("a") == ["queued", "started", "success"]
        assert client.statuses("b") == ["queued", "started", "error"]
    ended = {line["id"]: line["payload"] for line in client.lines if line["status"] in {"success", "error"}}
    assert ended == {
        "a": {"clicked": "Pay", "row": None, "loud": False},
        "b": {"error": "no such bot"},
        "c": "plain words",
        "d": {"error": "soft"},
    }
    async with laid.connected() as backstay:
        result = await backstay.run(laid.run_of("a")).result()
    assert result.success


@promise("plugins:handed-over")
async def test_jobs_that_were_sent_right_before_the_end_of_the_input_go_on_as_runs(site):
    laid = await site()
    async with laid.daemon() as client:
        for name in "abc":
            client.run(name, "demo", "say", {"text": name})
        lines, code = await client.end()
    assert [(line.get("id"), line["status"]) for line in lines if line["status"] in {"queued", "shutdown"}] == [
        *[(name, "queued") for name in "abc"],
        (None, "shutdown"),
    ]
    assert code == 0
    async with laid.daemon() as client:
        for name in "abc":
            client.run(name, "demo", "say", {"text": name})
        assert [(await client.told(name, "success"))["payload"] for name in "abc"] == ["a", "b", "c"]
    assert (laid.folder / "ran").read_text(encoding="utf-8").split() == ["say"] * 3


@promise("plugins:handed-over")
async def test_a_job_that_the_engine_does_not_get_before_the_end_is_told_as_not_taken(site):
    laid = await site(workers=0)
    nowhere = f"127.0.0.1:{own_port()}"
    for end in ("input", "signal"):
        async with laid.daemon(TEMPORAL_ADDRESS=nowhere) as client:
            client.run("a", "demo", "click-button", CLICK)
            await client.process.stdin.drain()
            if end == "signal":
                client.ask("h", "health")
                await client.until("h")
                client.process.terminate()
            lines, code = await (client.end() if end == "input" else client.rest())
        assert lines == [
            {"id": "a", "status": "error", "payload": {"error": "engine_unavailable"}},
            {"status": "shutdown"},
        ], end
        assert code == 0


@promise("plugins:engine")
@pytest.mark.parametrize("named", ["by a variable", "by a dev"])
async def test_without_temporal_help_and_health_work_and_a_job_says_what_is_missing(site, named):
    laid = await site(workers=0)
    nowhere = f"127.0.0.1:{own_port()}"
    home, known = laid.folder / "home", nowhere if named == "by a variable" else None
    home.mkdir(exist_ok=True)
    told = {"temporal": nowhere, "namespace": "default"}
    (home / "dev.json").write_text(json.dumps(told), encoding="utf-8")
    async with async_file_lock(home / "dev.lock"), laid.daemon(TEMPORAL_ADDRESS=known) as client:
        client.run("a", "demo", "click-button", CLICK)
        assert await client.until("a") == {"id": "a", "status": "error", "payload": {"error": "engine_unavailable"}}
        client.ask("h", "health")
        assert (await client.until("h"))["payload"] == "ok"
        client.ask("p", "help")
        assert "click-button" in (await client.until("p"))["payload"]["plugins"]["demo"]
    assert nowhere in (laid.folder / "stderr").read_text(encoding="utf-8")


@promise("plugins:survives")
async def test_a_job_goes_on_when_its_daemon_is_killed_and_the_next_one_attaches_to_it(site, tmp_path):
    laid = await site()
    gate = tmp_path / "gate"
    async with laid.daemon() as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        client.run("b", "demo", "say", {"text": "b"})
        await client.until("a", "started")
        await client.told("b", "queued")
        client.process.send_signal(signal.SIGKILL)
        await client.process.wait()
    gate.touch()
    async with laid.daemon() as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        client.run("b", "demo", "say", {"text": "b"})
        assert (await client.until("a"))["payload"] == {"found": str(gate)}
        await client.told("b", "success")
        client.run("b", "demo", "say", {"text": "other"})
        assert await client.until("b") == {"id": "b", "status": "error", "payload": {"error": "id_conflict"}}
    assert lines_of(tmp_path / "ran") == ["wait", "say"]


@promise("plugins:timeouts")
@pytest.mark.thorough
async def test_the_timeout_of_a_run_counts_from_its_start_and_not_while_it_is_queued(site, tmp_path):
    laid = await site()
    async with laid.daemon() as client:
        # The second job is queued for longer than it may take.
        client.run("a", "demo", "pause", {"seconds": 5})
        client.run("b", "demo", "say", {"text": "b"}, timeout=4)
        client.run("c", "demo", "wait", {"path": str(tmp_path / "never")}, timeout=1)
        assert await client.until("c") == {"id": "c", "status": "timeout", "payload": {"error": "timeout"}}
    assert client.statuses("c") == ["queued", "started", "timeout"]
    assert client.statuses("b") == ["queued", "started", "success"]


@promise("plugins:lane")
@pytest.mark.thorough
async def test_a_lane_is_free_when_the_child_has_ended_and_not_before(site, tmp_path):
    laid = await site()
    (worker,) = site.workers
    gate = tmp_path / "gate"
    async with laid.daemon() as client:
        client.run("a", "demo", "wait", {"path": str(gate)}, timeout=5)
        await client.until("a", "started")
        await eventually(lambda: lines_of(tmp_path / "ran") == ["wait"])
        assert is_locked(tmp_path / "plugins/demo")
        worker.kill()
        # The kernel ends the child with its worker, and only then gives the lock free.
        await eventually(lambda: not is_locked(tmp_path / "plugins/demo"))
        client.run("b", "demo", "say", {"text": "b"})
        site.workers.append(await laid.worker())
        assert await client.until("a") == {"id": "a", "status": "error", "payload": {"error": "outcome_unknown"}}
        assert (await client.until("b"))["payload"] == "b"
    assert lines_of(tmp_path / "ran") == ["wait", "say"]


@promise("plugins:lane-ended")
async def test_the_next_job_begins_when_the_process_was_seen_to_end_and_not_at_the_end_of_its_time(site, tmp_path):
    laid = await site(workers=0)
    laid.settle_s = 600
    site.workers.append(await laid.worker())
    async with laid.daemon() as client:
        client.run("a", "demo", "fail", {"how": "killed"}, timeout=600)
        client.run("b", "demo", "wait", {"path": str(tmp_path / "never")}, timeout=1)
        client.run("c", "demo", "say", {"text": "c"})
        assert await client.until("a") == {"id": "a", "status": "error", "payload": {"error": "outcome_unknown"}}
        assert await client.until("b") == {"id": "b", "status": "timeout", "payload": {"error": "timeout"}}
        assert (await client.until("c"))["payload"] == "c"
    assert lines_of(tmp_path / "ran") == ["fail", "wait", "say"]


@promise("plugins:lane")
async def test_a_call_of_an_ordinary_run_waits_for_a_job_without_keeping_a_worker_busy(site, tmp_path):
    laid = await site(demo={"tools": {"say": {"safety": "read_only"}}}, workers=2)
    gate = tmp_path / "gate"
    async with laid.daemon() as client, laid.connected() as backstay:
        client.run("a", "demo", "wait", {"path": str(gate)})
        await client.until("a", "started")
        step = {"tool": "demo.say", "arguments": {"text": "from a run"}}
        run = await backstay.start({"plan": {"steps": [step]}})
        calling = run.client.get_workflow_handle(run.id)

        async with asyncio.timeout(60):
            while not await has_waited(calling):
                await asyncio.sleep(0.05)
        await eventually(lambda: lines_of(tmp_path / "ran") == ["wait"])
        gate.touch()
        assert (await run.result()).success
    assert lines_of(tmp_path / "ran") == ["wait", "say"]


@promise("plugins:parallel")
async def test_jobs_of_a_plugin_that_is_declared_parallel_run_at_the_same_time(site, tmp_path):
    laid = await site(demo={"parallel": True})
    gate = tmp_path / "gate"
    async with laid.daemon() as client:
        for name in "ab":
            client.run(name, "demo", "wait", {"path": str(gate)})
        await eventually(lambda: lines_of(tmp_path / "ran") == ["wait", "wait"])
        gate.touch()
        assert (await client.told("a", "success"))["payload"] == {"found": str(gate)}
        assert (await client.told("b", "success"))["payload"] == {"found": str(gate)}


@promise("plugins:parallel")
@pytest.mark.thorough
async def test_with_one_lane_jobs_of_different_plugins_run_one_after_another(site, tmp_path):
    laid = await site("demo", "other")
    gate = tmp_path / "gate"
    async with laid.daemon("--lanes", "one") as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        client.run("b", "other", "run", {"left": 1})
        await client.until("a", "started")
        client.ask("h", "health", detail=True)
        await client.until("h")
        assert client.statuses("b") in ([], ["queued"])
        gate.touch()
        await client.until("b")
    told = [(line["id"], line["status"]) for line in client.lines if line.get("status") in {"started", "success"}]
    of_jobs = [each for each in told if each[0] in "ab"]
    assert of_jobs == [("a", "started"), ("a", "success"), ("b", "started"), ("b", "success")]


@promise("plugins:grant")
async def test_a_job_that_is_not_granted_becomes_a_request_which_the_next_job_does_not_wait_for(site, tmp_path):
    laid = await site("demo", workers=0)
    configuration = json.loads((tmp_path / "toolbox.json").read_text(encoding="utf-8"))
    configuration["providers"]["demo"]["jobs"]["unasked"] = ["say"]
    (tmp_path / "toolbox.json").write_text(json.dumps(configuration), encoding="utf-8")
    site.workers.append(await laid.worker())
    async with laid.daemon() as client, laid.connected() as backstay:
        client.run("a", "demo", "click-button", CLICK)
        client.run("b", "demo", "click-button", CLICK)
        client.run("c", "demo", "say", {"text": "c"})
        assert (await client.until("c"))["payload"] == "c"
        asked = [line for line in client.lines if line.get("id") == "a"][-1]
        assert asked["status"] == "queued"
        assert asked["payload"]["request"]["link"] == f"backstay show {laid.run_of('a')}"
        assert lines_of(tmp_path / "ran") == ["say"]
        for name, verdict in (("a", "approve"), ("b", "reject")):
            run = backstay.run(laid.run_of(name))
            (request,) = await run.pending()
            await run.decide({"request_id": request.id, "verdict": verdict, "by": "ana@example.com"})
        assert (await client.until("a"))["status"] == "success"
        assert (await client.told("b", "error"))["payload"] == {"error": "rejected"}
    assert client.statuses("a")[-2:] == ["started", "success"]
    assert lines_of(tmp_path / "ran") == ["say", "click-button"]


@promise("plugins:grant")
async def test_a_grant_ends_when_a_file_of_the_plugin_changes_but_not_for_files_that_it_leaves_out(site, tmp_path):
    laid = await site("demo")
    async with laid.daemon() as client:
        (tmp_path / "plugins/demo/bot.session").write_text("state", encoding="utf-8")
        client.run("a", "demo", "say", {"text": "a"})
        assert (await client.until("a"))["payload"] == "a"
        (tmp_path / "plugins/demo/data.txt").write_text("new", encoding="utf-8")
        client.run("b", "demo", "say", {"text": "b"})
        assert (await client.until("b", "queued"))["payload"] == {}
        assert "request" in (await client.until("b", "queued"))["payload"]
    assert lines_of(tmp_path / "ran") == ["say"]
    assert grant_of(tmp_path / "plugins/demo")["sha256"]


@promise("plugins:grant")
async def test_a_job_that_waited_for_its_turn_asks_when_a_file_has_changed_meanwhile(site, tmp_path):
    laid = await site("demo")
    plugin = tmp_path / "plugins/demo"
    async with laid.daemon() as client:
        async with folder_lock(plugin):
            client.run("a", "demo", "say", {"text": "a"})
            calling = laid.client.get_workflow_handle(laid.run_of("a"))
            async with asyncio.timeout(60):
                while not await has_waited(calling):
                    await asyncio.sleep(0.05)
            (plugin / "data.txt").write_text("new", encoding="utf-8")
        assert (await approved(laid, client, "a"))["payload"] == "a"
    assert lines_of(tmp_path / "ran") == ["say"]


async def has_waited(calling):
    """Return whether a call of a run was told that its plugin is busy."""
    try:
        pending = (await calling.describe()).raw_description.pending_activities
    except RPCError:
        return False  # it has not begun
    return any(activity.last_failure.application_failure_info.type == "ToolBusy" for activity in pending)


async def approved(laid, client, name):
    """Let a job that is not granted run, and return how it ended."""
    while "request" not in (await client.until(name, "queued"))["payload"]:
        pass
    async with laid.connected() as backstay:
        run = backstay.run(laid.run_of(name))
        (request,) = await run.pending()
        await run.decide({"request_id": request.id, "verdict": "approve", "by": "ana@example.com"})
    return await client.until(name)


TOKEN = "8812345678:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw"
PEM = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"


@promise("plugins:printed")
async def test_the_client_of_a_job_gets_the_secrets_that_its_program_printed_and_nothing_else_has_them(site, tmp_path):
    (tmp_path / "plugins/bots").mkdir(parents=True)
    said = {"token": TOKEN, "name": "shop", "pin": 48213377, "private_key": PEM}
    source = f"import argparse\n\nargparse.ArgumentParser().parse_args()\nprint({json.dumps(json.dumps(said))})\n"
    (tmp_path / "plugins/bots/cli.py").write_text(source, encoding="utf-8")
    laid = await site("demo", bots={"jobs": grant_of(tmp_path / "plugins/bots")})
    async with laid.daemon() as client:
        client.run("a", "bots", "run")
        assert (await client.until("a"))["payload"] == said
    # Another one on a machine that has not the store.
    async with laid.daemon(BACKSTAY_HOME=str(tmp_path / "elsewhere")) as client:
        client.run("b", "bots", "run")
        told = (await client.until("b"))["payload"]
        assert told["name"] == "shop"
        assert told["token"].startswith("⟦secret:bots/token:")
    assert not (tmp_path / "elsewhere/backstay.db").exists()
    assert TOKEN not in (tmp_path / "home/mcp.log").read_text(encoding="utf-8")
    history = await laid.client.get_workflow_handle(laid.run_of("a")).fetch_history()
    assert TOKEN not in history.to_json()
    async with open_store(database_url=None, home=tmp_path / "home") as store:
        row = await store.runs.get(laid.run_of("a"))
        decided = await store.decisions.of_run(row.run)
    assert [(shown.update, shown.by) for shown in decided] == [("reveal", "plugins-daemon")] * 3


@promise("plugins:found-by-workers")
async def test_a_worker_finds_plugins_that_come_change_and_go_while_it_runs(site, tmp_path):
    laid = await site("demo")
    plugins = tmp_path / "plugins"
    async with laid.daemon() as client:
        (plugins / "loop").symlink_to("loop")
        for number in range(40):
            (plugins / f"empty-{number}").mkdir()
        shutil.copytree(PLUGINS / "other", plugins / "added")
        client.run("a", "added", "run", {"left": 1})
        assert (await approved(laid, client, "a"))["payload"] == 1.5
        source = (plugins / "added/cli.py").read_text(encoding="utf-8")
        (plugins / "added/cli.py").write_text(source.replace("right", "other"), encoding="utf-8")
        client.run("b", "added", "run", {"left": 1, "other": 2})
        assert (await approved(laid, client, "b"))["payload"] == 3
        gate = tmp_path / "gate"
        client.run("c", "demo", "wait", {"path": str(gate)})
        await client.until("c", "started")
        await eventually(lambda: lines_of(tmp_path / "ran") == ["wait"])
        client.run("d", "demo", "say", {"text": "d"})
        await client.told("d", "queued")
        shutil.rmtree(plugins / "demo")
        gate.touch()
        assert (await client.until("c"))["payload"] == {"found": str(gate)}
        gone = await client.until("d")
        assert gone["status"] == "error"
        assert "there is no tool demo.say" in gone["payload"]["error"]
        shutil.copytree(PLUGINS / "demo", plugins / "demo")
        client.run("e", "demo", "say", {"text": "e"})
        assert (await client.until("e"))["payload"] == "e"


@promise("plugins:found-by-workers")
async def test_a_plugin_with_an_entry_newer_than_the_worker_waits_for_its_next_start(site, tmp_path):
    laid = await site("demo")
    async with laid.daemon() as client:
        shutil.copytree(PLUGINS / "other", tmp_path / "plugins/added")
        configuration = json.loads((tmp_path / "toolbox.json").read_text(encoding="utf-8"))
        configuration["providers"]["added"] = {"env": {"SECRET": "shared-with-it"}}
        (tmp_path / "toolbox.json").write_text(json.dumps(configuration), encoding="utf-8")
        client.run("a", "added", "run", {"left": 1})
        ended = await client.until("a")
        assert ended["status"] == "error"
        assert "restart the worker" in ended["payload"]["error"]
        client.run("b", "demo", "say", {"text": "b"})
        assert (await client.until("b"))["payload"] == "b"


@promise("plugins:metrics")
async def test_a_worker_tells_how_many_jobs_wait_and_how_long_those_that_ended_took(site, tmp_path):
    laid = await site(workers=0)
    laid.metrics = f"127.0.0.1:{own_port()}"
    site.workers.append(await laid.worker())
    gate = tmp_path / "gate"

    async def told():
        async with httpx.AsyncClient() as scraper:
            text = (await scraper.get(f"http://{laid.metrics}/metrics")).text
        lines = re.findall(r'^backstay_plugin_(\w+){(.*plugin="demo".*)} (\S+)$', text, re.MULTILINE)
        outcomes = [re.findall(r'outcome="(\w+)"', labels) for _, labels, _ in lines]
        return {" ".join([line[0], *said]): float(line[2]) for line, said in zip(lines, outcomes, strict=True)}

    async with laid.daemon() as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        await client.until("a", "started")
        for number in range(3):
            client.run(f"b{number}", "demo", "say", {"text": "b"})
        async with asyncio.timeout(60):
            while (await told()).get("queue") != 3:
                await asyncio.sleep(0.1)
        gate.touch()
        client.run("c", "demo", "fail")
        await client.until("c")
        async with asyncio.timeout(60):
            while (found := await told()).get("jobs failed") != 1:
                await asyncio.sleep(0.1)
    assert (found["queue"], found["jobs succeeded"]) == (0, 4)
    assert found["seconds"] > 0


@asynccontextmanager
async def sending(laid, temporal):
    """Keep a daemon from the answer to its sending of job b, after job a; yields its client and what holds it up."""
    async with relay(temporal) as way, laid.daemon(TEMPORAL_ADDRESS=way.address) as client:
        client.run("a", "demo", "say", {"text": "a"})
        await client.until("a")
        is_sent = way.hold_at(2)
        client.run("b", "demo", "click-button", CLICK)
        await eventually(is_sent)
        yield client, way


@promise("plugins:unanswered")
@pytest.mark.thorough
async def test_a_job_whose_sending_is_not_answered_is_sent_again_and_never_told_as_not_taken(site, temporal):
    laid = await site()
    async with sending(laid, temporal) as (client, way):
        is_sent_again = way.hold_at(1)  # after 10 s
        await eventually(is_sent_again)
        way.release()
        await client.until("b")
    assert client.statuses("b") == ["queued", "started", "success"]
    assert lines_of(laid.folder / "ran") == ["say", "click-button"]


@promise("plugins:unanswered")
async def test_a_daemon_that_is_stopped_while_it_sends_a_job_says_that_the_outcome_is_unknown(site, temporal):
    laid = await site()
    async with sending(laid, temporal) as (client, _):
        await eventually(lambda: lines_of(laid.folder / "ran") == ["say", "click-button"])
        client.process.terminate()
        lines, code = await client.rest()
    assert lines == [
        {"id": "b", "status": "error", "payload": {"error": "outcome_unknown"}},
        {"status": "shutdown"},
    ]
    assert code == 0


@promise("plugins:lane-full")
async def test_no_more_jobs_wait_in_a_lane_than_its_history_can_hold(site, tmp_path):
    laid = await site("demo", "other")
    gate, texts = tmp_path / "gate", [f"{number}x" * 50_000 for number in range(5)]
    async with laid.daemon() as client:
        client.run("first", "demo", "wait", {"path": str(gate)})
        await client.until("first", "started")
        for number, text in enumerate(texts):
            client.run(number, "demo", "say", {"text": text})
        await client.told(1, "queued")
        # A lane that is full keeps no other one waiting.
        client.run("other", "other", "run", {"left": 1})
        assert (await client.until("other"))["payload"] == 1.5
        history = await laid.client.get_workflow_handle(lane_id(laid.queue, "demo")).fetch_history()
        assert len(history.to_json()) < 600_000
        assert [client.statuses(number) for number in (2, 3, 4)] == [[], [], []]
        gate.touch()
        assert [(await client.told(number, "success"))["payload"] for number in range(5)] == texts


@promise("plugins:lane-lost")
async def test_a_job_whose_lane_was_terminated_is_brought_into_it_again(site, tmp_path):
    laid = await site()
    gate = tmp_path / "gate"
    async with laid.daemon() as client:
        client.run("a", "demo", "wait", {"path": str(gate)})
        client.run("b", "demo", "say", {"text": "b"})
        client.run("c", "demo", "say", {"text": "c"})
        await client.told("c", "queued")
        await client.told("a", "started")
        await laid.client.get_workflow_handle(lane_id(laid.queue, "demo")).terminate()
        client.run("d", "demo", "say", {"text": "d"})  # which opens another one
        await client.told("d", "queued")
        gate.touch()
        assert [(await client.told(name, "success"))["payload"] for name in "bcd"] == ["b", "c", "d"]
    assert sorted(lines_of(tmp_path / "ran")) == ["say", "say", "say", "wait"]


@promise("plugins:no-number")
async def test_a_number_that_json_cannot_say_is_refused_and_later_jobs_of_the_plugin_are_told_to_their_end(site):
    laid = await site("other")
    async with laid.daemon() as client:
        for number, said in enumerate(["inf", "nan", "1e999"]):
            client.run(number, "other", "run", {"left": 1, "right": said})
            refused = await client.until(number)
            assert refused["status"] == "error"
            assert "right" in refused["payload"]["error"]
        client.run("after", "other", "run", {"left": 1})
        assert (await client.until("after"))["payload"] == 1.5


@promise("plugins:as-data")
async def test_what_a_plan_would_read_as_a_reference_reaches_the_program_of_a_job_as_it_was_sent(site):
    laid = await site()
    texts = ["${input.x}", "$${HOME}", "$$${a} ${", "price: $5 {a}"]
    async with laid.daemon() as client:
        for number, text in enumerate(texts):
            client.run(number, "demo", "say", {"text": text})
        assert [(await client.told(number, "success"))["payload"] for number in range(len(texts))] == texts


def checked(found, tmp_path):
    """Declare how it is found out whether a call took place whose answer was lost."""
    told = {"tool": "say", "arguments": {"text": json.dumps({"found": found})}, "applied_if": "{{ result.found }}"}
    lost = {"verify": told | {"verify_is_final": found is False}}
    tools = {"fail": lost, "wait": lost, "say": {"safety": "read_only"}}
    return {"tools": tools, "env": {"RAN": str(tmp_path / "ran")}}


@promise("plugins:settled")
async def test_a_job_whose_lost_answer_was_found_out_by_its_check_is_told_as_that_says(site, tmp_path):
    laid = await site(demo=checked(True, tmp_path))
    async with laid.daemon() as client:
        client.run("a", "demo", "fail", {"how": "killed"}, timeout=5)
        client.run("b", "demo", "wait", {"path": str(tmp_path / "never")}, timeout=1)
        for name in "ab":
            assert (await client.told(name, "success"))["payload"] == {"found": True}
    async with laid.daemon() as client:  # which hears of it only after the end
        client.run("a", "demo", "fail", {"how": "killed"}, timeout=5)
        assert (await client.until("a"))["payload"] == {"found": True}


@promise("plugins:settled")
@pytest.mark.thorough
async def test_a_job_that_provably_did_not_happen_is_sent_again_and_told_by_its_second_answer(site, tmp_path):
    laid = await site(demo=checked(False, tmp_path))
    gate = tmp_path / "gate"
    async with laid.daemon() as client:
        client.run("a", "demo", "wait", {"path": str(gate)}, timeout=3)
        async with laid.connected() as backstay:
            run = backstay.run(laid.run_of("a"))
            await client.until("a", "started")
            async with asyncio.timeout(60):
                while not any(event.name == "effect.settled" for event in (await run.status()).last_events):
                    await asyncio.sleep(0.05)
        gate.touch()
        assert await client.until("a") == {"id": "a", "status": "success", "payload": {"found": str(gate)}}
    assert lines_of(tmp_path / "ran").count("wait") == 2


@promise("plugins:settled")
@pytest.mark.thorough
async def test_a_job_is_told_to_be_unknown_once_its_check_cannot_tell(site, tmp_path):
    laid = await site(demo=checked(None, tmp_path))
    async with laid.daemon() as client:
        client.run("a", "demo", "fail", {"how": "killed"}, timeout=5)
        assert await client.until("a") == {"id": "a", "status": "error", "payload": {"error": "outcome_unknown"}}
        client.run("b", "demo", "say", {"text": "b"})
        assert (await client.until("b"))["payload"] == "b"
    async with laid.connected() as backstay:
        run = backstay.run(laid.run_of("a"))
        await run.cancel()
        await run.result()
    async with laid.daemon() as client:  # a run that is cancelled meanwhile settles nothing
        client.run("a", "demo", "fail", {"how": "killed"}, timeout=5)
        assert (await client.until("a"))["payload"] == {"error": "outcome_unknown"}
