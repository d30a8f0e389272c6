"""The commands that run the parts: dev and worker."""

import asyncio
import os
import signal
import socket
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

from backstay.cli.local import embedded
from backstay.cli.local.ports import free_port
from backstay.errors import SettingsInvalid
from backstay.testing import Reply, ScriptedModel
from tests.cli.commands import BACKSTAY, HOUSE, bare, command, environment_of
from tests.engine import PRICES, Scripts, share_images, toolbox_of


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


async def nothing_left(folder, seconds=20):
    async with asyncio.timeout(seconds):
        while descendants_of(folder):
            await asyncio.sleep(0.1)


@asynccontextmanager
async def dev(folder, *flags, **more):
    """Start `backstay dev` with all its files in a folder of this test; end it by its own id.

    The page is served where a test names its port.
    """
    flags = flags if "--page-port" in flags else (*flags, "--no-page")
    environment = bare(
        BACKSTAY_HOME=str(share_images(folder / "home")),
        BACKSTAY_TOOLBOX=str(toolbox_of(folder, folder / "mailbox.db")),
        BACKSTAY_MODEL="scripted",
        BACKSTAY_PRICES='{"scripted": {"input": 1.0, "cached": 0.1, "output": 4.0}}',
        **more,
    )
    process = await asyncio.create_subprocess_exec(
        *BACKSTAY, "dev", *flags, env=environment, cwd=folder, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield process, environment
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await nothing_left(folder)


async def said(process, text, seconds=50):
    """Read until a line holds a text; return all lines up to it."""
    lines = []
    async with asyncio.timeout(seconds):
        while line := (await process.stderr.readline()).decode():
            lines.append(line.rstrip())
            if text in line:
                return lines
    raise AssertionError(f"ended without {text!r}: {lines}")


async def test_dev_brings_temporal_a_web_ui_and_a_worker_and_ctrl_c_ends_all_of_them(tmp_path):
    scripts = Scripts()
    task = scripts.task(Reply(calls=[("mail__list_customers", {"limit": 1})]))
    port, ui_port = free_port(), free_port()
    async with (
        ScriptedModel(scripts) as model,
        dev(tmp_path, "--port", str(port), "--ui-port", str(ui_port), OPENAI_BASE_URL=model.base_url) as (
            process,
            environment,
        ),
    ):
        lines = await said(process, "backstay worker ready:")
        _, writer = await asyncio.open_connection("127.0.0.1", ui_port)
        writer.close()
        done = await command(
            "run", task["text"], environment={**environment, "TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}, folder=tmp_path
        )
        process.send_signal(signal.SIGINT)
        code = await asyncio.wait_for(process.wait(), 30)
        await nothing_left(tmp_path)

    assert f"Temporal    127.0.0.1:{port}, namespace default" in lines
    assert f"Web UI      http://127.0.0.1:{ui_port}/namespaces/default/workflows" in lines
    assert f"elsewhere   export TEMPORAL_ADDRESS=127.0.0.1:{port}" in lines
    assert (done.code, done.out) == (0, "done\n")
    assert code == 0
    assert (tmp_path / "home" / "temporal.db").is_file()


async def test_dev_serves_the_page_lets_the_person_in_who_sits_here_and_runs_lead_there(tmp_path):
    scripts = Scripts()
    task = scripts.task(Reply(calls=[("mail__send_email", {"to": "a@example.com", "subject": "Hi", "body": "Hello"})]))
    port, page_port = free_port(), free_port()
    flags = ("--port", str(port), "--headless", "--page-port", str(page_port))
    async with (
        ScriptedModel(scripts) as model,
        dev(tmp_path, *flags, OPENAI_BASE_URL=model.base_url) as (process, environment),
        httpx2.AsyncClient(follow_redirects=True, timeout=30) as person,
    ):
        lines = await said(process, "for 12 hours; another link: backstay web link")
        (link,) = [line.split()[1] for line in lines if line.startswith("page ")]
        if not any("backstay worker ready:" in line for line in lines):
            await said(process, "backstay worker ready:")
        there = {**environment, "TEMPORAL_ADDRESS": f"127.0.0.1:{port}"}
        begun = await command("run", task["text"], "--detach", environment=there, folder=tmp_path)
        name = begun.out.strip()
        shown = await command("show", name, environment=there, folder=tmp_path)
        async with asyncio.timeout(40):
            while f"/requests/{name}/r1" not in shown.out:
                shown = await command("show", name, environment=there, folder=tmp_path)
        inbox = await person.get(link)
        run = await person.get(f"http://127.0.0.1:{page_port}/runs/{name}")
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 30)
        await nothing_left(tmp_path)

    assert link.startswith(f"http://127.0.0.1:{page_port}/link/")
    assert f"  http://127.0.0.1:{page_port}/requests/{name}/r1" in shown.out.splitlines()
    assert (inbox.status_code, run.status_code, code) == (200, 200, 0)
    assert "May the run" in run.text


async def test_nothing_is_left_when_dev_itself_is_killed_and_a_dead_worker_is_replaced(tmp_path):
    async with dev(tmp_path, "--port", str(free_port()), "--headless") as (process, _):
        await said(process, "backstay worker ready:")
        (first,) = [pid for pid, line in descendants_of(tmp_path) if b"worker.py" in line and pid in children(process)]
        os.kill(first, signal.SIGKILL)
        lines = await said(process, "backstay worker ready:")
        process.kill()
        await process.wait()
        await nothing_left(tmp_path)

    assert any("the worker ended with -9" in line for line in lines)


async def test_a_taken_port_names_its_holder(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]
        done = await command("dev", "--port", str(port), environment=bare(), folder=tmp_path)
        ui = await command(
            "dev", "--port", str(free_port()), "--ui-port", str(port), environment=bare(), folder=tmp_path
        )
        flags = ("--port", str(free_port()), "--headless", "--page-port", str(port))
        page = await command("dev", *flags, environment=bare(), folder=tmp_path)

    assert (done.code, ui.code, page.code) == (2, 2, 2)
    assert f"--port: port {port} is taken by process {os.getpid()} (" in done.err
    assert f"--ui-port: port {port} is taken by process {os.getpid()} (" in ui.err
    assert f"--page-port: port {port} is taken by process {os.getpid()} (" in page.err


async def test_dev_ends_with_the_workers_reason_when_it_cannot_start_at_all(tmp_path):
    (tmp_path / "toolbox.json").write_text('{"mcpServers": 7}', encoding="utf-8")
    done = await command(
        "dev",
        "--port",
        str(free_port()),
        "--headless",
        "--no-page",
        environment=bare(BACKSTAY_HOME=str(tmp_path / "home"), BACKSTAY_TRUSTED=str(tmp_path)),
        folder=tmp_path,
    )

    assert done.code == 2
    assert "mcpServers" in done.err
    await nothing_left(tmp_path)


async def test_dev_starts_without_any_file_and_says_in_three_lines_what_is_missing(tmp_path):
    port = free_port()
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
        done = await command("run", "Do it.", environment=found, folder=tmp_path)
    finally:
        process.terminate()
        await process.wait()

    missing = [line for line in lines if line.startswith("no ")]
    assert [line.split()[1] for line in missing] == ["key", "model", "tools"]
    assert "set OPENAI_API_KEY" in missing[0]
    assert "BACKSTAY_MODEL" in missing[1]
    assert "backstay init" in missing[2]
    assert done.code == 1
    assert "OPENAI_API_KEY: the worker has no key" in done.err.splitlines()[-1]
    assert "approval.asked" not in done.err


async def test_dev_asks_the_model_for_one_token_and_a_wrong_key_is_one_line(tmp_path):
    refusing = [Reply(status=401, code="invalid_api_key", text="wrong")]
    async with (
        ScriptedModel(refusing) as model,
        dev(tmp_path, "--port", str(free_port()), "--headless", OPENAI_BASE_URL=model.base_url) as (process, _),
    ):
        lines = await said(process, "does not answer")

    assert lines[-1].startswith("model       scripted does not answer: the model endpoint says HTTP 401")
    assert lines[-1].endswith("check OPENAI_API_KEY")
    assert [request["max_completion_tokens"] for request in model.requests] == [1]
    assert not any(line.startswith("no ") for line in lines)


async def test_dev_says_that_the_model_answers(tmp_path):
    async with (
        ScriptedModel([Reply(text="H")]) as model,
        dev(tmp_path, "--port", str(free_port()), "--headless", OPENAI_BASE_URL=model.base_url) as (process, _),
    ):
        lines = await said(process, "scripted answers")

    assert lines[-1] == "model       scripted answers"


async def test_the_worker_command_serves_without_a_safe_path_and_drains_on_sigterm(opened, tmp_path):
    environment = environment_of(
        opened,
        BACKSTAY_TASK_QUEUE="a queue of its own",
        BACKSTAY_HOME=str(tmp_path),
        BACKSTAY_PRICES=str(PRICES).replace("'", '"'),
        PYTHONSAFEPATH="1",
    )
    process = await asyncio.create_subprocess_exec(
        *BACKSTAY, "worker", env=environment, cwd=HOUSE, stderr=asyncio.subprocess.PIPE
    )
    try:
        lines = await said(process, "backstay worker ready:")
        process.terminate()
        code = await asyncio.wait_for(process.wait(), 45)
    finally:
        with suppress(ProcessLookupError):
            process.kill()

    assert (code, "a queue of its own" in lines[-1]) == (0, True)


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

    server = await embedded.start_temporal(port=free_port(), ui_port=None, **where)
    await server.stop(5)
    assert marks.read_text() == "\n" * 2

    with pytest.raises(SettingsInvalid, match="it said: no port"):
        await embedded.start_temporal(port=free_port(), ui_port=None, **where)
    assert marks.read_text() == "\n" * 4
