"""Whose run is whose: several people who see some requests of a run, runs that bear one name, and many of others."""

import asyncio
import base64
import html
import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest_asyncio

from backstay.approvals.proof import Binding
from backstay.client.run import signed
from gateways.web.identity import Visitor
from people.runs import listing
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import ANA, behind_a_proxy, listed, mail, served_page

BO, KIM, LEE = "bo@example.com", "kim@example.com", "lee@example.com"
POLICY = f"""
default: {{read_only: allow, write_safe: ask, restricted_write: ask}}
ask:
  - {{tool: mail.send_email, when: {{to: {{ends_with: "@ana.example"}}}}, approvers: ["{ANA}"]}}
  - {{tool: mail.send_email, when: {{to: {{ends_with: "@bo.example"}}}}, approvers: ["{BO}"]}}
"""


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    folder, scripts = tmp_path_factory.mktemp("whose"), Scripts()
    async with (
        engine(temporal, folder, scripts, policy=POLICY, cached=100, **behind_a_proxy()) as running,
        served_page(running) as served,
    ):
        yield running, scripts, served


@promise("page:asked")
async def test_of_a_run_people_see_what_it_asks_them_and_not_what_it_asks_others(shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("x@ana.example", "y@bo.example"), user_id=KIM))
    asked = {request["calls"][0]["arguments"]["to"]: request["id"] for request in await pending(handle, 2)}
    seen = {}
    for by in (ANA, BO, KIM):
        async with served.person(by) as person:
            await listed(person, handle.id)
            told = (await person.get(f"/api/runs/{handle.id}")).json()
            shown = (await person.get(f"/runs/{handle.id}")).text
            streamed = await state_of(person, handle)
            status = {request["id"] for request in told["status"]["pending"]}
            links = set(re.findall(rf'class="asks" href="/requests/{handle.id}/(r[0-9]+)"', shown))
            assert status == links == streamed
            seen[by] = {request["id"] for request in told["pending"]}
            assert status == seen[by]
    await handle.terminate()
    assert seen == {ANA: {asked["x@ana.example"]}, BO: {asked["y@bo.example"]}, KIM: set(asked.values())}


async def state_of(person, handle):
    """Return which requests the stream of a run says that it waits with."""
    text, found = "", None
    async with asyncio.timeout(150), person.stream("GET", f"/runs/{handle.id}/events") as answer:
        async for piece in answer.aiter_text():
            text += piece
            if found := re.search(r'^event: state\ndata: .*"pending": (\[.+?\])', text, re.MULTILINE):
                break
    return set(json.loads(found[1]))


@promise("page:older")
async def test_an_older_run_of_a_name_is_shown_as_itself_to_its_own_people_and_is_not_steered(shared):
    running, scripts, served = shared
    runs = []
    for user, by, address in ((KIM, ANA, "old@ana.example"), (LEE, BO, "new@bo.example")):
        handle = await running.start(scripts.task(mail(address), user_id=user), "payroll")
        (request,) = await pending(handle)
        await served.page.backstay.run("payroll").approve(request["id"], by=by)
        await ended(handle)
        runs.append({"run": handle.first_execution_run_id})
    old, new = runs
    places = [("/runs/payroll", old), ("/runs/payroll/events", old), ("/runs/payroll", new), ("/runs/payroll", {})]
    statuses = {}
    for by in (KIM, ANA, LEE, BO):
        async with served.person(by) as person:
            statuses[by] = [(await person.get(path, params=run)).status_code for path, run in places]
    async with served.person(KIM) as kim:
        shown = (await kim.get("/runs/payroll", params=old)).text
        links = {html.unescape(link) for link in re.findall(r'href="(/(?:blobs|requests)/[^"]*)"', shown)}
        answers = [await kim.get(link) for link in sorted(links)]
        form = {"csrf": served.page.csrf(Visitor(by=KIM))}
        deeds = [await kim.post(f"/runs/payroll/{deed}", params=old, data=form) for deed in ("undo", "cancel", "pause")]
        unknown = await kim.get("/runs/payroll", params={"run": "no-such-run"})
    (told,) = re.findall(r'<pre class="code" tabindex="0">(\{"run_id".*?\})</pre>', shown)
    named = {"namespace": running.client.namespace, "workflow_id": "payroll", "run_id": old["run"]}
    bound = Binding(**named, update="UndoRun", request_id="", digest="")
    ask = signed(served.page.key, bound, {**json.loads(told), "by": ANA})
    queue = running.settings.task_queue
    undone = await running.client.execute_workflow("UndoRun", ask, id="undo-of-the-older", task_queue=queue)

    assert statuses == {
        KIM: [200, 200, 404, 404],
        ANA: [200, 200, 404, 404],
        LEE: [404, 404, 200, 200],
        BO: [404, 404, 200, 200],
    }
    assert "a newer run has its workflow ID" in shown
    assert ("Undo…" in shown, 'action="/runs/' in shown) == (False, False)
    assert links == {
        f"/requests/payroll/r1?f={old['run']}",
        next(link for link in links if link.endswith(f"?run={old['run']}")),
    }
    assert [(answer.status_code, "old@ana.example" in answer.text) for answer in answers] == [(200, True)] * 2
    assert ([deed.status_code for deed in deeds], unknown.status_code) == ([409] * 3, 404)
    assert undone["success"]
    assert running.mailbox.sent() == ["new@bo.example"]


@promise("page:list")
async def test_the_list_goes_on_behind_many_runs_of_others(shared, monkeypatch):
    monkeypatch.setattr(listing, "MOST_LOOKED_AT", 31)
    _, _, served = shared
    for number in range(40):
        user = "kim-of-the-list" if number == 0 else LEE
        named = {"run": f"list-{number}/first", "workflow_id": f"list-{number}", "workflow_run_id": "first"}
        await served.page.store.runs.opened(**named, user_id=user, text="listed", opened={})
    async with served.person("kim-of-the-list") as kim:
        first = await kim.get("/runs", params={"words": "listed"})
        following = (await kim.get("/api/runs", params={"words": "listed"})).json()
        second = (await kim.get(following["next"])).json()
        oldest = served.page.seals.hide("position among runs", [0.0, "x"])
        last = (await kim.get("/runs", params={"words": "listed", "before": oldest})).text
        (older,) = re.findall(r'<a href="([^"]+)">look at those</a>', first.text)
        same = await kim.get(html.unescape(older), headers={"Accept": "application/json"})
    assert "Nothing for you among these 31 runs." in first.text
    (named,) = parse_qs(urlsplit(following["next"]).query)["before"]
    assert b"list-" not in base64.urlsafe_b64decode(named)
    assert (following["runs"], second["next"], same.json()) == ([], None, second)
    assert [run["workflow_id"] for run in second["runs"]] == ["list-0"]
    assert "No older run is left." in last


@promise("page:around")
async def test_the_page_of_a_run_tells_of_the_runs_around_it_only_those_that_the_reader_may_see(shared):
    running, scripts, served = shared
    handle = await running.start(scripts.task(mail("z@bo.example"), user_id=KIM))
    await pending(handle)
    first = f"{handle.id}/{handle.first_execution_run_id}"
    for name, user, follows in (("private", KIM, first), ("of-bo", BO, "private/1")):
        named = {"run": f"{name}/1", "workflow_id": name, "workflow_run_id": "1", "user_id": user, "follows": follows}
        await served.page.store.runs.opened(**named, text=f"the words of {name}", opened={})
    told = {}
    for by in (BO, KIM):
        async with served.person(by) as person:
            await listed(person, handle.id)
            shown = await person.get(f"/runs/{handle.id}")
            told[by] = (await person.get(f"/api/runs/{handle.id}")).json()["followed_by"]
            assert [name for name in ("private", "of-bo") if f"the words of {name}" in shown.text] == told[by]
    async with served.person(BO) as bo:
        hidden = await bo.get("/runs/private")
        last = (await bo.get("/api/runs/of-bo")).json()
        page_of_last = (await bo.get("/runs/of-bo")).text
    await handle.terminate()
    assert told == {BO: ["of-bo"], KIM: ["private"]}
    assert (hidden.status_code, last["follows"]) == (404, [])
    assert (f'href="/runs/{handle.id}?run=' in page_of_last, "private" in page_of_last) == (True, False)
