"""A client of the daemon that knows nothing of its code: lines to stdin, lines from stdout."""

import asyncio
import json
import os
import shutil
import sys
from contextlib import asynccontextmanager
from pathlib import Path

from tests.engine import share_images
from tests.nursery.piped import LONGEST_LINE, piped

HOUSE = Path(__file__).resolve().parents[2]
ENTRY = HOUSE / "gateways/plugins_stdio.py"
PLUGINS = Path(__file__).parent / "plugins"
ENDED = {"success", "error", "timeout"}
TRUSTED = {"folder": "plugins/", "jail": False}
"""Each process that reads parsers in a jail tests its jails before, for a second of processor time."""
HELP = "plugins-help.json"
KEPT = {}
"""What daemons have kept of the help of plugins, by what stands in the toolbox.json."""


def lay_out(folder, *names, **providers):
    """Put plugins and a toolbox.json into a folder."""
    for name in names:
        shutil.copytree(PLUGINS / name, folder / "plugins" / name)
    written = {"plugins": TRUSTED, "providers": providers}
    (folder / "toolbox.json").write_text(json.dumps(written), encoding="utf-8")
    return folder


class Client:
    """Hold a daemon and every line that it wrote."""

    def __init__(self, process):
        self.process = process
        self.lines = []

    async def line(self):
        async with asyncio.timeout(60):
            raw = await self.process.stdout.readline()
        assert raw, "the daemon has ended"
        self.lines.append(json.loads(raw))
        return self.lines[-1]

    def write(self, text):
        self.process.stdin.write(text.encode() + b"\n")

    def ask(self, name, command, **payload):
        self.write(json.dumps({"id": name, "command": command, **({"payload": payload} if payload else {})}))

    def run(self, name, plugin, action, args=None, **more):
        self.ask(name, "run", plugin=plugin, action=action, **({} if args is None else {"args": args}), **more)

    async def until(self, name, *statuses):
        """Return the first line of an id, from now on, that has one of the statuses, or ends it."""
        while True:
            line = await self.line()
            if line.get("id") == name and line["status"] in (statuses or ENDED):
                return line

    async def told(self, name, status):
        """Return the line of an id with a status, whether it came already or still comes."""
        known = [line for line in self.lines if line.get("id") == name and line["status"] == status]
        return known[-1] if known else await self.until(name, status)

    def statuses(self, name):
        return [line["status"] for line in self.lines if line.get("id") == name]

    async def end(self):
        """Close the input; return the lines that still come, and the exit code."""
        self.process.stdin.close()
        return await self.rest()

    async def rest(self):
        async with asyncio.timeout(60):
            rest = await self.process.stdout.read()
            return [json.loads(line) for line in rest.splitlines()], await self.process.wait()


@asynccontextmanager
async def cold(folder, *flags, entry=ENTRY, cwd=None, **variables):
    """Start a daemon as its users do, and wait until it is ready; at the end it is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(entry),
        *flags,
        cwd=cwd or folder,
        env=environment_of(folder, variables),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=(folder / "stderr").open("ab"),
        limit=LONGEST_LINE,
    )
    try:
        yield await ready(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def daemon(nursery, folder, *flags, entry=ENTRY, cwd=None, **variables):
    """Start a daemon as a fork of what has imported it, which finds what others have kept of the help of its plugins.

    To load the engine, and once more to ask the plugins, costs two seconds.
    """
    environment = environment_of(folder, variables)
    hand_on_help(folder, environment)
    given = {"environment": environment, "folder": cwd or folder, "log": folder / "stderr"}
    async with piped(nursery, str(entry), *flags, **given) as process:
        client = await ready(process)
        keep_help(folder, environment)
        yield client


def hand_on_help(folder, environment):
    """Let a daemon find what others have kept of the help of its plugins."""
    known = home_of(folder, environment) / HELP
    if (kept := KEPT.get(configuration_of(folder))) and not known.exists():
        known.write_bytes(kept)


def keep_help(folder, environment):
    """Keep what a daemon has kept; what it holds of plugins that are not there, the next one drops."""
    known, configuration = home_of(folder, environment) / HELP, configuration_of(folder)
    if known.exists():
        KEPT[configuration] = max(KEPT.get(configuration, b""), known.read_bytes(), key=len)


def configuration_of(folder):
    toolbox = folder / "toolbox.json"
    return toolbox.read_bytes() if toolbox.exists() else b""


def home_of(folder, environment):
    return Path(environment.get("BACKSTAY_HOME", folder / ".backstay"))


def environment_of(folder, variables):
    """Return the environment of a daemon that knows the folder by BACKSTAY_TOOLBOX."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("BACKSTAY_", "TEMPORAL_"))}
    known |= {"BACKSTAY_TOOLBOX": str(folder / "toolbox.json"), "BACKSTAY_TRUSTED": str(folder)}
    known |= {"XDG_STATE_HOME": str(folder / "state")}
    known = {name: value for name, value in (known | variables).items() if value is not None}
    share_images(home_of(folder, known))
    return known


async def ready(process):
    client = Client(process)
    assert await client.line() == {"status": "ready"}
    return client
