"""The inbox and what was decided: what is said of each request, and how people find one among many."""

import asyncio
import re
from contextlib import AsyncExitStack
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import expect

from backstay.testing import Reply
from people.notices.delivering import tidying
from tests.browser import assert_accessible
from tests.engine import Scripts, ended, engine, pending, update
from tests.requirements import promise
from tests.web.pages import (
    BEHIND,
    behind_a_proxy,
    headers,
    listed,
    mail,
    opened,
    press,
    served_page,
    told,
    until_listed,
)

ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
POLICY = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
ask: [{tool: mail.send_email, when: {to: {ends_with: "@soon.example"}}, timeout: 1s}]
"""
MAY, PARTY, WHICH = "invoice-of-may", "party-of-june", "which-invoice"
expect.set_options(timeout=120_000)


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    """Open an engine and its page, with three requests that wait for all tests."""
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("inbox"), Scripts()
        running = await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY, **behind_a_proxy()))
        served = await stack.enter_async_context(served_page(running))
        asks = {
            MAY: (mail("kim@may.example", subject="An Invoice, 100% due"), "kim"),
            PARTY: (mail("lee@june.example", subject="A party"), "lee"),
            WHICH: (Reply(calls=[("ask_person", {"question": "Which invoice is meant?"})]), "kim"),
        }
        person = await stack.enter_async_context(served.person(ANA))
        for name, (reply, user) in asks.items():
            await pending(await running.start(scripts.task(reply, user_id=user), name))
            await listed(person, name)
        yield running, scripts, served


def named(text):
    """Return the runs whose requests a page lists."""
    return re.findall(r'<a class="open"[^>]* href="/requests/([^/"]+)/', text)


@promise("page:found")
@pytest.mark.parametrize(
    ("asked", "found"),
    [
        pytest.param({}, [WHICH, PARTY, MAY], id="all"),
        pytest.param({"q": "invoice"}, [WHICH, MAY], id="a-word-in-any-case"),
        pytest.param({"q": "due invoice"}, [MAY], id="each-of-several-words"),
        pytest.param({"q": "script 0001"}, [PARTY], id="a-task"),
        pytest.param({"q": "mail.send_email"}, [PARTY, MAY], id="a-tool"),
        pytest.param({"q": "lee@june"}, [PARTY], id="an-argument"),
        pytest.param({"q": "kim"}, [WHICH, MAY], id="a-person"),
        pytest.param({"q": "party-of"}, [PARTY], id="a-run"),
        pytest.param({"q": "100%"}, [MAY], id="a-sign-that-means-something-to-databases"),
        pytest.param({"q": "i_v"}, [], id="another-such-sign"),
        pytest.param({"kind": "question"}, [WHICH], id="a-kind"),
        pytest.param({"kind": "call", "q": "invoice"}, [MAY], id="a-kind-and-a-word"),
        pytest.param({"kind": "plan"}, [], id="a-kind-that-nobody-asks"),
        pytest.param({"kind": "poem", "before": "x"}, [WHICH, PARTY, MAY], id="what-is-no-filter"),
    ],
)
async def test_the_inbox_shows_the_requests_that_fit_a_search_and_a_kind(shared, asked, found):
    _, _, served = shared
    async with served.person(ANA) as person:
        text = (await person.get("/", params=asked)).text
    of_these = [name for name in named(text) if name in {MAY, PARTY, WHICH}]
    assert of_these == found
    assert ("Nothing fits this search." in text) == (not found)
    assert ("some are not shown" in text) == bool(set(asked.values()) - {"poem", "x"})


@promise("page:found-typed")
async def test_while_a_search_is_typed_the_inbox_shows_what_fits_and_keeps_to_it_when_news_come(browser, shared):
    running, scripts, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        await page.evaluate("window.same = true")
        await page.get_by_label("Search").press_sequentially("invoice")
        await rows_are(page, WHICH, MAY)
        await page.get_by_label("Kind").select_option("call")
        await rows_are(page, MAY)
        await assert_accessible(page)
        waiting = len(await everything(served)) + 1
        handle = await running.start(scripts.task(mail("mo@june.example", subject="Flowers")))
        await expect(page.get_by_role("status").first).to_have_text(
            f"{waiting} requests wait for a decision; some are not shown."
        )
        await rows_are(page, MAY)
        assert await page.evaluate("window.same") is True
        assert parse_qs(urlsplit(page.url).query) == {"q": ["invoice"], "kind": ["call"]}
        await page.reload()
        await rows_are(page, MAY)
        await expect(page.get_by_label("Search")).to_have_value("invoice")
        await page.get_by_label("Search").fill("flowerpots")
        await expect(page.locator(".empty")).to_have_text("Nothing fits this search.")
        await handle.terminate()


@promise("page:pressed")
@pytest.mark.thorough
async def test_news_that_come_amid_a_click_wait_for_its_end_and_the_click_counts(browser, shared):
    running, scripts, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        rows = page.locator("a.open")
        before = await rows.count()

        async def asked_anew():
            async with page.expect_response(served.url + "/") as answer:
                handle = await running.start(scripts.task(mail("ed@june.example", subject="Tulips")))
            await (await answer.value).finished()
            await page.evaluate("new Promise((done) => setTimeout(done, 200))")
            return handle

        await page.get_by_role("heading", name="Inbox").hover()
        await page.mouse.down()
        first = await asked_anew()
        await expect(rows).to_have_count(before, timeout=1)
        await page.mouse.up()
        await expect(rows).to_have_count(before + 1)

        await page.locator(f'a.open[href^="/requests/{quote(MAY)}/"]').hover()
        await page.mouse.down()
        second = await asked_anew()
        await page.mouse.up()
        await expect(page).to_have_url(re.compile(f"/requests/{MAY}/"))
    for handle in (first, second):
        await handle.terminate()


async def rows_are(page, *names):
    """Wait until a list shows the requests of these runs and no others."""
    await expect(page.locator("a.open")).to_have_count(len(names))
    for at, name in enumerate(names):
        await expect(page.locator("a.open").nth(at)).to_have_attribute("href", re.compile(f"^/requests/{name}/"))


async def everything(served):
    async with served.person(ANA) as person:
        return named((await person.get("/")).text)


@promise("page:decided")
async def test_each_row_of_what_was_decided_says_what_became_of_it_and_by_whom(browser, shared):
    running, scripts, served = shared
    handles = {
        name: await running.start(scripts.task(mail(f"{name}@past.example"), user_id=f"user-of-{name}"), f"past-{name}")
        for name in ("approved", "rejected", "unproven", "withdrawn", "ended")
    }
    handles["expired"] = await running.start(scripts.task(mail("expired@soon.example")), "past-expired")
    async with opened(browser, served, handles["approved"], ANA) as page:
        await page.get_by_label("Comment").fill("with <b>pleasure</b>")
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
    async with opened(browser, served, handles["rejected"], BO) as page:
        await press(page, "Reject")
        await told(page, f"decided: rejected by {BO}")
    unproven = {"request_id": "r1", "verdict": "approve", "by": CY}
    await pending(handles["unproven"])
    await update(handles["unproven"], "decide", unproven)
    await pending(handles["withdrawn"])
    await handles["withdrawn"].cancel()
    await pending(handles["ended"])
    async with browser.tab(extra_http_headers=headers(ANA)) as page:
        await until_listed(page, served, handles["ended"])
        await handles["ended"].terminate()
        async with tidying(served.page.store, served.page.backstay):
            for name, said in (
                ("approved", f"approved by {ANA} (verified)"),
                ("rejected", f"rejected by {BO} (verified)"),
                ("unproven", f"approved by {CY} (unverified)"),
                ("withdrawn", "withdrawn: it was no longer needed"),
                ("ended", "the run ended first"),
                ("expired", "expired"),
            ):
                await until_decided(page, served, handles[name])
                await expect(row_of(page, f"past-{name}").locator(".facts")).to_contain_text(said)
        await expect(row_of(page, "past-approved")).to_contain_text("with <b>pleasure</b>")
        await expect(row_of(page, "past-approved")).to_contain_text("for user-of-approved")
        await assert_accessible(page)
        await page.get_by_label("Search").press_sequentially("past-")
        await expect(page.locator("a.open")).to_have_count(len(handles))
        await page.get_by_label("Search").fill("")
        await page.get_by_label("Search").press_sequentially("rejected@PAST")
        await rows_are(page, "past-rejected")
        await page.get_by_label("Search").fill("")
        await page.get_by_label("Kind").select_option("question")
        await expect(page.locator(".empty")).to_have_text("Nothing fits this search.")
        await page.goto(f"{served.url}/decided")
        await row_of(page, "past-approved").get_by_role("link").click()
        await expect(page.locator("#standing")).to_have_text(
            f"Decided: approved by {ANA} (verified): with <b>pleasure</b>", use_inner_text=True
        )
    await asyncio.gather(*(ended(handles[name]) for name in ("approved", "rejected", "unproven", "expired")))


def row_of(page, name):
    return page.locator(".row").filter(has=page.locator(f"a.open[href^='/requests/{name}/']"))


async def until_decided(page, served, handle):
    """Reload what was decided until it names a run."""
    async with asyncio.timeout(150):
        while not await row_of(page, handle.id).count():
            await asyncio.sleep(0.2)
            await page.goto(f"{served.url}/decided")


@promise("page:found-by-button")
@pytest.mark.parametrize("path", ["/", "/decided"])
async def test_without_scripts_a_search_and_a_kind_are_sent_with_a_button(browser, shared, path):
    _, _, served = shared
    async with browser.tab(f"{served.url}{path}", extra_http_headers=headers(ANA), scripts=False) as page:
        await page.get_by_label("Search").fill("no-such-party")
        await page.get_by_label("Kind").select_option("call")
        await press(page, "Show")
        await expect(page.locator(".empty")).to_have_text("Nothing fits this search.")
        await expect(page.get_by_label("Search")).to_have_value("no-such-party")
        await expect(page.get_by_label("Kind")).to_have_value("call")
        assert urlsplit(page.url).path == path


@promise("page:inbox-news")
@pytest.mark.thorough
async def test_a_row_of_the_inbox_says_which_others_are_looking_at_the_request(browser, shared):
    _, _, served = shared
    address = f"{served.url}/requests/{quote(PARTY)}/r1"
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as ana:
        assert await ana.locator(".looking").count() == 0
        async with browser.tab(address, extra_http_headers=headers(BO)):
            await until_row_says(ana, f"{BO} is looking")
            async with browser.tab(address, extra_http_headers=headers(CY)) as cy:
                await until_row_says(ana, f"{BO}, {CY} are looking")
                await expect(row_of(ana, MAY).locator(".looking")).to_have_count(0)
                beside = await cy.context.new_page()
                await beside.goto(served.url)
                await until_row_says(beside, f"{BO} is looking")
            await until_row_says(ana, f"{BO} is looking")
        await until_row_says(ana, "")


async def until_row_says(page, said):
    """Reload the inbox until the row of the party says who is looking."""
    async with asyncio.timeout(150):
        while "".join(await row_of(page, PARTY).locator(".looking").all_inner_texts()) != said:
            await asyncio.sleep(0.2)
            await page.reload()


@promise("page:streams-back")
@pytest.mark.parametrize("fault", [502, "connectionrefused"])
async def test_an_inbox_that_is_refused_its_news_says_so_and_shows_them_once_they_come_again(browser, shared, fault):
    running, scripts, served = shared
    refused, stopped = [fault], "Live updates have stopped."
    async with browser.tab(extra_http_headers=headers(ANA)) as page, served.person(ANA) as person:

        async def answer(route):
            if not refused:
                await route.continue_()
            elif fault == 502:
                await route.fulfill(status=fault)
            else:
                await route.abort(fault)

        await page.route("**/events", answer)
        await page.goto(served.url)
        await expect(page.locator("#stopped")).to_contain_text(stopped)
        await expect(page.locator("#stopped")).to_be_visible()
        await assert_accessible(page)
        handle = await running.start(scripts.task(mail("back@streams.example")))
        await pending(handle)
        await listed(person, handle.id)
        row = page.locator(f"a[href*='{quote(handle.id, safe='')}']")
        await expect(row).to_have_count(0)
        refused.clear()
        await expect(row).to_be_visible()
        await expect(page.locator("#stopped")).to_be_hidden()
    await handle.terminate()


@promise("page:streams-back")
async def test_an_inbox_that_a_person_comes_back_to_is_followed_again(browser, shared):
    running, scripts, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page, served.person(ANA) as person:
        await expect(page.locator("[data-row]").first).to_be_visible()
        await page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
        handle = await running.start(scripts.task(mail("again@streams.example")))
        await pending(handle)
        await listed(person, handle.id)
        await page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
        await expect(page.locator(f"a[href*='{quote(handle.id, safe='')}']")).to_be_visible()
    await handle.terminate()


@promise("page:tabs")
async def test_tabs_behind_others_block_no_page_and_one_inbox_of_them_is_followed(browser, shared):
    running, scripts, served = shared
    asks = [f"/requests/{quote(name)}/r1" for name in (MAY, PARTY, WHICH)]
    async with browser.person(extra_http_headers=headers(CY)) as person, served.person(CY) as known:
        await person.add_init_script(BEHIND)
        tabs = []
        # As many as a browser keeps connections to one host.
        for path in ("/", "/", *asks, f"/runs/{quote(MAY)}"):
            tabs.append(await person.new_page())
            await tabs[-1].goto(served.url + path)
            await tabs[-1].evaluate("put(true)")
        first, second, asked, *_ = tabs
        page = await person.new_page()
        await page.goto(f"{served.url}{asks[1]}", timeout=30_000)
        await expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
        await page.close()

        async def asked_for(to):
            handle = await running.start(scripts.task(mail(to)))
            await pending(handle)
            await listed(known, handle.id)
            return handle, f"a[href*='{quote(handle.id, safe='')}']"

        early, row = await asked_for("first@tabs.example")
        await expect(first.locator(row)).to_be_visible()
        await expect(second.locator(row)).to_have_count(0)
        await second.evaluate("put(false)")
        await expect(second.locator(row)).to_be_visible()
        await second.evaluate("put(true)")
        await first.close()
        late, row = await asked_for("second@tabs.example")
        await expect(second.locator(row)).to_be_visible()
        async with served.person(BO) as bo:
            await bo.get(asks[0])
        await asked.evaluate("put(false)")
        await expect(asked.locator("#news")).to_contain_text(BO)
    for handle in (early, late):
        await handle.terminate()


@promise("page:tabs")
async def test_an_inbox_that_is_opened_behind_others_shows_what_came_before_somebody_looks(browser, shared):
    running, scripts, served = shared
    old = await running.start(scripts.task(mail("old@tabs.example")))
    async with browser.person(extra_http_headers=headers(CY)) as person, served.person(CY) as known:
        await pending(old)
        await listed(known, old.id)
        first, behind = await person.new_page(), await person.new_page()
        # The one that is followed while nobody looks.
        await first.goto(served.url)
        await behind.add_init_script(f"{BEHIND}window.behind = true;")
        await behind.goto(served.url)
        # Then as many wait as before.
        await served.page.backstay.run(old.id).approve("r1", by=CY)
        new = await running.start(scripts.task(mail("new@tabs.example")))
        await pending(new)
        await listed(known, new.id)
        async with asyncio.timeout(150):
            while old.id in (await known.get("/")).text:
                await asyncio.sleep(0.1)
        row = f"a[href*='{quote(new.id, safe='')}']"
        await expect(first.locator(row)).to_be_visible()
        await expect(behind.locator(row)).to_have_count(0)
        await behind.evaluate("put(false)")
        await expect(behind.locator(row)).to_be_visible()
    await new.terminate()
    await ended(old)


HIDDEN = """
window.told = [];
window.Notification = class extends EventTarget {
  static permission = "default";
  static async requestPermission() { return (Notification.permission = "granted"); }
  constructor(title, more) { super(); window.told.push(`${title}: ${more.body}`); }
};
Object.defineProperty(document, "hidden", {get: () => true});
"""
"""A page behind others, in a browser that asks its person once."""


@promise("page:notified")
async def test_who_asks_for_it_is_notified_of_new_requests_while_the_page_is_behind_others(browser, shared):
    running, scripts, served = shared
    async with browser.tab(extra_http_headers=headers(BO)) as page:
        await page.add_init_script(HIDDEN)
        await page.goto(served.url)
        await expect(page.locator("[data-row]").first).to_be_visible()
        first = await running.start(scripts.task(mail("first@notified.example")))
        await expect(page.locator(f"a[href*='{quote(first.id, safe='')}']")).to_be_visible()
        unasked = await page.evaluate("told")
        await page.get_by_role("button", name="Notify me in this browser").click()
        await expect(page.get_by_role("button", name="Notify me in this browser")).to_be_hidden()
        second = await running.start(scripts.task(mail("second@notified.example")))
        async with asyncio.timeout(120):
            while not (told_of := await page.evaluate("told")):
                await asyncio.sleep(0.1)
    assert unasked == []
    assert re.fullmatch(r"backstay: \d+ requests wait for a decision", told_of[0])
    for handle in (first, second):
        await handle.terminate()
