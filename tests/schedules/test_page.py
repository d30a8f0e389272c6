"""The page of schedules and triggers: next times, last outcomes, for those whom they concern."""

from tests.requirements import promise
from tests.schedules.office import ANA, open_office, some
from tests.web.pages import headers


@promise("schedules:page")
async def test_the_page_lists_next_times_and_what_the_last_runs_led_to(office, browser):
    name, hook = some("digest"), some("hook")
    await office.schedule(name, cron="0 7 * * *")
    await office.trigger(hook)
    await office.keeping.run_now(name)
    await office.send(hook, {"subject": "without an address"}, "e1")
    row = await office.until(name, lambda row: row.last and row.last[0].told == "completed")
    await office.until(hook, lambda row: row.last[0].state == "refused")
    async with browser.tab(extra_http_headers=headers(ANA)) as page:
        await page.goto(f"{office.page.url}/schedules")
        listed = page.locator("li.standing")
        mine = await listed.filter(has_text=name).inner_text()
        assert "cron 0 7 * * *, UTC" in mine
        assert "completed" in mine
        assert "07:00" in mine
        theirs = await listed.filter(has_text=hook).inner_text()
        assert "not started" in theirs
        await listed.filter(has_text=name).get_by_role("link").first.click()
        await page.wait_for_url(f"**/runs/**{name}**")
        assert "completed" in await page.locator("main").inner_text()
    async with office.page.person(ANA) as person:
        told = (await person.get("/api/schedules")).json()["schedules"]
    assert [row["name"] for row in told if row["name"] in {name, hook}] == [name, hook]
    await office.keeping.remove("schedule", row.name)


@promise("schedules:page-whose")
async def test_a_person_sees_the_schedules_of_others_only_where_the_policy_names_nobody(temporal, tmp_path):
    policy = "accepting: {approvers: [boss@example.com]}\n"
    async with open_office(temporal, tmp_path, policy=policy) as office:
        await office.trigger("mine")
        for by, seen in ((ANA, True), ("boss@example.com", True), ("cy@example.com", False)):
            async with office.page.person(by) as person:
                assert ("mine" in (await person.get("/schedules")).text) is seen
        async with office.page.stranger() as nobody:
            assert (await nobody.get("/schedules")).status_code == 401
