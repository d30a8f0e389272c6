"""`backstay web` as a process: it starts, lets in by a link, closes who says nothing, and stops in good order."""

import asyncio
import json
import re
import signal
import sys
import time
from contextlib import asynccontextmanager

import httpx2
import pytest
from pydantic import SecretStr

from backstay.testing import Reply
from gateways import listening
from gateways.links import LINK_S, Seals, link_for, open_seals
from tests.cli.commands import environment_of, forked
from tests.engine import Scripts, ended, pending
from tests.nursery.nursery import COMMAND
from tests.requirements import promise
from tests.sizes import spread
from tests.web.pages import ANA, KEY, behind_a_proxy, form_of, listed, press, served_page, told, verdicts

SEND = Reply(calls=[("mail__send_email", {"to": "k@x.example", "subject": "s", "body": "b"})])


async def started(running, folder, *arguments, **more):
    """Start the page as a process; return it and its address."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "backstay", "web", "--port", "0", *arguments),
        env=environment_of(running, **more),
        cwd=folder,
        stderr=asyncio.subprocess.PIPE,
    )
    said = []
    async with asyncio.timeout(150):
        while line := (await process.stderr.readline()).decode():
            said.append(line)
            if "backstay web ready: " in line:
                return process, line.split("ready: ")[1].strip(), said
    raise AssertionError(f"it did not start: {said}")


@asynccontextmanager
async def forked_page(nursery, running, folder, **more):
    """Start the page as a fork of what has imported it; yields its process and its address, and ends it."""
    given = {"environment": environment_of(running, **more), "folder": folder, "log": folder / "page.log"}
    child = await nursery.raised(COMMAND, "web", "--port", "0", **given)
    try:
        async with asyncio.timeout(150):
            while not (ready := re.search(r"backstay web ready: (\S+)\n", child.said())):
                assert not child.died.done(), child.said()
                await asyncio.sleep(0.05)
        yield child, ready[1]
    finally:
        child.kill(signal.SIGTERM)
        await asyncio.wait_for(asyncio.shield(child.died), 150)


@promise("page:started")
async def test_the_page_starts_lets_one_person_in_and_stops(open_engine, nursery, tmp_path):
    scripts = Scripts()
    async with open_engine(scripts) as running:
        handle = await running.start(scripts.task(SEND))
        await pending(handle)
        process, url, said = await started(running, tmp_path)
        port = url.rpartition(":")[2]
        made = await forked(
            *(nursery, "web", "link", "--by", "ana@example.com", "--port", port, "--output", "json"),
            environment=environment_of(running),
            folder=tmp_path,
        )
        link = json.loads(made.out)["link"]
        async with httpx2.AsyncClient(base_url=url, follow_redirects=True) as person:
            refused = await person.get("/")
            come = await person.get(link)
            inbox = await listed(person, handle.id)
        process.send_signal(signal.SIGTERM)
        code = await asyncio.wait_for(process.wait(), 150)
        rest = (await process.stderr.read()).decode()
        await handle.terminate()
    assert (come.status_code, "ana@example.com" in inbox.text) == (200, True)
    assert any("decisions are recorded as unverified" in line for line in said)
    assert f"let somebody in with: backstay web link --by NAME --port {port}" in "".join(said) + rest
    assert f"backstay web link --by YOUR-NAME --port {port}" in refused.text
    assert (code, "stopped" in rest) == (0, True)
    assert link.rpartition("/")[2] not in "".join(said) + rest


@promise("page:decided-by-link")
async def test_who_comes_by_a_link_approves_in_a_browser_and_the_run_says_that_they_are_verified(
    browser, open_engine, nursery, tmp_path
):
    scripts = Scripts()
    async with open_engine(scripts, approver_key=KEY) as running:
        handle = await running.start(scripts.task(SEND))
        await pending(handle)
        async with forked_page(nursery, running, tmp_path, BACKSTAY_APPROVER_KEY=KEY) as (_, url):
            port = url.rpartition(":")[2]
            where = {"environment": environment_of(running), "folder": tmp_path}
            made = await forked(nursery, "web", "link", "--by", ANA, "--port", port, **where)
            async with browser.tab(made.out.strip()) as page:
                await page.locator(f"a.open[href*='{handle.id}']").click()
                await press(page, "Approve")
                await told(page, f"decided: approved by {ANA}")
            result = await ended(handle)
    assert verdicts(result) == [(ANA, "approve", True)]
    assert running.mailbox.sent() == ["k@x.example"]


@promise("page:open-to-all")
@pytest.mark.parametrize(
    ("arguments", "more", "fault"),
    spread(
        [
            (("--host", "0.0.0.0"), {}, "--host: 0.0.0.0 can be reached from elsewhere"),
            ((), {"BACKSTAY_WEB_IDENTITY": "header"}, "BACKSTAY_WEB_PROXY_SECRET: required"),
            ((), {"BACKSTAY_WEB_IDENTITY": "oidc"}, "BACKSTAY_OIDC_ISSUER"),
            ((), {"BACKSTAY_WEB_IDENTITY": "trust"}, "BACKSTAY_WEB_IDENTITY"),
            ((), {"BACKSTAY_WEB_PROXY_SECRET": "short"}, "BACKSTAY_WEB_PROXY_SECRET: shorter than 16"),
            (("--port", "999999"), {}, "--port: 127.0.0.1:999999 cannot be listened on"),
        ],
        3,
    ),
)
async def test_what_would_let_anybody_in_is_said_and_nothing_is_served(
    open_engine, nursery, tmp_path, arguments, more, fault
):
    async with open_engine(Scripts()) as running:
        environment = environment_of(running, **more)
        done = await forked(nursery, "web", *arguments, environment=environment, folder=tmp_path)
    assert (done.code, fault in done.err) == (2, True), done.err


@promise("page:link-of-another")
async def test_a_link_of_somebody_else_asks_before_it_takes_the_place_of_who_is_there(open_engine):
    async with open_engine(Scripts()) as running, served_page(running) as served:
        ana, again, eve = (link_for(open_seals(running.settings), f"{by}@example.com") for by in ("ana", "Ana", "eve"))
        async with served.stranger() as person:
            assert (await person.get(f"/link/{ana}")).status_code == 303
            elsewhere = {
                "Sec-Fetch-Site": "cross-site",
                "Sec-Fetch-Mode": "navigate",
                "Referer": "http://evil.example/",
            }
            for headers in ({}, elsewhere):
                question = await person.get(f"/link/{eve}", headers=headers)
                assert (question.status_code, "set-cookie" in question.headers) == (409, False)
                assert "eve@example.com" in question.text
            assert "ana@example.com" in (await person.get("/")).text
            assert (await person.post(f"/link/{eve}", data={"csrf": "x"})).status_code == 403
            agreed = {"csrf": re.search(r'name="csrf" value="([^"]+)"', question.text)[1]}
            foreign = await person.post(f"/link/{eve}", data=agreed, headers={"Sec-Fetch-Site": "cross-site"})
            assert (foreign.status_code, "set-cookie" in foreign.headers) == (403, False)
            assert (await person.get(f"/link/{again}")).status_code == 303
            assert "ana@example.com" in (await person.get("/")).text
            assert (await person.post(f"/link/{eve}", data=agreed)).status_code == 303
            assert "eve@example.com" in (await person.get("/")).text
        async with served.stranger() as nobody:
            assert (await nobody.post(f"/link/{eve}", data=agreed)).status_code == 401


@promise("page:no-link")
async def test_no_link_is_made_where_a_proxy_says_who_people_are(open_engine, nursery, tmp_path):
    async with open_engine(Scripts()) as running:
        environment = environment_of(running, BACKSTAY_WEB_IDENTITY="header")
        done = await forked(nursery, "web", "link", "--by", "ana", environment=environment, folder=tmp_path)
        unnamed = await forked(
            nursery, "web", "link", "--by", "a, b", environment=environment_of(running), folder=tmp_path
        )
    assert (done.code, "there are no links" in done.err, done.out) == (2, True, "")
    assert (unnamed.code, "--by" in unnamed.err, unnamed.out) == (2, True, "")


@promise("page:old-links")
async def test_a_link_that_has_expired_lets_nobody_in(open_engine):
    async with open_engine(Scripts()) as running, served_page(running) as served:
        secret = open_seals(running.settings)._secret
        for age, status in ((LINK_S - 60, 303), (LINK_S + 60, 401)):
            past = Seals(secret, lambda age=age: time.time() - age)
            async with served.stranger() as person:
                assert (await person.get(f"/link/{past.seal('link', {'by': 'ana'}, LINK_S)}")).status_code == status
        assert (running.settings.home / "web-secret").stat().st_mode & 0o777 == 0o600


@promise("page:old-links")
async def test_once_the_secret_of_the_page_is_changed_old_links_sessions_and_forms_do_nothing(open_engine):
    scripts = Scripts()
    async with open_engine(scripts) as running:
        handle = await running.start(scripts.task(SEND))
        old, new = ({"web_secret": SecretStr(f"a-secret-of-the-page-{name}")} for name in ("before", "after"))
        link, fresh = (
            f"/link/{open_seals(running.settings.model_copy(update=secret)).seal('link', {'by': 'ana'}, LINK_S)}"
            for secret in (old, new)
        )
        async with served_page(running, **old) as served, served.stranger(follow_redirects=True) as person:
            assert (await person.get(link)).status_code == 200
            await listed(person, handle.id)
            form = form_of((await person.get(f"/requests/{handle.id}/r1")).text, verdict="approve")
            cookies = dict(person.cookies)
        async with served_page(running, **new) as served, served.stranger(cookies=cookies) as person:
            refused = [await person.get("/"), await person.get(link)]
            assert (await person.get(fresh)).status_code == 303
            decided = await person.post(f"/requests/{handle.id}/r1/decide", data=form)
            waits = await pending(handle)
        await handle.terminate()
    assert ([answer.status_code for answer in refused], decided.status_code) == ([401, 401], 403)
    assert len(waits) == 1


@promise("page:silent-connections")
async def test_a_connection_that_says_nothing_is_closed(open_engine, monkeypatch):
    monkeypatch.setattr(listening, "HEAD_S", 0.3)
    async with open_engine(Scripts(), **behind_a_proxy()) as running, served_page(running) as served:
        host, port = served.url.removeprefix("http://").split(":")
        for said in (b"", b"GET / HTTP/1.1\r\nHost: x", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET / HT"):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(said)
            async with asyncio.timeout(150):
                await reader.read()
            writer.close()
