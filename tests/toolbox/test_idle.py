"""Connections that nobody uses are closed, and opened again for the next call."""

import asyncio
from pathlib import Path

import pytest

from backstay.errors import ToolChanged
from tests.requirements import promise
from tests.toolbox.test_calls import call

TOOL = {"name": "a", "inputSchema": {"type": "object"}}
FINE = {"result": {"content": [{"type": "text", "text": "fine"}]}}


def processes(script):
    """Return the processes that run a script of a raw server."""
    found = set()
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            given = line.read_bytes()
        except OSError:
            continue
        if str(script).encode() in given and b"raw.py" in given:
            found.add(line.parent.name)
    return found


@promise("tools:idle")
async def test_a_server_that_nobody_calls_is_ended_and_started_again_for_the_next_call(
    tmp_path, opened, raw, eventually
):
    entry = raw(tools=[TOOL], answers={"a": FINE}) | {"idleTimeout": 0.3}
    script = entry["args"][-1]
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert (await call(toolbox, "raw.a")).data == "fine"
        first = processes(script)
        assert len(first) == 1
        await eventually(lambda: not processes(script))
        # Whoever only looks for tools finds them, without a start.
        assert list((await toolbox.catalog("anyone")).definitions) == ["raw.a"]
        assert not processes(script)
        answers = await asyncio.gather(*(call(toolbox, "raw.a") for _ in range(5)))
        assert [answer.data for answer in answers] == ["fine"] * 5
        second = processes(script)
        assert (len(second), second & first) == (1, set())
        # What changed while nobody looked is seen before the call is sent.
        await eventually(lambda: not processes(script))
        raw(tools=[TOOL | {"description": "another one"}], answers={"a": FINE})
        with pytest.raises(ToolChanged):
            await call(toolbox, "raw.a")
        assert (await toolbox.catalog("anyone")).definitions["raw.a"].description == "another one"


@promise("tools:idle")
@pytest.mark.parametrize(("entry", "ends"), [({"idleTimeout": 0}, False), ({}, False), ({"idle_timeout": 0.3}, True)])
async def test_a_server_is_left_open_where_the_entry_says_so(tmp_path, opened, raw, eventually, entry, ends):
    entry = raw(tools=[TOOL], answers={"a": FINE}) | entry
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        assert (await call(toolbox, "raw.a")).success
        await asyncio.sleep(0.6)
        if ends:
            await eventually(lambda: not processes(entry["args"][-1]))
        else:
            assert len(processes(entry["args"][-1])) == 1


@promise("tools:idle")
@pytest.mark.thorough
async def test_a_call_that_takes_longer_is_not_cut(opened, servers, tmp_path):
    entry = {"command": "python", "args": [str(servers / "office.py"), "stdio"], "idleTimeout": 0.05}
    async with opened(tmp_path, {"mcpServers": {"office": entry}}) as toolbox:
        answers = await asyncio.gather(*(call(toolbox, "office.overlap") for _ in range(4)))
        assert all(answer.success for answer in answers)
        await asyncio.sleep(0.1)
        assert (await call(toolbox, "office.overlap")).success


@promise("tools:idle")
async def test_a_wrong_time_is_named(tmp_path, opened, raw):
    for wrong in (-1, "soon", 90_000):
        with pytest.raises(Exception, match=r"mcpServers\.raw\.idleTimeout:"):
            async with opened(tmp_path, {"mcpServers": {"raw": raw(tools=[TOOL]) | {"idleTimeout": wrong}}}):
                pass
