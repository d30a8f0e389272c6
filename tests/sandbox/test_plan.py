"""The library form: one program for a host program, with the host's own tools."""

import asyncio

import pytest

from backstay.errors import IsolationUnavailable, TaskInvalid
from sandbox.programs import standalone
from sandbox.programs.sandbox import prove
from sandbox.programs.standalone import register_tool_caller, run_python_plan
from tests.engine import ROOT
from tests.requirements import promise

BINDING = '''
async def add(*, a: int, b: int):
    """Add two numbers."""
    from sandbox_py.client import call

    return await call("sums.add", {"a": a, "b": b})
'''


async def refusing(**_):
    raise IsolationUnavailable(cause="nothing is proven", fix="none")


@pytest.fixture
def toolbox(tmp_path):
    """A toolbox with one tool; images are those of the other tests."""
    servers = tmp_path / "sandbox_py" / "servers" / "sums"
    servers.mkdir(parents=True)
    (servers / "__init__.py").write_text("", encoding="utf-8")
    (servers / "add.py").write_text(BINDING, encoding="utf-8")
    (tmp_path / ".sandbox").mkdir()
    (ROOT / "build" / "sandbox" / "images").mkdir(parents=True, exist_ok=True)
    (tmp_path / ".sandbox" / "images").symlink_to(ROOT / "build" / "sandbox" / "images")
    yield tmp_path
    register_tool_caller(None)


@promise("programs:plan-library")
async def test_a_host_program_runs_a_program_with_its_own_tools(toolbox):
    called = []

    async def caller(tool, arguments, user_id):
        called.append((tool, arguments, user_id))
        if arguments["a"] < 0:
            raise ValueError("only what is positive")
        return {"sum": arguments["a"] + arguments["b"]}

    register_tool_caller(caller)
    body = """
import asyncio
from sandbox_py.client import ToolError
print("begin")
pairs = await asyncio.gather(sums.add(a=1, b=2), sums.add(a=3, b=4))
try:
    await sums.add(a=-1, b=0)
except ToolError as error:
    print(error)
return [one["sum"] for one in pairs]
"""

    done = await run_python_plan(body, user_id="ann", toolbox_root=toolbox)

    assert (done.success, done.result, done.error) == (True, [3, 7], None), done
    assert done.logs == ("begin", "only what is positive")
    assert called[0] == ("sums.add", {"a": 1, "b": 2}, "ann")
    assert len(called) == 3


@promise("programs:library-proof")
async def test_jails_are_proven_once_for_programs_of_the_same_folder_and_timeout(toolbox, monkeypatch):
    proven = []

    async def proving(**asked):
        proven.append(asked["limits"].wall_s)
        return await prove(**asked)

    monkeypatch.setattr(standalone, "prove", proving)
    for seconds in (30, 30, 40, 30):
        done = await run_python_plan("return 1", user_id="ann", toolbox_root=toolbox, timeout_sec=seconds)
        assert done.result == 1, done
    assert proven == [30, 40]

    (toolbox / ".sandbox" / "images").unlink()
    (toolbox / ".sandbox" / "images").symlink_to(toolbox)
    monkeypatch.setattr(standalone, "prove", refusing)
    with pytest.raises(IsolationUnavailable):
        await run_python_plan("return 1", user_id="ann", toolbox_root=toolbox)


@promise("programs:library-no-caller")
async def test_without_a_registered_caller_no_tool_is_reached(toolbox):
    done = await run_python_plan("return await sums.add(a=1, b=2)", user_id="ann", toolbox_root=toolbox)

    assert not done.success
    assert "register_tool_caller" in done.error


@promise("programs:library-timeout")
@pytest.mark.thorough
async def test_a_program_that_takes_too_long_says_so(toolbox):
    async def slow(*_):
        await asyncio.sleep(60)

    register_tool_caller(slow)
    done = await run_python_plan("return await sums.add(a=1, b=2)", user_id="ann", toolbox_root=toolbox, timeout_sec=6)

    assert (done.success, done.timed_out) == (False, True), done


@promise("programs:library-no-time")
async def test_a_timeout_that_is_no_time_is_refused_by_name(toolbox):
    with pytest.raises(TaskInvalid, match="timeout_sec"):
        await run_python_plan("return 1", user_id="ann", toolbox_root=toolbox, timeout_sec=0)


@promise("programs:library-timeout")
async def test_what_a_program_says_of_time_is_not_taken_for_a_timeout(toolbox):
    done = await run_python_plan("raise ValueError('wall: no such wallet')", user_id="ann", toolbox_root=toolbox)

    assert (done.success, done.timed_out) == (False, False), done


@promise("plans:by-name")
async def test_a_host_programs_tools_can_be_called_by_their_names_too(toolbox):
    async def caller(tool, arguments, user_id):
        if arguments["a"] < 0:
            raise ValueError("only what is positive")
        return {"sum": arguments["a"] + arguments["b"]}

    register_tool_caller(caller)
    body = """
good = await mcp.call_tool("sums.add", {"a": 1, "b": 2})
bad = await mcp.call_tool("add", {"a": -1, "b": 2})
return [good.data["sum"], good.trace, bad.success, bad.error, bad["context"]["tool"]]
"""
    done = await run_python_plan(body, user_id="ann", toolbox_root=toolbox)

    assert done.result == [3, ["called sums.add", "succeeded"], False, "only what is positive", "sums.add"], done
