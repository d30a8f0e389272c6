"""Announcing: every request goes to the receivers, redacted and signed; no receiver ever holds a run."""

import asyncio
import hashlib
import hmac
import json
import socket
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from backstay.testing import Reply
from tests.engine import differing, ended, pending

KEY = "a key for announcements"
FINISH = Reply(calls=[("finish", {"summary": "done"})])
YES = {"request_id": "r1", "verdict": "approve", "by": "ana"}


class Server(uvicorn.Server):
    """Leave signals to the test runner."""

    @contextmanager
    def capture_signals(self):
        yield


@asynccontextmanager
async def receiver():
    """Listen on a loopback port: /take takes, /fail answers 500, /hang says nothing until it is closed."""
    taken, closing = asyncio.Queue(), asyncio.Event()

    async def answer(request):
        body = await request.body()
        taken.put_nowait((request.url.path, dict(request.headers), body))
        if request.url.path == "/hang":
            await closing.wait()
        return PlainTextResponse("", 500 if request.url.path == "/fail" else 200)

    routes = [Route("/{path}", answer, methods=["POST"])]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", taken
        finally:
            closing.set()
            server.should_exit = True
            await serving


def mail(**arguments):
    call = {"to": "a@x.example", "subject": "s", "body": "b", **arguments}
    return Reply(calls=[("mail__send_email", call)])


async def test_a_request_is_announced_redacted_and_signed(open_engine):
    secret = "gh" + "p_" + "k3Jx9QpL2mN8vB5tR7wY4zA6cD1eF0gH2iJ3"
    script = [mail(subject=f"the token is {secret}"), FINISH]
    async with receiver() as (url, taken), open_engine(script, notify_urls=[f"{url}/take"], approver_key=KEY) as engine:
        handle = await engine.start("write")
        _, headers, body = await asyncio.wait_for(taken.get(), 45)
        message = b".".join([headers["backstay-timestamp"].encode(), body])
        assert headers["backstay-signature"] == hmac.new(KEY.encode(), message, hashlib.sha256).hexdigest()
        assert headers["backstay-timestamp"].isdecimal()
        assert headers["content-type"] == "application/json"
        announced = json.loads(body)
        assert announced["workflow_id"] == handle.id
        assert differing([announced["request"]], await pending(handle)) == []
        assert secret not in body.decode()
        assert (announced["request"]["task"], announced["request"]["step"]) == ("write", 1)
        assert "⟦secret:" in announced["request"]["calls"][0]["arguments"]["subject"]
        await handle.execute_update("decide", YES)
        result = await ended(handle)
    assert result["outcome"] == "completed"
    assert taken.empty()


async def test_receivers_that_are_down_fail_or_hang_neither_block_the_run_nor_each_other(open_engine):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = f"http://127.0.0.1:{closed.getsockname()[1]}"
    async with receiver() as (url, taken):
        urls = [f"{url}/hang", down, f"{url}/fail", f"{url}/hang", f"{url}/hang", f"{url}/hang", f"{url}/take"]
        async with open_engine([mail(), FINISH], notify_urls=urls, approver_key=KEY) as engine:
            handle = await engine.start({"text": "write", "budget": {"max_wall_seconds": 600}})
            paths = {(await asyncio.wait_for(taken.get(), 45))[0] for _ in range(6)}
            assert paths == {"/hang", "/fail", "/take"}
            await pending(handle)
            before = (await handle.query("budget"))["active_seconds"]
            # The receivers still hang: that is not the run's own time.
            await handle.signal("approval", {"nobody": "asked"})
            async with asyncio.timeout(30):
                while "approval.refused" not in [
                    e["name"] for e in (await handle.query("timeline", {"after": 0}))["events"]
                ]:
                    await asyncio.sleep(0.1)
            assert (await handle.query("budget"))["active_seconds"] == before
            await handle.execute_update("decide", YES)
            result = await ended(handle)
    assert result["outcome"] == "completed"
    assert engine.mailbox.requests("send_email") == 1
