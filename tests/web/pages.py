"""Serve the page for one engine, in the process of the test, and come to it as a person."""

import asyncio
import html
import re
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

import httpx2

import opening
from backstay.client import Backstay
from backstay.testing import Reply
from gateways.listening import config_of
from gateways.web.app import build_app
from gateways.web.serving import MOST_CONNECTIONS, open_page
from tests.engine import pending
from tests.serving import served

PROXY = "the-secret-of-the-proxy-of-tests"
SECRET = "the-secret-of-the-forms-of-tests"
KEY = "an-approver-key-for-tests"
ANA = "ana@example.com"
ANEW = httpx2.Limits(max_keepalive_connections=0)
"""Connect for each request: a server closes what is idle, perhaps just as the next one is sent."""
BEHIND = """
window.behind = false;
Object.defineProperty(document, "hidden", {get: () => behind});
window.put = (there) => { behind = there; document.dispatchEvent(new Event("visibilitychange")); };
"""
"""For pages that a test puts behind others, and before them again: no headless browser does that."""


def behind_a_proxy(**more):
    """Return the settings of a page whose proxy says who people are, and whose decisions are proven."""
    return {"web_identity": "header", "web_proxy_secret": PROXY, "web_secret": SECRET, "approver_key": KEY, **more}


def headers(by):
    """Return what the proxy adds to the requests of a person."""
    return {"X-Forwarded-Email": by, "X-Backstay-Proxy": PROXY}


@dataclass
class Served:
    """Come to a page."""

    url: str
    page: object

    def person(self, by, **more):
        """Return an HTTP client of a person; without JavaScript, as a program sees it."""
        return httpx2.AsyncClient(base_url=self.url, headers={**headers(by), **more}, timeout=150, limits=ANEW)

    def stranger(self, *, cookies=None, follow_redirects=False, **more):
        """Return an HTTP client of nobody."""
        about = {"cookies": cookies, "follow_redirects": follow_redirects, "timeout": 60, "limits": ANEW}
        return httpx2.AsyncClient(base_url=self.url, headers=more, **about)


def mail(*addresses, subject="Hello"):
    """Return the reply of a model that sends a mail to each address."""
    return Reply(calls=[("mail__send_email", {"to": to, "subject": subject, "body": "Dear all"}) for to in addresses])


def form_of(text, **more):
    """Return the hidden fields of the form in which a page lets people decide, as every browser sends it."""
    fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', text.partition('class="decide"')[2])
    return {name: html.unescape(value) for name, value in fields} | more


@asynccontextmanager
async def served_page(running, **more):
    """Serve the page of an engine."""
    settings = running.settings.model_copy(update=more)
    key = settings.approver_key
    signing = Backstay(
        running.client, task_queue=settings.task_queue, approver_key=None if key is None else key.get_secret_value()
    )
    async with opening.open_store(settings) as store, opening.open_sign_ins(settings, store) as sign_ins:
        doors = {"sign_ins": sign_ins, "own_servers": opening.open_own_servers(settings, store)}
        page = open_page(settings, store, signing, opening.read_policy(settings.policy), "127.0.0.1", **doors)
        config = config_of(build_app(page), MOST_CONNECTIONS)
        async with served(config.app, config) as url:
            yield Served(url, page)


async def listed(person, workflow_id, path="/", within_s=150):
    """Wait until a page names a run; return the page's answer."""
    async with asyncio.timeout(within_s):
        while workflow_id not in (answer := await person.get(path)).text:
            await asyncio.sleep(0.1)
    return answer


def place(served, handle, request="r1"):
    return f"{served.url}/requests/{quote(handle.id, safe='')}/{request}"


@asynccontextmanager
async def opened(browser, served, handle, by=ANA, request="r1", **more):
    """Open a request in the browser of a person, once the run waits for it."""
    async with browser.tab(extra_http_headers=headers(by), **more) as page:
        await pending(handle)
        await until_listed(page, served, handle)
        await page.goto(place(served, handle, request))
        yield page


async def until_listed(page, served, handle, within_s=150):
    """Reload the inbox until it names a run; what is announced reaches the store a moment later."""
    async with asyncio.timeout(within_s):
        while True:
            await page.goto(served.url)
            if await page.locator(f"a[href*='{quote(handle.id, safe='')}']").count():
                return
            await asyncio.sleep(0.2)


async def press(page, name):
    await page.get_by_role("button", name=name, exact=True).click()


async def in_view(page, name):
    """Return whether a button stands inside the window, without scrolling."""
    box = await page.get_by_role("button", name=name, exact=True).bounding_box()
    height = await page.evaluate("window.innerHeight")
    return box is not None and box["y"] >= 0 and box["y"] + box["height"] <= height


async def told(page, text):
    """Wait until a page says what was done."""
    await page.locator(".said").filter(has_text=text).wait_for()


def verdicts(result):
    """Return who decided what, as the Result of a run keeps it, and whether that was proven."""
    decided = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
    return [(data["by"], data["verdict"], data["verified"]) for data in decided]
