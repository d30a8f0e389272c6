"""`backstay memory` and its server: one user's memory at the terminal and for other programs."""

import json
import sys

import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters

from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.effects import EffectRecord, WorkspaceEffects
from sandbox.workspaces.workspace import WorkspaceCall
from system.locks import file_lock
from tests.cli.commands import bare, forked
from tests.ledger.recorded import a_store, keys_of
from tests.memory.recorded import Call, Recorded, remember
from tests.requirements import promise

BOILER = Recorded(
    "boiler", "See to the boiler", (Call("mail.read", '{"id":"m1"}', "The boiler of Zwolle\nleaks at valve 9."),),
    "Valve 9 of the boiler was replaced.",
)  # fmt: skip
OTHER = Recorded("other", "The boiler of another", (), "Nobody's business.")


@pytest_asyncio.fixture
async def home(tmp_path):
    async with a_store(tmp_path / "home") as store:
        await remember(store, "ana", BOILER)
        await remember(store, "bo", OTHER)
    return tmp_path / "home"


@pytest.fixture
def command(home, nursery, tmp_path):
    async def command(*arguments, code=0):
        done = await forked(nursery, "memory", *arguments, environment=bare(BACKSTAY_HOME=str(home)), folder=tmp_path)
        assert done.code == code, (done.out, done.err)
        return done.out + done.err

    return command


@promise("store:memory-commands")
async def test_memory_is_searched_shown_and_forgotten_at_the_terminal_one_user_at_a_time(command, home):
    found = json.loads(await command("search", "leaking boiler", "--user", "ana", "--output", "json"))
    assert {item["run"] for item in found} == {"task-boiler"}
    (output,) = [item for item in found if item["kind"] == "tool_output"]
    assert "task-boiler tool_output mail.read (others' words)" in await command("search", "boiler", "--user", "ana")
    number = str(output["id"])
    assert "  leaks at valve 9.\n" in await command("show", number, "--user", "ana")
    assert "no such item in the memory of bo" in await command("show", number, "--user", "bo", code=2)
    assert "no such item in the memory of bo" in await command("forget", number, "--user", "bo", "--yes", code=2)
    assert "--yes" in await command("forget", number, "--user", "ana", code=2)
    assert "one of them" in await command("forget", number, "--run", "task-boiler", "--yes", code=2)
    assert "forgotten; 1 payloads" in await command("forget", number, "--user", "ana", "--by", "ana", "--yes")
    assert "no such item" in await command("show", number, "--user", "ana", code=2)
    assert "is in the memory of bo" in await command("forget", "--run", "task-boiler", "--user", "bo", "--yes", code=2)
    await command("forget", "--run", "task-boiler", "--user", "ana", "--yes")
    assert "nothing is remembered about this for ana" in await command("search", "boiler", "--user", "ana")
    async with a_store(home) as store:
        verdict = await store.auditing.verify(keys_of())
    assert [run.run for run in verdict.faulty] == []


@promise("store:memory-snapshots")
async def test_what_a_forgotten_run_left_in_a_workspace_is_erased_with_it(command, home, tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    snapshots, folder = Snapshots(home / "snapshots/key"), home / "workspace-state/written/key"
    effects = WorkspaceEffects(room, snapshots, folder, written_mb=1)

    async def write() -> dict[str, object]:
        (room / "secret").write_text("The valve opens with 4711.", encoding="ascii")
        return {"ok": {"stdout": "It opens with 4711."}}

    for run in ("task-boiler/r", "task-other/r"):
        call = WorkspaceCall(workspace="room", run=run, tool="run", arguments={}, writable=True, effect=f"{run}/1")
        await effects.write(call, write)
        (room / "secret").unlink()
    (room / "secret").write_text("theirs", encoding="ascii")
    kept = holding(home, b"4711")
    assert len(kept) == 3
    await command("forget", "--run", "task-boiler", "--user", "ana", "--yes")
    assert len(holding(home, b"4711")) == 2
    await command("forget", "--run", "task-other", "--user", "bo", "--yes")
    assert holding(home, b"4711") == []


@promise("store:memory-snapshots-waits")
async def test_forgetting_a_run_waits_for_no_call_in_a_workspace_of_others_and_says_what_the_disk_kept(command, home):
    state = home / "workspace-state"
    for key, run in (("hers", "task-boiler/r"), ("theirs", "task-other/r")):
        (state / "written" / key).mkdir(parents=True)
        record = EffectRecord(effect=f"{run}/1", tool="run", before="0" * 64)
        (state / "written" / key / "1.json").write_text(json.dumps(record.plain()), encoding="utf-8")
    (state / "hers.lock").mkdir()
    with file_lock(state / "theirs.lock"):
        said = await command("forget", "--run", "task-boiler", "--user", "ana", "--yes", code=1)
    assert "snapshots of one workspace stay until `backstay prune`" in said
    assert f"{state}/hers.lock: Is a directory" in said
    assert "forgotten; " in said


def holding(home, words):
    """The files of workspaces that hold words: what was said, in the record of each call, and what was written."""
    folders = (home / "snapshots", home / "workspace-state")
    return [path for folder in folders for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]


@promise("store:history")
async def test_a_client_reads_the_memory_of_the_one_user_that_the_server_was_started_for(home, tmp_path):
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "backstay", "memory", "mcp", "--user", "ana"], cwd=str(tmp_path),
        env=bare(BACKSTAY_HOME=str(home)),
    )  # fmt: skip
    before = (home / "backstay.db").stat().st_mtime_ns
    async with Client(started, read_timeout_seconds=60) as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("search_memory", {"query": "boiler", "user": "bo", "limit": 3})
        items = found.structured_content["items"]
        shown = await client.call_tool("show_memory", {"id": items[0]["id"]})
        refused = [
            await client.call_tool(name, arguments)
            for name, arguments in (
                ("show_memory", {"id": 7}),
                ("show_memory", {"id": 10**30}),
                ("show_memory", {"id": "1 OR 1=1"}),
                ("search_memory", {"query": ["boiler"]}),
                ("forget_memory", {"id": 1}),
            )
        ]
    assert {tool.name: tool.annotations.read_only_hint for tool in tools} == {
        "search_memory": True,
        "show_memory": True,
    }
    assert {item["run"] for item in items} == {"task-boiler"}
    assert shown.structured_content["id"] == items[0]["id"]
    assert [answer.is_error for answer in refused] == [True] * 5
    assert (home / "backstay.db").stat().st_mtime_ns == before
