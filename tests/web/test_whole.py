"""Nobody approves on the page what was not delivered to them, and a change is shown before it is sent."""

from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.engine import Scripts, ended, engine
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, form_of, headers, opened, place, press, served_page, told, verdicts

ANA = "ana@example.com"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("whole"), Scripts()
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **behind_a_proxy()))
        yield running, scripts, await stack.enter_async_context(served_page(running))


def mail(*addresses, body="Dear all"):
    return Reply(
        calls=[("mail__send_email", {"to": to, "subject": "Hello", "body": body}) for to in addresses], text="I write."
    )


def sent(running, domain):
    return sorted(to for to in running.mailbox.sent() if to.endswith(domain))


@promise("page:whole-letter")
async def test_a_long_letter_stands_whole_in_the_page_without_scripts_and_is_approved_there(browser, shared):
    running, scripts, served = shared
    body = "".join(f"line {at} of the letter\n" for at in range(300)) + "the last words"
    handle = await running.start(scripts.task(mail("a@letter.example", body=body)))
    async with opened(browser, served, handle, scripts=False) as page:
        assert "the last words" not in await page.locator("main").inner_text()
        await page.locator("summary").filter(has_text="Show all").click()
        assert "the last words" in await page.locator("main").inner_text()
        await page.get_by_role("link", name="Show all of it").click()
        assert "the last words" in await page.locator("main").inner_text()
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
        result = await ended(handle)
        await page.reload()
        await page.get_by_role("link", name=f"text of {len(body):,} bytes").click()
        assert "the last words" in await page.locator("main").inner_text()
    assert verdicts(result) == [(ANA, "approve", True)]
    assert running.mailbox.rows("SELECT body FROM sent WHERE recipient = 'a@letter.example'") == [(body,)]


@promise("page:whole-delivered")
async def test_an_approval_from_a_page_that_did_not_hold_all_of_it_is_refused(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("a@part.example", body="word " * 1200)))
    async with opened(browser, served, handle) as page:
        form = form_of(await page.content(), verdict="approve")
        assert form["w"] == form["d"]
        for fields in ({**form, "w": ""}, {**form, "w": "0" * 64}):
            answer = await page.request.post(
                f"{place(served, handle)}/decide", form=fields, headers=headers(ANA) | {"Origin": served.url}
            )
            assert answer.status == 409, await answer.text()
            assert "all of it must be shown before it is approved" in await answer.text()
        assert sent(running, "@part.example") == []
        await press(page, "Reject")
        await told(page, f"decided: rejected by {ANA}")
    await ended(handle)


@promise("page:many-calls")
@pytest.mark.thorough
async def test_changing_one_call_of_a_batch_shows_all_of_them_again_and_sends_nothing_before(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("a@batch.example", "b@batch.example", "c@batch.example")))
    async with opened(browser, served, handle) as page:
        await page.get_by_role("link", name="Change the arguments of this call").nth(1).click()
        assert "Nothing is sent yet" in await page.locator("#edit").inner_text()
        await page.get_by_label("Further arguments (JSON)").fill('{"subjct": "x"}')
        await press(page, "Ask again with these arguments")
        await page.get_by_role("alert").filter(has_text="unknown name; did you mean subject?").wait_for()
        await page.get_by_label("Further arguments (JSON)").fill("")
        await page.locator("#edit").get_by_label("to", exact=True).fill("d@batch.example")
        await page.get_by_label("Comment").fill("d does that now")
        await press(page, "Ask again with these arguments")
        await told(page, "nothing is sent before that")
        shown = await page.locator("main").inner_text()
        before = sent(running, "@batch.example")
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
        await page.goto(f"{served.url}/decided")
        decided = await page.locator("main").inner_text()
    await ended(handle)

    assert before == []
    assert "~ to: b@batch.example -> d@batch.example" in shown
    assert sent(running, "@batch.example") == ["a@batch.example", "c@batch.example", "d@batch.example"]
    assert "~ to: b@batch.example -> d@batch.example" in decided
    assert "d does that now" in decided
