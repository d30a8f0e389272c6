"""Look at pages as people do: a real headless Chromium, with what its tabs must never do held against them.

    async with browser.tab() as page:                      # `browser` is a fixture; a page is Playwright's
        await page.goto(url)
        await page.get_by_role("button", name="Approve").click()
        await assert_accessible(page)

A tab that asked for something beyond this machine, or whose scripts failed or were blocked by the page's own policy,
fails its test when it closes.
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import urlsplit

from docs.browser import open_browser
from tests.engine import ROOT

AXE = ROOT / "build/node/node_modules/axe-core/axe.min.js"
WITHIN_MS = 120_000
DESK = {"width": 1280, "height": 900}
PHONE = {"viewport": {"width": 375, "height": 812}, "device_scale_factor": 2, "is_mobile": True, "has_touch": True}
HERE = {"localhost", "127.0.0.1", "[::1]", "::1"}
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe that another colour scheme can break."""
BLOCKED = ("Content Security Policy", "Refused to ")
"""How Chromium says that a page's own policy has kept it from something."""


@dataclass
class Seen:
    """What went wrong in a tab without anybody looking."""

    beyond: list[str] = field(default_factory=list)
    """Addresses outside this machine that the page asked for."""
    failed: list[str] = field(default_factory=list)
    """What its scripts raised, and what its policy blocked."""
    said: list[str] = field(default_factory=list)
    """All that it wrote to the console."""

    def asked(self, request):
        address = urlsplit(request.url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in HERE:
            self.beyond.append(request.url)

    def wrote(self, message):
        self.said.append(message.text)
        if message.type == "error" and any(word in message.text for word in BLOCKED):
            self.failed.append(message.text)

    def watch(self, page):
        page.on("request", self.asked)
        page.on("websocket", self.asked)
        page.on("console", self.wrote)
        page.on("pageerror", lambda error: self.failed.append(str(error)))


class Browser:
    """Open tabs, each of a person of its own: nothing is shared between them."""

    def __init__(self, chromium):
        self._chromium = chromium

    @asynccontextmanager
    async def person(self, *, phone=False, dark=False, scripts=True, may_fail=False, **more):
        """Open a browser of one person, for several tabs; yields Playwright's context.

        `phone`: 375 points wide, with touch. `dark`: as the person's system wants it. `scripts=False`: without any.
        `may_fail`: scripts may fail or be blocked. `more`: options of Playwright, such as `extra_http_headers`.
        """
        size = PHONE if phone else {"viewport": DESK}
        looks = {"color_scheme": "dark" if dark else "light", "reduced_motion": "reduce", "locale": "en-GB"}
        options = {**size, **looks, "java_script_enabled": scripts, **more}
        context = await self._chromium.new_context(**options)
        context.set_default_timeout(WITHIN_MS)
        seen = Seen()
        context.on("page", seen.watch)
        try:
            yield context
        finally:
            await context.close()
        assert not seen.beyond, f"the page reached out to {seen.beyond}"
        assert may_fail or not seen.failed, "\n".join(seen.failed)

    @asynccontextmanager
    async def tab(self, address=None, **options):
        """Open one tab of a person of its own, at an address if one is given; yields Playwright's page."""
        async with self.person(**options) as context:
            page = await context.new_page()
            if address is not None:
                await page.goto(address)
            yield page


@asynccontextmanager
async def open_chromium():
    """Start a browser for as long as the block lasts; fails where there is none."""
    async with open_browser() as chromium:
        yield Browser(chromium)


@cache
def _axe():
    assert AXE.is_file(), f"{AXE} is missing; `make test` installs it"
    return AXE.read_text(encoding="utf-8")


async def violations(page, *impacts, only=()):
    """Return what axe-core finds against a page as it is now, as lines; all impacts and rules unless some are named.

    It is a script itself: a tab without scripts cannot be asked.
    """
    if not await page.evaluate("typeof axe === 'object'"):
        # Put in from outside, so that the page's own policy for scripts stays as it is.
        await page.evaluate(f"() => {{ {_axe()} }}")
    async with asyncio.timeout(WITHIN_MS / 1000):
        options = {"resultTypes": ["violations"], "elementRef": False, **({"runOnly": list(only)} if only else {})}
        found = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{each['impact']}: {each['id']}: {each['help']}\n  {node['html'][:200]}\n  {node['failureSummary']}"
        for each in found["violations"]
        for node in each["nodes"]
        if not impacts or each["impact"] in impacts
    ]


async def assert_accessible(page, *, only=()):
    """Assert that axe finds nothing serious or critical, by all of its rules or some of them only."""
    found = await violations(page, "serious", "critical", only=only)
    assert not found, "\n".join(found)


async def assert_fits(page):
    """Assert that nobody has to scroll sideways."""
    wide, room = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= room, f"the page is {wide} points wide, and there is room for {room}"


async def picture(page, path, *, whole=True):
    """Save a picture of a page, by default from its top to its bottom; return its bytes."""
    await page.evaluate("document.fonts.ready")
    await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    return await page.screenshot(path=path, full_page=whole, animations="disabled", caret="hide")
