"""Raise worker processes and commands quickly: everything is imported once, and each is a fork of this process.

Reads one JSON object a line, {"id", "program", "arguments", "environment", "folder", "out", "err", "terminal", "in"};
writes {"id", "pid"} when the process was born and {"id", "status"} when it ended. At the end of the input every child
is killed.
"""

import asyncio
import ctypes
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

OPENED = (
    "activities.programs.payload_server",
    "activities.registry",
    "activities.slots",
    "anyio._backends._asyncio",
    "asyncpg",
    "gateways.mail.mail",
    "gateways.webhooks",
    "httpcore2",
    "mcp.client.stdio",
    "openai.resources.chat.completions",
    "people.decide.deciding",
    "people.decide.looking",
    "people.decide.seeing",
    "people.notices.delivering",
    "people.requests.entered",
    "people.requests.form",
    "people.requests.posted",
    "people.runs.finding",
    "people.runs.looking",
    "people.runs.undoing",
    "people.runs.wire",
    "sandbox.images.host_python",
    "sandbox.isolation.command_jail",
    "sandbox.role",
    "smtplib",
    "sqlalchemy.dialects.postgresql.asyncpg",
    "sqlalchemy.dialects.sqlite",
    "store.opening",
    "tests.crash.points",
    "tests.crash.waits",
    "toolbox.catalog.embeddings",
    "toolbox.mcp.printed",
    "toolbox.mcp.provider",
    "toolbox.mcp.tool_call",
    "toolbox.toolbox",
    "truststore",
    "uvicorn.lifespan.on",
    "worker",
    "workflows",
)
"""What a worker or a command imports only when it opens; it would cost every fork two seconds."""
_PR_SET_PDEATHSIG = 1


def main() -> None:
    from gateways.terminal.app import TABLE

    groups = (TABLE["commands"], *(group["commands"] for group in TABLE["groups"].values()))
    commands = {f"gateways.terminal.{place.partition(':')[0]}" for group in groups for place, _ in group.values()}
    for name in (*OPENED, *sorted(commands)):
        importlib.import_module(name)
    asyncio.run(open_once())
    gc.freeze()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    living: dict[int, int] = {}
    try:
        tell({"ready": os.getpid()})
        serve(reading, living)
    finally:
        for pid in living:
            os.kill(pid, signal.SIGKILL)


def serve(reading: int, living: dict[int, int]) -> None:
    """Obey orders until there are no more."""
    waiting = b""
    while True:
        ready, _, _ = select.select([0, reading], [], [])
        if reading in ready:
            os.read(reading, 4096)
            reap(living)
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                return
            *lines, waiting = (waiting + chunk).split(b"\n")
            for line in lines:
                order = json.loads(line)
                living[(pid := give_birth(order))] = order["id"]
                tell({"id": order["id"], "pid": pid})


async def open_once() -> None:
    """Do what takes long the first time only: read migrations and word vectors, put classes of tables together."""
    from backstay.settings import Settings
    from store.opening import open_store
    from toolbox.catalog import embeddings

    embeddings._vectors()  # what uses them would start threads, which no fork inherits
    with tempfile.TemporaryDirectory() as folder, capture_logs():
        settings = Settings.load(None, home=Path(folder))
        async with open_store(database_url=settings.database_url_text, home=settings.home, blobs=settings.blobs):
            pass


def reap(living: dict[int, int]) -> None:
    while living:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        tell({"id": living.pop(pid), "status": os.waitstatus_to_exitcode(status)})


def tell(news: dict[str, Any]) -> None:
    os.write(1, json.dumps(news).encode() + b"\n")


def give_birth(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 70
    try:
        become(order)
        if "LD_PRELOAD" in order["environment"]:
            # Only a new program can have another library stand before the one of C.
            os.execv(sys.executable, [sys.executable, "-m", order["program"], *order["arguments"]])
        if order["program"].endswith(".py"):
            runpy.run_path(order["program"], run_name="__main__")
        else:
            runpy.run_module(order["program"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def become(order: dict[str, Any]) -> None:
    """Take on what a process of its own would be born with, and end when the parent does."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    tempfile.tempdir = None
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    terminal = order["terminal"]
    # The first terminal that the leader of a new session opens is its own, and Ctrl-C reaches it.
    os.setsid() if terminal else os.setpgid(0, 0)
    streams = [os.open(terminal or order["in"] or os.devnull, os.O_RDONLY)]
    streams += [os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in ("out", "err")]
    for target, source in enumerate(streams):
        os.dup2(source, target)
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv = [order["program"], *order["arguments"]]


if __name__ == "__main__":
    main()
