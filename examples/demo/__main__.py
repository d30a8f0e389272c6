"""The demo: run one task with real parts. Usage: python -m examples.demo [--crash] [--yes]."""

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path

# A script finds modules beside itself only; the checkout has to be added.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from backstay.client import Run, connect
from backstay.client.connecting import traced
from backstay.errors import BackstayError
from backstay.settings import Settings
from backstay.shown import shell_words
from examples.demo.books import MailboxBooks
from examples.demo.stage import MAILS_BEFORE_THE_KILL, ROOT, Stage
from gateways.terminal.asking.prompt import Detached, Prompt
from gateways.terminal.follow import RunFollower
from gateways.terminal.render import ending_lines, result_text
from gateways.terminal.session import account_name
from gateways.terminal.terminal import Terminal

TASK = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."
_LONGEST_S = 300
_WATCH_S = 0.05


async def demo(terminal: Terminal, home: Path, *, crash: bool, yes: bool) -> int:
    """Start the parts, run the task, show what the mailbox recorded; return the exit code."""
    settings = Settings.load(trusted=(ROOT,))
    stage = Stage(home, settings, crash=crash)
    try:
        with traced(settings):
            terminal.say("Starting Temporal, the model, the mailbox and a worker ...", "dim")
            await stage.set_up()
            return await _play(terminal, stage, yes=yes)
    finally:
        await stage.take_down()


async def _play(terminal: Terminal, stage: Stage, *, yes: bool) -> int:
    _introduce(terminal, stage)
    async with connect(client=await stage.server.client()) as backstay:
        run = await backstay.start(TASK)
        terminal.say(f"run         {run.id}")
        terminal.say(f"watch it    {stage.server.page_of(run.id)}")
        terminal.say()
        crashing = asyncio.create_task(_crash(terminal, stage)) if stage.crash else None
        policy = Path(stage.environment["BACKSTAY_POLICY"])
        settings = Settings.load(home=stage.home, policy=policy, trusted=(ROOT,))
        prompt = Prompt(terminal, run, settings, by=account_name(), editor=None)
        alone = "" if terminal.interactive else "there is no terminal to ask at"
        why = "--yes was given" if yes else alone
        try:
            async with asyncio.timeout(None if terminal.interactive else _LONGEST_S):
                await RunFollower(terminal, run, prompt, yes=why).follow()
                result = await run.result()
        except Detached:
            terminal.say("You left the run. It would go on, but the demo stops its Temporal now.", "yellow")
            return 130
        finally:
            if crashing is not None:
                crashing.cancel()
                await asyncio.gather(crashing, return_exceptions=True)
        # What stands can be undone only while Temporal is up, and that is at a terminal.
        ending = result if terminal.interactive else result.model_copy(update={"effects": ()})
        for line, style in ending_lines(ending):
            terminal.say(line, style)
        terminal.say()
        terminal.result(result_text(result))
        terminal.say()
        _show_books(terminal, stage)
        await _leave(terminal, stage, run)
    return 0 if result.success else 1


def _introduce(terminal: Terminal, stage: Stage) -> None:
    terminal.say(f"Temporal    {stage.server.address}")
    terminal.say(f"Web UI      {stage.server.ui}")
    if stage.scripted:
        terminal.say(
            "model       SCRIPTED by examples/mailbox/reminders.py, over a real socket; everything else is real",
            "bold magenta",
        )
    else:
        terminal.say(f"model       {stage.model}, from OPENAI_API_KEY and OPENAI_BASE_URL")
    terminal.say(f"mailbox     an MCP server, examples/mailbox, with the database {_near(stage.mailbox)}")
    terminal.say(f"programs    {stage.programs.removeprefix('programs ')}")
    terminal.say(f"task        {TASK}")


async def _crash(terminal: Terminal, stage: Stage) -> None:
    """Kill the worker while it sends, and start another."""
    books = MailboxBooks(stage.mailbox)
    while (mails := sum(sent for _, sent, _ in books.delivered())) < MAILS_BEFORE_THE_KILL:  # noqa: ASYNC110 - another process counts
        await asyncio.sleep(_WATCH_S)
    process = stage.worker.process
    process.kill()
    terminal.say(
        f"kill -9 {process.pid}: the worker is dead; {mails} mails are out, the last one was not confirmed", "bold red"
    )
    await stage.worker.ended()
    await stage.start_worker()
    terminal.say(
        f"another worker is up ({stage.worker.process.pid}); it checks what happened to the last mail before it sends "
        "anything, which takes about 20 s",
        "bold red",
    )


def _show_books(terminal: Terminal, stage: Stage) -> None:
    for line in MailboxBooks(stage.mailbox).lines():
        terminal.say(line, "cyan")


async def _leave(terminal: Terminal, stage: Stage, run: Run) -> None:
    """At a terminal, print how to look at the run and how to undo it, and keep everything running until Enter."""
    if not terminal.interactive:
        terminal.say()
        terminal.say("There is no terminal, so the demo stops here, with its Temporal.", "dim")
        terminal.say("Start it at a terminal to look at the run afterwards and to undo it.", "dim")
        return
    # With its home named, the command obeys nothing that it finds in the folder, which nobody has trusted.
    elsewhere = f"BACKSTAY_HOME={shell_words(_near(stage.home))} "
    if not stage.is_at_home:
        elsewhere += f"TEMPORAL_ADDRESS={stage.server.address} TEMPORAL_NAMESPACE=default "
    terminal.say()
    terminal.say(f"Look at it:    {stage.server.page_of(run.id)}")
    terminal.say(f"Undo it:  {elsewhere}{_near(Path(sys.executable))} -m backstay undo {run.id}")
    await terminal.ask("Everything stays up until you press Enter. Try both now; run the second in another terminal.")
    if any(recalled for _, _, recalled in MailboxBooks(stage.mailbox).delivered()):
        _show_books(terminal, stage)


def _near(path: Path) -> str:
    """Return a path relative to the checkout, if it is inside."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


@contextlib.contextmanager
def _alone(home: Path) -> Generator[None]:
    """Keep two demos out of one folder. Raises BackstayError."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BackstayError(f"--home: another demo uses {home}; stop it first, or give another folder") from None
        yield


async def _until_told(terminal: Terminal, home: Path, *, crash: bool, yes: bool) -> int:
    """Run the demo, and stop everything on SIGTERM and SIGHUP too."""
    playing = asyncio.ensure_future(demo(terminal, home, crash=crash, yes=yes))
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    return await playing


def main() -> int:
    """Read the arguments and run the demo."""
    parser = argparse.ArgumentParser(prog="python -m examples.demo", description="Run one task with real parts.")
    parser.add_argument("--crash", action="store_true", help="kill the worker with -9 while it sends")
    parser.add_argument("--yes", action="store_true", help="approve the e-mails without asking")
    parser.add_argument(
        "--home", type=Path, default=ROOT / ".backstay" / "demo", help="the demo's folder; it is emptied first"
    )
    given = parser.parse_args()
    terminal = Terminal()
    try:
        with _alone(given.home.absolute()):
            return asyncio.run(_until_told(terminal, given.home.absolute(), crash=given.crash, yes=given.yes))
    except BackstayError as error:
        terminal.say(f"demo: {error}", "red")
        return 2
    except (RuntimeError, TimeoutError) as error:
        terminal.say(f"demo: {error}", "red")
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        terminal.say("stopped; nothing is left running", "dim")
        return 130


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the Temporal client may still wait for an answer, and a normal exit would abort under them.
    os._exit(code)
