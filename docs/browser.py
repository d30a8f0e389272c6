"""A headless Chromium that starts empty and reaches nothing beyond this machine, for pictures and for tests."""

import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    # Every name and address but those of this machine is unknown, whatever a page asks for.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1 , EXCLUDE [::1]",
)
# The browser without its windows does the same for a tab at a fifth of the processor time.
PROGRAMS = ("chromium-headless-shell", "chromium")
MISSING = "chromium is missing; `make test` installs it as root, or on Debian: apt-get install chromium-headless-shell"
WAIT_S = 30


def chromium() -> str:
    """Return the path of the browser; raises FileNotFoundError with what to do where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise FileNotFoundError(MISSING)
    return program


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """Start a browser with an empty profile and end it with the block."""
    program = chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


async def picture(
    browser: Browser, address: str, path: Path, *, width: int, height: int, until: str, click: str = ""
) -> None:
    """Open a page, click the link of that name if one is named, wait for a text, and save a picture."""
    context = await browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    try:
        page = await context.new_page()
        await page.goto(address)
        if click:
            link = page.locator("a", has_text=re.compile(rf"^\s*{re.escape(click)}\s*$")).first
            await link.click(timeout=WAIT_S * 1000)
        await page.get_by_text(until).first.wait_for(timeout=WAIT_S * 1000)
        # The page goes on drawing for a moment after its text is there.
        await page.wait_for_timeout(1500)
        await page.screenshot(path=path)
    finally:
        await context.close()
