"""What proves who people are stays in the process of the page: it is in no answer, no log, no history and no store."""

import asyncio
import base64
from contextlib import asynccontextmanager, suppress

import httpx2

from backstay.testing import Reply
from tests.engine import Scripts, ended, pending
from tests.requirements import promise
from tests.web.pages import (
    ANA,
    KEY,
    PROXY,
    SECRET,
    behind_a_proxy,
    headers,
    listed,
    press,
    told,
    verdicts,
)
from tests.web.test_serving import forked_page

ENVIRONMENT = {
    "BACKSTAY_WEB_IDENTITY": "header",
    "BACKSTAY_WEB_PROXY_SECRET": PROXY,
    "BACKSTAY_WEB_SECRET": SECRET,
    "BACKSTAY_APPROVER_KEY": KEY,
}
MAIL = Reply(calls=[("mail__send_email", {"to": "kim@x.example", "subject": "Hello", "body": "Dear Kim"})])


@asynccontextmanager
async def overheard(url):
    """Yield an address that leads to a page, and all that the page sends there."""
    host, _, port = url.removeprefix("http://").rpartition(":")
    heard = bytearray()

    async def passed_on(reader, writer, keeps):
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                keeps.extend(data)
                writer.write(data)
                await writer.drain()
        writer.close()

    async def taken(reader, writer):
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(passed_on(reader, back, bytearray()), passed_on(there, writer, heard))

    async with await asyncio.start_server(taken, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


async def goes_wrong(url, path, form):
    """Send what the page refuses, as strangers, as a browser and as a program; return what it answered."""
    forged, stale = form | {"csrf": "forged"}, form | {"d": "0" * 64}
    sends = [
        ("GET", "/", {}, None),
        ("GET", "/", headers(ANA) | {"X-Backstay-Proxy": "x" * 32}, None),
        ("GET", "/link/no-such-link", {}, None),
        ("GET", "/requests/no-such-run/r1", headers(ANA), None),
        ("POST", f"{path}/decide", headers(ANA) | {"Origin": "https://evil.example"}, form),
        ("POST", f"{path}/decide", headers(ANA), forged),
        ("POST", f"{path}/decide", headers(ANA), stale),
        ("POST", "/hooks/backstay", {}, {}),
    ]
    async with httpx2.AsyncClient(base_url=url, timeout=150) as anybody:
        for method, where, more, data in sends:
            for place in (where, f"/api{where}"):
                yield (await anybody.request(method, place, headers=more, data=data)).status_code


async def lives(page, url, handle):
    """Look at everything, decide a request after what is refused, and undo what it did."""
    path = f"/requests/{handle.id}/r1"
    async with httpx2.AsyncClient(base_url=url, headers=headers(ANA), timeout=150) as program:
        await listed(program, handle.id)
        for address in (path, "/", "/requests", "/decided", "/runs", f"/runs/{handle.id}", "/openapi.json"):
            assert (await program.get(f"/api{address}")).status_code == 200
        for address in ("/healthz", "/readyz"):
            assert (await program.get(address)).status_code == 200
    for address in ("/", "/decided", "/runs", f"{path}?edit=0", f"/runs/{handle.id}", path):
        await page.goto(f"{url}{address}")
    form = await page.evaluate("Object.fromEntries(new FormData(document.getElementById('decide')))")
    form["verdict"] = "approve"
    assert [status async for status in goes_wrong(url, path, form)] == [
        *([401] * 2 + [401] * 2 + [404] * 2 + [404] * 2),
        *([403] * 2 + [403, 415] + [409, 415] + [404] * 2),
    ]
    await press(page, "Approve")
    await told(page, f"decided: approved by {ANA}")


@promise("page:no-leaks")
async def test_no_answer_no_log_no_history_and_no_store_holds_a_key_or_a_secret(
    browser, open_engine, nursery, tmp_path
):
    scripts = Scripts()
    async with open_engine(scripts, **behind_a_proxy()) as running:
        handle = await running.start(scripts.task(MAIL))
        await pending(handle)
        async with (
            forked_page(nursery, running, tmp_path, **ENVIRONMENT) as (process, url),
            overheard(url) as (address, heard),
            browser.tab(extra_http_headers=headers(ANA)) as page,
        ):
            await lives(page, address, handle)
            result = await ended(handle)
            await page.goto(f"{address}/runs/{handle.id}")
            await page.get_by_text("Undo 1 effect").click()
            await press(page, "Undo…")
            await press(page, "Yes, undo it")
            await page.get_by_text("Undone").first.wait_for()
        events = (await handle.fetch_history()).events
        files = [file.read_bytes() for file in running.settings.home.rglob("*") if file.is_file()]
    assert verdicts(result) == [(ANA, "approve", True)]
    held = {
        "answers": bytes(heard),
        "log": process.said().encode(),
        "history": b"".join(event.SerializeToString() for event in events),
        "store": b"".join(files),
    }
    assert {place for place, text in held.items() if ANA.encode() in text} == {"answers", "history", "store"}
    assert b"backstay web ready" in held["log"]
    for secret in (KEY, PROXY, SECRET):
        plain = secret.encode()
        for form in (plain, plain.hex().encode(), base64.b64encode(plain).rstrip(b"=")):
            assert [place for place, text in held.items() if form in text] == [], secret
