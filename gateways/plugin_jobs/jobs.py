"""The jobs of one daemon: what each was asked to do, how far it is, and what is told and logged of it."""

import hashlib
import json
import threading
import time
from collections import Counter
from typing import Any, NamedTuple, Protocol

from gateways.plugin_jobs.log import JobLog
from gateways.plugin_jobs.protocol import ENGINE_UNAVAILABLE, ID_CONFLICT, OUTCOME_UNKNOWN

_OPEN = ("queued", "started")
_ENDED_KEPT = 10_000


class PluginJob:
    """Hold one job, and how far it is."""

    __slots__ = (
        "action",
        "arguments",
        "began",
        "chain",
        "digest",
        "id",
        "plugin",
        "sent",
        "status",
        "timeout_s",
        "told",
    )

    def __init__(
        self,
        *,
        id: str | int,  # noqa: A002 - the protocol's word
        plugin: str,
        action: str,
        arguments: dict[str, Any],
        timeout_s: float,
        digest: str,
    ) -> None:
        """Set what is to be done; `digest` is that of the payload as it was sent."""
        self.id = id
        self.plugin = plugin
        self.action = action
        self.arguments = arguments
        self.timeout_s = timeout_s
        self.digest = digest
        self.status = ""
        self.told: Any = None
        """The payload of the last answer."""
        self.began: float | None = None
        self.sent = False
        """Whether the engine may have it, though it has not answered."""
        self.chain = ""
        """In which chain of executions its lane is that it was added to; empty where that is unknown."""

    @property
    def is_open(self) -> bool:
        """Return whether it has not ended."""
        return self.status in {"", *_OPEN}

    @property
    def unanswered(self) -> str:
        """Return the error to tell where the engine does not answer."""
        return OUTCOME_UNKNOWN if self.sent else ENGINE_UNAVAILABLE


class _Durations(NamedTuple):
    """Sum up execution times: a daemon may run for months."""

    jobs: int = 0
    total: float = 0.0
    longest: float = 0.0


def digest_of(payload: dict[str, Any]) -> str:
    """Return a digest of a payload; the order of its keys does not matter."""
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


class Sends(Protocol):
    """Take what is told of jobs."""

    def send(self, id: str | int | None, status: str, payload: Any) -> None:  # noqa: A002 - the protocol's word
        """Take one answer."""
        ...


class Jobs:
    """Know every job of this daemon, and tell the client of each step; safe to use from any thread."""

    def __init__(self, output: Sends, log: JobLog) -> None:
        """Tell the client by the output."""
        self._output = output
        self._log = log
        self._lock = threading.RLock()
        self._known: dict[str | int, PluginJob] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._seconds: dict[str, _Durations] = {}

    def admit(self, job: PluginJob) -> bool:
        """Return whether a job is new; of one that is known its state is told again, or that the payload differs."""
        with self._lock:
            known = self._known.get(job.id)
            self._log.add("request", id=job.id, plugin=job.plugin, action=job.action, arguments=job.arguments)
            if known is None:
                self._known[job.id] = job
                self._forget_oldest()
                return True
            if known.digest != job.digest:
                self.refuse(job, ID_CONFLICT)
            elif known.status:
                self._output.send(known.id, known.status, known.told)
            return False

    def refuse(self, job: PluginJob, error: str) -> None:
        """Answer a request that is not a job, and leave a job of the same id as it is."""
        self._log.add("answer", id=job.id, plugin=job.plugin, action=job.action, status="error", error=error)
        self._output.send(job.id, "error", {"error": error})

    def tell(self, job: PluginJob, status: str, payload: Any) -> None:
        """Say how far a job is; words that it had already, or that come after its end, are dropped."""
        with self._lock:
            if not job.is_open or (job.status, job.told) == (status, payload):
                return
            if status == "started":
                job.began = time.monotonic()
            job.status, job.told = status, payload
            # A client that has its answer may look into the log.
            if not job.is_open:
                self._count_end(job)
            self._output.send(job.id, status, payload)

    def fail(self, job: PluginJob, error: str) -> None:
        """End a job with an error."""
        self.tell(job, "error", {"error": error})

    def unanswered(self) -> list[PluginJob]:
        """Return the jobs of which nothing was told yet: nobody has taken them so far."""
        with self._lock:
            return [job for job in self._known.values() if not job.status]

    def forget(self, job: PluginJob) -> None:
        """Let a request be sent again that came to nothing."""
        with self._lock:
            if self._known.get(job.id) is job:
                del self._known[job.id]

    def detail(self) -> dict[str, Any]:
        """Return counts, execution times and the length of the queue."""
        with self._lock:
            states = Counter(job.status for job in self._known.values() if job.is_open)
            return {
                "queue": states["queued"] + states[""],
                "running": states["started"],
                "jobs": {plugin: dict(counts) for plugin, counts in sorted(self._counts.items())},
                "seconds": {
                    plugin: {"count": taken.jobs, "sum": round(taken.total, 3), "max": round(taken.longest, 3)}
                    for plugin, taken in sorted(self._seconds.items())
                },
            }

    def _count_end(self, job: PluginJob) -> None:
        self._counts.setdefault(job.plugin, Counter())[job.status] += 1
        taken = None if job.began is None else time.monotonic() - job.began
        if taken is not None:
            known = self._seconds.get(job.plugin, _Durations())
            self._seconds[job.plugin] = _Durations(known.jobs + 1, known.total + taken, max(known.longest, taken))
        fields: dict[str, Any] = {"id": job.id, "plugin": job.plugin, "action": job.action, "status": job.status}
        fields |= {} if taken is None else {"duration_ms": round(1000 * taken)}
        if job.status != "success" and isinstance(job.told, dict):
            fields["error"] = job.told.get("error")
        self._log.add("answer", **fields)

    def _forget_oldest(self) -> None:
        if len(self._known) <= _ENDED_KEPT:
            return
        oldest = next((name for name, job in self._known.items() if not job.is_open), None)
        if oldest is not None:
            del self._known[oldest]
