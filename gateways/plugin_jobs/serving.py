"""Start the daemon. Until the first job, only the standard library is loaded."""

import importlib.util
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from gateways.plugin_jobs.daemon import Daemon, InputLines, JobRunner
from gateways.plugin_jobs.help_cache import HelpCache, make_home
from gateways.plugin_jobs.jobs import Jobs
from gateways.plugin_jobs.log import JobLog, Redact
from gateways.plugin_jobs.places import DaemonPaths, PlaceInvalid, find_place, keep_named_places
from gateways.plugin_jobs.protocol import LOCAL, Output

_NEEDED = ("backstay", "pydantic", "temporalio", "structlog", "jsonschema")
_USAGE = 2
_DESCRIBE = "--describe"
MCP = "--mcp"
_HELP = """usage: plugins_stdio.py [--mcp] [--local | --lanes one]

Run command-line plugins for a client that writes requests to stdin and reads answers from stdout.

  --mcp         speak MCP, with a tool for each action
  --local       run jobs in this process, one after another, without Temporal; they do not survive it
  --lanes one   run the jobs of all plugins one after another, not only those of each
"""


def main(entry: str, argv: Sequence[str]) -> int:
    """Serve until the input ends or a signal comes; return the exit code."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"backstay plugins: {missing[0]} is not installed for {sys.executable}; "
            "install backstay for this interpreter, or start the daemon with the one that has it\n"
        )
        return _USAGE
    place = find_place(Path(entry))
    keep_named_places()
    try:
        os.chdir(place.folder)  # the operator's other files are found from here, as by every other command
    except OSError as error:
        sys.stderr.write(f"backstay plugins: {place.folder}: {error.strerror}\n")
        return _USAGE
    if argv[:1] == [_DESCRIBE]:
        return _describe(argv[1:])
    if argv in ([MCP], [MCP, "--local"]):
        return _serve_mcp(entry, place, local="--local" in argv)
    if argv in (["-h"], ["--help"]):
        sys.stderr.write(_HELP)
        return 0
    if argv not in ([], ["--local"], ["--lanes", "one"]):
        sys.stderr.write(f"backstay plugins: unknown arguments: {' '.join(argv)[:200]}\n{_HELP}")
        return _USAGE
    return _serve(entry, place, local="--local" in argv, one_lane="--lanes" in argv)


def _serve(entry: str, place: DaemonPaths, *, local: bool, one_lane: bool) -> int:
    try:
        place.plugins()
        unused = place.unused()
    except PlaceInvalid as error:
        sys.stderr.write(f"backstay plugins: {error}\n")
        return _USAGE
    if unused is not None:
        sys.stderr.write(f'backstay plugins: {unused} is not used; add "plugins": "plugins/" to {place.toolbox}\n')
    # Output of any library must not come between the lines of the protocol.
    answers = os.dup(1)
    os.dup2(2, 1)
    lines = InputLines(0)
    if not _has_home(place):
        return _USAGE
    output, log = Output(answers), JobLog(place.home, _redactor)
    jobs = Jobs(output, log)
    cache = HelpCache(place, (sys.executable, entry, _DESCRIBE))
    lines.on_stop = lambda: _stop(cache, output)
    Daemon(output, log, cache, jobs, _runs(jobs, cache, local=local, one_lane=one_lane)).serve(lines)
    return 0


def _has_home(place: DaemonPaths) -> bool:
    """Make the folder of backstay's own files; return whether it is there, and say why not."""
    try:
        make_home(place.home)
    except OSError as error:
        sys.stderr.write(f"backstay plugins: {place.home}: cannot be made: {error.strerror}\n")
        return False
    return True


def _stop(cache: HelpCache, output: Output) -> None:
    cache.end()
    output.part()


def _runs(jobs: Jobs, cache: HelpCache, *, local: bool, one_lane: bool) -> JobRunner:
    if local:
        from gateways.plugin_jobs.local import LocalJobs  # noqa: PLC0415 - only one of the two is needed

        sys.stderr.write(LOCAL)
        return LocalJobs(jobs)
    from gateways.plugin_jobs.durable import DurableJobs  # noqa: PLC0415 - the same

    return DurableJobs(jobs, cache.is_parallel, one_lane=one_lane)


def _redactor() -> Redact:
    from gateways.plugin_jobs.running import redactor  # noqa: PLC0415 - loads the engine

    return redactor()


def _serve_mcp(entry: str, place: DaemonPaths, *, local: bool) -> int:
    import asyncio  # noqa: PLC0415 - the daemon itself needs none of it

    from gateways.plugin_jobs.mcp_server import serve  # noqa: PLC0415 - loads the engine and the MCP SDK

    if not _has_home(place):
        return _USAGE
    try:
        asyncio.run(serve(place, (sys.executable, entry, _DESCRIBE), local=local))
    except PlaceInvalid as error:
        sys.stderr.write(f"backstay plugins: {error}\n")
        return _USAGE
    return 0


def _describe(names: Sequence[str]) -> int:
    """Print what plugins can do, as JSON."""
    import asyncio  # noqa: PLC0415 - the daemon itself needs none of it

    from gateways.plugin_jobs.running import describe  # noqa: PLC0415 - loads the engine

    answers = os.dup(1)
    os.dup2(2, 1)
    found = json.dumps(asyncio.run(describe(list(names)))).encode()
    while found:
        found = found[os.write(answers, found) :]
    return 0
