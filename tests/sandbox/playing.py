"""Play programs in real jails: answer their calls, and keep what a journal would hold."""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox.isolation.nsjail import Nsjail
from sandbox.programs.frames import Round
from sandbox.programs.sandbox import RoundOutcome, Sandbox
from tests.sandbox.places import image, shared

NOW = 1_700_000_000.5
TOOLS = frozenset({"mail.send", "mail.find", "crm.find", "engine.result"})
SEND = "async def send(**others):\n    return await call('mail.send', others)\n"
FIND = "async def find(**others):\n    return await call('{}.find', others)\n"
BINDINGS = {"mail": {"send": SEND, "find": FIND.format("mail")}, "crm": {"find": FIND.format("crm")}}


class Failed(Exception):
    """What an answer raises so that the program gets an error: type and message."""


@dataclass
class Played:
    """Hold a program's last halt and its journal."""

    halted: RoundOutcome
    start: bytes
    rounds: list[Round] = field(default_factory=list)
    batches: list[list[tuple[int, str, dict[str, Any]]]] = field(default_factory=list)

    @property
    def result(self) -> Any:
        assert self.halted.kind == "finished", self.halted.error
        return self.halted.result

    @property
    def error(self) -> dict[str, str]:
        assert self.halted.kind == "crashed", self.halted
        assert self.halted.error is not None
        return self.halted.error


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncGenerator[Sandbox]:
    """Open a sandbox with the image of the running interpreter."""
    built = await asyncio.to_thread(image)
    made = Sandbox(nsjail=Nsjail.find(), image=built, images=shared() / "images", folder=folder, **options)
    async with made:
        yield made


def start_frame(source: str, *, seed: str = "seed", now: float = NOW, calls_from: int = 0) -> bytes:
    frame = {"source": source, "bindings": BINDINGS, "seed": seed, "now": now, "calls_from": calls_from}
    return json.dumps(frame).encode()


def answers(halted: RoundOutcome, now: float, answer: Callable[[str, dict[str, Any]], Any]) -> bytes:
    results = []
    for call in halted.calls:
        try:
            results.append({"i": call.i, "ok": answer(call.tool, call.arguments)})
        except Failed as error:
            results.append({"i": call.i, "error": {"type": error.args[0], "message": error.args[1]}})
    return json.dumps({"now": now, "results": results}).encode()


async def play(
    sandbox: Sandbox,
    source: str,
    answer: Callable[[str, dict[str, Any]], Any] = lambda _tool, arguments: arguments,
    *,
    seed: str = "seed",
    now: float = NOW,
    step_s: float = 10.0,
    replaying: bool = False,
    batches: int | None = None,
) -> Played:
    """Run a program to its end or through so many batches; with `replaying`, by a new jail in every round."""
    played = Played(halted=None, start=start_frame(source, seed=seed, now=now))  # type: ignore[arg-type] # filled below
    frame, made = None, 0

    async def rounds() -> list[Round]:
        return played.rounds

    while True:
        played.halted = await sandbox.advance(
            sandbox.image_hash,
            played.start,
            key=f"{id(played)}/{len(played.rounds)}",
            frame=frame,
            rounds=rounds,
            tools=TOOLS,
            first_call=made,
        )
        played.rounds.append(played.halted.round)
        if played.halted.kind != "waiting":
            return played
        played.batches.append([(call.i, call.tool, call.arguments) for call in played.halted.calls])
        if len(played.batches) == batches:
            return played
        made += len(played.halted.calls)
        now += step_s
        frame = answers(played.halted, now, answer)
        if replaying:
            sandbox.discard(played.halted)
        else:
            sandbox.keep(f"{id(played)}/{len(played.rounds)}", played.halted)


def body(source: str) -> str:
    """Indent statements into `async def main()`."""
    lines = "\n".join(f"    {line}" for line in source.strip().splitlines())
    return f"async def main():\n{lines}\n"


def children() -> set[int]:
    return {int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()}


def jails_in(folder: Path) -> set[int]:
    """The jails that were started from a folder; a child that is gone but not yet waited for says nothing."""
    found = set()
    for pid in children():
        with suppress(FileNotFoundError, ProcessLookupError):
            if str(folder).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found
