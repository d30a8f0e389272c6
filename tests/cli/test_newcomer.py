"""What a newcomer does after the first run of the example: goes on, plans first, looks for what is wrong."""

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
import pytest_asyncio

from system.locks import async_file_lock
from tests.cli.commands import BACKSTAY, at_terminal, bare, environment_of, forked
from tests.cli.screen import chatting, read_along
from tests.cli.test_dev import nothing_left, said
from tests.docs.blocks import newcomers_commands, newcomers_plan
from tests.engine import share_images
from tests.ports import own_port
from tests.requirements import promise
from tests.sizes import spread


class Example:
    """The example of `init`, beside which `dev` serves it with the scripted model and the page."""

    def __init__(self, nursery, folder, environment):
        self.nursery = nursery
        self.folder = folder
        self.environment = environment
        self.lines = []

    async def run(self, *arguments, **more):
        return await forked(self.nursery, *arguments, environment=self.environment | more, folder=self.folder)


@pytest_asyncio.fixture(scope="module")
async def example(nursery, tmp_path_factory):
    _, init, dev, *_ = newcomers_commands()
    place, port, page_port = tmp_path_factory.mktemp("newcomer"), own_port(), own_port()
    folder = place / "example"
    folder.mkdir()
    own = bare(XDG_STATE_HOME=str(place / "state"), BACKSTAY_HOME=str(share_images(place / "home")))
    example = Example(nursery, folder, {**own, "TEMPORAL_ADDRESS": f"127.0.0.1:{port}"})
    begun = await example.run(*init[1:])
    assert begun.code == 0, begun.err
    flags = ("--port", str(port), "--headless", "--page-port", str(page_port))
    process = await asyncio.create_subprocess_exec(
        *BACKSTAY, *dev[1:], *flags, env=own, cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    try:
        example.lines = await said(process, "backstay worker ready:")
        yield example
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()
        await nothing_left(place)


def notes(folder):
    if not (folder / "notes.json").exists():
        return []
    return [note["text"] for note in json.loads((folder / "notes.json").read_text(encoding="utf-8"))["notes"]]


async def open_request(run, name):
    """Wait until a run asks for something."""
    async with asyncio.timeout(150):
        while "r1" not in (await run("show", name)).out:
            pass


@promise("clients:newcomer")
async def test_the_readmes_own_commands_lead_to_an_approved_write(example):
    *_, first, planned = newcomers_commands()
    where = {"environment": example.environment, "folder": example.folder, "nursery": example.nursery}
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
    async with chatting(environment=example.environment, folder=example.folder, nursery=example.nursery) as screen:
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
