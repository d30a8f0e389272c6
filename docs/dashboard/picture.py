"""Take the picture of the dashboard, over a worker that is killed while it works, and read what stands in it."""

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, Page

from backstay.client import Backstay, Run, connect
from backstay.settings import Settings
from backstay.task.task import Task
from docs.browser import open_browser
from docs.dashboard.drawing import NO_DATA, Window, page_of, words
from docs.dashboard.prometheus import MONITORING, Prometheus, open_prometheus
from docs.page_pictures import ANA, BO, CY, REMIND, waits
from examples.demo.books import MailboxBooks
from examples.demo.stage import MAILS_BEFORE_THE_KILL, Stage
from gateways.terminal.local.ports import free_port

WIDTH = 1240
_WAIT_S = 120
_POLL_S = 0.2
_SEEN = Path(__file__).with_name("seen.js").read_text(encoding="utf-8")


def dashboard() -> dict[str, Any]:
    """Return the dashboard that operators copy."""
    return json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))


async def take(home: Path, picture: Path) -> str:
    """Save the picture, and return what it shows that is the same each time."""
    address = f"127.0.0.1:{free_port()}"
    stage = Stage(home, Settings.load(None), crash=True, metrics=address)
    with tempfile.TemporaryDirectory() as folder:
        async with open_prometheus(Path(folder) / "prometheus", address) as prometheus, open_browser() as browser:
            try:
                await stage.set_up()
                begin = time.time()
                async with connect(stage.server.address, namespace=stage.server.namespace) as backstay:
                    await _act(stage, backstay)
                await _scraped(prometheus)
                html = await page_of(dashboard(), prometheus, Window(begin, time.time()))
            finally:
                await stage.take_down()
            text = await seen(browser, html, picture)
    if text != words(dashboard()) or NO_DATA in html:
        raise RuntimeError(f"the picture does not show all of the dashboard, or a number is missing; it shows:\n{text}")
    return text


async def seen(browser: Browser, html: str, picture: Path | None = None) -> str:
    """Return what a drawing shows that is the same each time; save a picture of it if a file is named."""
    context = await browser.new_context(viewport={"width": WIDTH, "height": 600}, reduced_motion="reduce")
    try:
        page: Page = await context.new_page()
        await page.set_content(html)
        if picture is not None:
            await page.screenshot(path=picture, full_page=True, animations="disabled")
        lines = await page.locator(".steady").evaluate_all(_SEEN)
    finally:
        await context.close()
    # The lines of one expression share a pattern.
    kept = [line for line, before in zip(lines, ["", *lines], strict=False) if line != before]
    return "\n".join(kept) + "\n"


async def _act(stage: Stage, backstay: Backstay) -> None:
    """Kill the worker while it sends; let runs be approved, refused and left to wait."""

    async def begin(user: str, days: int) -> tuple[Run, str]:
        run = await backstay.start(Task.model_validate({"user_id": user, "text": REMIND.format(days)}))
        return run, await waits(run)

    run, asked = await begin(ANA, 60)
    await run.approve(asked, by=ANA)
    await _crash(stage)
    await run.result()
    for user, days in ((BO, 90), (CY, 75)):
        run, asked = await begin(user, days)
        await run.approve(asked, by=ANA)
        await run.result()
    run, asked = await begin(BO, 30)
    await run.reject(asked, by=ANA, stop=True)
    await run.result()
    await begin(CY, 45)


async def _crash(stage: Stage) -> None:
    """Kill the worker when the mail that gets no answer is out, and start another."""
    books = MailboxBooks(stage.mailbox)
    async with asyncio.timeout(_WAIT_S):
        while sum(sent for _, sent, _ in books.delivered()) < MAILS_BEFORE_THE_KILL:
            await asyncio.sleep(_POLL_S)
    stage.worker.process.kill()
    await stage.worker.ended()
    await stage.start_worker()


async def _scraped(prometheus: Prometheus) -> None:
    """Wait until Prometheus has seen the request that is left to wait."""
    async with asyncio.timeout(_WAIT_S):
        while await prometheus.numbers("max(backstay_approvals_waiting)") != [1]:
            await asyncio.sleep(_POLL_S)
