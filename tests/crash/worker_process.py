"""A worker as it ships, with one moment at which it kills itself; the product knows nothing of this.

KILL_AT="after:effects.begin:2" dies with SIGKILL the second time an intent has been committed; the places are in
points.py. KILL_WITH=STOP stops it there instead, until it is continued. SWITCH_AT lets runs continue as new executions
after so many events already. WAITS=shipped leaves the waits that waits.py shortens as they are. KILL_MAILBOX names the
mailbox's database and KILL_WITNESS a file: `during` waits until one of them shows that the request has arrived.
"""

import asyncio
import copy
import functools
import importlib
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import worker
from store.database.sqlite import SqliteDatabase
from store.database.transactions import Operation
from tests.crash import waits
from tests.crash.points import PLACES
from workflows.context import carrying

SENDS = ("send_email", "recall_email")


def _purpose(arguments: tuple[Any, ...]) -> str:
    ask = arguments[1]
    return ask.purpose if ask.purpose != "call" else "read" if ask.effect is None else "send"


ONLY: dict[str, Callable[[tuple[Any, ...]], bool]] = {
    "call_tool.read": lambda given: _purpose(given) == "read",
    "call_tool.send": lambda given: _purpose(given) == "send",
    "call_tool.verify": lambda given: _purpose(given) == "verify",
    "call_tool.undo": lambda given: _purpose(given) == "undo",
    "records.keep.read": lambda given: "list" in given[2],
    "records.keep.send": lambda given: "send" in given[2],
    "provider.request.read": lambda given: given[0]._call.before_send is None,
    "provider.request.send": lambda given: given[0]._call.before_send is not None,
    "workflow_task": lambda given: (
        not any(job.HasField("remove_from_cache") or job.HasField("query_workflow") for job in given[1].jobs)
    ),
    "workflow_task.continued": lambda given: any(
        job.initialize_workflow.continued_from_execution_run_id for job in given[1].jobs
    ),
}


class Killer:
    """Die at one point."""

    def __init__(self, spec: str, mailbox: Path, witness: Path, sign: signal.Signals) -> None:
        self.spec = spec
        self.when, self.place, number = spec.split(":")
        self.left = int(number)
        self.mailbox = mailbox
        self.witness = witness
        self.sign = sign
        self.in_store = threading.Lock()

    def install(self) -> None:
        if self.sign is signal.SIGSTOP:
            self._stop_outside_transactions()
        module, _, path = PLACES[self.place].partition(":")
        owner: Any = importlib.import_module(module)
        *classes, method = path.split(".")
        for name in classes:
            owner = getattr(owner, name)
        original = getattr(owner, method)
        setattr(owner, method, self._operation(original) if isinstance(original, Operation) else self._deadly(original))

    def _operation(self, original: Operation[Any, ..., Any]) -> Operation[Any, ..., Any]:
        """Return an operation of the store that dies where it has a transaction of its own."""
        deadly, changed = self._deadly(original), copy.copy(original)

        class Killing(Operation[Any, ..., Any]):
            async def __call__(self, *arguments: Any, **named: Any) -> Any:
                return await deadly(*arguments, **named)

        changed.__class__ = Killing
        return changed

    def _stop_outside_transactions(self) -> None:
        """Let transactions end first: the kernel frees the lock of a killed writer, and never that of a stopped one.

        Another send of the batch may write at that moment; no second worker could then even open the store.
        """
        original = SqliteDatabase._run

        def run(*arguments: Any, **named: Any) -> Any:
            with self.in_store:
                return original(*arguments, **named)

        SqliteDatabase._run = run

    def _deadly(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        only = ONLY.get(self.place, lambda _: True)

        @functools.wraps(original)
        async def deadly(*arguments: Any, **named: Any) -> Any:
            if not only(arguments):
                return await original(*arguments, **named)
            if self.when != "after" and self._due():
                return await self._die_before_or_during(original(*arguments, **named))
            answer = await original(*arguments, **named)
            if self.when == "after" and self._due():
                self.die()
            return answer

        return deadly

    def _due(self) -> bool:
        self.left -= 1
        return self.left == 0

    async def _die_before_or_during(self, original: Any) -> Any:
        if self.when == "before":
            self.die()
        running = asyncio.ensure_future(original)
        while self.when == "during" and not running.done() and not self._arrived():
            await asyncio.sleep(0.005)
        if self.when == "during":
            self.die()
        return await running

    def _arrived(self) -> bool:
        if self.place == "model.request":
            return self.witness.exists()
        with sqlite3.connect(self.mailbox, timeout=10) as connection:
            marks = ",".join("?" * len(SENDS))
            query = f"SELECT count(*) FROM requests WHERE tool IN ({marks})"
            return connection.execute(query, SENDS).fetchone()[0] >= int(self.spec.rpartition(":")[2])

    def die(self) -> None:
        with self.in_store:
            os.write(2, f"killed {self.spec}\n".encode())
            os.kill(os.getpid(), self.sign)


def main() -> int:
    """Serve until killed or told to stop; return the exit code."""
    environment = os.environ
    spec = environment.get("KILL_AT")
    if spec:
        sign = signal.Signals[f"SIG{environment.get('KILL_WITH', 'KILL')}"]
        Killer(spec, Path(environment["KILL_MAILBOX"]), Path(environment["KILL_WITNESS"]), sign).install()
    if environment.get("WAITS") != "shipped":
        waits.shorten()
    carrying.MOST_EVENTS = int(environment.get("SWITCH_AT", carrying.MOST_EVENTS))
    roles: dict[str, worker.Role] = {"sandbox": "sandbox", "all": "all"}
    return asyncio.run(worker.serve(roles.get(environment.get("ROLE", ""), "runs")))


if __name__ == "__main__":
    sys.exit(main())
