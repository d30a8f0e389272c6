import asyncio
import json
import shutil
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
from mcp import Client, MCPError, StdioServerParameters

from tests.conformance.inspector import Inspector
from tests.conformance.scenarios import NODE, ROOT
from tests.nursery.piped import spoken_with
from tests.plugins.client import ENTRY, environment_of, hand_on_help, keep_help, lay_out
from tests.plugins.relay import relay
from tests.plugins.site import eventually, is_locked, lines_of, site_of
from tests.requirements import promise
from tests.sizes import spread

SDK = ROOT / "build/node/node_modules"
ACTIONS = ["click_button", "fail", "pause", "say", "wait"]


def server_of(folder, *flags, **variables):
    environment = environment_of(folder, {"BACKSTAY_HOME": str(folder / "home"), **variables})
    hand_on_help(folder, environment)
    return StdioServerParameters(command=sys.executable, args=[str(ENTRY), "--mcp", *flags], env=environment)


@asynccontextmanager
async def connected(folder, *flags, mode="auto", nursery=None, **variables):
    """Connect a client to a server that it starts, or to a fork of what has imported it."""
    server = server_of(folder, *flags, **variables)
    reached = server if nursery is None else await spoken_with(nursery, server, folder)
    async with asyncio.timeout(120), Client(reached, mode=mode) as client:
        yield client
    keep_help(folder, server.env)


@promise("plugins:mcp")
@pytest.mark.parametrize("mode", spread(["auto", "legacy"], 1))
async def test_plugins_are_tools_with_the_schemas_of_their_parsers(tmp_path, mode):
    lay_out(tmp_path, "demo", "other")
    async with connected(tmp_path, "--local", mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {*(f"demo__{action}" for action in ACTIONS), "other__run"}
        assert tools["other__run"].description == "Add numbers."
        schema = tools["other__run"].input_schema
        assert schema["required"] == ["left"]
        assert schema["properties"]["left"] == {"type": "integer"}
        added = await client.call_tool("other__run", {"left": 2})
        assert [part.text for part in added.content] == ["2.5"]
        wrong = await client.call_tool("other__run", {"left": "many"})
        assert wrong.is_error
        assert "left" in wrong.content[0].text


@promise("plugins:model-arguments")
async def test_a_client_writes_arguments_as_a_command_line_does_and_gives_a_timeout(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with connected(tmp_path, "--local", nursery=nursery) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["demo__wait"].input_schema["properties"]["timeout"]["maximum"] == 600
        clicked = await client.call_tool("demo__click_button", {"button-text": "Pay", "row": "3", "timeout": 100})
        assert clicked.structured_content == {"clicked": "Pay", "row": 3, "loud": False}
        waited = await client.call_tool("demo__wait", {"path": str(tmp_path / "never"), "timeout": "0.5"})
        assert waited.content[0].text == "timeout"
        twice = await client.call_tool("demo__click_button", {"button-text": "a", "button_text": "b"})
        long = await client.call_tool("demo__say", {"text": "a", "timeout": 601})
    assert twice.content[0].text == "args: button_text is given twice; leave one of them out"
    assert long.content[0].text == "timeout: must be a number of seconds, above 0 and at most 600"


@promise("plugins:mcp")
@pytest.mark.thorough
async def test_a_client_of_the_typescript_sdk_calls_them_and_hears_of_progress(tmp_path):
    lay_out(tmp_path, "demo")
    server = server_of(tmp_path, "--local")
    script = tmp_path / "client.mjs"
    shutil.copy(ROOT / "tests/plugins/client.mjs", script)
    (tmp_path / "node_modules").symlink_to(SDK)
    process = await asyncio.create_subprocess_exec(
        NODE, script, server.command, *server.args, env=server.env, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(120):
        said, _ = await process.communicate()
    seen = json.loads(said)
    assert seen["tools"] == [f"demo__{action}" for action in ACTIONS]
    assert seen["schema"]["properties"]["row"] == {"type": "integer"}
    assert seen["called"]["structuredContent"] == {"clicked": "Pay", "row": 3, "loud": False}
    assert seen["progress"] == ["queued", "started"]
    assert seen["failed"]["isError"] is True
    assert seen["failed"]["content"][0]["text"] == "no such bot"


@promise("plugins:mcp")
@pytest.mark.thorough
async def test_the_command_line_of_the_inspector_calls_them(tmp_path):
    lay_out(tmp_path, "demo", "other")
    server = server_of(tmp_path, "--local")
    inspector = Inspector(tmp_path, "plugins", {"command": server.command, "args": server.args, "env": server.env})
    added = await inspector.call("other__run", left=2)
    assert [part["text"] for part in added["content"]] == ["2.5"]


@promise("plugins:mcp")
@pytest.mark.thorough
async def test_a_call_that_its_client_cancels_ends_its_process(tmp_path):
    lay_out(tmp_path, "demo", demo={"env": {"RAN": str(tmp_path / "ran")}})
    async with connected(tmp_path, "--local") as client:
        calling = asyncio.ensure_future(client.call_tool("demo__wait", {"path": str(tmp_path / "never")}))
        await eventually(lambda: lines_of(tmp_path / "ran") == ["wait"])
        assert is_locked(tmp_path / "plugins/demo")
        calling.cancel()
        await eventually(lambda: not is_locked(tmp_path / "plugins/demo"))
        assert (await client.call_tool("demo__say", {"text": "next"})).content[0].text == "next"


def telling(told):
    """Return what notes the messages of progress of a call."""

    async def tell(_progress, _total, message):
        told.append(message)

    return tell


@promise("plugins:mcp")
async def test_calls_are_runs_and_one_that_is_cancelled_in_its_lane_never_begins(tmp_path, temporal, nursery):
    laid = site_of(tmp_path, temporal, nursery, "demo")
    worker = await laid.worker()
    gate, told = tmp_path / "gate", []
    tell = telling(told)
    try:
        async with connected(tmp_path, nursery=nursery, **laid.variables) as client:
            waiting = {"path": str(gate)}
            first = asyncio.ensure_future(client.call_tool("demo__wait", waiting, progress_callback=tell))
            await eventually(lambda: "started" in told)
            second = asyncio.ensure_future(client.call_tool("demo__say", {"text": "never"}, progress_callback=tell))
            await eventually(lambda: told.count("queued") == 2)
            second.cancel()
            await asyncio.wait([second])
            third = asyncio.ensure_future(client.call_tool("demo__click_button", {"button_text": "x"}))
            gate.touch()
            assert (await first).structured_content == {"found": str(gate)}
            assert (await third).structured_content["clicked"] == "x"
    finally:
        await worker.end()
    assert lines_of(tmp_path / "ran") == ["wait", "click-button"]


@promise("plugins:cancelled")
@pytest.mark.parametrize("held", ["connecting", "asking"])
async def test_a_call_that_is_cancelled_on_its_way_to_its_lane_never_begins(tmp_path, temporal, nursery, held):
    laid = site_of(tmp_path, temporal, nursery, "demo")
    worker = await laid.worker()
    gate = tmp_path / "gate"
    try:
        async with relay(temporal) as way, laid.daemon() as other:
            variables = laid.variables | {"TEMPORAL_ADDRESS": way.address}
            async with connected(tmp_path, nursery=nursery, **variables) as client:
                if held != "connecting":
                    await client.call_tool("demo__say", {"text": "first"})
                other.run("before", "demo", "wait", {"path": str(gate)})
                await other.until("before", "started")
                is_on_its_way = way.hold_at(0 if held == "connecting" else 1)
                calling = asyncio.ensure_future(client.call_tool("demo__click_button", {"button_text": "x"}))
                await eventually(is_on_its_way)
                calling.cancel()
                await asyncio.wait([calling])
                await client.list_tools()  # what the client has sent before is read
                way.release()
                # It comes after the other in the same lane.
                after = asyncio.ensure_future(client.call_tool("demo__say", {"text": "next"}))
                gate.touch()
                assert (await after).content[0].text == "next"
    finally:
        await worker.end()
    assert "click-button" not in lines_of(tmp_path / "ran")


@promise("plugins:client-left")
async def test_the_calls_of_a_client_that_leaves_go_on(tmp_path, temporal, nursery):
    laid = site_of(tmp_path, temporal, nursery, "demo")
    worker = await laid.worker()
    gate, told = tmp_path / "gate", []
    tell = telling(told)
    try:
        async with connected(tmp_path, nursery=nursery, **laid.variables) as client:
            calls = {"wait": {"path": str(gate)}, "say": {"text": "x"}}
            asked = [client.call_tool(f"demo__{name}", given, progress_callback=tell) for name, given in calls.items()]
            calling = asyncio.gather(*asked, return_exceptions=True)
            await eventually(lambda: "started" in told and told.count("queued") == 2)
        assert all(isinstance(ended, MCPError) for ended in await calling)
        gate.touch()
        await eventually(lambda: lines_of(tmp_path / "ran") == ["wait", "say"])
    finally:
        await worker.end()


@promise("plugins:asked-at-once")
async def test_calls_at_once_after_a_plugin_has_changed_all_succeed(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with connected(tmp_path, "--local", nursery=nursery) as client:
        await client.list_tools()
        cli = tmp_path / "plugins/demo/cli.py"
        cli.write_text(cli.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        said = [str(number) for number in range(6)]
        answers = await asyncio.gather(*(client.call_tool("demo__say", {"text": text}) for text in said))
    assert [answer.content[0].text for answer in answers] == said


@promise("plugins:unusable-settings")
async def test_a_call_is_answered_with_what_is_wrong_with_settings_that_cannot_be_loaded(tmp_path, nursery):
    lay_out(tmp_path, "demo")
    async with connected(tmp_path, "--local", nursery=nursery) as client:
        (tmp_path / ".env").write_text("BACKSTAY_SETTEL_AFTER_SECONDS=1\n", encoding="utf-8")
        refused = await client.call_tool("demo__say", {"text": "a"})
        assert refused.is_error
        assert "BACKSTAY_SETTEL_AFTER_SECONDS" in refused.content[0].text
        (tmp_path / ".env").unlink()
        assert (await client.call_tool("demo__say", {"text": "b"})).content[0].text == "b"


@promise("plugins:unreadable-toolbox")
async def test_a_toolbox_that_cannot_be_read_is_told_and_one_that_is_mended_works_again(tmp_path, nursery):
    toolbox = lay_out(tmp_path, "demo") / "toolbox.json"
    good = toolbox.read_text(encoding="utf-8")
    async with connected(tmp_path, "--local", nursery=nursery) as client:
        toolbox.write_text("{", encoding="utf-8")
        refused = await client.call_tool("demo__say", {"text": "a"})
        assert refused.is_error
        assert f"{toolbox}: no valid JSON" in refused.content[0].text
        with pytest.raises(MCPError, match="no valid JSON"):
            await client.list_tools()
        toolbox.write_text(good, encoding="utf-8")
        assert (await client.call_tool("demo__say", {"text": "b"})).content[0].text == "b"
    toolbox.write_text("{", encoding="utf-8")
    server = server_of(tmp_path, "--local")
    ended = await asyncio.to_thread(
        subprocess.run, [server.command, *server.args], env=server.env, stdin=subprocess.DEVNULL, capture_output=True
    )
    assert ended.returncode == 2
    assert ended.stdout == b""
    assert ended.stderr.decode().splitlines()[-1].startswith(f"backstay plugins: {toolbox}: no valid JSON")
    assert b"Traceback" not in ended.stderr
