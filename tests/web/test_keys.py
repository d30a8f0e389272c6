"""Keys: they move the focus, open the help and never decide by themselves; in a field they are only text."""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from playwright.async_api import expect

from tests.browser import assert_accessible
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import ANA, behind_a_proxy, headers, listed, mail, opened, served_page, told, verdicts

expect.set_options(timeout=120_000)


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    """Open an engine and its page, with three requests that wait for all tests."""
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("keys"), Scripts()
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **behind_a_proxy()))
        served = await stack.enter_async_context(served_page(running))
        person = await stack.enter_async_context(served.person(ANA))
        for name in ("first", "second", "third"):
            await pending(await running.start(scripts.task(mail(f"{name}@x.example"), user_id=name), name))
            await listed(person, name)
        yield running, scripts, served


def row_of(page, name):
    return page.locator(f"a.open[href^='/requests/{name}/']")


@promise("page:keys")
async def test_j_and_k_go_down_and_up_the_rows_and_stay_at_their_ends(browser, shared):
    _, _, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        for key, name in (
            ("k", "first"),
            ("k", "second"),
            ("k", "third"),
            ("k", "third"),
            ("j", "second"),
            ("j", "first"),
            ("j", "first"),
        ):
            await page.keyboard.press(key)
            await expect(row_of(page, name)).to_be_focused()
        await page.keyboard.press("k")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/requests/second/**")


@promise("page:reject-key")
async def test_r_goes_to_reject_from_the_inbox_and_on_the_page_of_a_request_and_enter_presses_it(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("r@x.example")))
    async with opened(browser, served, handle) as page:
        await page.goto(served.url)
        await page.keyboard.press("j")
        await expect(row_of(page, handle.id)).to_be_focused()
        await page.keyboard.press("r")
        reject = page.get_by_role("button", name="Reject", exact=True)
        await expect(reject).to_be_focused()
        await page.keyboard.press("a")
        await expect(page.get_by_role("button", name="Approve", exact=True)).to_be_focused()
        await page.keyboard.press("r")
        await expect(reject).to_be_focused()
        assert len(await pending(handle)) == 1
        await page.keyboard.press("Enter")
        await told(page, f"decided: rejected by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "reject", True)]


@promise("page:search-key")
async def test_a_slash_goes_to_the_search_without_being_typed_there(browser, shared):
    _, _, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        for place in ("", "/decided", "/runs"):
            await page.goto(f"{served.url}{place}")
            await page.keyboard.press("/")
            await expect(page.get_by_role("searchbox")).to_be_focused()
            await expect(page.get_by_role("searchbox")).to_have_value("")
            await page.keyboard.type("jr/")
            await expect(page.get_by_role("searchbox")).to_have_value("jr/")


@promise("page:help-key")
async def test_a_question_mark_opens_the_help_which_keeps_all_other_keys_until_it_is_closed(browser, shared):
    _, _, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        help_ = page.get_by_role("dialog", name="Keys")
        await expect(help_).to_be_hidden()
        await page.keyboard.press("?")
        await expect(help_).to_be_visible()
        assert await help_.locator("kbd").all_inner_texts() == ["j", "k", "Enter", "a", "r", "/", "?"]
        await assert_accessible(page)
        for key in "jkar/?":
            await page.keyboard.press(key)
        await expect(help_.get_by_role("button", name="Close")).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(help_).to_be_hidden()
        await page.get_by_role("button", name="Keys").click()
        await expect(help_).to_be_visible()
        await help_.get_by_role("button", name="Close").click()
        await expect(help_).to_be_hidden()
        assert page.url == f"{served.url}/"


@promise("page:search-key")
@pytest.mark.thorough
async def test_a_key_that_is_typed_in_a_field_is_only_text(browser, shared):
    running, _, served = shared
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        await types_only_text(page, page.get_by_role("searchbox"))
        await page.goto(f"{served.url}/requests/first/r1")
        await types_only_text(page, page.get_by_label("Comment"))
        await page.get_by_role("button", name="Approve", exact=True).focus()
        for key in ("Control+r", "Alt+r", "Meta+r"):
            await page.dispatch_event("body", "keydown", held(key))
            await expect(page.get_by_role("button", name="Approve", exact=True)).to_be_focused()
    assert len(await pending(running.client.get_workflow_handle("first"))) == 1


def held(key):
    """Return what a browser says of a key that is pressed while another is held."""
    holding, _, letter = key.partition("+")
    return {"key": letter, "bubbles": True, f"{holding.lower().replace('control', 'ctrl')}Key": True}


async def types_only_text(page, field):
    """Type every key that means something elsewhere, and find it in the field and nothing else done."""
    address = page.url
    await field.focus()
    await page.keyboard.type("jkar/?")
    await expect(field).to_have_value("jkar/?")
    await expect(field).to_be_focused()
    await expect(page.get_by_role("dialog")).to_be_hidden()
    assert page.url.partition("?")[0] == address
