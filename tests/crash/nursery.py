"""Raise worker processes quickly: everything is imported once, and each worker is a fork of this process.

Reads one JSON object a line, {"id", "environment", "log"}; writes {"id", "pid"} when the worker was born and
{"id", "status"} when it died. At the end of the input every worker is killed.
"""

import gc
import importlib
import json
import os
import select
import signal
import sys
import traceback
from typing import Any

from tests.crash import worker_process

OPENED = (
    "activities.bodies",
    "anyio._backends._asyncio",
    "httpcore2",
    "openai.resources.chat.completions",
    "sqlalchemy.dialects.sqlite",
    "store.opening",
    "toolbox.toolbox",
    "truststore",
    "workflows",
)
"""What a worker imports only when it opens; it would cost every fork two seconds."""


def main() -> None:
    for name in OPENED:
        importlib.import_module(name)
    gc.freeze()
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    living: dict[int, int] = {}
    tell({"ready": os.getpid()})
    waiting = b""
    while True:
        ready, _, _ = select.select([0, reading], [], [])
        if reading in ready:
            os.read(reading, 4096)
            reap(living)
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                break
            *lines, waiting = (waiting + chunk).split(b"\n")
            for line in lines:
                order = json.loads(line)
                living[(pid := raise_worker(order))] = order["id"]
                tell({"id": order["id"], "pid": pid})
    for pid in living:
        os.kill(pid, signal.SIGKILL)


def reap(living: dict[int, int]) -> None:
    while living:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        tell({"id": living.pop(pid), "status": os.waitstatus_to_exitcode(status)})


def tell(news: dict[str, Any]) -> None:
    os.write(1, json.dumps(news).encode() + b"\n")


def raise_worker(order: dict[str, Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        os.closerange(3, 64)
        os.environ.clear()
        os.environ.update(order["environment"])
        code = worker_process.main()
    except BaseException:
        traceback.print_exc()
        code = 70
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
