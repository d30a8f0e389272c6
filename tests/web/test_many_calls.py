"""Decide forty calls on one page: a row each, some changed and one left out, with the buttons always in view."""

from contextlib import AsyncExitStack

from playwright.async_api import expect

from backstay.testing import Reply
from tests.browser import assert_accessible, assert_fits
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, headers, in_view, place, press, served_page, told

ANA = "ana@example.com"
FORTY = range(40)


def address(number):
    return f"customer{number}@shop.example"


@promise("page:many-calls")
async def test_of_forty_calls_three_are_changed_and_one_is_left_out_in_one_form_and_the_rest_is_sent(
    browser, temporal, tmp_path
):
    scripts = Scripts()
    mails = [("mail__send_email", {"to": address(at), "subject": "Reminder", "body": f"INV-{at}"}) for at in FORTY]
    async with AsyncExitStack() as stack:
        given = {"max_completion_tokens": 20_000, **behind_a_proxy()}
        running = await stack.enter_async_context(engine(temporal, tmp_path, scripts, **given))
        served = await stack.enter_async_context(served_page(running))
        budget = {"max_tool_calls": 100, "max_llm_cost_usd": 5.0}
        handle = await running.start(scripts.task(Reply(calls=mails), budget=budget))
        await pending(handle)
        size = {"width": 1280, "height": 900}
        page = await stack.enter_async_context(
            browser.tab(place(served, handle), extra_http_headers=headers(ANA), viewport=size)
        )
        await expect(page.locator("h1")).to_contain_text(f"40 calls of mail.send_email to {address(0)}")
        assert await page.locator("tr[data-row]").count() == 40
        assert [await in_view(page, name) for name in ("Approve", "Reject")] == [True, True]
        await assert_accessible(page)
        await page.set_viewport_size({"width": 390, "height": 800})
        assert await in_view(page, "Approve")
        await assert_fits(page)

        await page.get_by_role("button", name="Include none").click()
        assert await page.locator("input[name^='take.']:checked").count() == 0
        await page.get_by_role("button", name="Include all").click()
        assert await page.locator("input[name^='take.']:checked").count() == 40

        for number in (3, 5, 7):
            await page.get_by_label(f"Change call {number}", exact=True).check()
        await page.get_by_role("button", name="Change the ticked calls").click()
        for number in (3, 5):
            await page.locator(f"textarea[name^='v.{number}.']").last.fill(f"other{number}@shop.example")
        await page.get_by_label("Include call 9", exact=True).uncheck()
        await press(page, "Ask again with these changes")
        await told(page, f"decided: changed by {ANA}; it is asked again with the change")
        assert running.mailbox.rows("SELECT count(*) FROM sent") == [(0,)]

        assert await page.locator("tr[data-row]").count() == 39
        assert await page.locator("details[open] .changed").count() == 2
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
        await ended(handle)
        sent = [to for (to,) in running.mailbox.rows("SELECT recipient FROM sent")]

    wanted = {address(at) for at in FORTY} - {address(3), address(5), address(9)}
    assert sorted(sent) == sorted({*wanted, "other3@shop.example", "other5@shop.example"})
