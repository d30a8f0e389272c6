"""Pages that people come to in the middle of something have no barriers either, in the light and in the dark."""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.browser import COLOURS, assert_accessible, assert_fits
from tests.connections.issuer import authority_in, secure
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import (
    ANA,
    behind_a_proxy,
    headers,
    in_view,
    mail,
    opened,
    place,
    press,
    served_page,
    told,
    verdicts,
)

BO = "bo@example.com"
expect.set_options(timeout=120_000)


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("barriers"), Scripts()
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **behind_a_proxy()))
        yield running, scripts, await stack.enter_async_context(served_page(running))


async def has_no_barriers(page):
    await page.emulate_media(color_scheme="light")
    await assert_accessible(page)
    await page.emulate_media(color_scheme="dark")
    await assert_accessible(page, only=COLOURS)
    await assert_fits(page)


@promise("page:barriers")
@pytest.mark.thorough
async def test_the_form_that_changes_arguments_has_none_nor_when_it_comes_back_with_a_fault(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("edit@x.example")))
    async with opened(browser, served, handle) as page:
        await page.get_by_role("link", name="Change the arguments of this call").click()
        await expect(page.get_by_label("subject")).to_have_value("Hello")
        await has_no_barriers(page)
        await page.get_by_label("Further arguments (JSON)").fill("no JSON")
        await press(page, "Ask again with these arguments")
        await page.get_by_role("alert").filter(has_text="invalid JSON").wait_for()
        await expect(page.get_by_label("Further arguments (JSON)")).to_have_value("no JSON")
        await has_no_barriers(page)
        await page.get_by_label("Further arguments (JSON)").fill('{"subject": "Good day"}')
        await press(page, "Ask again with these arguments")
        await told(page, f"decided: changed by {ANA}")
        await has_no_barriers(page)
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "modify", True), (ANA, "approve", True)]
    assert running.mailbox.rows("SELECT subject FROM sent WHERE recipient = 'edit@x.example'") == [("Good day",)]


@promise("page:barriers")
@pytest.mark.thorough
async def test_what_asks_whether_to_undo_or_to_end_a_run_has_none(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("back@x.example"), mail("other@x.example")))
    async with opened(browser, served, handle) as page:
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
        await pending(handle)
        for opens, button, asks, yes in (
            ("Undo 1 effect", "Undo…", "Undo this?", "Yes, undo it"),
            ("End this run", "End it…", "End this run?", "Yes, end it"),
        ):
            await page.goto(f"{served.url}/runs/{handle.id}")
            await page.get_by_text(opens).click()
            await press(page, button)
            await expect(page.get_by_role("heading", level=1)).to_have_text(asks)
            await expect(page.locator("main")).to_contain_text("back@x.example")
            await has_no_barriers(page)
            await page.set_viewport_size({"width": 1280, "height": 250})
            assert await in_view(page, yes)
            await page.set_viewport_size({"width": 1280, "height": 900})
        await page.get_by_role("link", name="No, leave it").click()
        await page.wait_for_url(f"**/runs/{handle.id}")
    assert "back@x.example" in running.mailbox.sent()
    await handle.terminate()


@promise("page:barriers")
@pytest.mark.thorough
async def test_what_became_of_equal_calls_has_none_also_where_one_was_not_decided(browser, shared):
    running, scripts, served = shared
    handles = [await running.start(scripts.task(mail("equal@x.example"))) for _ in range(2)]
    async with opened(browser, served, handles[0]) as page, opened(browser, served, handles[1]) as beside:
        await page.goto(served.url)
        # News may draw the list anew at any moment, also amid a click.
        together = await page.get_by_role("link", name="decide 2 equal calls at once").first.get_attribute("href")
        await page.goto(f"{served.url}{together}")
        await page.get_by_role("checkbox").nth(1).wait_for()
        await press(beside, "Reject")
        await told(beside, "decided: rejected")
        await press(page, "Approve the ticked")
        await expect(page.get_by_role("heading", level=1)).to_have_text("1 of 2 requests approved")
        await expect(page.locator(".warning")).to_have_count(1)
        await has_no_barriers(page)
    results = [verdicts(await ended(handle)) for handle in handles]
    assert results == [[(ANA, "approve", True)], [(ANA, "reject", True)]]


@promise("page:barriers")
async def test_pages_that_refuse_strangers_and_find_nothing_have_none(browser, shared):
    _, _, served = shared
    for more, path, status, says in (
        ({}, "/", 401, "Who are you?"),
        ({"extra_http_headers": headers(ANA)}, "/requests/no-such-run/r1", 404, "Nothing here"),
    ):
        async with browser.tab(**more) as page:
            answer = await page.goto(f"{served.url}{path}")
            assert answer.status == status
            await expect(page.get_by_role("heading", level=1)).to_have_text(says)
            await has_no_barriers(page)


@promise("page:ended-proxy-sign-in")
async def test_whoever_approves_after_the_sign_in_at_the_proxy_has_ended_comes_to_sign_in_again(
    browser, shared, tmp_path
):
    running, scripts, served = shared

    async def login(request):
        return PlainTextResponse("Sign in again")

    handle = await running.start(scripts.task(mail("later@x.example")))
    async with (
        secure(Starlette(routes=[Route("/login", login)]), authority_in(tmp_path)) as elsewhere,
        opened(browser, served, handle, ignore_https_errors=True) as page,
    ):
        to = {"location": f"{elsewhere}/login"}
        await page.route("**/decide", lambda route: route.fulfill(status=302, headers=to))
        await press(page, "Approve")
        await expect(page.get_by_text("Sign in again")).to_be_visible()
        await page.unroute("**/decide")
        answer = await page.goto(f"{place(served, handle)}/decide")
        assert answer.status == 405
        await expect(page.locator("main")).to_contain_text("nothing was done; open the page again")
    await handle.terminate()


@promise("page:ended-proxy-sign-in")
async def test_where_no_proxy_signs_people_in_a_form_leads_nowhere_else(shared):
    running, _, _ = shared
    async with served_page(running, web_identity="link") as served, served.stranger() as stranger:
        policy = (await stranger.get("/")).headers["Content-Security-Policy"]
    assert "; form-action 'self';" in policy


@promise("page:barriers")
@pytest.mark.thorough
async def test_a_refusal_that_lists_what_has_changed_has_none(browser, shared):
    running, scripts, served = shared
    first = await running.start(scripts.task(mail("a@old.example", "b@old.example")), "stale")
    async with opened(browser, served, first) as page:
        await first.terminate()
        second = await running.start(scripts.task(mail("a@new.example", "b@new.example", subject="June")), "stale")
        await pending(second)
        await page.get_by_label("Comment").fill("as agreed")
        await press(page, "Approve")
        await page.get_by_role("alert").filter(has_text="it has changed; look at it again").wait_for()
        changes = await page.locator("#standing li").all_inner_texts()
        assert changes[0].startswith("it is another run of the same name")
        assert changes[1:] == [
            "call 0: ~ to: a@old.example -> a@new.example",
            "call 0: ~ subject: Hello -> June",
            "call 1: ~ to: b@old.example -> b@new.example",
            "call 1: ~ subject: Hello -> June",
        ]
        await expect(page.get_by_label("Comment")).to_have_value("as agreed")
        await has_no_barriers(page)
        async with served.person(BO) as bo:
            await bo.get(place(served, second))
        await expect(page.locator("#news .notice")).to_have_text(f"{BO} is looking at this, too.")
        await expect(page.get_by_role("alert")).to_contain_text("it has changed; look at it again")
        assert await page.locator("#standing li").all_inner_texts() == changes
        await page.get_by_role("link", name="Change the arguments of this call").first.click()
        await expect(page.get_by_label("subject")).to_have_value("June")
    await second.terminate()
