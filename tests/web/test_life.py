"""The whole life of an approval in a browser: asked, looked at, decided, and read back as proven from the run."""

import asyncio
import html
import json
import re
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import expect

from backstay.testing import Reply
from examples.mailbox.faults import Faults
from gateways.web.identity import Visitor
from tests.browser import assert_accessible, assert_fits
from tests.engine import PLANS, Scripts, ended, engine, pending, toolbox_of
from tests.mailbox_server import open_mailbox
from tests.requirements import promise
from tests.web.pages import (
    behind_a_proxy,
    form_of,
    headers,
    listed,
    opened,
    place,
    press,
    served_page,
    told,
    until_listed,
    verdicts,
)

ANA, BO, CY = "ana@example.com", "bo@example.com", "cy@example.com"
POLICY = f"""
groups: {{"@ops": ["{ANA}"]}}
accepting: {{approvers: ["@ops"]}}
ask:
  - {{tool: mail.send_email, when: {{to: {{ends_with: "@two.example"}}}}, approvers: ["{ANA}", "{BO}"], quorum: 2}}
  - {{tool: mail.send_email, when: {{to: {{ends_with: "@ana.example"}}}}, approvers: ["{ANA}"]}}
  - {{tool: mail.send_email, when: {{to: {{ends_with: "@bo.example"}}}}, approvers: ["{BO}"]}}
  - tool: mail.send_email
    when: {{to: {{ends_with: "@soon.example"}}}}
    approvers: ["{ANA}"]
    remind_after: 4s
    timeout: 30s
  - {{tool: mail.send_email, when: {{to: {{ends_with: "@late.example"}}}}, approvers: ["{ANA}"], remind_after: 2s}}
allow: ["office.*", {{tool: mail.send_email, when: {{to: {{ends_with: "@free.example"}}}}}}]
"""
OFFICE = Path(__file__).resolve().parents[1] / "toolbox/servers/office.py"


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("life"), Scripts()
        address = await stack.enter_async_context(open_mailbox(folder / "mailbox.db", Faults()))
        toolbox = toolbox_of(folder, folder / "mailbox.db", address=address)
        data = json.loads(toolbox.read_text(encoding="utf-8"))
        data["mcpServers"]["office"] = {"command": sys.executable, "args": [str(OFFICE), "stdio"]}
        data.pop("users", None)
        toolbox.write_text(json.dumps(data), encoding="utf-8")
        given = {"policy": POLICY, "profiles": PLANS, "toolbox": toolbox, "request_deadline_seconds": 20}
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **given, **behind_a_proxy()))
        yield running, scripts, await stack.enter_async_context(served_page(running))


def send(to, subject="Hello", body="Dear all"):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": body}}


def mail(*addresses, **more):
    return Reply(calls=[("mail__send_email", send(to, **more)["arguments"]) for to in addresses])


@promise("page:whole-life")
async def test_a_request_is_looked_at_and_approved_with_keys_alone(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("kim@ana.example"), user_id="kim"))
    async with browser.tab(extra_http_headers=headers(ANA)) as page:
        await pending(handle)
        await until_listed(page, served, handle)
        assert "Inbox" in await page.title()
        await assert_accessible(page)
        await page.keyboard.press("j")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/requests/**")
        await page.goto(place(served, handle))
        text = await page.locator("main").inner_text()
        assert "mail.send_email" in text
        assert "kim@ana.example" in text
        assert "Can be undone" in text
        await assert_accessible(page)
        await page.keyboard.press("a")
        assert await page.evaluate("document.activeElement.value") == "approve"
        await page.keyboard.press("Enter")
        await told(page, f"decided: approved by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "approve", True)]


@promise("page:arguments")
async def test_arguments_are_changed_without_scripts_and_the_changed_call_is_made(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("lee@ana.example", body="one\ntwo")))
    async with opened(browser, served, handle, scripts=False) as page:
        await page.get_by_role("link", name="Change the arguments of this call").click()
        assert await page.get_by_label("body").input_value() == "one\ntwo"
        await page.get_by_label("subject").fill("Good day <b>Lee</b>")
        await page.get_by_label("Comment").fill("politely")
        await press(page, "Ask again with these arguments")
        await told(page, f"decided: changed by {ANA}; it is asked again with the change")
        assert "~ subject: Hello -> Good day <b>Lee</b>" in await page.locator(".changed").inner_text()
        assert running.mailbox.rows("SELECT count(*) FROM sent WHERE recipient = 'lee@ana.example'") == [(0,)]
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
    result = await ended(handle)
    rows = running.mailbox.rows("SELECT subject, body FROM sent WHERE recipient = 'lee@ana.example'")
    assert rows == [("Good day <b>Lee</b>", "one\ntwo")]
    assert verdicts(result)[0] == (ANA, "modify", True)


@promise("page:rejection")
async def test_a_rejection_reaches_the_model_with_its_comment(browser, shared):
    running, scripts, served = shared
    task = scripts.task(mail("mo@ana.example"))
    handle = await running.start(task)
    async with opened(browser, served, handle) as page:
        await page.get_by_label("Comment").fill("not on a Sunday")
        await press(page, "Reject")
        await told(page, f"decided: rejected by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "reject", True)]
    heard = [asked for asked in running.model.requests if task["text"] in str(asked["messages"][1])]
    assert "not on a Sunday" in str(heard[-1]["messages"])
    assert running.mailbox.rows("SELECT count(*) FROM sent WHERE recipient = 'mo@ana.example'") == [(0,)]


@promise("page:always")
@pytest.mark.thorough
async def test_what_is_remembered_is_not_asked_again_in_this_run(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("n@plain.example"), mail("o@plain.example"), user_id="remembers"))
    async with opened(browser, served, handle) as page:
        await page.get_by_label("Approve such calls from now on").select_option("run")
        await page.get_by_label("With").select_option("any")
        await press(page, "Approve")
        await told(page, "remembered for this run: mail.send_email")
    assert verdicts(await ended(handle)) == [(ANA, "approve", True)]
    assert set(running.mailbox.sent()) >= {"n@plain.example", "o@plain.example"}


@promise("page:in-twos")
async def test_two_people_must_agree_and_each_sees_what_the_other_did(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("p@two.example")))
    async with opened(browser, served, handle, ANA) as ana, opened(browser, served, handle, BO) as bo:
        await bo.get_by_text(f"{ANA} is looking at this, too.").wait_for()
        await press(ana, "Approve")
        await told(ana, "recorded; it waits for others")
        await ana.get_by_text("You have decided: approved. It waits for others.").wait_for()
        assert not await ana.get_by_role("button", name="Approve", exact=True).count()
        await expect(bo.locator("#news")).to_have_text("Somebody has decided. Open the page again to see who.")
        await bo.reload()
        await bo.get_by_text(f"{ANA}: approved (verified)").wait_for()
        await expect(bo.locator("#news .notice")).to_have_text(f"{ANA} is looking at this, too.")
        async with served.person(BO) as person:
            assert "1 of 2 decided" in (await person.get("/")).text
        await press(bo, "Approve")
        await told(bo, f"decided: approved by {BO}")
    assert verdicts(await ended(handle)) == [(ANA, "approve", True), (BO, "approve", True)]


@promise("page:plan-parts")
@pytest.mark.thorough
async def test_each_decides_a_part_of_a_plan_and_leaves_a_step_out(browser, shared):
    running, scripts, served = shared
    steps = [
        send("q@ana.example", "a"),
        send("r@ana.example", "b"),
        send("s@bo.example", "c"),
        send("t@free.example", "d"),
    ]
    plan = {"title": "letters", "steps": steps}
    handle = await running.start(scripts.task(Reply(calls=[("propose_plan", {"plan": plan})])))
    async with opened(browser, served, handle, ANA) as ana, opened(browser, served, handle, BO) as bo:
        assert "Plan: letters" in await ana.locator("main").inner_text()
        await ana.get_by_label("Include step 1").uncheck()
        await press(ana, "Approve the plan")
        await ana.get_by_text("You have decided your part. It waits for others.").wait_for()
        await bo.reload()
        await bo.get_by_text(f"approved by {ANA} without step 1").wait_for()
        await press(bo, "Approve the plan")
        await told(bo, f"decided: approved by {BO}")
        await ana.reload()
        assert "waits for" not in await ana.locator("main").inner_text()
    assert verdicts(await ended(handle)) == [(ANA, "approve", True), (BO, "approve", True)]
    sent = set(running.mailbox.sent())
    assert sent >= {"q@ana.example", "s@bo.example", "t@free.example"}
    assert "r@ana.example" not in sent


@promise("page:plan-parts")
@pytest.mark.thorough
async def test_of_two_plans_the_other_is_chosen_from_the_page_of_the_first(browser, shared):
    running, scripts, served = shared
    plans = {"plan": {"title": "by mail", "steps": [send("u@ana.example")]}}
    plans["alternatives"] = [{"title": "by pigeon", "steps": [send("v@ana.example")]}]
    handle = await running.start(scripts.task(Reply(calls=[("propose_plan", plans)])))
    first = next(asked["id"] for asked in await pending(handle, 2) if asked["proposal"]["plan_id"] == "p1")
    async with opened(browser, served, handle, request=first) as page:
        await page.locator(".alternatives a").click()
        await page.get_by_role("heading", name="Plan: by pigeon").wait_for()
        await press(page, "Approve the plan")
        await told(page, f"decided: approved by {ANA}")
    assert (await ended(handle))["outcome"] == "completed"
    assert "v@ana.example" in running.mailbox.sent()
    assert "u@ana.example" not in running.mailbox.sent()


@promise("page:tool-form")
async def test_the_form_of_a_tools_server_is_filled_in_without_scripts(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(Reply(calls=[("office__give_away", {"room": "cellar"})])))
    async with opened(browser, served, handle, scripts=False) as page:
        assert "Give away cellar?" in await page.locator("h1").inner_text()
        await page.get_by_role("combobox").select_option("yes")
        await press(page, "Answer")
        await told(page, f"decided: answered by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "answer", True)]


@promise("page:tool-form")
@pytest.mark.thorough
async def test_what_a_tools_server_asks_in_a_form_comes_back_to_it_as_typed_once_every_field_fits(browser, shared):
    running, scripts, served = shared
    task = scripts.task(Reply(calls=[("office__book", {"room": "cellar"})]))
    handle = await running.start(task)
    async with opened(browser, served, handle) as page:
        await expect(page.get_by_label("People")).to_have_accessible_description("whole number; maximum 12; minimum 1")
        await page.get_by_label("Name").fill("Kim <b>Lee</b>")
        await page.get_by_label("People").fill("13")
        await page.get_by_label("Layout").select_option("circle")
        await page.get_by_label("Catering").select_option("no")
        await page.get_by_label("Comment").fill("by the door")
        await press(page, "Answer")
        await page.get_by_role("alert").filter(has_text="answer.people: does not fit maximum 12").wait_for()
        await assert_accessible(page)
        assert await filled(page) == ["Kim <b>Lee</b>", "13", "circle", "no", "by the door"]
        await page.get_by_label("People").fill("12")
        await press(page, "Answer")
        await told(page, f"decided: answered by {ANA}")
    assert verdicts(await ended(handle)) == [(ANA, "answer", True)]
    heard = [asked["messages"] for asked in running.model.requests if task["text"] in str(asked["messages"][1])]
    (answer,) = [json.loads(message["content"]) for message in heard[-1] if message["role"] == "tool"]
    booked = {"name": "Kim <b>Lee</b>", "people": 12, "layout": "circle", "catering": False}
    assert answer["data"] == {"room": "cellar", "booked": booked}


async def filled(page):
    """Return what the fields of a form hold, as people read it."""
    said = "field => field.selectedOptions ? field.selectedOptions[0].text : field.value"
    return await page.locator("#decide :is(input:not([type=hidden]), select, textarea)").evaluate_all(
        f"fields => fields.map({said})"
    )


@promise("page:reminded")
async def test_a_page_that_is_open_says_how_often_and_when_people_were_reminded(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("v@late.example")))
    async with opened(browser, served, handle) as page:
        before = await reminded(page)
        async with asyncio.timeout(150):
            while await reminded(page) <= before + 1:
                await asyncio.sleep(0.1)
        await assert_accessible(page)
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
        result = await ended(handle)
        await page.reload()
        shown = await page.locator("#reminded").inner_text()
    at = [event["at"] for event in result["events"] if event["name"] == "approval.reminded"]
    assert shown == f"reminded {len(at)} times, last at {at[-1][:10]} {at[-1][11:16]} UTC"


async def reminded(page):
    """Return how often people were reminded, as a page says it."""
    said = await page.locator("#reminded").inner_text()
    return 1 if said.startswith("reminded once") else int(said.split()[1]) if said else 0


@promise("page:reminded")
@pytest.mark.thorough
async def test_what_expires_says_so_while_it_is_looked_at_after_people_were_reminded(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("w@soon.example")))
    async with opened(browser, served, handle) as page:
        assert "expires" in await page.locator(".facts").first.inner_text()
        await page.get_by_text("reminded").wait_for()
        assert await page.get_by_role("button", name="Approve", exact=True).is_enabled()
        await page.get_by_text("It has expired.").wait_for(timeout=150_000)
        assert await page.get_by_role("button", name="Approve", exact=True).is_disabled()
        assert await reminded(page) >= 1
        await page.reload()
        await page.get_by_text("It has expired.").wait_for()
        assert not await page.get_by_role("button", name="Approve", exact=True).count()
        shown = await reminded(page)
    result = await ended(handle)
    assert verdicts(result) == []
    names = [event["name"] for event in result["events"] if event["name"].startswith("approval.")]
    assert names == ["approval.asked", *["approval.reminded"] * shown, "approval.expired"]


@promise("page:withdrawn")
async def test_a_request_that_a_cancelled_run_leaves_behind_says_that_it_was_withdrawn(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("x@ana.example")))
    async with opened(browser, served, handle) as page:
        await handle.cancel()
        await page.get_by_text("It was withdrawn.").wait_for()
        await press_if_enabled(page, "Approve")
        await page.reload()
        await page.get_by_text("It was withdrawn: a decision is no longer needed.").wait_for()
    assert "x@ana.example" not in running.mailbox.sent()


async def press_if_enabled(page, name):
    assert await page.get_by_role("button", name=name, exact=True).is_disabled()


@promise("page:once")
async def test_a_double_click_and_a_replay_decide_once_and_say_the_same(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("y@ana.example"), mail("z@ana.example")))
    async with opened(browser, served, handle) as page, served.person(ANA) as replaying:
        form = await page.evaluate("Object.fromEntries(new FormData(document.getElementById('decide')))")
        await page.get_by_role("button", name="Approve", exact=True).dblclick()
        await told(page, f"decided: approved by {ANA}")
        path = f"{place(served, handle)}/decide"
        again = await replaying.post(path, data={**form, "verdict": "approve"})
        other = [
            await replaying.post(path, data={**form, **said})
            for said in ({"verdict": "reject"}, {"verdict": "approve", "comment": "not as before"})
        ]
        await pending(handle)
        await page.goto(place(served, handle, "r2"))
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
        assert verdicts(await ended(handle)) == [(ANA, "approve", True)] * 2
        late = await replaying.post(path, data={**form, "verdict": "approve"})
        too_late = await replaying.post(path, data={**form, "verdict": "approve", "comment": "not as before"})
    assert [answer.status_code for answer in (again, late, *other, too_late)] == [303, 303, 409, 409, 409]
    assert all(f"r1 is decided already: approved by {ANA}" in answer.text for answer in other)
    assert f"the run {handle.id} has ended" in too_late.text
    assert running.mailbox.rows("SELECT count(*) FROM sent WHERE recipient = 'y@ana.example'") == [(1,)]


@promise("page:stale")
async def test_a_page_that_is_stale_is_refused_and_says_what_has_changed(browser, shared):
    running, scripts, served = shared
    name = "payroll-of-may"
    first = await running.start(scripts.task(mail("old@ana.example", subject="May")), name)
    async with opened(browser, served, first) as page:
        await first.terminate()
        second = await running.start(scripts.task(mail("new@ana.example", subject="June")), name)
        await pending(second)
        await press(page, "Approve")
        await page.get_by_text("it has changed; look at it again").wait_for()
        said = await page.locator("#standing").inner_text()
        assert "old@ana.example -> new@ana.example" in said
        assert "another run of the same name" in said
        await press(page, "Approve")
        await told(page, f"decided: approved by {ANA}")
    assert verdicts(await ended(second)) == [(ANA, "approve", True)]
    assert "old@ana.example" not in running.mailbox.sent()


@promise("page:not-theirs")
async def test_whom_a_request_does_not_concern_neither_sees_nor_decides_it(browser, shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("secret@bo.example"), user_id="kim"))
    async with opened(browser, served, handle, BO) as page, served.person(CY) as wrong, served.person(ANA) as operator:
        form = await page.evaluate("Object.fromEntries(new FormData(document.getElementById('decide')))")
        path = place(served, handle)
        hidden = await wrong.get(path)
        forged = await wrong.post(f"{path}/decide", data={**form, "verdict": "approve"})
        seen = await operator.get(path)
        own = {**form, "csrf": served.page.csrf(visitor(ANA)), "verdict": "approve"}
        refused = await operator.post(f"{path}/decide", data=own)
        assert (hidden.status_code, forged.status_code) == (404, 403)
        assert "secret@bo.example" not in hidden.text + forged.text
        assert (seen.status_code, refused.status_code) == (200, 409)
        assert f"Only these people may decide this: {BO}." in seen.text
        assert "is not an approver" in refused.text
        await press(page, "Approve")
        await told(page, f"decided: approved by {BO}")
    assert verdicts(await ended(handle)) == [(BO, "approve", True)]


def visitor(by):
    return Visitor(by=by)


@promise("page:inbox")
@pytest.mark.thorough
async def test_equal_calls_of_several_runs_are_decided_at_once_each_with_its_own_proof(browser, shared):
    running, scripts, served = shared
    reply = mail("same@ana.example", subject="the same")
    handles = []
    # Each asks after the one before, so that the list shows them in this order.
    for _ in range(3):
        handles.append(await running.start(scripts.task(reply)))
        await pending(handles[-1])
    async with opened(browser, served, handles[0]) as page:
        for handle in handles:
            await until_listed(page, served, handle)
        # News may draw the list anew at any moment, also amid a click.
        together = await page.get_by_role("link", name="decide 3 equal calls at once").first.get_attribute("href")
        await page.goto(f"{served.url}{together}")
        await assert_accessible(page)
        await page.get_by_role("checkbox").last.uncheck()
        await press(page, "Approve the ticked")
        await page.get_by_role("heading", name="2 of 2 requests approved").wait_for()
        assert len(await pending(handles[2])) == 1
        await page.goto(place(served, handles[2]))
        await press(page, "Reject")
        await told(page, "decided: rejected")
    results = [await ended(handle) for handle in handles]
    assert [verdicts(result) for result in results] == [[(ANA, "approve", True)]] * 2 + [[(ANA, "reject", True)]]


@promise("page:inbox-alike")
async def test_what_became_of_equal_calls_says_which_of_them_wait_for_others(shared):
    running, scripts, served = shared
    handles = [await running.start(scripts.task(mail("same@two.example"))) for _ in range(2)]
    async with served.person(ANA) as ana:
        for handle in handles:
            await pending(handle)
            await listed(ana, handle.id)
        (row, _) = (await ana.get("/api/requests")).json()["requests"][:2]
        alike = (await served.page.store.requests.get(row["workflow_id"], "r1")).alike
        shown = (await ana.get(f"/alike/{alike}")).text
        picks = [html.unescape(pick) for pick in re.findall(r'name="pick" value="([^"]+)"', shown)]
        said = await ana.post("/alike", data={**form_of(shown, verdict="approve"), "pick": picks})
    assert "<h1>0 of 2 requests approved; 2 recorded, and wait for others</h1>" in said.text
    assert said.text.count("recorded; it waits for others") == said.status_code // 100 == 2
    for handle in handles:
        assert len(await pending(handle)) == 1
        await handle.terminate()


@promise("page:inbox-news")
async def test_the_inbox_tells_of_what_is_new_by_itself_and_counts_it_in_its_title(browser, shared):
    running, scripts, served = shared
    async with (
        browser.tab(extra_http_headers=headers(BO)) as page,
        served.person(BO) as person,
        person.stream("GET", "/events") as heard,
    ):
        meanwhile = asyncio.Event()

        async def late(route):
            await asyncio.wait_for(meanwhile.wait(), 150)
            await route.continue_()

        await page.route("**/events", late)
        await page.goto(served.url)
        before = counted(await page.title())
        handles = [await running.start(scripts.task(mail("early@bo.example")))]
        async with asyncio.timeout(150):
            async for line in heard.aiter_lines():
                if f'"open": {before + 1}' in line:
                    break
        meanwhile.set()
        await page.locator(f"a[href*='{handles[0].id}']").wait_for()
        handles.append(await running.start(scripts.task(mail("live@bo.example"))))
        await page.locator(f"a[href*='{handles[1].id}']").wait_for()
        async with asyncio.timeout(150):
            while counted(await page.title()) != before + 2:
                await asyncio.sleep(0.1)
        for handle in handles:
            await handle.terminate()


def counted(title):
    return int(title[1:].partition(")")[0]) if title.startswith("(") else 0


@promise("page:barriers")
@pytest.mark.thorough
async def test_the_page_fits_a_phone_and_is_accessible_in_the_dark(browser, shared):
    running, scripts, served = shared
    steps = [send("phone@ana.example", body="A long text without any break: " + "x" * 300), send("p@bo.example")]
    handle = await running.start(
        scripts.task(Reply(calls=[("propose_plan", {"plan": {"title": "t", "steps": steps}})]))
    )
    async with opened(browser, served, handle, phone=True, dark=True) as page:
        await assert_fits(page)
        await assert_accessible(page)
        for path in ("", "/decided"):
            await page.goto(f"{served.url}{path}")
            await assert_fits(page)
            await assert_accessible(page)
    await handle.terminate()
