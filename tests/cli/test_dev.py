"""The commands that run the parts: dev and worker."""

import asyncio
import json
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from backstay.errors import SettingsInvalid
from backstay.settings import Settings
from backstay.testing import Reply, ScriptedModel
from gateways.terminal import dev as starting
from gateways.terminal.local import embedded, parts
from gateways.terminal.terminal import Terminal
from tests.cli.commands import BACKSTAY, HOUSE, bare, command, environment_of, forked
from tests.engine import PRICES, Scripts, share_images, toolbox_of
from tests.ports import own_port
from tests.requirements import promise


def descendants_of(folder):
    """Return the processes whose environment or command line names a folder of this test."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            known = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            if str(folder).encode() in known and int(process.name) != os.getpid():
                found.append((int(process.name), (process / "cmdline").read_bytes().replace(b"\0", b" ")[:500]))
    return found


def children(process):
    return [int(pid) for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


async def nothing_left(folder, seconds=100):
    async with asyncio.timeout(seconds):
        while descendants_of(folder):
            await asyncio.sleep(0.1)


class Dev:
    """`backstay dev` that serves a folder, for several tests; if one ends it, the next starts it."""

    def __init__(self, folder, environment, *flags, alone=False):
        self.folder, self.environment = folder, environment
        self.port, self.ui_port, self.page_port = own_port(), own_port(), own_port()
        seen = ("--ui-port", str(self.ui_port), "--page-port", str(self.page_port))
        self.flags = (*flags, "--port", str(self.port), *(("--headless", "--no-page") if alone else seen))
        self.there = {**environment, "TEMPORAL_ADDRESS": f"127.0.0.1:{self.port}"}
        self.process, self.lines, self.starts = None, [], 0

    async def up(self):
        """Start it, unless it runs, and wait for its worker."""
        if self.process is None or self.process.returncode is not None:
            self.lines, self.starts = [], self.starts + 1
            self.process = await asyncio.create_subprocess_exec(
                *(*BACKSTAY, "dev", *self.flags),
                env=self.environment,
                cwd=self.folder,
                stderr=asyncio.subprocess.PIPE,
            )
        await self.says("backstay worker ready:")
        return self.process

    async def says(self, text):
        """Return the last line that holds a text, once there is one."""
        while not (found := [line for line in self.lines if text in line]):
            self.lines += await said(self.process, text)
        return found[-1]

    def toolbox(self, changed=None):
        """Return the toolbox, or write another one."""
        file = Path(self.environment["BACKSTAY_TOOLBOX"])
        return json.loads(file.read_text()) if changed is None else file.write_text(json.dumps(changed))

    async def end(self):
        if self.process is not None:
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        await nothing_left(self.folder)


async def said(process, text, seconds=150):
    """Read until a line holds a text; return all lines up to it."""
    lines = []
    async with asyncio.timeout(seconds):
        while line := (await process.stderr.readline()).decode():
            lines.append(line.rstrip())
            if text in line:
                return lines
    raise AssertionError(f"ended without {text!r}: {lines}")


def with_mailbox(folder, model):
    """Return the environment of a dev that has all its files in one folder, and the mailbox for a tool."""
    return bare(
        BACKSTAY_HOME=str(share_images(folder / "home")),
        BACKSTAY_TOOLBOX=str(toolbox_of(folder, folder / "mailbox.db")),
        BACKSTAY_MODEL="scripted",
        BACKSTAY_PRICES='{"scripted": {"input": 1.0, "cached": 0.1, "output": 4.0}}',
        OPENAI_BASE_URL=model.base_url,
    )


@pytest_asyncio.fixture(scope="module")
async def dev(tmp_path_factory):
    """A dev with Web UI and page, whose model answers."""
    folder, scripts = tmp_path_factory.mktemp("dev"), Scripts()
    async with ScriptedModel(scripts) as model:
        dev = Dev(folder, with_mailbox(folder, model))
        dev.scripts = scripts
        yield dev
        await dev.end()


def refuse(_):
    return Reply(status=401, code="invalid_api_key", text="wrong")


@pytest_asyncio.fixture(scope="module")
async def lone_dev(tmp_path_factory):
    """A dev without Web UI and page: its model refuses every key and has no price, and one of its servers is gone."""
    folder = tmp_path_factory.mktemp("lone")
    async with ScriptedModel(refuse) as model:
        environment = with_mailbox(folder, model)
        del environment["BACKSTAY_PRICES"]
        dev = Dev(folder, environment, alone=True)
        dev.model = model
        known = dev.toolbox()
        dev.toolbox(known | {"mcpServers": known["mcpServers"] | {"gone": {"command": "no-such-program"}}})
        yield dev
        await dev.end()


@promise("clients:reload")
@pytest.mark.thorough
async def test_a_changed_toolbox_is_obeyed_by_another_worker_that_goes_on_with_the_runs(dev, nursery):
    await dev.up()
    write = Reply(calls=[("mail__send_email", {"to": "b@example.com", "subject": "Hi", "body": "Hello"})])
    task = dev.scripts.task(write)["text"]
    name = (await forked(nursery, "run", task, "--detach", environment=dev.there, folder=dev.folder)).out.strip()
    known = dev.toolbox()
    dev.toolbox({"mcpServers": {"mail": {"command": 7}}})
    refused = await dev.says("not obeyed")
    assert refused.startswith("changed     toolbox.json: not obeyed, as ")
    assert "mcpServers.mail.command" in refused
    dev.toolbox(known | {"mcpServers": known["mcpServers"] | {"post": known["mcpServers"]["mail"]}})
    await dev.says("changed     toolbox.json; starting another worker")
    await dev.says("tools       post: ")

    shown = await forked(nursery, "show", name, environment=dev.there, folder=dev.folder)
    async with asyncio.timeout(150):
        while "r1" not in shown.out:
            shown = await forked(nursery, "show", name, environment=dev.there, folder=dev.folder)
    done = await command("approve", name, "r1", environment=dev.there, folder=dev.folder)
    assert done.code == 0, done.err
    ended = await command("attach", name, environment=dev.there, folder=dev.folder)
    assert (ended.code, ended.out) == (0, "done\n"), ended.err


@promise("clients:said")
async def test_a_missing_key_a_missing_toolbox_and_a_wrong_key_are_a_line_each(tmp_path, capsys):
    def lacking(**more):
        return Settings.load(None, home=tmp_path, toolbox=tmp_path / "toolbox.json", **more)

    nothing = lacking()
    starting._say_missing(Terminal(), nothing, has_model=False)
    await starting._ask_model(Terminal(), nothing, has_model=False)
    missing = capsys.readouterr().err.splitlines()
    async with ScriptedModel(refuse) as model:
        given = lacking(openai_base_url=model.base_url, model="scripted")
        await starting._ask_model(Terminal(), given, has_model=False)
    unpriced, refused = capsys.readouterr().err.splitlines()

    assert [line.split()[:2] for line in missing] == [["no", "key"], ["no", "model"], ["no", "tools"]]
    assert "set OPENAI_API_KEY" in missing[0]
    assert "BACKSTAY_MODEL" in missing[1]
    assert "backstay init" in missing[2]
    assert unpriced.startswith("no price    none is known for scripted")
    assert refused.startswith("model       scripted does not answer: the model endpoint says HTTP 401")
    assert "check OPENAI_API_KEY; it says: " in refused
    assert [request["max_completion_tokens"] for request in model.requests] == [1]


@promise("clients:said")
@pytest.mark.thorough
async def test_dev_says_that_the_model_answers(dev):
    await dev.up()

    assert await dev.says("scripted answers") == "model       scripted answers"


@promise("clients:said")
@pytest.mark.thorough
async def test_dev_asks_the_model_for_one_token_and_a_wrong_key_is_one_line(lone_dev):
    await lone_dev.up()
    line = await lone_dev.says("does not answer")

    assert line.startswith("model       scripted does not answer: the model endpoint says HTTP 401")
    assert "check OPENAI_API_KEY; it says: " in line
    assert [request["max_completion_tokens"] for request in lone_dev.model.requests] == [1] * lone_dev.starts
    assert not any(line.startswith(("no key", "no model")) for line in lone_dev.lines)


@promise("clients:said")
@pytest.mark.thorough
async def test_dev_names_a_server_that_is_gone_and_a_model_without_a_price(lone_dev):
    await lone_dev.up()
    gone, price = await lone_dev.says("no tools    gone: "), await lone_dev.says("no price")

    assert gone.endswith("the command 'no-such-program' was not found; install it or correct `command`")
    assert """set BACKSTAY_PRICES='{"scripted": {"input": 1.0, "output": 4.0}}' (USD for 1M tokens)""" in price
    assert price.endswith("or run with --budget.no-max-llm-cost-usd")
    assert (await lone_dev.says("tools       mail: ")).startswith("tools       mail: ")


@promise("clients:cli-dev")
@pytest.mark.thorough
async def test_nothing_is_left_when_dev_itself_is_killed_and_a_dead_worker_is_replaced(lone_dev):
    process = await lone_dev.up()
    worker_of = descendants_of(lone_dev.folder)
    (first,) = [pid for pid, line in worker_of if b"worker.py" in line and pid in children(process)]
    os.kill(first, signal.SIGKILL)
    await lone_dev.says("the worker ended with -9")
    # That line holds what the dead worker said last, such as that it is ready.
    lone_dev.lines.clear()
    assert (await lone_dev.says("backstay worker ready:")).startswith("backstay worker ready:")
    process.kill()
    await process.wait()
    await nothing_left(lone_dev.folder)


@promise("clients:port")
async def test_a_taken_port_names_its_holder(nursery, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done, ui, page = [
            await forked(nursery, "dev", *flags, environment=bare(), folder=tmp_path)
            for flags in (
                ("--port", str(port)),
                ("--port", str(own_port()), "--ui-port", str(port)),
                ("--port", str(own_port()), "--headless", "--page-port", str(port)),
            )
        ]

    assert (done.code, ui.code, page.code) == (2, 2, 2)
    assert f"--port: port {port} is taken by process {os.getpid()} (" in done.err
    assert f"--ui-port: port {port} is taken by process {os.getpid()} (" in ui.err
    assert f"--page-port: port {port} is taken by process {os.getpid()} (" in page.err


@promise("clients:reason")
async def test_dev_ends_with_the_workers_reason_when_it_cannot_start_at_all(nursery, tmp_path):
    (tmp_path / "toolbox.json").write_text('{"mcpServers": 7}', encoding="utf-8")
    done = await forked(
        *(nursery, "dev", "--port", str(own_port()), "--headless", "--no-page"),
        environment=bare(BACKSTAY_HOME=str(tmp_path / "home"), BACKSTAY_TRUSTED=str(tmp_path)),
        folder=tmp_path,
    )

    assert done.code == 2
    assert "mcpServers" in done.err
    await nothing_left(tmp_path)


@promise("clients:said")
@pytest.mark.thorough
async def test_dev_starts_without_any_file_and_says_in_three_lines_what_is_missing(nursery, tmp_path):
    port = own_port()
    environment = bare(XDG_STATE_HOME=str(tmp_path / "state"))
    share_images(tmp_path / ".backstay")
    process = await asyncio.create_subprocess_exec(
        *(*BACKSTAY, "dev", "--port", str(port), "--headless", "--no-page"),
        env={**environment, "BACKSTAY_TRUSTED": str(tmp_path)},
        cwd=tmp_path,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        lines = await said(process, "backstay worker ready:")
        found = {**environment, "BACKSTAY_TRUSTED": str(tmp_path), "TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}
        done = await forked(nursery, "run", "Do it.", environment=found, folder=tmp_path)
        process.terminate()
        await asyncio.wait_for(process.communicate(), 150)
        await nothing_left(tmp_path)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

    assert process.returncode == 0
    missing = [line for line in lines if line.startswith("no ")]
    assert [line.split()[1] for line in missing] == ["key", "model", "tools"]
    assert "set OPENAI_API_KEY" in missing[0]
    assert "BACKSTAY_MODEL" in missing[1]
    assert "backstay init" in missing[2]
    assert done.code == 1
    assert "OPENAI_API_KEY: the worker has no key" in done.err.splitlines()[-1]
    assert "approval.asked" not in done.err


@promise("clients:cli-worker")
async def test_the_worker_command_serves_without_a_safe_path_and_drains_on_sigterm(opened, tmp_path):
    environment = environment_of(
        opened,
        BACKSTAY_TASK_QUEUE="a queue of its own",
        BACKSTAY_HOME=str(share_images(tmp_path / "home")),
        BACKSTAY_PRICES=str(PRICES).replace("'", '"'),
        PYTHONSAFEPATH="1",
    )
    process = await asyncio.create_subprocess_exec(
        *BACKSTAY, "worker", env=environment, cwd=HOUSE, stderr=asyncio.subprocess.PIPE
    )
    try:
        lines = await said(process, "backstay worker ready:")
        process.terminate()
        code = await asyncio.wait_for(process.wait(), 150)
    finally:
        with suppress(ProcessLookupError):
            process.kill()

    assert (code, "a queue of its own" in lines[-1]) == (0, True)


@promise("clients:dev-faults")
async def test_a_temporal_that_ends_before_it_answers_is_started_once_more(tmp_path, monkeypatch):
    marks = tmp_path / "started"
    stand_in = tmp_path / "temporal"
    stand_in.write_text(
        f'#!/bin/sh\necho >> {marks}\nif [ "$(wc -l < {marks})" -ne 2 ]; then echo no port; exit 2; fi\n'
        f'exec {embedded.temporal_binary()} "$@"\n'
    )
    stand_in.chmod(0o700)
    monkeypatch.setattr(embedded, "temporal_binary", lambda: str(stand_in))
    where = {"database": tmp_path / "temporal.db", "log": tmp_path / "temporal.log", "environment": os.environ}

    server = await embedded.start_temporal(port=own_port(), ui_port=None, **where)
    await server.stop(5)
    assert marks.read_text() == "\n" * 2

    with pytest.raises(SettingsInvalid, match="it said: no port"):
        await embedded.start_temporal(port=own_port(), ui_port=None, **where)
    assert marks.read_text() == "\n" * 4


@promise("clients:dev-own-server")
async def test_a_server_of_others_that_takes_the_port_is_never_taken_for_the_own(tmp_path):
    def place(name):
        return {"database": tmp_path / name, "log": tmp_path / f"{name}.log", "environment": os.environ}

    port = own_port()
    other = await embedded.start_temporal(port=port, ui_port=None, **place("other"))
    try:
        with pytest.raises(SettingsInvalid, match=f"does not answer at 127.0.0.1:{port}"):
            await embedded.start_temporal(port=port, ui_port=None, **place("own"))
    finally:
        await other.stop(5)


@promise("clients:dev-database")
async def test_only_the_files_of_the_database_are_closed_to_others(tmp_path, monkeypatch):
    def refuse():
        raise SettingsInvalid("not here")

    monkeypatch.setattr(embedded, "temporal_binary", refuse)
    own = [tmp_path / f"data{end}" for end in ("", "-wal", "-shm", "-journal", ".lock")]
    strange = [tmp_path / name for name in ("data.txt", "database.py")]
    for file in (*own, *strange):
        file.write_text("", encoding="utf-8")
        file.chmod(0o644)
    (tmp_path / "data-shared").mkdir()
    (tmp_path / "data-shared").chmod(0o755)

    with pytest.raises(SettingsInvalid, match="not here"):
        await embedded.start_temporal(
            port=0, ui_port=None, database=own[0], log=tmp_path / "temporal.log", environment={}
        )

    assert {file.stat().st_mode & 0o777 for file in own} == {0o600}
    assert {file.stat().st_mode & 0o777 for file in strange} == {0o644}
    assert (tmp_path / "data-shared").stat().st_mode & 0o777 == 0o755


@promise("clients:dev-opens")
def test_the_page_is_opened_by_a_file_that_only_its_user_can_read(tmp_path, monkeypatch):
    started = tmp_path / "started"
    browser = tmp_path / "browser.sh"
    browser.write_text(f'#!/bin/sh\necho "$1" >> {started}\n', encoding="utf-8")
    browser.chmod(0o755)
    monkeypatch.setattr("webbrowser._tryorder", None)
    monkeypatch.setenv("BROWSER", f"{browser} %s")
    file, link = tmp_path / "page.html", "http://127.0.0.1:8234/link/2.secret"

    parts._open_in_browser(file, link)

    assert started.read_text(encoding="utf-8").splitlines() == [file.as_uri()]
    assert (file.stat().st_mode & 0o777, link in file.read_text(encoding="utf-8")) == (0o600, True)
