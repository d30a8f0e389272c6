"""Read requests, answer them, and hand jobs on, until the input ends or a signal comes."""

import os
import select
import signal
import sys
from collections.abc import Callable
from typing import Any, Protocol

from gateways.plugin_jobs.help_cache import HelpCache
from gateways.plugin_jobs.jobs import Jobs, PluginJob, digest_of
from gateways.plugin_jobs.log import JobLog
from gateways.plugin_jobs.places import PlaceInvalid
from gateways.plugin_jobs.protocol import (
    BAD_JSON,
    MOST_LINE,
    NOT_FOUND,
    JobRequest,
    Output,
    RequestInvalid,
    named_arguments,
    read_request,
    read_timeout,
)

_CHUNK = 65536
_LONGEST_NAME = 200


class JobRunner(Protocol):
    """Run jobs somewhere."""

    def submit(self, job: PluginJob) -> None:
        """Take a job that is new."""
        ...

    def finish(self, is_over: Callable[[], bool]) -> None:
        """Carry out what was taken and would be lost with this process, until there is nobody to tell any more."""
        ...

    def close(self) -> None:
        """Take no more, and let go of those that are open."""
        ...


class Daemon:
    """Serve one client."""

    def __init__(self, output: Output, log: JobLog, help_cache: HelpCache, jobs: Jobs, runs: JobRunner) -> None:
        """Answer by the output, and have jobs run by `runs`."""
        self._output = output
        self._log = log
        self._help = help_cache
        self._jobs = jobs
        self._runs = runs
        self._commands: dict[str, Callable[[JobRequest], None]] = {
            "run": self._run,
            "help": self._show_help,
            "reload-help": self._reload_help,
            "health": self._health,
        }

    def serve(self, lines: "InputLines") -> None:
        """Answer every line, and stop in good order."""
        try:
            self._help.load()
        except PlaceInvalid as error:
            sys.stderr.write(f"backstay plugins: {error}\n")
        self._output.announce("ready")
        while not self._output.broken and (line := lines.next()) is not None:
            if line.strip():
                self._answer(line)
        # A client that has written all that it wants may end the input at once, and read the answers.
        self._runs.finish(lambda: lines.stopped or self._output.broken)
        self._runs.close()
        self._output.announce("shutdown")
        self._log.close()

    def _answer(self, line: bytes) -> None:
        request = read_request(line)
        if request is None:
            self._log.add("answer", id=None, status="error", error=BAD_JSON)
            self._output.send(None, "error", {"error": BAD_JSON})
            return
        command = self._commands.get(request.command) if isinstance(request.command, str) else None
        try:
            (command or _refuse)(request)
        except (RequestInvalid, PlaceInvalid) as error:
            named = _named(request)
            self._log.add("request", id=request.id, **named)
            self._log.add("answer", id=request.id, **named, status="error", error=str(error))
            self._output.send(request.id, "error", {"error": str(error)})

    def _show_help(self, request: JobRequest) -> None:
        self._help.refresh()
        self._succeed(request, self._help.plain)

    def _reload_help(self, request: JobRequest) -> None:
        self._help.refresh(everything=True)
        self._succeed(request, "ok")

    def _health(self, request: JobRequest) -> None:
        self._succeed(request, self._jobs.detail() if request.payload.get("detail") is True else "ok")

    def _succeed(self, request: JobRequest, payload: Any) -> None:
        self._log.add("request", id=request.id, command=str(request.command))
        self._output.send(request.id, "success", payload)
        self._log.add("answer", id=request.id, command=str(request.command), status="success")

    def _run(self, request: JobRequest) -> None:
        job = self._job_of(request)
        if self._jobs.admit(job):
            self._runs.submit(job)

    def _job_of(self, request: JobRequest) -> PluginJob:
        """Return what a request asks to run. Raises RequestInvalid and PlaceInvalid."""
        payload = request.payload
        plugin, action, given = payload.get("plugin"), payload.get("action"), payload.get("args")
        if not isinstance(plugin, str) or not isinstance(action, str):
            raise RequestInvalid(NOT_FOUND)
        self._help.refresh()
        if (reason := self._help.reason(plugin)) is not None:
            raise RequestInvalid(f"{plugin} cannot be used: {reason}")
        schema = self._help.schema(plugin, action)
        if schema is None:
            raise RequestInvalid(NOT_FOUND)
        if given is not None and not isinstance(given, dict):
            raise RequestInvalid("args: must be an object")
        return PluginJob(
            id=request.id,
            plugin=plugin,
            action=action,
            arguments=named_arguments(given or {}, schema),
            timeout_s=read_timeout(payload),
            digest=digest_of(payload),
        )


def _named(request: JobRequest) -> dict[str, Any]:
    """Return what the log says that a request asks for, also of one that makes no sense."""
    asked = {"command": request.command, **{name: request.payload.get(name) for name in ("plugin", "action")}}
    return {name: said[:_LONGEST_NAME] for name, said in asked.items() if isinstance(said, str)}


def _refuse(_request: JobRequest) -> None:
    raise RequestInvalid(NOT_FOUND)


class InputLines:
    """Read lines until the input ends or a signal says to stop."""

    def __init__(self, file: int) -> None:
        """Read an open file of the operating system, and listen for SIGTERM and SIGINT."""
        self._file = file
        self._unread = bytearray()
        self._skipping = False
        self.stopped = False
        """Whether a signal came."""
        self._woken, waking = os.pipe()
        os.set_blocking(waking, False)
        # The system may hand a signal to another thread, which would not wake the one that waits here.
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        self.on_stop: Callable[[], None] = lambda: None
        """Called when a signal comes, whatever is under way."""
        for sign in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sign, self._stop)

    def next(self) -> bytes | None:
        """Return the next line; None at the end. One that is too long is cut, so that it is no JSON.

        The last line need not end with a line break.
        """
        while True:
            line, found, rest = self._unread.partition(b"\n")
            if found:
                self._unread = rest
                skipped, self._skipping = self._skipping, False
                if skipped:
                    continue
                return bytes(line)
            if len(self._unread) > MOST_LINE:
                self._unread.clear()
                if not self._skipping:
                    self._skipping = True
                    return b"a line that is too long"
            if not self._read():
                last, skipped = bytes(self._unread), self._skipping
                self._unread.clear()
                return last if last and not (skipped or self.stopped) else None

    def _read(self) -> bool:
        """Read more; return whether there may be more."""
        ready, _, _ = select.select([self._file, self._woken], [], [])
        if self._woken in ready:
            return False
        try:
            chunk = os.read(self._file, _CHUNK)
        except OSError:
            return False
        self._unread += chunk
        return bool(chunk)

    def _stop(self, _sign: int, _frame: object) -> None:
        self.stopped = True
        self.on_stop()
