"""The library form: one program for a host program, with the host's own tools."""

import asyncio

import pytest

from backstay.errors import IsolationUnavailable, OutcomeUnknown, TaskInvalid, ToolUnavailable
from backstay.tools.trying import TOGETHER
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
@pytest.mark.parametrize(
    "waits",
    [
        "await sums.add(a=1, b=2)",
        "import time\ntry:\n    time.sleep(30)\nexcept Exception:\n    pass\nprint('slept')",
        "import asyncio\nawait asyncio.gather(asyncio.sleep(1), asyncio.sleep(60))\nprint('slept')",
        pytest.param("while True: pass", marks=pytest.mark.thorough),
    ],
)
async def test_what_a_program_has_printed_is_kept_when_its_time_is_up(toolbox, waits):
    async def slow(*_):
        await asyncio.sleep(60)

    register_tool_caller(slow)
    body = f"print('begun')\n{waits}"
    done = await run_python_plan(body, user_id="ann", toolbox_root=toolbox, timeout_sec=3)

    assert (done.success, done.timed_out, done.logs) == (False, True, ("begun",)), done


@promise("programs:library-bridge")
async def test_calls_of_a_host_program_are_tried_again_throttled_and_hold_no_secret(toolbox, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "the-key-of-this-process")
    under_way, most, tried, sent = 0, 0, 0, []

    async def caller(tool, arguments, _):
        nonlocal under_way, most, tried
        match arguments["a"]:
            case 1:
                tried += 1
                if tried < 3:
                    raise ToolUnavailable("not yet", retry_after=0.01)
                return {"password": "tiger-4711", "echoed": "the-key-of-this-process"}
            case 2:
                raise OutcomeUnknown("lost; it said tiger-4711")
            case 3:
                sent.append(arguments["b"])
                return "it was tiger-4711"
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        under_way -= 1
        return None

    register_tool_caller(caller)
    body = """
import asyncio
from sandbox_py.client import ToolError
got = await sums.add(a=1, b=0)
print(got["password"], got["echoed"])
said = [await sums.add(a=3, b=got["password"])]
for call in (sums.add(a=2, b=0), other.add(a=3, b=got["password"])):
    try:
        await call
    except ToolError as error:
        said.append(str(error))
await asyncio.gather(*(sums.add(a=9, b=n) for n in range(100)))
return said
"""
    (toolbox / "sandbox_py" / "servers" / "other").mkdir()
    (toolbox / "sandbox_py" / "servers" / "other" / "add.py").write_text(BINDING.replace("sums.", "other."), "utf-8")
    done = await run_python_plan(body, user_id="ann", toolbox_root=toolbox)

    assert done.success, done
    assert (tried, most, sent) == (3, TOGETHER, ["tiger-4711"])
    assert "tiger-4711" not in repr(done)
    assert "the-key-of-this-process" not in repr(done)
    assert "a secret of sums may not be passed to other" in done.result[2]


@promise("programs:library-nsjail")
async def test_a_named_nsjail_is_the_one_that_is_used(toolbox, monkeypatch):
    monkeypatch.setenv("BACKSTAY_NSJAIL", str(toolbox / "nowhere"))
    with pytest.raises(IsolationUnavailable, match="BACKSTAY_NSJAIL names"):
        await run_python_plan("return 1", user_id="ann", toolbox_root=toolbox)


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
