"""Measure one sample of one kind: runs in turn, runs at once, requests, parked runs and a replay."""

import asyncio
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle, WorkflowHistory

from backstay.testing.completion import BYTES_PER_TOKEN
from benchmarks.floor import Floor
from benchmarks.peers.engines import PEERS, Stubs, asked, peer_command, peer_environment, worker
from benchmarks.processes import ROOT, family_cpu_seconds, family_memory_kb
from benchmarks.steps import replay_ms
from workflows import WORKFLOWS

STARTED_AT_ONCE = 20
WARM_UP = 5
WAIT_S = 900

Handle = WorkflowHandle[Any, Any]


class Bench:
    """Run tasks on the workers of all kinds, which stay up meanwhile."""

    def __init__(self, client: Client, server: int, given: Stubs) -> None:
        self.client = client
        self.server = server
        self.given = given
        self.pids: dict[str, int] = {}
        self.histories: dict[tuple[str, str, int], WorkflowHistory] = {}
        self.number = 0

    async def start(self, kind: str, word: str, steps: int, queue: str | None = None) -> Handle:
        """Start one run, on the queue of its kind if no other is given."""
        self.number += 1
        workflow, arguments = asked(kind, word, steps)
        name = f"{kind}-{word}-{steps}-{self.number}"
        return await self.client.start_workflow(workflow, args=arguments, id=name, task_queue=queue or kind)

    async def finish(self, handle: Handle) -> None:
        """Wait for the end of a run, which must have done its task."""
        result = await handle.result()
        assert not isinstance(result, dict) or result["outcome"] == "completed", result

    async def in_turn(self, kind: str, word: str, steps: int, runs: int) -> dict[str, float]:
        """Run one after the other; return what a step took, and keep the history of the first run."""
        handles: list[Handle] = []
        watch = Watch(self.server, self.pids[kind])
        for _ in range(runs):
            handles.append(await self.start(kind, word, steps))
            await self.finish(handles[-1])
        spent = watch.per_step(runs * steps)
        history = self.histories[kind, word, steps] = await handles[0].fetch_history()
        return spent | {"bytes": sum(event.ByteSize() for event in history.events) / steps}

    async def at_once(self, kind: str, word: str, steps: int, runs: int) -> dict[str, float]:
        """Start all runs at once; return what a step took, and how many steps and runs a second ended."""
        starting = asyncio.Semaphore(STARTED_AT_ONCE)
        watch = Watch(self.server, self.pids[kind])

        async def whole() -> None:
            async with starting:
                handle = await self.start(kind, word, steps)
            await self.finish(handle)

        async with asyncio.timeout(WAIT_S):
            await asyncio.gather(*(whole() for _ in range(runs)))
        spent = watch.per_step(runs * steps)
        steps_per_s = 1000 / spent["wall_ms"]
        return spent | {"steps_per_s": steps_per_s, "runs_per_s": steps_per_s / steps}

    async def bodies(self, kind: str, steps: int) -> list[str]:
        """Return the requests that the model got in a run of so many steps."""
        self.given.bodies.unlink(missing_ok=True)
        await self.finish(await self.start(kind, "count", steps))
        return self.given.bodies.read_text(encoding="utf-8").splitlines()

    async def parked_kb(self, kind: str, count: int) -> float:
        """Return what a worker that was just started holds more for each run that waits for a person."""
        queue = f"{kind}-parked"
        with ExitStack() as stack:
            pid = await asyncio.to_thread(stack.enter_context, worker(kind, queue, self.given))
            for _ in range(WARM_UP):
                await self.finish(await self.start(kind, "read", WARM_UP, queue))
            before = family_memory_kb(pid)
            handles = [await self.start(kind, "park", 1, queue) for _ in range(count)]
            async with asyncio.timeout(WAIT_S):
                for handle in handles:
                    await _rest(handle)
            held = family_memory_kb(pid) - before
            for handle in handles:
                await handle.terminate()
        return held / count

    async def replay_ms(self, kind: str, history: WorkflowHistory) -> float:
        """Return the milliseconds of a replay, in the environment of the kind."""
        if kind not in PEERS:
            return await replay_ms([Floor] if kind == "floor" else WORKFLOWS, history)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "history.json"
            await asyncio.to_thread(path.write_text, history.to_json(), encoding="utf-8")
            replaying = await asyncio.create_subprocess_exec(
                *peer_command(kind),
                str(path),
                cwd=ROOT,
                env=peer_environment(kind, self.given),
                stdout=subprocess.PIPE,
            )
            said, _ = await replaying.communicate()
        return float(said)


def tokens(bodies: list[str]) -> int:
    """Return what the requests come to, counted alike for all engines, as the scripted model counts."""
    return sum(len(body.encode()) for body in bodies) // BYTES_PER_TOKEN


class Watch:
    """Take the time of the wall, of a worker with its children, and of the Temporal server, from now on."""

    def __init__(self, server: int, pid: int) -> None:
        self._server, self._pid = server, pid
        self._began = self._now()

    def per_step(self, steps: int) -> dict[str, float]:
        """Return the milliseconds of a step."""
        return {name: 1000 * (now - self._began[name]) / steps for name, now in self._now().items()}

    def _now(self) -> dict[str, float]:
        return {
            "wall_ms": time.perf_counter(),
            "worker_ms": family_cpu_seconds(self._pid),
            "server_ms": family_cpu_seconds(self._server),
        }


async def _rest(handle: Handle) -> None:
    """Wait until a run has nothing to do but to wait for a person."""
    while True:
        found = await handle.describe()
        assert found.status is WorkflowExecutionStatus.RUNNING, found.status
        raw = found.raw_description
        if not raw.pending_activities and not raw.HasField("pending_workflow_task"):
            return
        await asyncio.sleep(0.2)
