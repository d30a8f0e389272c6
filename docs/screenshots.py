"""Take the pictures in docs/images: page, Temporal Web UI, Slack, a terminal with a chat, and the dashboard.

python -m docs.screenshots     needs chromium, tmux and prometheus (on Debian: apt install chromium tmux prometheus)
"""

import asyncio
import io
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
from docs.slack_blocks import page_of
from examples.demo.stage import Stage

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
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


async def chat(stage: Stage, browser: Browser, path: Path) -> None:
    """Talk with an agent until it has done what was asked, and picture what stands there."""
    typed = [("", "you>"), (TASK, "[a]pprove"), ("a", "take them back")]
    await _drawn(browser, path, await _screen(stage, "chat --by ana@example.com", typed), until="completed")


async def _screen(stage: Stage, words: str, typed: list[tuple[str, str]]) -> str:
    """Run a command in a terminal, type each line, and wait for what it leads to; return the screen at the end."""
    environment = " ".join(f"{name}={value}" for name, value in stage.environment.items() if "'" not in value)
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


async def slack(stage: Stage, browser: Browser) -> None:
    """Picture what our gateway posts to Slack of a request, drawn by us: there is no workspace."""
    async with connect(stage.server.address, namespace=stage.server.namespace) as backstay:
        run = await backstay.start(Task.model_validate({"plan": LETTER}))
        async with asyncio.timeout(60):
            while not (pending := await run.pending()):
                await asyncio.sleep(PAUSE_S)
        await run.cancel()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "slack.html"
        page.write_text(page_of(run.id, pending[0]), encoding="utf-8")
        await picture(browser, page.as_uri(), IMAGES / "slack.png", width=1270, height=930, until="Reject")


async def main() -> None:
    """Set the demo's stage, let a run wait for a person, and picture it."""
    IMAGES.mkdir(exist_ok=True)
    settings = Settings.load()
    settings.claim_home()
    stage = Stage(ROOT / ".backstay" / "screenshots", settings, crash=False, page=page_pictures.SECRETS)
    try:
        await stage.set_up()
        async with open_browser() as browser:
            await terminal(stage, browser, IMAGES / "terminal.png")
            await chat(stage, browser, IMAGES / "chat.png")
            await web_ui(stage, browser)
            await slack(stage, browser)
    finally:
        await stage.take_down()
    for name, text in (await page_pictures.take(ROOT / ".backstay" / "pictures", IMAGES)).items():
        (IMAGES / f"{name}.txt").write_text(text, encoding="utf-8")
    text = await take_dashboard(ROOT / ".backstay" / "pictures", IMAGES / "dashboard.png")
    (IMAGES / "dashboard.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
