"""More requests than one page holds: every older one is found, once, and news leave people where they are."""

from contextlib import AsyncExitStack
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import expect

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from tests.browser import assert_accessible
from tests.engine import Scripts, engine
from tests.requirements import promise
from tests.sizes import spread
from tests.web.pages import ANA, behind_a_proxy, headers, served_page

ON_A_PAGE, MANY = 50, 120
expect.set_options(timeout=120_000)


def asked(name):
    # Every second one is for Lee, whose name is searched for.
    user = "lee" if int(name[-3:]) % 2 else "kim"
    request = {"id": name, "kind": "question", "question": f"Which {name}?", "user_id": user, "options": ["answer"]}
    return ApprovalRequest.model_validate(request)


async def tell(store, *names, decided=False):
    """Have the store know of requests, as the workers of runs tell it."""
    for name in names:
        drafts = [NoticeDraft(sequence=1, event=NoticeKind.ASKED, at="2026-01-01T00:00:00", request=asked(name))]
        if decided:
            decision = {"request_id": name, "decision": DecisionNotice(verdict="answer", by="bo@example.com")}
            drafts.append(NoticeDraft(sequence=2, event=NoticeKind.DECIDED, at="2026-01-01T00:01:00", **decision))
        await store.outbox.write(f"{name}/first", name, "first", drafts)


OPEN, GONE = ([f"{kind}-{number:03}" for number in range(MANY)] for kind in ("open", "gone"))


@pytest_asyncio.fixture(scope="module")
async def served(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder = tmp_path_factory.mktemp("paging")
        running = await stack.enter_async_context(engine(temporal, folder, Scripts(), policy="", **behind_a_proxy()))
        served = await stack.enter_async_context(served_page(running))
        await tell(served.page.store, *OPEN)
        await tell(served.page.store, *GONE, decided=True)
        yield served


async def shown(page):
    """Return the runs of the requests that a page lists, in their order."""
    return [urlsplit(await row.get_attribute("href")).path.split("/")[2] for row in await page.locator("a.open").all()]


@promise("page:paging")
@pytest.mark.parametrize(
    ("address", "names"),
    spread(
        [
            pytest.param("/", OPEN, id="the-inbox"),
            pytest.param("/decided", GONE, id="what-was-decided"),
            pytest.param("/decided?q=lee&kind=question", GONE[1::2], id="a-search-of-what-was-decided"),
            pytest.param("/?q=lee&kind=question", OPEN[1::2], id="a-search"),
        ],
        1,
    ),
)
async def test_older_requests_are_found_page_by_page_each_once_the_newest_first(browser, served, address, names):
    async with browser.tab(f"{served.url}{address}", extra_http_headers=headers(ANA)) as page:
        pages, older = [await shown(page)], page.get_by_role("link", name="Older requests")
        await assert_accessible(page)
        while await older.count():
            async with page.expect_navigation():
                await older.click()
            pages.append(await shown(page))
        await expect(page.get_by_label("Search")).to_have_value("lee" if "lee" in address else "")
    assert {len(rows) for rows in pages[:-1]} == {ON_A_PAGE}
    assert [name for rows in pages for name in rows] == names[::-1]


@promise("page:paging-programs")
@pytest.mark.parametrize(("path", "names"), [("/api/requests", OPEN), ("/api/decided", GONE)])
async def test_a_program_goes_on_behind_the_position_that_it_was_told_until_there_is_none(served, path, names):
    pages, asked_for = [], {}
    async with served.person(ANA) as program:
        while asked_for is not None:
            said = (await program.get(path, params=asked_for)).json()
            pages.append([row["workflow_id"] for row in said["requests"]])
            asked_for = None if said["before"] is None else {"before": said["before"]}
    assert [len(rows) for rows in pages] == [ON_A_PAGE, ON_A_PAGE, MANY - 2 * ON_A_PAGE]
    assert [name for rows in pages for name in rows] == names[::-1]


@promise("page:paging-end")
async def test_behind_the_oldest_request_the_page_does_not_say_that_nothing_waits(browser, served):
    async with browser.tab(extra_http_headers=headers(ANA)) as page:
        for path in ("/", "/decided"):
            await page.goto(f"{served.url}{path}?before=1")
            await expect(page.locator(".empty")).to_have_text("Nothing older than this.")


@promise("page:inbox-news")
@pytest.mark.thorough
async def test_news_leave_people_on_the_page_and_at_the_row_where_they_are(browser, served):
    async with browser.tab(served.url, extra_http_headers=headers(ANA)) as page:
        await page.evaluate("window.same = true")
        newest = await shown(page)
        stays = await stands_at_a_row(page, 30)
        await tell(served.page.store, "open-900")
        await stays(MANY + 1)
        assert await shown(page) == ["open-900", *newest[:-1]]
        assert await page.evaluate("window.same") is True
        async with page.expect_navigation():
            await page.get_by_role("link", name="Older requests").click()
        older, address = await shown(page), page.url
        assert parse_qs(urlsplit(address).query).keys() == {"before"}
        stays = await stands_at_a_row(page, 30)
        await tell(served.page.store, "open-901")
        await stays(MANY + 2)
        assert (await shown(page), page.url) == (older, address)


async def stands_at_a_row(page, number):
    """Give the focus to a row; return what waits for news, and asserts that the row has stayed where it was."""
    row = page.locator(f"#{await page.locator('a.open').nth(number).get_attribute('id')}")
    await row.focus()
    at = await row.bounding_box()
    assert await page.evaluate("scrollY") > 0

    async def stays(count):
        await expect(page.get_by_role("status").first).to_have_text(f"{count} requests wait for a decision.")
        await expect(row).to_be_focused()
        assert (await row.bounding_box())["y"] == pytest.approx(at["y"], abs=1)

    return stays
