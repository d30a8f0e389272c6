"""How a request stands, as its page says: what it would do, that its run has ended, and why nobody can decide it."""

import asyncio
import re
import tempfile
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect
from pydantic import SecretStr

from backstay.testing import Reply
from people.notices.delivering import tidying
from tests.browser import assert_accessible
from tests.e2e.plans.rehearsed import toolbox_with_files
from tests.engine import Scripts, ended, engine, pending, share_images
from tests.requirements import promise
from tests.web.pages import ANA, behind_a_proxy, headers, listed, opened, place, press, served_page, told, verdicts

BO = "bo@example.com"
POLICY = f"""
default: {{read_only: allow, write_safe: ask, restricted_write: ask}}
ask:
  - tool: mail.send_email
    when: {{to: {{ends_with: "@chief.example"}}}}
    approvers: ["{ANA}"]
    timeout: 10s
    on_expiry: escalate
    escalate_to: ["{BO}"]
  - {{tool: mail.send_email, approvers: ["{ANA}"]}}
"""
MAIL = {"to": "kim@x.example", "subject": "Hello", "body": "Dear Kim"}
SEND = Reply(calls=[("mail__send_email", MAIL)])
expect.set_options(timeout=120_000)


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    folder, scripts = tmp_path_factory.mktemp("standing"), Scripts()
    async with (
        engine(temporal, folder, scripts, policy=POLICY, max_steps_per_plan=150, **behind_a_proxy()) as running,
        served_page(running) as served,
    ):
        yield running, scripts, served


@promise("page:standing")
async def test_a_request_whose_run_has_ended_says_so_while_it_is_looked_at_and_afterwards(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(SEND))
    async with opened(browser, served, handle) as page:
        await handle.terminate()
        async with tidying(served.page.store, served.page.backstay):
            await expect(page.locator("#standing")).to_have_text("The run has ended. Open the page again to see how.")
        await expect(page.get_by_role("button", name="Approve", exact=True)).to_be_disabled()
        await page.reload()
        await expect(page.locator("#standing")).to_have_text("The run has ended.")
        await expect(page).to_have_title(re.compile(r"Ended: mail\.send_email to \S+ · backstay"))
        await expect(page.locator("form.decide")).to_have_count(0)
        await assert_accessible(page)


@promise("page:escalated")
async def test_who_is_asked_too_when_nobody_decides_in_time_is_said_to_both_and_may_decide(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(Reply(calls=[("mail__send_email", {**MAIL, "to": "kim@chief.example"})])))
    said = f"Asked in addition, because nobody had decided in time: {BO}"
    async with opened(browser, served, handle, ANA) as ana, served.person(BO) as bo:
        await expect(ana.locator(".facts").first).to_contain_text("then: escalate")
        assert (await ana.locator("#escalated").inner_text(), await ana.locator("#escalated").is_visible()) == (
            "",
            False,
        )
        assert (await bo.get(place(served, handle))).status_code == 404
        await expect(ana.locator("#escalated")).to_have_text(said)
        await assert_accessible(ana)
        async with browser.tab(place(served, handle), extra_http_headers=headers(BO)) as page:
            await expect(page.locator("#escalated")).to_have_text(said)
            await expect(page.locator(".facts").first).to_contain_text("then: reject")
            await press(page, "Approve")
            await told(page, f"decided: approved by {BO}")
            await expect(page.locator("#escalated")).to_have_text(said)
    assert verdicts(await ended(handle)) == [(BO, "approve", True)]
    assert "kim@chief.example" in running.mailbox.sent()


@pytest.fixture
def rooms():
    """A folder that the users of jails can reach, with a workspace of one letter."""
    with tempfile.TemporaryDirectory(prefix="backstay-") as folder:
        Path(folder).chmod(0o755)
        letters = Path(folder) / "rooms" / "letters"
        letters.mkdir(parents=True)
        (letters / "draft.txt").write_text("Dear <b>Ana</b>,\nsee you on monday\n", encoding="utf-8")
        yield letters.parent


@promise("page:foretold")
async def test_the_page_of_a_rehearsed_plan_shows_what_it_would_change_and_what_was_foretold(
    browser, temporal, tmp_path, rooms
):
    share_images(tmp_path / "home")
    toolbox = toolbox_with_files(tmp_path, "")
    given = {"policy": POLICY, "toolbox": toolbox, "workspaces": rooms, **behind_a_proxy()}
    async with engine(temporal, tmp_path, Scripts(), **given) as running, served_page(running) as served:
        steps = [
            {"tool": "mail.list_customers", "arguments": {"limit": 1}},
            {"tool": "fs.edit_file", "arguments": {"path": "draft.txt", "old": "monday", "new": "friday"}},
            {"tool": "mail.send_email", "arguments": {**MAIL, "to": "${steps.0.result.customers.0.email}"}},
            {"tool": "mail.list_sent", "arguments": {"to": "${steps.2.result.to}"}},
        ]
        task = {"plan": {"title": "letters", "steps": steps}, "rehearse": True, "filesystem": True}
        handle = await running.start({**task, "workspace": "letters"})
        async with opened(browser, served, handle) as page:
            diff = page.locator("#call-1").get_by_role("group", name="What would change")
            await expect(diff.locator(".removed").last).to_have_text("-see you on monday")
            await expect(diff.locator(".added").last).to_have_text("+see you on friday")
            await expect(diff.locator(".same").last).to_have_text(" Dear <b>Ana</b>,")
            foretold = page.get_by_role("region", name="Foretold by a rehearsal")
            customer = running.mailbox.rows("SELECT email FROM customers ORDER BY rowid LIMIT 1")[0][0]
            said = [" ".join(text.split()) for text in await foretold.get_by_role("listitem").all_inner_texts()]
            assert [text.partition(" {")[0] for text in said] == [
                "mail.list_customers read",
                "fs.edit_file would be made",
                "mail.send_email would be made",
                "mail.list_sent assumed",
            ]
            assert customer in said[2]
            await assert_accessible(page)
            await press(page, "Approve the plan")
            await told(page, f"decided: approved by {ANA}")
        assert (await ended(handle))["outcome"] == "completed"
        assert running.mailbox.sent() == [customer]
    assert "friday" in (rooms / "letters/draft.txt").read_text(encoding="utf-8")


@promise("page:long-plan")
async def test_the_page_of_a_long_plan_holds_also_the_steps_that_the_request_leaves_out(browser, shared):
    running, _, served = shared
    steps = [
        {"tool": "mail.send_email", "arguments": MAIL},
        *({"tool": "mail.list_sent", "arguments": {"to": f"{number}@x.example"}} for number in range(149)),
    ]
    handle = await running.start({"plan": {"title": "a long one", "steps": steps}, "budget": {"max_tool_calls": 150}})
    (request,) = await pending(handle)
    left_out = 150 - len(request["proposal"]["steps"])
    assert left_out >= 30
    async with opened(browser, served, handle) as page:
        await expect(page.locator("article.call")).to_have_count(150)
        await expect(page.locator("article.call").last).to_contain_text("148@x.example")
    await handle.terminate()


@promise("page:not-verified")
@pytest.mark.parametrize(
    ("key", "why"),
    [
        pytest.param("the-key-of-other-workers", "proof: ", id="another-key"),
        pytest.param(None, "proof: required, because the policy names who may decide", id="no-key"),
    ],
)
async def test_a_decision_that_the_workers_cannot_verify_is_403_for_programs_and_changes_nothing(shared, key, why):
    running, scripts, _ = shared
    handle = await running.start(scripts.task(SEND))
    (request,) = await pending(handle)
    async with (
        served_page(running, approver_key=None if key is None else SecretStr(key)) as served,
        served.person(ANA) as person,
    ):
        await listed(person, handle.id)
        path = f"/api/requests/{handle.id}/r1"
        token = (await person.get(path)).headers["Backstay-Csrf"]
        said = {"verdict": "approve", "f": request["run_id"], "d": request["digest"]}
        refused = await person.post(f"{path}/decide", json=said, headers={"Authorization": f"Bearer {token}"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "NotVerified")
    assert refused.json()["error"]["message"].startswith(why)
    assert await pending(handle) == [request]
    await handle.terminate()


@promise("page:not-verified")
@pytest.mark.thorough
async def test_a_page_with_another_key_says_that_a_decision_was_not_accepted(browser, shared):
    running, scripts, _ = shared
    handle = await running.start(scripts.task(SEND))
    async with (
        served_page(running, approver_key=SecretStr("the-key-of-other-workers")) as served,
        opened(browser, served, handle) as page,
    ):
        await page.get_by_label("Comment").fill("as agreed")
        async with page.expect_response("**/decide") as answer:
            await press(page, "Approve")
        assert (await answer.value).status == 403
        await expect(page.get_by_role("alert")).to_contain_text("Not accepted: proof: ")
        await expect(page.get_by_label("Comment")).to_have_value("as agreed")
        assert len(await pending(handle)) == 1
    await handle.terminate()


@promise("page:no-key")
async def test_a_page_without_a_key_shows_no_buttons_for_what_verified_people_decide(browser, shared):
    running, scripts, _ = shared
    handle = await running.start(scripts.task(SEND))
    async with served_page(running, approver_key=None) as served, opened(browser, served, handle) as page:
        await page.get_by_text("this page has no approver key to verify anybody.").wait_for()
        await expect(page.locator("form.decide")).to_have_count(0)
    await handle.terminate()


SILENT = "(the run has not answered yet|no worker answers)"


async def told_by_api(served, name):
    """Return what the API says of a request, once Temporal is not too busy to answer."""
    async with served.person(ANA) as person, asyncio.timeout(150):
        while (found := (await person.get(f"/api/requests/{name}")).json())["trouble"].startswith("Temporal does not"):
            await asyncio.sleep(0.5)
    return found


@promise("page:no-worker")
async def test_while_no_worker_answers_a_request_has_no_buttons_and_what_was_decided_is_still_said(
    browser, temporal, tmp_path
):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=POLICY, **behind_a_proxy()) as running:
        handle = await running.start(scripts.task(SEND, SEND))
        async with served_page(running) as served, opened(browser, served, handle) as page:
            await press(page, "Approve")
            await told(page, f"decided: approved by {ANA}")
            await pending(handle)
            async with served.person(ANA) as person:
                await listed(person, f"{handle.id}/r2")
    async with (
        served_page(running) as served,
        browser.tab(place(served, handle, "r2"), extra_http_headers=headers(ANA)) as page,
    ):
        # Temporal takes a while to know of the end of a worker.
        await expect(page.locator("#standing")).to_have_text(
            re.compile(rf"The run cannot be asked now, so there are no buttons: {SILENT}:")
        )
        await expect(page).to_have_title(re.compile(r"Cannot be asked: mail\.send_email to \S+ · backstay"))
        await expect(page.locator("form.decide")).to_have_count(0)
        await expect(page.locator(".arguments")).to_contain_text("kim@x.example")
        await page.goto(place(served, handle, "r1"))
        await expect(page.locator("#standing")).to_have_text(f"Decided: approved by {ANA} (verified)")
        found = await told_by_api(served, f"{handle.id}/r2")
        assert (found["live"], found["state"]) == (None, "open")
        assert re.match(f"{SILENT}:", found["trouble"])
    await handle.terminate()
