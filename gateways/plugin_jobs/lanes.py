"""The jobs of one daemon on their way into a lane: how many may wait there at once."""

import asyncio

from backstay.canonical import canonical
from gateways.plugin_jobs.jobs import PluginJob

MOST_WAITING = 128 * 1024
"""Bytes of a daemon's jobs that wait in a lane before the next one is brought into it.

What waits is in the lane's history, which Temporal bounds. A lane begins a new history only while no more than four
times as much waits, so that as many daemons may keep it full.
"""
_BESIDE = 500
"""About as much as a job takes beside its arguments."""


class DaemonLane:
    """Hold the jobs of one daemon for one lane, or for none."""

    def __init__(self, name: str | None) -> None:
        """`name`: of the lane; None for jobs that wait in none."""
        self.name = name
        self.new: asyncio.Queue[PluginJob] = asyncio.Queue()
        """Those that the engine has not got yet."""
        self.queued: asyncio.Queue[tuple[PluginJob, int]] = asyncio.Queue()
        """Those that wait in the lane, and how large each is."""
        self.bringing = asyncio.Lock()
        """Held while a job is on its way to the engine."""
        self._room = asyncio.Event()
        self._room.set()
        self._size = 0

    async def room(self) -> None:
        """Wait until another job may wait in the lane."""
        await self._room.wait()

    def enter(self, job: PluginJob, size: int) -> None:
        """Take note that a job of this size waits in the lane."""
        self.queued.put_nowait((job, size))
        self._change(size)

    def leave(self, size: int) -> None:
        """Take note that a job of this size waits no longer."""
        self._change(-size)

    def _change(self, by: int) -> None:
        self._size += by
        if self._size < MOST_WAITING:
            self._room.set()
        else:
            self._room.clear()


def size_of(job: PluginJob) -> int:
    """Return how many bytes a job takes in a lane. Raises ValueError for arguments that JSON cannot say."""
    return len(canonical(job.arguments).encode()) + _BESIDE
