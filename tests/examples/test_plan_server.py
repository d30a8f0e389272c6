"""The example server of programs, as a process, and a host program that has its programs run there."""

import asyncio
import contextlib
import os
import signal

import pytest

from backstay.errors import Unreachable
from sandbox import HttpPlanBackend, register_plan_backend, register_tool_caller, run_python_plan
from tests.engine import ROOT
from tests.requirements import promise
from tests.sandbox.test_plan import BINDING

TOKEN = "a-token-for-tests"


@pytest.fixture
async def server(tmp_path, nursery):
    """The server, by its address; its images are those of the other tests."""
    home = tmp_path / "server" / ".sandbox"
    home.mkdir(parents=True)
    (ROOT / "build" / "sandbox" / "images").mkdir(parents=True, exist_ok=True)
    (home / "images").symlink_to(ROOT / "build" / "sandbox" / "images")
    program, environment = ROOT / "examples" / "plan_server" / "server.py", {**os.environ, "PLAN_SERVER_TOKEN": TOKEN}
    said = {"log": tmp_path / "server.log", "out": tmp_path / "server.out"}
    process = await nursery.raised(str(program), str(home.parent), environment=environment, **said)
    async with asyncio.timeout(60):
        while not process.answered().endswith("\n"):
            assert not process.died.done(), process.said()
            await asyncio.sleep(0.05)
    yield process.answered().strip()
    register_plan_backend(None)
    register_tool_caller(None)
    process.kill(signal.SIGTERM)
    await asyncio.wait_for(asyncio.shield(process.died), 150)


@promise("programs:library-http")
async def test_programs_run_at_a_server_with_the_tools_of_the_host_and_without_its_secrets(server, tmp_path):
    servers = tmp_path / "host" / "sandbox_py" / "servers" / "sums"
    servers.mkdir(parents=True)
    (servers / "add.py").write_text(BINDING, encoding="utf-8")
    called = []

    async def caller(tool, arguments, user_id):
        called.append((tool, arguments, user_id))
        match arguments["a"]:
            case 1:
                return {"sum": 3, "password": "tiger-4711"}
            case 2:
                raise ValueError("only what is positive")
            case _:
                return await asyncio.sleep(60)

    def run(body, timeout_sec=30.0):
        return run_python_plan(body, user_id="ann", toolbox_root=tmp_path / "host", timeout_sec=timeout_sec)

    register_tool_caller(caller)
    register_plan_backend(HttpPlanBackend(server, token=TOKEN))
    done = await run("""
import asyncio
from sandbox_py.client import ToolError
got = await sums.add(a=1, b=2)
print(got["password"])
later = await asyncio.gather(sums.add(a=1, b=got["password"]), sums.add(a=2, b=0), return_exceptions=True)
return [got["sum"], str(later[1])]
""")
    late = await run("print('begun')\nawait sums.add(a=3, b=0)", timeout_sec=3)

    assert (done.success, done.result) == (True, [3, "only what is positive"]), done
    assert [call[1]["b"] for call in called[:3]] == [2, "tiger-4711", 0]
    assert "tiger-4711" not in repr(done)
    assert (late.timed_out, late.logs) == (True, ("begun",)), late
    register_plan_backend(HttpPlanBackend(server, token="another"))
    with pytest.raises(Unreachable, match="401"):
        await run("return 1")


@promise("programs:library-http-hostile")
@pytest.mark.parametrize(
    "said",
    [
        '{"plan": "p", "calls": [{"i": 0, "tool": "bank.pay", "args": {}}]}',
        '{"plan": "p", "calls": []}',
        '{"result": {"success": "perhaps"}}',
        '{"result": NaN}',
        '"%s"' % ("x" * (5 << 20)),
    ],
    ids=["a-tool-without-a-binding", "no-call", "no-outcome", "no-json", "a-flood"],
)
async def test_what_a_server_of_programs_says_is_checked_like_what_a_jail_says(tmp_path, said):
    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(said)}\r\nconnection: close\r\n\r\n"
        with contextlib.suppress(ConnectionError):
            writer.write(head.encode() + said.encode())
            await writer.drain()
        writer.close()

    async def never(*_):
        raise AssertionError("it was called")

    register_tool_caller(never)
    try:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            register_plan_backend(HttpPlanBackend(f"http://127.0.0.1:{port}", token="t"))
            with pytest.raises(Unreachable, match=f"127.0.0.1:{port}"):
                await run_python_plan("return 1", user_id="ann", toolbox_root=tmp_path)
    finally:
        register_plan_backend(None)
        register_tool_caller(None)
