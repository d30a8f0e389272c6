"""Processes that are forks of one which has everything imported, as a test sees them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from backstay.testing import ScriptedModel
from tests.engine import PRICES, ROOT

WORKER = "tests.crash.worker_process"
COMMAND = "backstay"
OPERATORS_WORKER = str(ROOT / "worker.py")


@dataclass
class Child:
    """One worker or command, by its own pid; `log` is what it says on standard error."""

    log: Path
    out: Path
    born: asyncio.Future[int]
    died: asyncio.Future[int]

    def kill(self, sign: signal.Signals = signal.SIGKILL) -> None:
        if not self.died.done():
            with suppress(ProcessLookupError):
                os.kill(self.born.result(), sign)

    async def end(self) -> None:
        self.kill()
        await asyncio.wait_for(asyncio.shield(self.died), 150)

    async def ready(self) -> None:
        """Wait until a worker polls; raises when it died instead."""
        async with asyncio.timeout(150):
            while "backstay worker ready" not in self.said():
                assert not self.died.done(), self.said()
                await asyncio.sleep(0.05)

    async def ended(self, seconds: float) -> int:
        """Wait for the end and return the exit code; what is not done by then is killed."""
        try:
            return await asyncio.wait_for(asyncio.shield(self.died), seconds)
        finally:
            await self.end()

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def answered(self) -> str:
        return self.out.read_text(encoding="utf-8", errors="replace") if self.out.exists() else ""


class Nursery:
    """Raise processes and hear of their deaths."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.known: list[Child] = []
        self.ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.listening = asyncio.create_task(self._listen())

    async def worker(self, environment: Mapping[str, str], log: Path) -> Child:
        """Raise a worker that dies where its environment says; all it says goes into one file."""
        return await self.raised(WORKER, environment=environment, log=log)

    async def raised(
        self,
        program: str,
        *arguments: str,
        environment: Mapping[str, str],
        log: Path,
        out: Path | None = None,
        folder: Path = ROOT,
        terminal: str = "",
        given: Path | None = None,
    ) -> Child:
        """Start a program, a module or the path of a script, as `python` would start it.

        `terminal`: the path of one that is to be its own, and from which it reads. `given`: what it reads else, if
        anything.

        It ends as soon as the program does: threads are not waited for, as `backstay` itself does not either.
        """
        loop = asyncio.get_running_loop()
        child = Child(log, out or log, loop.create_future(), loop.create_future())
        self.known.append(child)
        order = {
            "id": len(self.known) - 1,
            "program": program,
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(folder),
            "out": str(child.out),
            "err": str(log),
            "terminal": terminal or None,
            "in": None if given is None else str(given),
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        await asyncio.wait_for(asyncio.shield(child.born), 150)
        return child

    async def _listen(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            news = json.loads(line)
            if "ready" in news:
                self.ready.set_result(news["ready"])
            elif "pid" in news:
                self.known[news["id"]].born.set_result(news["pid"])
            else:
                self.known[news["id"]].died.set_result(news["status"])


@asynccontextmanager
async def open_nursery() -> AsyncGenerator[Nursery]:
    """Start the process that the others are forks of; at the end all of them are gone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.nursery.process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    nursery = Nursery(process)
    try:
        await asyncio.wait_for(asyncio.shield(nursery.ready), 150)
        yield nursery
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), 150)
        except TimeoutError:
            process.kill()
        nursery.listening.cancel()


def plain_environment() -> dict[str, str]:
    """Return what a worker needs of this process's environment, and nothing that configures a worker."""
    kept = ("PATH", "HOME", "LANG", "USER", "LOGNAME", "PYTHONPATH", "SSL_CERT_FILE")
    return {name: value for name, value in os.environ.items() if name in kept}


def worker_environment(client: Client, model: ScriptedModel, **variables: str) -> dict[str, str]:
    """Return the environment of a worker in a process of its own, whose model is scripted."""
    return {
        **plain_environment(),
        "TEMPORAL_ADDRESS": client.service_client.config.target_host,
        "TEMPORAL_NAMESPACE": client.namespace,
        "BACKSTAY_MODEL": "scripted",
        "BACKSTAY_PRICES": json.dumps(PRICES),
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "test-key-of-the-scripted-model",
        **variables,
    }
