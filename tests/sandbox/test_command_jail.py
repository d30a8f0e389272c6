"""Plugins in jails: the toolbox runs them, the sandbox confines them, and neither knows the other."""

import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from backstay.errors import OutcomeUnknown
from sandbox.isolation.command_jail import CommandJail
from tests.engine import ROOT
from tests.requirements import promise
from toolbox.toolbox import open_toolbox

ATTEMPT = """
def attempt(action):
    try:
        return repr(action())
    except BaseException as error:
        return type(error).__name__
"""

LOOK = """
import argparse, json, os, sys, time

def internet():
    import socket
    socket.create_connection(("127.0.0.1", 1), timeout=1)

parser = argparse.ArgumentParser()
parser.add_argument("how", choices=["look", "hang", "kill", "fail"])
parser.add_argument("value", nargs="?")
given = parser.parse_args()
if given.how == "hang":
    time.sleep(600)
if given.how == "kill":
    os.abort()
if given.how == "fail":
    sys.exit("no luck")
print(json.dumps({
    "value": given.value,
    "beside": open("beside.txt").read(),
    "write": attempt(lambda: open("new.txt", "w")),
    "scratch": attempt(lambda: open("/tmp/new.txt", "w").write("x")),
    "outside": attempt(lambda: open("/etc/passwd").read()),
    "internet": attempt(internet),
    "environment": sorted(os.environ),
    "secret": os.environ.get("KEY"),
}))
"""


async def intent():
    """Stand for a committed intent."""


ATTEMPTS = """
import argparse, json, os, socket, sys, time
from pathlib import Path
import pydantic  # a package of the worker's interpreter

found = {
    "folder": attempt(lambda: open("beside.txt").read()),
    "write": attempt(lambda: Path("new.txt").write_text("x") and "written"),
    "package": attempt(lambda: open(Path(pydantic.__file__).with_name("new.txt"), "w")),
    "scratch": attempt(lambda: open("/tmp/new.txt", "w").write("x")),
    "internet": attempt(lambda: socket.create_connection(("127.0.0.1", 1), timeout=1)),
    "top": sorted(set(os.listdir("/")) & {"proc", "sys", "var", "home", "run"}),
    "etc": sorted(os.listdir("/etc")),
    "kill": attempt(lambda: os.kill(PARENT, 0)),
    "interpreter": sys.executable,
    "environment": sorted(os.environ),
}
parser = argparse.ArgumentParser(description="found: " + json.dumps(found))
parser.parse_args()
print(json.dumps({"internet": attempt(lambda: socket.socket() and 1), "write": attempt(lambda: Path("ran").touch())}))
"""


@asynccontextmanager
async def opened(folder: Path, cli: str, mode: int = 0o755, **entry):
    """Open a toolbox with one plugin, with jails for it."""
    plugin = folder / "plugins/look"
    plugin.mkdir(parents=True)
    plugin.chmod(mode)
    (plugin / "cli.py").write_text(f"{ATTEMPT}\n{cli}", encoding="utf-8")
    (plugin / "beside.txt").write_text("beside", encoding="utf-8")
    configuration = {"plugins": "plugins", "providers": {"look": {"env": {"KEY": "${KEY}"}, **entry}}}
    (folder / "toolbox.json").write_text(json.dumps(configuration), encoding="utf-8")
    jail = CommandJail(nsjail=None, home=ROOT / "build/sandbox", image="python")
    environment = {"PATH": os.defpath, "KEY": "the key of the plugin", "OTHER": "the worker's own"}
    async with open_toolbox(
        folder / "toolbox.json", environment=environment, home=folder / "home", confinement=jail
    ) as toolbox:
        yield toolbox


def described(folder: Path, **entry):
    """Open a toolbox with a plugin whose code before the parsing tries to reach what it must not."""
    return opened(folder, f"PARENT = {os.getpid()}\n{ATTEMPTS}", **entry)


@promise("plugins:help-jail")
async def test_what_a_plugin_does_before_it_parses_reaches_nothing_though_its_calls_run_as_the_worker(reachable):
    async with described(reachable) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert catalog.unavailable == {}
        said = catalog.definitions["look.run"].description
        assert {path.name for path in (reachable / "plugins/look").iterdir()} == {"beside.txt", "cli.py"}
        called = (await call(toolbox)).data
    found = json.loads(said.partition("found: ")[2])
    etc, environment = found.pop("etc"), found.pop("environment")
    assert found == {
        "folder": "'beside'",
        "write": "'written'",
        "package": "OSError",
        "scratch": "1",
        "internet": "PermissionError",
        "top": [],
        "kill": "ProcessLookupError",
        "interpreter": sys.executable,
    }
    assert set(etc) <= {"alternatives", "ld.so.cache"}
    assert set(environment) - {"LC_CTYPE"} == {"HOME", "KEY", "LC_ALL", "PATH", "TZ"}
    assert called == {"internet": "1", "write": "None"}
    assert (reachable / "plugins/look/ran").exists()


@promise("plugins:help-jail")
async def test_a_plugin_whose_own_jail_is_false_is_described_as_it_runs(reachable):
    async with described(reachable, jail=False) as toolbox:
        said = (await toolbox.catalog("anyone")).definitions["look.run"].description
    found = json.loads(said.partition("found: ")[2])
    assert found["internet"] == "ConnectionRefusedError"
    assert (reachable / "plugins/look/new.txt").exists()


RESERVING = """
import argparse, json, mmap
reserved = lambda: len(mmap.mmap(-1, 3 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0))
found = attempt(reserved)
argparse.ArgumentParser(description=found).parse_args()
print(json.dumps({"found": found}))
"""


@promise("sandbox:reserved")
async def test_a_plugin_in_a_jail_has_no_address_space_in_which_memory_could_be_hidden(reachable):
    async with opened(reachable, RESERVING, jail=True) as toolbox:
        assert (await call(toolbox)).data == {"found": "OSError"}
        assert (await toolbox.catalog("anyone")).definitions["look.run"].description == "OSError"


@promise("sandbox:reserved")
async def test_a_plugin_that_is_described_in_a_jail_has_no_more_address_space_there(reachable):
    async with opened(reachable, RESERVING) as toolbox:
        assert (await toolbox.catalog("anyone")).definitions["look.run"].description == "OSError"
        assert (await call(toolbox)).data == {"found": str(3 << 30)}


def jailed(folder: Path, mode: int = 0o755):
    """Open a toolbox with a plugin whose calls run in jails."""
    return opened(folder, LOOK, mode, jail=True)


async def call(toolbox, deadline_s=60, **arguments):
    definition = (await toolbox.catalog("anyone")).definitions["look.run"]
    return await toolbox.call(definition, arguments, deadline_s=deadline_s, before_send=intent)


@promise("plugins:jail")
async def test_a_jailed_plugin_sees_its_folder_and_its_variables_and_reaches_nothing_else(reachable):
    async with jailed(reachable) as toolbox:
        catalog = await toolbox.catalog("anyone")
        assert catalog.unavailable == {}
        seen = (await call(toolbox, how="look", value="-5")).data
        failed = await call(toolbox, how="fail")
    environment = seen.pop("environment")
    assert seen == {
        "value": "-5",
        "beside": "beside",
        "write": "OSError",
        "scratch": "1",
        "outside": "FileNotFoundError",
        "internet": "PermissionError",
        "secret": "the key of the plugin",
    }
    assert set(environment) - {"LC_CTYPE"} == {"HOME", "KEY", "LC_ALL", "PATH", "TZ"}
    assert failed.error == "exit code 1: no luck"


def jails_in(folder):
    """Return the processes whose command line names the folder's jail."""
    found = []
    for place in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            if str(folder) in place.read_text(encoding="utf-8"):
                found.append(place.parent.name)
        except OSError:
            continue
    return found


@promise("plugins:jail")
@pytest.mark.thorough
async def test_a_jailed_plugin_that_is_ended_in_the_middle_is_unknown_and_gone(reachable):
    async with jailed(reachable) as toolbox:
        await toolbox.catalog("anyone")
        with pytest.raises(OutcomeUnknown):
            await call(toolbox, how="kill")
        with pytest.raises(OutcomeUnknown) as caught:
            await call(toolbox, how="hang", deadline_s=4)
        assert caught.value.facts["timed_out"]
    assert jails_in(reachable) == []


@promise("plugins:jail")
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's jails read what that user can")
async def test_a_folder_that_a_jail_may_not_read_is_a_reason_and_is_not_run_without_one(tmp_path):
    async with jailed(tmp_path, 0o700) as toolbox:
        catalog = await toolbox.catalog("anyone")
    assert "is closed to user id" in catalog.unavailable["look"]
    assert "chmod o+rx" in catalog.unavailable["look"]


@promise("plugins:help-jail")
async def test_a_plugin_that_opens_its_session_before_it_parses_is_described_and_keeps_its_files(
    reachable, monkeypatch
):
    cli = (
        "import argparse, sqlite3\nfrom pathlib import Path\nPath('logs').mkdir(exist_ok=True)\n"
        "sqlite3.connect('bot.session').execute('create table if not exists said (text)')\n"
        "parser = argparse.ArgumentParser(description='Talk')\nparser.parse_args()\n"
    )
    plugin = reachable / "plugins/look"
    async with described(reachable) as toolbox:
        (plugin / "cli.py").write_text(cli, encoding="utf-8")
        os.mkfifo(plugin / "pipe")
        plugin.chmod(0o700)
        assert (await toolbox.catalog("anyone")).definitions["look.run"].description == "Talk"
        assert not (plugin / "bot.session").exists()
        monkeypatch.setattr("sandbox.isolation.command_jail._MOST_COPIED_BYTES", 10)
        plugin.chmod(0o755)
        (plugin / "cli.py").write_text(f"# {cli}", encoding="utf-8")
        (plugin / "cli.py").write_text(f"{cli}\n", encoding="utf-8")
        assert "Read-only file system" in (await toolbox.catalog("anyone")).unavailable["look"]
