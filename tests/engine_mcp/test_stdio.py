"""A client that is not ours starts the server by the entry that the documentation shows, and uses it over stdio."""

import asyncio
import json
import sqlite3
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from mcp import Client, StdioServerParameters

from tests.cli.commands import forked
from tests.conformance.inspector import Inspector
from tests.docs.blocks import blocks
from tests.engine import Scripts, engine
from tests.engine_mcp.served import EXTENSION, REVISION
from tests.engine_mcp.test_runs import ASK, DONE
from tests.nursery.nursery import COMMAND, plain_environment
from tests.nursery.piped import piped
from tests.requirements import promise

SCRIPTS = Scripts()
OLDER = "2025-11-25"


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stdio")
    async with engine(temporal, folder, SCRIPTS) as running:
        yield running, entry_of(running, folder)


def entry_of(running, folder):
    """Return the entry of the documentation, with the places of these tests."""
    (text,) = [block.text for block in blocks("json") if block.place.startswith("docs/engine-mcp.md")]
    entry = json.loads(text)["mcpServers"]["backstay"]
    command = str(Path(sys.executable).parent / entry["command"])
    places = {
        "BACKSTAY_HOME": str(running.settings.home),
        "BACKSTAY_TRUSTED": str(folder),
        "BACKSTAY_TASK_QUEUE": running.settings.task_queue,
        "TEMPORAL_ADDRESS": running.client.service_client.config.target_host,
    }
    assert entry["env"].keys() <= places.keys()
    return {**entry, "command": command, "env": places}


@promise("clients:mcp-stdio")
@pytest.mark.thorough
async def test_the_inspector_starts_a_run_and_reads_its_result_in_another_process(opened, nursery, tmp_path):
    _, entry = opened
    inspector = Inspector(tmp_path, "backstay", entry)
    text = SCRIPTS.task(DONE)["text"]
    started = await inspector.call("start_run", text=text, once="spring", wait_s=60)
    result = started["structuredContent"]
    assert (started["isError"], result["summary"], result["outputs"]) == (False, "found it", {"answer": 42})
    async with initialized(nursery, entry, tmp_path) as (_, call):
        read = await call("read_result", run=result["run"])
    assert read["result"]["structuredContent"] == result


@promise("clients:mcp-stdio")
async def test_a_result_is_read_in_another_process_than_the_one_that_started_its_run(opened, nursery, tmp_path):
    _, entry = opened
    text = SCRIPTS.task(DONE)["text"]
    async with initialized(nursery, entry, tmp_path) as (_, call):
        started = (await call("start_run", text=text, once="summer", wait_s=60))["result"]
    result = started["structuredContent"]
    assert (started["isError"], result["summary"], result["outputs"]) == (False, "found it", {"answer": 42})
    async with initialized(nursery, entry, tmp_path) as (_, call):
        read = await call("read_result", run=result["run"])
    assert read["result"]["structuredContent"] == result


@promise("clients:mcp-stdio")
async def test_the_caller_is_who_started_the_process_and_no_request_names_another(opened, nursery, tmp_path):
    running, entry = opened
    server = StdioServerParameters(**(entry | {"args": [*entry["args"], "--by", "Ana@Example.com"]}), cwd=tmp_path)
    async with asyncio.timeout(120), Client(server, mode="legacy") as client:
        task = SCRIPTS.task(ASK, DONE)["text"]
        started = await client.call_tool("start_run", {"text": task, "wait_s": 60})
        run = started.structured_content["run"]
        assert [asked["asks"] for asked in started.structured_content["questions"]] == ["Which Kim?"]
        for field in ("user_id", "by", "policy", "profile", "plan"):
            answer = await client.call_tool("start_run", {"text": task, field: "bo@example.com"})
            assert answer.is_error
            assert f"{field}: unknown field" in answer.content[0].text
        await client.call_tool("cancel_run", {"run": run})
    assert await asyncio.to_thread(user_of, running, run) == "ana@example.com"
    # Another name is another caller, who does not find it.
    async with initialized(nursery, entry, tmp_path) as (_, call):
        assert (await call("follow_run", run=run))["result"]["isError"]
        listed = (await call("list_runs"))["result"]["structuredContent"]
        assert run not in [known["run"] for known in listed["runs"]]


def user_of(running, run):
    with sqlite3.connect(f"file:{running.settings.home}/backstay.db?mode=ro", uri=True, timeout=10) as database:
        ((user,),) = database.execute("SELECT user_id FROM runs WHERE workflow_id = ?", (run,)).fetchall()
    return user


@promise("clients:mcp-listen")
async def test_who_listens_over_stdio_is_told_and_other_requests_are_answered_meanwhile(opened, nursery, tmp_path):
    _, entry = opened
    meta = {
        "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {EXTENSION: {}}},
    }
    start = {"text": SCRIPTS.task(ASK, DONE)["text"]}
    async with started(nursery, entry, tmp_path) as (process, ask):
        task = (await ask("tools/call", name="start_run", arguments=start, _meta=meta))["result"]["taskId"]
        first = await ask("subscriptions/listen", id=2, notifications={"taskIds": [task]}, _meta=meta)
        assert first["params"]["notifications"] == {"taskIds": [task]}
        request = {"jsonrpc": "2.0", "id": 3, "method": "tasks/cancel", "params": {"taskId": task, "_meta": meta}}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        answered, said = False, {}
        async with asyncio.timeout(60):
            while not answered or said.get("status") != "cancelled":
                message = json.loads(await process.stdout.readline())
                answered = answered or message.get("id") == 3
                said = message["params"] if message.get("method") == "notifications/tasks" else said
            over = json.loads(await process.stdout.readline())
        assert (said["taskId"], over["id"], over["result"]["resultType"]) == (task, 2, "complete")


@promise("clients:mcp-restarts")
async def test_a_server_that_is_killed_amid_a_call_ends_no_run_and_its_start_returns_to_it(opened, nursery, tmp_path):
    _, entry = opened
    start = {"text": SCRIPTS.task(ASK, DONE)["text"], "once": "killed", "wait_s": 60}
    async with initialized(nursery, entry, tmp_path) as (killed, call):
        named = await call("start_run", progress=1, **start)
        assert named["method"] == "notifications/progress"
        killed.kill()
    async with initialized(nursery, entry, tmp_path) as (_, call):
        answer = (await call("start_run", **start))["result"]["structuredContent"]
        assert (answer["run"], [asked["asks"] for asked in answer["questions"]]) == (
            named["params"]["message"],
            ["Which Kim?"],
        )
        await call("cancel_run", run=answer["run"])


@asynccontextmanager
async def started(nursery, entry, folder):
    """Start the server as a fork, and yield it with what sends a request and returns the next message."""
    given = {"environment": plain_environment() | entry["env"], "folder": folder, "log": folder / "stderr"}
    async with piped(nursery, COMMAND, *entry["args"], **given) as process:

        async def ask(method, id=1, **params):  # noqa: A002 - the field's name
            request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            process.stdin.write(json.dumps(request).encode() + b"\n")
            async with asyncio.timeout(60):
                return json.loads(await process.stdout.readline())

        yield process, ask


@asynccontextmanager
async def initialized(nursery, entry, folder):
    """Start the server, and yield what calls a tool of it in the words of the older revision."""
    async with started(nursery, entry, folder) as (process, ask):
        await ask("initialize", clientInfo={"name": "raw", "version": "1"}, capabilities={}, protocolVersion=OLDER)

        async def call(tool, *, progress=None, **arguments):
            meta = {} if progress is None else {"_meta": {"progressToken": progress}}
            return await ask("tools/call", name=tool, arguments=arguments, **meta)

        yield process, call


@promise("clients:mcp-stdio")
async def test_a_caller_that_could_pass_for_another_is_refused_before_anything_is_served(opened, nursery, tmp_path):
    _, entry = opened
    given = {"environment": plain_environment() | entry["env"], "folder": tmp_path}
    refused = await forked(nursery, *entry["args"], "--by", "a\u200bb", **given)
    assert (refused.code, "--by: " in refused.err) == (2, True), refused
