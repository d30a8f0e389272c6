"""Take the pictures in docs/images: page, Temporal Web UI, Slack, a terminal with a chat, and the dashboard.

python -m docs.screenshots     needs chromium, tmux and prometheus (on Debian: apt install chromium tmux prometheus)
"""

import asyncio
import io
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from backstay.client import connect
from backstay.settings import Settings
from backstay.task.task import Task
from docs import page_pictures
from docs.browser import open_browser, picture
from docs.dashboard.picture import take as take_dashboard
from docs.pictures import IMAGES, ROOT, keep
from docs.slack_blocks import page_of
from examples.demo.stage import Stage

TASK = "Remind every customer with an invoice overdue by more than 60 days, and tell me the total."
LETTER: dict[str, Any] = {
    "title": "Remind Fairway Bakery",
    "steps": [
        {
            "tool": "mail.send_email",
            "arguments": {
                "to": "accounts@fairway-bakery.example",
                "subject": "Reminder: unpaid invoice INV-1016",
                "body": "Dear Fairway Bakery,\n\nINV-1016 of EUR 4,828.25 is due since July.\n\nKind regards",
            },
            "summary": "one letter",
        },
        {"tool": "mail.list_sent", "arguments": {"to": "accounts@fairway-bakery.example"}},
    ],
}
COLUMNS, LINES = 118, 64
PAUSE_S = 0.5
UNSTEADY = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "ID"),
    (r"\bchat-[0-9a-f]{8}-\d+-[0-9a-f]{6}\b", "ID"),
    (r"\bmail-\d+\b", "ID"),
    (r"\b[A-Z][a-z]{2} \d{1,2} at \d\d:\d\d\b", "TIME"),
    *page_pictures.UNSTEADY,
    (r"(?<![\d:])\d\d:\d\d\b", "TIME"),
)
"""What differs each time in a chat and in Slack; mails that are sent at once come in any order."""


def tmux(*words: str) -> str:
    """Talk to a terminal of its own."""
    program = shutil.which("tmux")
    if program is None:
        raise SystemExit("tmux is missing; on Debian: apt install tmux")
    command = [program, "-L", "backstay-screenshots", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603  # our own list


async def terminal(stage: Stage, browser: Browser, path: Path) -> None:
    """Run the task in a terminal until it asks, and picture what stands there."""
    await _drawn(browser, path, await _screen(stage, f"run '{TASK}'", [("", "[a]pprove")]), until="pprove")


async def chat(stage: Stage, browser: Browser, path: Path) -> str:
    """Talk with an agent until it has done what was asked, and picture what stands there; return what can be read."""
    # Behind the request, which fills the screen, the mark stands there again only at the end.
    typed = [("", "you>"), (TASK, "[a]pprove"), ("a", "you>")]
    screen = await _screen(stage, f"chat --by {page_pictures.ANA}", typed)
    await _drawn(browser, path, screen, until="completed")
    return chat_words(Text.from_ansi(screen).plain)


def read_at_once(stage: Stage) -> dict[str, str]:
    """Return an environment for commands that names no page: where words that are read along break, differs."""
    return {name: value for name, value in stage.environment.items() if name != "BACKSTAY_URL"}


def chat_words(screen: str) -> str:
    """Return what can be read on a screen, without what differs each time; a terminal breaks lines at its width."""
    lines = (line.rstrip() for line in screen.splitlines())
    whole = "".join(line if len(line) == COLUMNS else f"{line}\n" for line in lines)
    return page_pictures.steady(whole, UNSTEADY)


async def _screen(stage: Stage, words: str, typed: list[tuple[str, str]]) -> str:
    """Run a command in a terminal, type each line, and wait for what it leads to; return the screen at the end."""
    environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in read_at_once(stage).items())
    command = f"cd {ROOT} && {environment} {sys.executable} -m backstay {words}"
    tmux("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), "bash", "--norc", "-c", command)
    screen = ""
    try:
        for line, until in typed:
            if line:
                tmux("send-keys", "-l", line)
                tmux("send-keys", "Enter")
            async with asyncio.timeout(60):
                while until not in (screen := tmux("capture-pane", "-p", "-e")).replace("\x1b[0m", ""):
                    await asyncio.sleep(PAUSE_S)
    finally:
        tmux("kill-server")
    return screen


async def _drawn(browser: Browser, path: Path, screen: str, *, until: str) -> None:
    """Picture a screen."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(screen.rstrip()))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "terminal.html"
        page.write_text(console.export_html(theme=MONOKAI), encoding="utf-8")
        height = 40 + 19 * (screen.rstrip().count("\n") + 2)
        await picture(browser, page.as_uri(), path, width=1150, height=height, until=until)


async def web_ui(stage: Stage, browser: Browser) -> None:
    """Picture a run in the Temporal Web UI while it waits, and when it has ended."""
    async with connect(stage.server.address, namespace=stage.server.namespace) as backstay:
        run = await backstay.start(TASK)
        async with asyncio.timeout(60):
            while not await run.pending():
                await asyncio.sleep(PAUSE_S)
        page = stage.server.page_of(run.id)
        size = {"width": 1500, "height": 1350}
        await picture(browser, page, IMAGES / "web-ui.png", **size, click="User Metadata", until="Current Details")
        for request in await run.pending():
            await run.approve(request.id, by="ana@example.com")
        await run.result()
        await picture(browser, page, IMAGES / "web-ui-done.png", **size, until="close the run")


async def slack(stage: Stage, browser: Browser, path: Path | None = None) -> str:
    """Draw what our gateway posts to Slack of a request, as there is no workspace, and return what can be read.

    With a path, save the picture there.
    """
    async with connect(stage.server.address, namespace=stage.server.namespace) as backstay:
        run = await backstay.start(Task.model_validate({"plan": LETTER}))
        async with asyncio.timeout(60):
            while not (pending := await run.pending()):
                await asyncio.sleep(PAUSE_S)
        await run.cancel()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "slack.html"
        page.write_text(page_of(run.id, pending[0]), encoding="utf-8")
        if path is not None:
            await picture(browser, page.as_uri(), path, width=1270, height=980, until="Reject")
        async with await browser.new_page() as tab:
            await tab.goto(page.as_uri())
            return page_pictures.steady(await tab.locator("main").inner_text(), UNSTEADY)


def stage_for(home: Path) -> Stage:
    """Return the demo's stage, with a page, on a day when the mailbox always holds the same invoices."""
    return Stage(home, Settings.load(None), crash=False, page=page_pictures.SECRETS, today=page_pictures.DAY)


async def main() -> None:
    """Set the demo's stage, let a run wait for a person, and picture it."""
    IMAGES.mkdir(exist_ok=True)
    settings = Settings.load()
    settings.claim_home()
    stage, shown = stage_for(ROOT / ".backstay" / "screenshots"), {}
    try:
        await stage.set_up()
        async with open_browser() as browser:
            await terminal(stage, browser, IMAGES / "terminal.png")
            shown["chat"] = await chat(stage, browser, IMAGES / "chat.png")
            await web_ui(stage, browser)
            shown["slack"] = await slack(stage, browser, IMAGES / "slack.png")
    finally:
        await stage.take_down()
    shown |= await page_pictures.take(ROOT / ".backstay" / "pictures", IMAGES)
    shown["dashboard"] = await take_dashboard(ROOT / ".backstay" / "pictures", IMAGES / "dashboard.png")
    for name, text in shown.items():
        keep(name, text)


if __name__ == "__main__":
    asyncio.run(main())
