"""Parts are replaced when their files change, and go on where the change cannot be used."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.variables import environment
from gateways.terminal.local import keeping, reloading
from gateways.terminal.local.keeping import KeptPart
from gateways.terminal.local.reloading import Watch, fault_of, watch_of
from gateways.terminal.terminal import Terminal
from opening import require_files
from system.child import Child
from tests.cli.commands import bare, forked
from tests.requirements import promise

PART = """
import os, signal, sys, time
said = open(sys.argv[1]).read()
if said == "broken":
    sys.exit("no such tool")
def drain(*_):
    time.sleep(0.5)
    os.write(1, f"drained {said}\\n".encode())
    os._exit(0)
signal.signal(signal.SIGTERM, drain)
print(f"ready: {said} {os.getpid()}", flush=True)
time.sleep(1000)
"""
"""A part that is ready with what its file says, or ends because of it; its work takes a moment to end."""


class Said(Terminal):
    """Keep what is said."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def say(self, text, style=None):
        self.lines.append(text)


class Kept:
    """A part that is kept, with the file that it reads."""

    def __init__(self, folder, *, together):
        self.file, self.folder = folder / "policy.yaml", folder
        self.file.write_text("one")
        self.terminal, self.heard, self.ready = Said(), [], []
        watch = Watch(lambda: [self.file], lambda: self.fault)
        self.fault = ""
        self.part = KeptPart(self.terminal, self.start, self.ready.append, watch, together=together)

    async def start(self):
        command = (sys.executable, "-c", PART, str(self.file))
        log, hear = self.folder / "part.log", self.heard.append
        return await Child.start("part", command, environment={}, log=log, ready="ready:", heard=hear)

    async def until(self, found):
        async with asyncio.timeout(60):
            while not found():
                await asyncio.sleep(0.02)


def exists(pid):
    return Path(f"/proc/{pid}").exists()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(reloading, "LOOK_S", 0.1)
    # Only what is replaced has longer, and the work of a part takes longer than this.
    monkeypatch.setattr(keeping, "DRAIN_S", 0.1)


@pytest.fixture(params=[True, False], ids=["together", "one after the other"])
async def kept(request, tmp_path):
    kept = Kept(tmp_path, together=request.param)
    running = asyncio.create_task(kept.part.run())
    await kept.until(lambda: kept.ready)
    yield kept, request.param
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    pids = [line.split()[2] for line in kept.heard if line.startswith("ready:")]
    assert [pid for pid in pids if exists(pid)] == []


@promise("clients:reload-drain")
async def test_a_change_leads_to_another_part_and_the_old_one_ends_its_work(kept):
    kept, together = kept
    kept.file.write_text("two")
    await kept.until(lambda: len(kept.ready) == 2 and "drained one" in kept.heard)
    assert "changed     policy.yaml; starting another part" in kept.terminal.lines
    order = [line.split()[0] + line.split()[1] for line in kept.heard]
    assert (order.index("ready:two") < order.index("drainedone")) is together
    kept.file.unlink()
    kept.file.write_text("three")
    await kept.until(lambda: len(kept.ready) == 3 and "drained two" in kept.heard)


@promise("clients:reload")
async def test_what_keeps_a_part_from_starting_leaves_the_old_one_where_both_can_run(tmp_path):
    kept = Kept(tmp_path, together=True)
    running = asyncio.create_task(kept.part.run())
    await kept.until(lambda: kept.ready)
    kept.file.write_text("broken")
    await kept.until(lambda: any("goes on with what it read before" in line for line in kept.terminal.lines))
    assert kept.terminal.lines[-1] == "the part goes on with what it read before: no such tool"
    kept.file.write_text("two")
    await kept.until(lambda: len(kept.ready) == 2)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert {"drained one", "drained two"} <= {*kept.heard}


@promise("clients:reload-drain")
async def test_a_signal_while_the_old_part_ends_its_work_leaves_it_the_time(tmp_path):
    kept = Kept(tmp_path, together=False)
    running = asyncio.create_task(kept.part.run())
    await kept.until(lambda: kept.ready)
    kept.file.write_text("two")
    await kept.until(lambda: kept.terminal.lines)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert kept.heard[1:] == ["drained one"]


@promise("workers:away")
async def test_a_part_that_a_server_does_not_answer_at_first_is_started_again(tmp_path):
    kept = Kept(tmp_path, together=True)
    kept.file.write_text("broken")
    running = asyncio.create_task(kept.part.run())
    await kept.until(lambda: kept.terminal.lines)
    kept.file.write_text("two")
    await kept.until(lambda: kept.ready)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert kept.terminal.lines[0] == "the part ended with 1: no such tool; starting another in 1 s"


@promise("clients:reload")
async def test_what_may_not_be_obeyed_starts_nothing(tmp_path):
    kept = Kept(tmp_path, together=True)
    kept.fault = "it is open to others"
    running = asyncio.create_task(kept.part.run())
    await kept.until(lambda: kept.ready)
    kept.file.write_text("two")
    await kept.until(lambda: kept.terminal.lines)
    assert kept.terminal.lines == ["changed     policy.yaml: not obeyed, as it is open to others"]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert [line.split()[1] for line in kept.heard if "ready" in line] == ["one"]


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toolbox.json").write_text('{"python": {"own": {"module": "own.py"}}, "safety": ["checks/"]}')
    (tmp_path / "policy.yaml").write_text("default: {read_only: allow}")
    (tmp_path / "own.py").write_text("")
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "__init__.py").write_text("")
    (tmp_path / "definitions").mkdir()
    files = {"toolbox": tmp_path / "toolbox.json", "policy": tmp_path / "policy.yaml"}
    return Settings.load(None, home=tmp_path / "home", definitions=tmp_path / "definitions", **files)


@promise("clients:reload")
async def test_every_file_that_a_worker_reads_is_watched(settings, tmp_path):
    for file in (
        "toolbox.json",
        "policy.yaml",
        "own.py",
        "checks/__init__.py",
        "checks/more.py",
        "definitions/new.yaml",
    ):
        changing = asyncio.create_task(watch_of(settings).changed())
        await asyncio.sleep(0)
        with (tmp_path / file).open("a") as opened:
            opened.write("\n")
        changed, _ = await asyncio.wait_for(changing, 30)
        assert changed == [tmp_path / file]


@promise("clients:reload")
async def test_a_folder_that_cannot_be_listed_just_now_ends_no_watch(tmp_path):
    file, away = tmp_path / "policy.yaml", []
    file.write_text("one")

    def files():
        if away:
            raise PermissionError(away.pop())
        return [file]

    watch = Watch(files, lambda: "")
    away += ["now", "and then"]
    changing = asyncio.create_task(watch.changed())
    await asyncio.sleep(0)
    file.write_text("two")
    assert await asyncio.wait_for(changing, 30) == ([file], "")


@promise("clients:reload")
def test_files_that_others_could_write_and_that_say_nonsense_are_not_obeyed(settings, tmp_path):
    policy = tmp_path / "policy.yaml"
    assert fault_of(settings) == ""
    policy.chmod(0o666)
    assert "can be written by every user of this machine; run: chmod o-w" in fault_of(settings)
    with pytest.raises(SettingsInvalid, match=r"policy\.yaml can be written by every user"):
        require_files(settings)
    policy.chmod(0o644)
    tmp_path.chmod(0o777)
    assert f"chmod o-w {tmp_path}; where that changes nothing, as on a Windows drive, move it" in fault_of(settings)
    tmp_path.chmod(0o755)
    room = settings.home / "workspaces" / "a"
    room.mkdir(parents=True)
    (room / "policy.yaml").write_text(policy.read_text())
    policy.unlink()
    policy.symlink_to(room / "policy.yaml")
    assert "lies in the folder of workspaces" in fault_of(settings)
    policy.unlink()
    policy.write_text("defualt: {}")
    assert "defualt" in fault_of(settings)


@promise("clients:reload-unforeseen")
@pytest.mark.parametrize(
    ("broken", "error", "said"),
    [
        ("opening.require_files", KeyError("maybe"), "they cannot be read: KeyError: 'maybe'"),
        ("opening.require_files", PermissionError(13, "Permission denied", "/x"), "PermissionError: [Errno 13]"),
        ("toolbox.configuration.load.load", PermissionError(13, "Permission denied", "/x"), "Permission denied: '/x'"),
    ],
)
async def test_a_fault_that_nobody_foresaw_is_named_and_ends_no_watch(
    settings, tmp_path, monkeypatch, broken, error, said
):
    def refuse(*_, **__):
        raise error

    watch = watch_of(settings)
    changing = asyncio.create_task(watch.changed())
    await asyncio.sleep(0)
    monkeypatch.setattr(broken, refuse)
    (tmp_path / "toolbox.json").write_text("{}")

    files, fault = await asyncio.wait_for(changing, 30)

    assert tmp_path / "toolbox.json" in files
    assert said in fault


@promise("workers:open-settings")
@pytest.mark.parametrize("name", [".env", "held/BACKSTAY_MODEL"])
def test_settings_that_others_could_write_are_not_obeyed(tmp_path, monkeypatch, name):
    for variable in environment(None):
        if variable.upper().startswith(("BACKSTAY_", "OPENAI_")):
            monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BACKSTAY_TRUSTED", str(tmp_path))
    (tmp_path / "held").mkdir()
    for file in (tmp_path / ".env", tmp_path / "held/BACKSTAY_MODEL"):
        file.write_text("")
        file.chmod(0o644)
    monkeypatch.setenv("BACKSTAY_SECRET_FILES", str(tmp_path / "held"))
    require_files(Settings.load())
    (tmp_path / name).chmod(0o666)
    refused = f"{name} can be written by every user of this machine; run: chmod o-w {tmp_path / name}"
    assert refused in fault_of(Settings.load())
    with pytest.raises(SettingsInvalid, match=re.escape(refused)):
        require_files(Settings.load())


@promise("clients:reload")
@pytest.mark.thorough
async def test_the_command_refuses_the_role_without_files_and_says_why_its_worker_cannot_start(nursery, tmp_path):
    environment = bare(BACKSTAY_HOME=str(tmp_path / "home"), BACKSTAY_TOOLBOX=str(tmp_path / "nowhere.json"))
    refused = await forked(nursery, "worker", "--reload", "--role", "sandbox", environment=environment, folder=tmp_path)
    assert (refused.code, "--reload: the sandbox role reads no file" in refused.err) == (2, True)
    ended = await forked(nursery, "worker", "--reload", environment=environment, folder=tmp_path)
    assert (ended.code, "nowhere.json" in ended.err.splitlines()[-1]) == (2, True)
