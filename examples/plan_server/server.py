"""A server that runs programs in jails of its own: `python examples/plan_server/server.py FOLDER` prints its address.

It has neither tools nor secrets: calls of a program go back to whoever sent it, round by round. PLAN_SERVER_TOKEN is
what a caller must show. Images of jails and the bindings that it is sent are kept in FOLDER.
"""

import asyncio
import contextlib
import hmac
import json
import os
import secrets
import socket
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from backstay.canonical import digest_of
from backstay.errors import BackstayError
from sandbox import SandboxResult, register_tool_caller, run_python_plan

MOST_BYTES = 20_000_000
MOST_PLANS = 8
KEPT_S = 60


class Plan:
    """Hold one program that runs here, and its calls that wait for an answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any], asyncio.Future[Any]]] = []
        self.more = asyncio.Event()
        self.made = 0
        self.running: asyncio.Task[SandboxResult]

    async def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        """Wait until the sender has made a call."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.append((tool, arguments, answer))
        self.more.set()
        return await answer

    async def told(self) -> dict[str, Any] | None:
        """Return the calls of the next round; None once the program has ended."""
        waiting = asyncio.create_task(self.more.wait())
        await asyncio.wait([waiting, self.running], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self.running.done():
            return None
        # Calls that a program makes together arrive in the same turn of the loop.
        await asyncio.sleep(0)
        calls = [{"i": self.made + n, "tool": tool, "args": args} for n, (tool, args, _) in enumerate(self.asked)]
        return {"calls": calls}

    def answer(self, answers: list[dict[str, Any]]) -> None:
        """Hand the answers to the calls that wait; without any, the program waits until its time is up."""
        self.more.clear()
        if not answers:
            return
        for (_, _, waiting), said in zip(self.asked, answers, strict=True):
            if waiting.done():
                continue
            if "error" in said:
                # The program is told the type of an error by its name.
                kind = type(str(said["error"]["type"]), (Exception,), {})
                waiting.set_exception(kind(str(said["error"]["message"])))
            else:
                waiting.set_result(said["ok"])
        self.made += len(self.asked)
        self.asked.clear()


CURRENT: ContextVar[Plan] = ContextVar("current")


async def call_back(tool: str, arguments: dict[str, Any], _user_id: str) -> Any:
    """Pass a call on to whoever sent the program."""
    return await CURRENT.get().call(tool, arguments)


class Server:
    """Run programs that are posted, and keep those that wait."""

    def __init__(self, folder: Path, token: str) -> None:
        self.folder = folder
        self.token = token
        self.plans: dict[str, Plan] = {}

    def app(self) -> Starlette:
        """Return the two paths."""
        return Starlette(routes=[Route(f"/{name}", self._guarded, methods=["POST"]) for name in ("plans", "answers")])

    async def _guarded(self, request: Request) -> Response:
        shown = request.headers.get("authorization", "").encode("latin-1")
        if not hmac.compare_digest(shown, f"Bearer {self.token}".encode()):
            return PlainTextResponse("show PLAN_SERVER_TOKEN as a bearer token", 401)
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                return PlainTextResponse(f"at most {MOST_BYTES} bytes", 413)
        try:
            asked = json.loads(bytes(body))
            return await (self._begin(asked) if request.url.path == "/plans" else self._go_on(asked))
        except (ValueError, KeyError, TypeError) as error:
            return PlainTextResponse(f"{type(error).__name__}: {error}", 400)
        except BackstayError as error:
            return PlainTextResponse(str(error), 422)

    async def _begin(self, asked: dict[str, Any]) -> Response:
        if len(self.plans) >= MOST_PLANS:
            return PlainTextResponse(f"{MOST_PLANS} programs run here already", 503)
        root = await asyncio.to_thread(toolbox_of, self.folder, asked["bindings"])
        plan, name = Plan(), secrets.token_urlsafe(16)
        CURRENT.set(plan)
        options: dict[str, Any] = {"user_id": str(asked["user_id"]), "timeout_sec": float(asked["timeout_sec"])}
        plan.running = asyncio.create_task(run_python_plan(str(asked["code_body"]), toolbox_root=root, **options))
        self.plans[name] = plan
        # One that nobody asks about again ends at its own time, and is forgotten a little later.
        loop = asyncio.get_running_loop()
        plan.running.add_done_callback(lambda _: loop.call_later(KEPT_S, self.plans.pop, name, None))
        return await self._told(name, plan)

    async def _go_on(self, asked: dict[str, Any]) -> Response:
        plan = self.plans.get(asked["plan"])
        if plan is None:
            return PlainTextResponse("no such program runs here", 404)
        plan.answer(asked["answers"])
        return await self._told(asked["plan"], plan)

    async def _told(self, name: str, plan: Plan) -> Response:
        said = await plan.told()
        if said is not None:
            return JSONResponse({"plan": name, **said})
        self.plans.pop(name, None)
        return JSONResponse({"result": plan.running.result().plain()})


def toolbox_of(folder: Path, bindings: Mapping[str, Mapping[str, str]]) -> Path:
    """Write bindings where `run_python_plan` finds them, and let all such folders share the images of jails."""
    root = folder / "toolboxes" / digest_of(bindings)[:32]
    for provider, sources in bindings.items():
        for name, source in sources.items():
            if not (provider.isidentifier() and name.isidentifier()):
                raise ValueError(f"{provider[:50]!r}.{name[:50]!r} is no name of a binding")
            place = root / "sandbox_py" / "servers" / provider / f"{name}.py"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(source, encoding="utf-8")
    root.mkdir(parents=True, exist_ok=True)
    (folder / ".sandbox").mkdir(exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (root / ".sandbox").symlink_to((folder / ".sandbox").resolve())
    return root


async def serve(folder: Path, token: str) -> None:
    """Serve on a free port of loopback until it is stopped."""
    register_tool_caller(call_back)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(Server(folder, token).app(), log_level="warning", lifespan="off")
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    await uvicorn.Server(config).serve([listening])


if __name__ == "__main__":
    given = os.environ.get("PLAN_SERVER_TOKEN", "")  # noqa: TID251 - a separate program, configured by its environment
    if len(sys.argv) != 2 or len(given) < 16:
        sys.exit("use: PLAN_SERVER_TOKEN=<at least 16 characters> python examples/plan_server/server.py FOLDER")
    asyncio.run(serve(Path(sys.argv[1]), given))
