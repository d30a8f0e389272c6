"""The demo, as a newcomer runs it: at a terminal, without one, and with the worker killed during it."""

import asyncio
import os
import re
import signal
import sqlite3
import sys
import uuid
from contextlib import asynccontextmanager, closing, suppress

import pytest
import pytest_asyncio

from tests.cli.commands import HOUSE, at_terminal, bare
from tests.cli.test_dev import nothing_left
from tests.engine import share_images
from tests.requirements import promise

DEMO = (sys.executable, "-m", "examples.demo")
OVERDUE = (HOUSE / "examples/mailbox/overdue.sql").read_text(encoding="utf-8")


@asynccontextmanager
async def demo(folder, *flags, **more):
    """Start the demo without a terminal; end it by its own id."""
    process = await asyncio.create_subprocess_exec(
        *DEMO,
        "--home",
        str(share_images(folder / "demo")),
        *flags,
        cwd=HOUSE,
        env=bare(**more),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await nothing_left(folder)


def mailbox(folder, query, **values):
    with closing(sqlite3.connect(folder / "demo" / "mailbox.db")) as connection:
        return connection.execute(query, values).fetchall()


def overdue(folder):
    """Ask the mailbox's own database whom the demo must write to, and about how much."""
    today = mailbox(folder, "SELECT date(at) FROM requests ORDER BY id LIMIT 1")[0][0]
    rows = mailbox(folder, OVERDUE, today=today, days=60)
    return sorted(row[0] for row in rows), sum(row[2] for row in rows)


def assert_every_mail_was_sent_once(folder):
    recipients, _ = overdue(folder)
    assert sorted(row[0] for row in mailbox(folder, "SELECT recipient FROM sent")) == recipients
    assert mailbox(folder, "SELECT count(*) FROM requests WHERE tool = 'send_email'") == [(len(recipients),)]


@pytest_asyncio.fixture(scope="module")
async def crashed(tmp_path_factory):
    """Run the demo whose worker is killed, without a terminal; yields its folder, its exit code and what it said."""
    folder = tmp_path_factory.mktemp("crashed")
    async with demo(folder, "--crash") as process:
        out, err = (text.decode() for text in await asyncio.wait_for(process.communicate(), 300))
        yield folder, process.returncode, out, err


@promise("demo:no-terminal")
@pytest.mark.soak
@pytest.mark.timeout(400)
def test_without_a_terminal_the_demo_approves_by_itself_says_so_and_ends(crashed):
    folder, code, out, err = crashed
    _, total = overdue(folder)
    assert code == 0, err
    assert "SCRIPTED" in err
    assert "approved r1 without asking: there is no terminal to ask at" in err
    assert f"EUR {total:,.2f} is overdue" in out
    # Nothing is up any more that an undo or a look would need.
    assert "There is no terminal, so the demo stops here, with its Temporal." in err
    assert "Start it at a terminal to look at the run afterwards and to undo it." in err
    assert re.search(r"Look at it|Undo it|backstay undo", out + err) is None


@promise("demo:crash")
@pytest.mark.thorough
@pytest.mark.timeout(400)
def test_without_a_terminal_a_worker_that_is_killed_during_the_sending_sends_nothing_twice(crashed):
    folder, code, out, err = crashed
    assert code == 0, err
    assert_killed_amid_the_sending(err)
    assert "Reminders sent: " in out
    assert "every e-mail was sent once" in err
    assert_every_mail_was_sent_once(folder)


def assert_killed_amid_the_sending(said):
    assert re.search(r"kill -9 \d+: the worker is dead; 3 mails are out", said)
    assert "effect.unknown" in said
    assert "the declared check says it happened" in said


async def seen_at_a_terminal(folder, *flags):
    """Approve at a terminal and undo what was done; return what was shown up to then, and all of it."""
    demonstration = (*DEMO, "--home", str(share_images(folder / "demo")), *flags)
    async with at_terminal(*demonstration, environment=bare(), folder=HOUSE) as terminal:
        await terminal.shows("[d]etach?")
        assert mailbox(folder, "SELECT count(*) FROM sent") == [(0,)]
        terminal.type("a")
        shown = await terminal.shows("Everything stays up until you press Enter")
        assert_every_mail_was_sent_once(folder)
        (told,) = re.findall(r"Undo it:  (.*)", shown)
        # As in a checkout whose demo has run in its usual home, and which nobody has trusted.
        checkout = folder / "checkout"
        (checkout / ".backstay").mkdir(parents=True)
        (checkout / ".venv").symlink_to(HOUSE / ".venv")
        given = {"cwd": checkout, "env": bare() | {"PYTHONPATH": str(HOUSE)}}
        undo = await asyncio.create_subprocess_shell(told, **given, stderr=asyncio.subprocess.DEVNULL)
        assert await asyncio.wait_for(undo.wait(), 150) == 0
        terminal.type("")
        recalled = await terminal.shows("every e-mail was sent once")
        code, _ = await terminal.ended()
    await nothing_left(folder)
    assert code == 0
    return shown, recalled


@pytest_asyncio.fixture(scope="module")
async def crashed_at_a_terminal(tmp_path_factory):
    """Play the demo whose worker is killed at a terminal; yields its folder, what was shown, and all of it."""
    folder = tmp_path_factory.mktemp("terminal")
    yield folder, *await seen_at_a_terminal(folder, "--crash")


@promise("demo:crash")
@pytest.mark.timeout(400)
def test_at_a_terminal_a_worker_that_is_killed_during_the_sending_sends_nothing_twice(crashed_at_a_terminal):
    _, shown, _ = crashed_at_a_terminal
    assert_killed_amid_the_sending(shown)


@promise("demo:first-step")
@pytest.mark.timeout(400)
def test_at_a_terminal_the_demo_asks_once_and_stays_up_until_it_was_undone(crashed_at_a_terminal):
    assert_undone(*crashed_at_a_terminal)


@promise("demo:first-step")
@pytest.mark.thorough
async def test_the_demo_without_a_kill_asks_once_and_stays_up_until_it_was_undone(tmp_path):
    assert_undone(tmp_path, *await seen_at_a_terminal(tmp_path))


def assert_undone(folder, shown, recalled):
    count = len(overdue(folder)[0])
    # It had asked once before.
    assert "[d]etach?" not in shown
    assert re.search(rf"{count} changes made; undo them with: backstay undo task-", shown)
    assert re.search(r"Look at it: +http://127\.0\.0\.1:\d+/namespaces/default/workflows/task-", shown)
    assert recalled.count("sent 1, recalled 1") == count


@pytest_asyncio.fixture(scope="module")
async def waiting(nursery, tmp_path_factory):
    """A demo whose model does not answer, so that it stays at its beginning; yields its folder and its process."""
    folder = tmp_path_factory.mktemp("waiting")
    child = await forked_demo(nursery, folder, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    try:
        async with asyncio.timeout(150):
            while "watch it" not in child.said():
                assert not child.died.done(), child.said()
                await asyncio.sleep(0.05)
        yield folder, child
    finally:
        await child.end()
        await nothing_left(folder)


async def forked_demo(nursery, folder, **more):
    """Start the demo without a terminal, as a fork of what has imported its parts already."""
    arguments = ("--home", str(share_images(folder / "demo")))
    log = folder / f"{uuid.uuid4().hex}.log"
    return await nursery.raised("examples.demo", *arguments, environment=bare(**more), folder=HOUSE, log=log)


@promise("demo:real-model")
@pytest.mark.soak
def test_with_a_model_of_ones_own_the_demo_uses_that_and_does_not_call_it_scripted(waiting):
    folder, child = waiting
    assert "from OPENAI_API_KEY and OPENAI_BASE_URL" in child.said()
    assert "SCRIPTED" not in child.said()
    assert [file.name for file in (folder / "demo" / "logs").glob("model*")] == []


@promise("demo:alone")
async def test_two_demos_do_not_share_a_folder(waiting, nursery):
    folder, first = waiting
    second = await forked_demo(nursery, folder)

    assert await second.ended(150) == 2
    assert "another demo uses" in second.said()
    assert not first.died.done()


@promise("demo:ctrl-c")
async def test_ctrl_c_ends_the_demo_and_leaves_no_process(waiting):
    folder, child = waiting
    child.kill(signal.SIGINT)
    code = await asyncio.wait_for(asyncio.shield(child.died), 150)
    await nothing_left(folder)

    assert code == 130


@promise("demo:ctrl-c")
@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_however_the_demo_is_ended_no_process_is_left(tmp_path, number):
    async with demo(tmp_path) as process:
        async with asyncio.timeout(150):
            while b"watch it" not in await process.stderr.readline():
                pass
        os.kill(process.pid, number)
        code = await asyncio.wait_for(process.wait(), 150)
        await nothing_left(tmp_path)

    assert code == (-signal.SIGKILL if number is signal.SIGKILL else 130)
