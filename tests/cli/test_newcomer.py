"""What a newcomer meets beside `dev` and the example: a first run, later turns, plans, the page, the end of it all."""

import asyncio
import json
import re
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest
import pytest_asyncio

from system.locks import async_file_lock
from tests.cli.commands import BACKSTAY, at_terminal, bare, command, environment_of, forked
from tests.cli.screen import chatting, read_along
from tests.cli.test_dev import Dev, nothing_left
from tests.docs.blocks import newcomers_commands, newcomers_plan
from tests.engine import share_images
from tests.ports import own_port
from tests.requirements import promise
from tests.sizes import spread


class Example(Dev):
    """The example of `init`, which `dev` serves with the scripted model, the Web UI and the page."""

    def __init__(self, nursery, folder, environment, *flags):
        super().__init__(folder, environment, *flags)
        self.nursery = nursery

    async def run(self, *arguments, **more):
        return await forked(self.nursery, *arguments, environment=self.there | more, folder=self.folder)


@pytest_asyncio.fixture(scope="module")
async def example(nursery, tmp_path_factory):
    _, init, dev, *_ = newcomers_commands()
    place = tmp_path_factory.mktemp("newcomer")
    folder = place / "example"
    folder.mkdir()
    own = bare(XDG_STATE_HOME=str(place / "state"), BACKSTAY_HOME=str(share_images(place / "home")))
    example = Example(nursery, folder, own, *dev[2:])
    begun = await example.run(*init[1:])
    assert begun.code == 0, begun.err
    assert dev[:2] == ["backstay", "dev"]
    try:
        await example.up()
        yield example
    finally:
        await example.end()
        await nothing_left(place)


def notes(folder):
    if not (folder / "notes.json").exists():
        return []
    return [note["text"] for note in json.loads((folder / "notes.json").read_text(encoding="utf-8"))["notes"]]


async def open_request(run, name):
    """Wait until a run asks for something; return how it is shown then."""
    async with asyncio.timeout(150):
        while "r1" not in (shown := await run("show", name)).out:
            await asyncio.sleep(0.2)
    return shown.out


@promise("clients:newcomer")
async def test_the_readmes_own_commands_lead_to_an_approved_write(example):
    *_, first, planned = newcomers_commands()
    where = {"environment": example.there, "folder": example.folder, "nursery": example.nursery}
    async with at_terminal(*BACKSTAY, *first[1:], **where) as terminal:
        asked = await terminal.shows("[d]etach?")
        before = notes(example.folder)
        terminal.type("a")
        code, out = await terminal.ended()
    (example.folder / "plan.yaml").write_text(newcomers_plan(), encoding="utf-8")
    async with at_terminal(*BACKSTAY, *planned[1:], **where) as terminal:
        proposed = await terminal.shows("[d]etach?")
        terminal.type("a")
        plan_code, _ = await terminal.ended()

    assert "model       a script at http://127.0.0.1:" in "\n".join(example.lines)
    assert "notes.add_note" in asked
    assert "can be undone: delete_note, with id from its answer" in asked
    assert "Noted: The report is due on Friday" in out
    assert "Two notes about the report" in proposed
    assert (code, plan_code) == (0, 0)
    written = notes(example.folder)
    assert written[: len(before)] == before
    assert written[len(before) : -1] == ["The report is due on Friday"] * 2
    assert written[-1].startswith("Ask Bo to read what note ")


@promise("clients:example-goes-on")
async def test_the_scripted_model_does_the_present_task_also_in_a_later_turn_and_plans_where_it_must(example):
    run, folder, before = example.run, example.folder, notes(example.folder)
    first = await run("run", "Note buy pears", "--yes")
    second = await run("run", "--continue", "last", "Note buy plums", "--yes")
    planned = await run("run", "--continue", "last", "Note buy figs", "--mode", "plan_first", "--yes")
    begun = await run("run", "Note no nuts", "--mode", "plan_first", "--detach")
    await open_request(run, begun.out.strip())
    await run("approve", begun.out.strip(), "r1", "--reject-step", "0")
    without = await run("attach", begun.out.strip())

    assert (first.code, first.out) == (0, "Noted: Buy pears\n"), first.err
    assert (second.code, second.out) == (0, "Noted: Buy plums\n"), second.err
    assert (planned.code, planned.out) == (0, "Noted: Buy figs\n"), planned.err
    assert "notes.add_note" in planned.err
    assert (without.code, without.out) == (1, "The note was not written.\n"), without.err
    assert notes(folder) == [*before, "Buy pears", "Buy plums", "Buy figs"]


@promise("clients:newcomer")
@pytest.mark.thorough
async def test_beside_dev_doctor_asks_the_script_and_a_chat_reads_along_on_its_page(example):
    done = await example.run("doctor", "--all", BACKSTAY_NSJAIL="/none")
    async with chatting(environment=example.there, folder=example.folder, nursery=example.nursery) as screen:
        await screen.waits_for("you>")
        screen.enter("Note buy tea")
        await screen.shows("[d]etach?")
        await read_along(Path(example.environment["BACKSTAY_HOME"]), "chat-")
        screen.enter("a")
        await screen.shows("Noted: Buy tea")
        await screen.waits_for("you>")
        screen.enter("/quit")
        assert await screen.ended() == 0

    states = {line.split()[1]: line for line in done.out.splitlines()}
    assert states["model"].startswith("ok ")
    assert states["price"].split() == ["ok", "price", "known", "for", "scripted"]
    assert "no page is known" not in screen.all
    assert "no live text" not in screen.all


@promise("page:dev")
async def test_dev_serves_the_page_lets_the_person_in_who_sits_here_and_runs_lead_there(example):
    await example.up()
    await example.says("for 12 hours; another link: backstay web link")
    link = (await example.says("page  ")).split()[1]
    name = (await example.run("run", "Note buy bread", "--detach")).out.strip()
    shown = await open_request(example.run, name)
    async with httpx2.AsyncClient(follow_redirects=True, timeout=150) as person:
        inbox = await person.get(link)
        run = await person.get(f"http://127.0.0.1:{example.page_port}/runs/{name}")

    assert link.startswith(f"http://127.0.0.1:{example.page_port}/link/")
    assert f"  http://127.0.0.1:{example.page_port}/requests/{name}/r1" in shown.splitlines()
    assert (inbox.status_code, run.status_code) == (200, 200)
    assert "May the run" in run.text


@promise("clients:one-dev")
async def test_a_second_dev_with_the_same_home_is_refused_by_the_process_and_place_of_the_first(example, nursery):
    process = await example.up()
    flags = ("--port", str(own_port()), "--headless", "--no-page")
    second = await forked(nursery, "dev", *flags, environment=example.environment, folder=example.folder)
    assert second.code == 2
    assert f"(process {process.pid}, Temporal at 127.0.0.1:{example.port})" in second.err
    # Another home with the same database of Temporal would share it as well.
    apart = {**example.environment, "BACKSTAY_HOME": str(example.folder / "apart")}
    flags = (*flags, "--db", str(Path(example.environment["BACKSTAY_HOME"], "temporal.db")))
    third = await forked(nursery, "dev", *flags, environment=apart, folder=example.folder)
    assert (third.code, "--db: another `backstay dev`" in third.err) == (2, True)


@promise("clients:found-dev")
async def test_commands_beside_dev_find_its_port_and_obey_an_address_in_the_env_file(example, nursery, tmp_path):
    await example.up()
    assert example.port != 7233
    listed = await forked(nursery, "list", environment=example.environment, folder=example.folder)
    assert listed.code == 0, listed.err
    (tmp_path / ".env").write_text(f"TEMPORAL_ADDRESS=127.0.0.1:{example.port}\n")
    trusting = bare(BACKSTAY_TRUSTED=str(tmp_path))
    assert (await forked(nursery, "list", environment=trusting, folder=tmp_path)).code == 0
    (tmp_path / ".env").write_text("TEMPORAL_ADDRESS=127.0.0.1:9\n")
    beside = trusting | {"BACKSTAY_HOME": example.environment["BACKSTAY_HOME"]}
    refused = await forked(nursery, "run", "x", environment=beside, folder=tmp_path)
    assert (refused.code, "127.0.0.1:9" in refused.err) == (refused.code or -1, True)


@promise("clients:found-dev")
async def test_a_worker_and_a_link_to_the_page_beside_dev_find_it_too(nursery, tmp_path):
    home, told = share_images(tmp_path / "home"), {"temporal": f"127.0.0.1:{own_port()}", "namespace": "default"}
    told |= {"page": "http://127.0.0.1:9000"}
    (home / "dev.json").write_text(json.dumps(told), encoding="utf-8")
    beside = {"environment": bare(BACKSTAY_HOME=str(home)), "folder": tmp_path}
    async with async_file_lock(home / "dev.lock"):
        worker = await command("worker", "--role", "runs", **beside)
        link = await forked(nursery, "web", "link", "--by", "ana", **beside)
        named = await forked(nursery, "web", "link", "--by", "ana", "--port", "9001", **beside)
    assert (worker.code, told["temporal"] in worker.err) == (worker.code or -1, True), worker.err
    assert [made.out.partition("/link/")[0] for made in (link, named)] == [
        "http://127.0.0.1:9000",
        "http://127.0.0.1:9001",
    ]


@promise("clients:cli-dev")
async def test_dev_brings_temporal_a_web_ui_and_a_worker_and_ctrl_c_ends_all_of_them(example):
    process = await example.up()
    tools = await example.says("tools       notes: ")
    _, writer = await asyncio.open_connection("127.0.0.1", example.ui_port)
    writer.close()
    done = await example.run("run", "Note buy soap", "--yes")
    process.send_signal(signal.SIGINT)
    # What is left must be read, or it could not finish.
    await asyncio.wait_for(process.communicate(), 150)
    await nothing_left(example.folder.parent)

    assert f"Temporal    127.0.0.1:{example.port}, namespace default" in example.lines
    assert re.fullmatch(r"tools       notes: \d+ tools \(.*\)", tools), tools
    assert f"Web UI      http://127.0.0.1:{example.ui_port}/namespaces/default/workflows" in example.lines
    elsewhere = f"in terminals of other folders, first run: export TEMPORAL_ADDRESS=127.0.0.1:{example.port}"
    assert f"elsewhere   {elsewhere}" in example.lines
    assert (done.code, done.out) == (0, "Noted: Buy soap\n"), done.err
    assert process.returncode == 0
    assert (example.folder.parent / "home" / "temporal.db").is_file()


@promise("clients:not-believed")
@pytest.mark.parametrize("how", spread(["killed", "of another Temporal"], 1))
async def test_a_dev_that_was_killed_or_serves_another_temporal_is_not_believed(nursery, opened, tmp_path, how):
    home = share_images(tmp_path / "home")
    temporal = "127.0.0.1:9" if how != "killed" else opened.client.service_client.config.target_host
    told = {"temporal": temporal, "namespace": opened.client.namespace, "script": opened.model.base_url}
    (home / "dev.json").write_text(json.dumps(told), encoding="utf-8")
    environment = environment_of(opened, BACKSTAY_HOME=str(home), BACKSTAY_NSJAIL="/none")
    async with AsyncExitStack() as stack:
        if how != "killed":
            await stack.enter_async_context(async_file_lock(home / "dev.lock"))
        done = await forked(nursery, "doctor", environment=environment, folder=tmp_path)

    (missing,) = [line for line in done.out.splitlines() if line.split()[1] == "model"]
    assert missing.startswith("missing  model")
    assert "`backstay dev --scripted` brings its own" in missing
