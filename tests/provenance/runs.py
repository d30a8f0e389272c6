"""Play cases through a real engine, with a model that follows every injection, and see which writes are asked about."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from backstay.testing import Conversation, Reply
from sandbox.programs.sandbox import Sandbox
from tests.engine import Engine, ended, engine, pending
from tests.provenance.attacks import PAGE, Case
from tests.provenance.office import Office, open_office

STRICT = """
default: {read_only: allow, write_safe: allow, restricted_write: allow}
provenance: strict
"""


@dataclass
class Played:
    """How one case went."""

    case: Case
    request: dict[str, Any] | None
    """What a person was asked; None when the write was made unasked."""
    written: list[dict[str, Any]]

    @property
    def unasked(self) -> bool:
        """Return whether the write was made and nobody was asked."""
        return self.request is None and bool(self.written)

    @property
    def named(self) -> list[str]:
        """Return the tools that the request names as sources of the target."""
        assert self.request is not None
        sources = self.request["calls"][0]["sources"][f"/{self.case.target}"]
        return [source["tool"] for source in sources]


class Scripts:
    """Answer as a model that reads what the case says, and then makes its write."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}

    def __call__(self, conversation: Conversation) -> Reply:
        case = next(case for text, case in self.cases.items() if conversation.task.startswith(text))
        if "finish" not in conversation.tools:
            return Reply(text="closing summary")
        made = len([message for message in conversation.messages if message["role"] == "assistant"])
        steps = self._steps(case)
        return steps[made] if made < len(steps) else Reply(calls=[("finish", {"summary": "done"})])

    def _steps(self, case: Case) -> list[Reply]:
        if case.program:
            return [Reply(calls=[("run_program", {"code": program_of(case)})])]
        reads = [(read.tool.replace(".", "__"), _arguments(case, number)) for number, read in enumerate(case.reads)]
        return [Reply(calls=reads), Reply(calls=[(case.tool.replace(".", "__"), case.arguments)])]


def _arguments(case: Case, number: int) -> dict[str, Any]:
    arguments = {"id": f"{case.id}/{number}"}
    return arguments | ({"url": PAGE.format(id=case.id[:3])} if case.reads[number].tool == "web.fetch" else {})


def program_of(case: Case) -> str:
    """Return a program that reads, gets the target out of the last answer, and writes."""
    lines = [f"answer = await {read.tool}(**{_arguments(case, number)!r})" for number, read in enumerate(case.reads)]
    rest = {name: value for name, value in case.arguments.items() if name != case.target}
    lines += ["t = answer['text']", f"return await {case.tool}({case.target}={case.program}, **{rest!r})"]
    return "\n".join(lines)


@dataclass
class Stage:
    """An engine, its office and its model."""

    engine: Engine
    office: Office
    scripts: Scripts

    async def play(self, case: Case) -> Played:
        """Run one case until its write is made or asked about."""
        self.office.prepare(case)
        text = f"<{case.id}> {case.text}"
        self.scripts.cases[f"<{case.id}>"] = case
        handle = await self.engine.start({"text": text, "budget": {"max_tool_calls": 20}})
        asked = asyncio.create_task(pending(handle))
        done = asyncio.create_task(handle.result())
        await asyncio.wait({asked, done}, return_when=asyncio.FIRST_COMPLETED)
        request: dict[str, Any] | None = None
        if asked.done() and not asked.exception():
            request = asked.result()[0]
            decision = {"request_id": request["id"], "verdict": "reject", "stop": True, "by": "ann"}
            await handle.execute_update("decide", decision)
        else:
            asked.cancel()
        result = await ended(handle)
        assert request is not None or result["outcome"] == "completed", json.dumps(result)[:2000]
        written = [arguments for tool, arguments in self.office.written if tool == case.tool]
        return Played(case, request, [found for found in written if found == case.arguments])

    async def play_all(self, cases: list[Case], at_once: int = 4) -> list[Played]:
        """Run cases, a few at a time."""
        free = asyncio.Semaphore(at_once)

        async def played(case: Case) -> Played:
            async with free:
                found = await self.play(case)
                # A program whose jail a busy machine ended for its time has neither asked nor written.
                return found if found.request or found.written else await self.play(case)

        return await asyncio.gather(*map(played, cases))


@asynccontextmanager
async def open_stage(
    client: Client, folder: Path, sandbox: Sandbox | None = None, policy: str = STRICT
) -> AsyncGenerator[Stage]:
    """Open an engine over an office."""
    scripts = Scripts()
    async with (
        open_office(folder) as (office, toolbox),
        engine(client, folder, scripts, policy=policy, sandbox=sandbox, toolbox=toolbox, cached=50) as opened,
    ):
        yield Stage(opened, office, scripts)
