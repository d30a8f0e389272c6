"""Take the pictures of the page, from real runs, and write beside each picture what can be read in it.

The texts tell a test whether the pictures show the page as it is now.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.async_api import Browser

from backstay.client import Backstay, Run, connect
from backstay.settings import Settings
from backstay.task.task import Task
from docs.browser import open_browser
from examples.demo.stage import Stage
from gateways.links import Seals, link_for

ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
DAY = "2026-11-20"
"""The mailbox's date, so that its invoices are always the same."""
SECRETS = {
    "BACKSTAY_WEB_SECRET": "signs-the-links-in-the-pictures",
    "BACKSTAY_APPROVER_KEY": "signs-the-decisions-in-the-pictures",
}
WIDTH, PHONE_WIDTH, HEIGHT = 1240, 390, 800
_WAIT_S = 60
_POLL_S = 0.2
LETTER: dict[str, Any] = {
    "title": "Remind Fairway Bakery",
    "summary": "One letter about INV-1016, and a look at what they were sent before.",
    "steps": [
        {
            "tool": "mail.list_sent",
            "arguments": {"to": "accounts@fairway-bakery.example"},
            "summary": "What they were sent before",
        },
        {
            "tool": "mail.send_email",
            "arguments": {
                "to": "accounts@fairway-bakery.example",
                "subject": "Reminder: unpaid invoice INV-1016",
                "body": "Dear Fairway Bakery,\n\nINV-1016 of EUR 4,828.25 is due since July.\n\nKind regards",
            },
            "summary": "The reminder",
            "transactional": True,
        },
    ],
}
ONE = {
    "title": "Thank Harbour Print for the quick payment",
    "steps": [
        {
            "tool": "mail.send_email",
            "arguments": {
                "to": "billing@harbour-print.example",
                "subject": "Thank you",
                "body": "Dear Harbour Print,\n\nyour payment has arrived.\n\nKind regards",
            },
        }
    ],
}
REMIND = "Remind every customer with an invoice overdue by more than {} days, and tell me the total."
UNSTEADY = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "TIME"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)?", "TIME"),
    (r"\b\d\d:\d\d:\d\d\b", "TIME"),
    (r"\b\d+ (s|min|h|d) ago|\bin \d+ (s|min|h|d)\b|\btook \d+ (s|min|h)\b", "SPAN"),
    (r"\b0\.\d{4}\b", "COST"),
    (r"\b[0-9a-f]{12,64}\b", "HASH"),
)
"""What differs each time: times, costs and hashes."""


@dataclass(frozen=True)
class Shot:
    """Name a picture, and say what it shows and how."""

    name: str
    path: str
    dark: bool = False
    phone: bool = False


SHOTS = (
    Shot("page-inbox", "/"),
    Shot("page-request", "/requests/november-reminders/r1"),
    Shot("page-plan", "/requests/one-letter/r1"),
    Shot("page-run", "/runs/october-reminders"),
    Shot("page-dark", "/runs/november-reminders", dark=True),
    Shot("page-phone", "/requests/thank-you/r1", phone=True),
)


async def waits(run: Run) -> str:
    """Wait until a run asks, and return the id of its request."""
    async with asyncio.timeout(_WAIT_S):
        while not (pending := await run.pending()):
            await asyncio.sleep(_POLL_S)
    return pending[0].id


async def _act(backstay: Backstay) -> None:
    """Let runs come to what the pictures show."""

    async def begin(name: str, user: str, task: Mapping[str, Any]) -> tuple[Run, str]:
        run = await backstay.start(Task.model_validate({"user_id": user, **task}), id=name)
        return run, await waits(run)

    done, asked = await begin("october-reminders", ANA, {"text": REMIND.format(90), "session_id": "accounts"})
    await done.approve(asked, by=ANA, comment="Checked against the books.")
    await done.result()
    refused, asked = await begin("second-letter", BO, {"plan": {**LETTER, "title": "Remind Fairway Bakery again"}})
    await refused.reject(asked, by=CY, stop=True, comment="They have paid yesterday.")
    await refused.result()
    await begin("november-reminders", ANA, {"text": REMIND.format(100), "session_id": "accounts"})
    await begin("one-letter", BO, {"plan": LETTER})
    await begin("thank-you", CY, {"plan": ONE})


@asynccontextmanager
async def scene(home: Path) -> AsyncGenerator[tuple[Stage, str]]:
    """Set the stage, let everything happen, and yield the stage and a link that lets a person in."""
    stage = Stage(home, Settings.load(None), crash=False, page=SECRETS, today=DAY)
    try:
        await stage.set_up()
        server, key = stage.server, SECRETS["BACKSTAY_APPROVER_KEY"]
        async with connect(
            server.address, namespace=server.namespace, approver_key=key, page=stage.page_url
        ) as backstay:
            await _act(backstay)
        yield stage, f"{stage.page_url}/link/{link_for(Seals(SECRETS['BACKSTAY_WEB_SECRET'].encode()), ANA)}"
    finally:
        await stage.take_down()


async def _taken(browser: Browser, link: str, shot: Shot, file: Path | None) -> str:
    """Look at a page, save the picture if a file is named, and return what can be read there."""
    context = await browser.new_context(
        viewport={"width": PHONE_WIDTH if shot.phone else WIDTH, "height": HEIGHT},
        device_scale_factor=2 if shot.phone else 1,
        color_scheme="dark" if shot.dark else "light",
        reduced_motion="reduce",
    )
    try:
        page = await context.new_page()
        await page.goto(link)
        await page.goto(link.partition("/link/")[0] + shot.path)
        await page.wait_for_load_state("load")
        text = steady(await page.locator("main").inner_text())
        if file is not None:
            # What stays in view would lie across the middle of a picture that is higher than its window.
            height = await page.evaluate("document.documentElement.scrollHeight")
            await page.set_viewport_size({"width": PHONE_WIDTH if shot.phone else WIDTH, "height": height})
            await page.screenshot(path=file, full_page=True, animations="disabled", caret="hide")
        return text
    finally:
        await context.close()


def steady(text: str, unsteady: Sequence[tuple[str, str]] = UNSTEADY) -> str:
    """Return what can be read somewhere, without what differs each time."""
    for pattern, word in unsteady:
        text = re.sub(pattern, word, text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


async def read(browser: Browser, link: str, images: Path | None = None) -> dict[str, str]:
    """Return what can be read in each picture by its name; with a folder, save the pictures there."""
    return {
        shot.name: await _taken(browser, link, shot, None if images is None else images / f"{shot.name}.png")
        for shot in SHOTS
    }


async def take(home: Path, images: Path) -> dict[str, str]:
    """Save the pictures in a folder, and return what can be read in each by its name."""
    async with scene(home) as (_, link), open_browser() as browser:
        return await read(browser, link, images)
