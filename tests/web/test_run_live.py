"""The page of a run in a real browser: live, with the keyboard, in the dark, on a phone, and without scripts."""

import asyncio

import pytest
from playwright.async_api import expect

from backstay.testing import Reply
from gateways.web.runs import streaming
from tests.browser import assert_accessible, assert_fits
from tests.engine import Scripts, ended, pending
from tests.requirements import promise
from tests.sizes import spread
from tests.web.pages import BEHIND, behind_a_proxy, headers, served_page

ANA = "ana@example.com"
LIST = Reply(calls=[("mail__list_customers", {"limit": 3})])
SEND = Reply(calls=[("mail__send_email", {"to": "a@example.com", "subject": "Hi", "body": "Hello"})])
expect.set_options(timeout=120_000)
PERSON = {"extra_http_headers": headers(ANA)}
STREAMS = """
window.streams = [];
window.EventSource = class extends EventSource { constructor(...at) { super(...at); streams.push(this); } };
"""
OPEN_STREAMS = """
streams.filter(({readyState}) => readyState !== EventSource.CLOSED).map(({url}) => new URL(url).pathname)
"""


@promise("page:live")
async def test_a_run_is_followed_live_and_what_a_person_writes_meanwhile_stays(open_engine, browser, monkeypatch):
    # Its stream comes to an end again and again, as behind a proxy that holds none for long.
    monkeypatch.setattr(streaming, "LONGEST_S", 1)
    scripts = Scripts()
    async with (
        open_engine(scripts, cached=100, **behind_a_proxy()) as running,
        served_page(running) as served,
        browser.tab(**PERSON) as page,
    ):
        handle = await running.start(scripts.task(LIST, SEND, user_id=ANA))
        (request,) = await pending(handle)
        run = f"{handle.id}/{handle.first_execution_run_id}"
        await page.goto(f"{served.url}/runs/{handle.id}")
        await expect(page.get_by_role("link", name="Look and decide")).to_be_visible()
        await page.get_by_label("Tell the model something").fill("half a sentence")
        await page.locator("[data-n='3'] summary").click()
        async with asyncio.timeout(150):
            while (stream := await served.page.store.deltas.begin(run, 3)) is None:
                await asyncio.sleep(0.05)
        await served.page.store.deltas.append(run, stream, 3, "Let me <b>see</b>")
        saying, streams = page.get_by_role("region", name="The model is saying"), []
        await expect(saying).to_contain_text("Let me <b>see</b>")
        page.on("request", lambda request: streams.append(request.url) if "/events?" in request.url else None)
        said = "Let me <b>see</b>"
        async with asyncio.timeout(150):
            while len(streams) < 2:
                said += "."
                await served.page.store.deltas.append(run, stream, 3, ".")
                await asyncio.sleep(0.2)
        await expect(page.locator("#saying-text")).to_have_text(said)
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        await expect(page.get_by_role("heading", name="Result")).to_be_visible()
        await expect(page.locator("#live-head")).to_contain_text("completed")
        await expect(page.get_by_role("link", name="Look and decide")).to_have_count(0)
        await expect(page.get_by_text("The model is saying")).to_be_hidden()
        assert await page.get_by_label("Tell the model something").input_value() == "half a sentence"
        assert await page.locator("[data-n='3'] details").get_attribute("open") is not None
        await ended(handle)


@promise("page:streams-back")
async def test_the_page_of_a_run_that_is_refused_its_stream_is_followed_again(open_engine, browser):
    scripts, refused = Scripts(), [429]
    async with (
        open_engine(scripts, cached=100, **behind_a_proxy()) as running,
        served_page(running) as served,
        browser.tab(**PERSON) as page,
    ):

        async def answer(route):
            await (route.fulfill(status=refused[0]) if refused else route.continue_())

        await page.add_init_script(BEHIND + STREAMS)
        await page.route("**/events?*", answer)
        handle = await running.start(scripts.task(LIST, SEND, user_id=ANA))
        await pending(handle)
        await page.goto(f"{served.url}/runs/{handle.id}")
        await expect(page.locator("#stopped")).to_be_visible()
        await served.page.backstay.run(handle.id).pause("coffee", by=ANA)
        refused.clear()
        await expect(page.locator("#live-head")).to_contain_text("Paused")
        await expect(page.locator("#stopped")).to_be_hidden()
        assert await page.evaluate(OPEN_STREAMS) == [f"/runs/{handle.id}/events"]
        await page.evaluate("put(true)")
        assert await page.evaluate(OPEN_STREAMS) == []
        await served.page.backstay.run(handle.id).resume(by=ANA)
        await expect(page.locator("#live-head")).to_contain_text("Paused")
        await page.evaluate("put(false)")
        await expect(page.locator("#live-head")).not_to_contain_text("Paused")
        await handle.terminate()


@promise("page:pressed")
async def test_a_click_on_a_run_counts_though_the_run_goes_on_while_it_is_pressed(open_engine, browser):
    scripts = Scripts()
    async with (
        open_engine(scripts, cached=100, **behind_a_proxy()) as running,
        served_page(running) as served,
        browser.tab(**PERSON) as page,
    ):
        handle = await running.start(scripts.task(LIST, SEND, user_id=ANA))
        await pending(handle)
        await page.goto(f"{served.url}/runs/{handle.id}")
        event, rows = page.locator("[data-n='3'] details"), page.locator("[data-n]")
        before = await rows.count()
        await event.locator("summary").hover()
        await page.mouse.down()
        async with page.expect_response(page.url) as answer:
            await served.page.backstay.run(handle.id).pause("coffee", by=ANA)
        await (await answer.value).finished()
        await page.evaluate("new Promise((done) => setTimeout(done, 200))")
        assert await rows.count() == before
        await page.mouse.up()
        await expect(rows).not_to_have_count(before)
        await expect(event).to_have_attribute("open", "")
        await handle.terminate()


@promise("page:barriers")
@pytest.mark.thorough
async def test_the_pages_of_runs_fit_a_phone_work_in_the_dark_and_are_accessible(open_engine, browser):
    scripts = Scripts()
    async with open_engine(scripts, cached=100, **behind_a_proxy()) as running, served_page(running) as served:
        done = await running.start(scripts.task(LIST, SEND, user_id=ANA))
        (request,) = await pending(done)
        await served.page.backstay.run(done.id).approve(request["id"], by=ANA)
        events = (await ended(done))["events"]
        ref = next(event["data"]["summary_ref"] for event in events if "summary_ref" in event["data"])
        steps = [{"tool": "mail.send_email", "arguments": {"to": "a@example.com", "subject": "S", "body": "B" * 300}}]
        plan = await running.start({"plan": {"title": "T" * 120, "steps": steps}, "user_id": ANA})
        await pending(plan)
        stored = f"/blobs/{done.id}/{ref}"
        paths = [
            "/runs",
            "/runs?words=nothing",
            f"/runs/{done.id}",
            f"/runs/{plan.id}",
            stored,
            f"{stored}?path=customers",
        ]
        for look, some in (({}, paths), ({"dark": True}, spread(paths, 3)), ({"phone": True}, spread(paths[::-1], 3))):
            async with browser.tab(**look, **PERSON) as page:
                for path in some:
                    await page.goto(served.url + path)
                    await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
                    await assert_accessible(page)
                    await assert_fits(page)
        await plan.terminate()


@promise("page:deeds")
@pytest.mark.thorough
async def test_without_scripts_and_by_keyboard_a_person_pauses_looks_before_an_undo_and_undoes(open_engine, browser):
    scripts = Scripts()
    async with (
        open_engine(scripts, cached=100, **behind_a_proxy()) as running,
        served_page(running) as served,
        browser.tab(scripts=False, **PERSON) as page,
    ):
        handle = await running.start(scripts.task(SEND, user_id=ANA))
        (request,) = await pending(handle)
        await page.goto(f"{served.url}/runs/{handle.id}")
        await page.get_by_text("Pause", exact=True).focus()
        await page.keyboard.press("Enter")
        await page.get_by_label("Why").fill("coffee")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status").first).to_have_text("The run is paused before its next step.")
        await page.get_by_role("button", name="Let it go on").press("Enter")
        await expect(page.get_by_role("status").first).to_have_text("The run goes on.")
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        await ended(handle)
        await page.reload()
        await page.get_by_text("Undo 1 effect").click()
        await page.get_by_role("button", name="Undo…").click()
        await expect(page.get_by_role("heading", name="Undo this?")).to_be_visible()
        await page.get_by_role("button", name="Yes, undo it").click()
        await expect(page.get_by_role("status").first).to_contain_text("The undo has begun")
        await served.page.backstay.run(f"undo-{handle.id}").result()
        await page.reload()
        await expect(page.get_by_text("Nothing is left to undo.")).to_be_visible()
        assert running.mailbox.sent() == []
