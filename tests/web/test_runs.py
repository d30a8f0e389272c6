"""Runs on the page: the list, one run, what it has stored, what happens in it, and what people do to it."""

import asyncio
import html
import json
import re
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from urllib.parse import quote

import pytest

from backstay.client import Backstay
from backstay.errors import Unreachable
from backstay.testing import Reply
from gateways.web.identity import Visitor
from gateways.web.runs import acting
from store.blobs.shown import RECORD
from tests.engine import Scripts, ended, engine, pending, toolbox_of
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, served_page

ANA, BO = "ana@example.com", "bo@example.com"
LIST = Reply(calls=[("mail__list_customers", {"limit": 3})])
NAMED = """
default: {read_only: allow, write_safe: ask, restricted_write: ask}
ask: [{tool: "mail.send_*", approvers: ["ana@example.com"]}]
"""
FOLLOW_UP = {"user_id": ANA, "session_id": "s"}


def send(*names):
    mail = {"subject": "Your invoice", "body": "Dear customer,\nplease pay."}
    return Reply(calls=[("mail__send_email", {"to": f"{name}@example.com", **mail}) for name in names])


@asynccontextmanager
async def page_of(open_engine, scripts, **more):
    """Open an engine and its page; yields both, and a client of Ana's.

    Runs stay in the worker's cache: without one, it now and then loses a task to a query that comes at the same time.
    """
    more = {"cached": 100, **more}
    async with (
        open_engine(scripts, **behind_a_proxy(), **more) as running,
        served_page(running) as served,
        served.person(ANA) as ana,
    ):
        yield running, served, ana


def csrf_in(text):
    return re.search(r'name="csrf" value="([^"]+)"', text)[1]


async def post(person, path, **fields):
    """Send a form of the run's page, as a browser without scripts does."""
    page = await person.get(path.rpartition("/")[0])
    return await person.post(path, data={"csrf": csrf_in(page.text), **fields})


def said(text):
    """Return what a page tells of what was done."""
    found = re.search(r'<p class="said"[^>]*>(.*?)</p>', text, re.DOTALL)
    return "" if found is None else found[1].strip()


def parts(text):
    """Return the events of a stream, as (id, name, data)."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "data" in lines:
            number = lines.get("id")
            found.append((None if number is None else int(number), lines.get("event", ""), json.loads(lines["data"])))
    return found


async def streamed(person, workflow_id, until, *, seconds=40, **asked):
    """Read a stream until a text stands in it, or it ends."""
    text = ""
    async with asyncio.timeout(seconds), person.stream("GET", f"/runs/{workflow_id}/events", **asked) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for piece in answer.aiter_text():
            text += piece
            if until and until in text:
                break
    return parts(text)


@promise("page:search")
async def test_the_list_finds_runs_by_state_and_words_and_shows_what_waits(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, _, ana):
        done = await running.start(scripts.task(LIST, user_id=BO), "run-of-bo")
        await ended(done)
        waiting = await running.start(scripts.task(send("a"), user_id=ANA, session_id="friday"))
        await pending(waiting)
        async with asyncio.timeout(150):
            # Temporal lists the state of a run a moment after the run has come to it.
            while waiting.id not in (await ana.get("/runs", params={"state": "waiting"})).text:
                await asyncio.sleep(0.2)
        everything = await ana.get("/runs")
        only = [(await ana.get("/runs", params={"state": state})).text for state in ("waiting", "completed", "failed")]
        found = (await ana.get("/runs", params={"words": "friday"})).text
        nothing = (await ana.get("/runs", params={"words": "friday bo"})).text
        wrong = await ana.get("/runs", params={"state": "happy"})
        listed = (await ana.get("/api/runs")).json()
        await waiting.terminate()
        async with asyncio.timeout(150):
            while "stopped without a result" not in (await ana.get("/runs")).text:
                await asyncio.sleep(0.2)

    assert [name in everything.text for name in (done.id, waiting.id)] == [True, True]
    assert [[name in text for name in (waiting.id, done.id)] for text in only] == [
        [True, False],
        [False, True],
        [False, False],
    ]
    assert "No run fits." in only[2]
    assert (waiting.id in found, done.id in found, waiting.id in nothing) == (True, False, False)
    assert (wrong.status_code, "state: " in wrong.text) == (422, True)
    by_id = {run["workflow_id"]: run for run in listed["runs"]}
    assert (by_id[done.id]["state"], by_id[done.id]["user_id"]) == ("completed", BO)
    assert by_id[waiting.id]["session_id"] == "friday"


@promise("page:run")
@pytest.mark.thorough
async def test_the_inbox_and_the_page_of_a_run_tell_how_much_cannot_be_undone(open_engine, tmp_path):
    scripts, toolbox = Scripts(), toolbox_of(tmp_path, tmp_path / "mailbox.db")
    known = json.loads(toolbox.read_text(encoding="utf-8"))
    known["mcpServers"]["post"] = known["mcpServers"]["mail"]
    known["providers"]["post"] = {"tools": {"send_email": {"safety": "write_safe"}}}
    known["users"]["*"]["providers"].append("post")
    toolbox.write_text(json.dumps(known), encoding="utf-8")
    async with page_of(open_engine, scripts, toolbox=toolbox) as (running, served, ana):
        mail, letter = (send(name).calls[0] for name in "ab")
        both = Reply(calls=[mail, ("post__send_email", letter[1])])
        handle = await running.start(scripts.task(both, user_id=ANA))
        (request,) = await pending(handle)
        # The inbox reads the store, which hears of a request a little after the run has opened it.
        async with asyncio.timeout(150):
            while handle.id not in (inbox := (await ana.get("/")).text):
                await asyncio.sleep(0.1)
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        await ended(handle)
        shown = (await ana.get(f"/runs/{handle.id}")).text

    assert "1 of 2 calls cannot be undone" in inbox
    assert "Undo 1 of 2 effects; 1 cannot be undone" in shown


@promise("page:run")
async def test_a_run_shows_what_it_did_what_it_cost_what_it_asks_and_what_an_undo_covers(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts, url="http://127.0.0.1:1", web_ui_url="http://127.0.0.1:2") as opened:
        running, served, ana = opened
        handle = await running.start(scripts.task(LIST, send("a", "b"), user_id=ANA))
        (request,) = await pending(handle)
        waits = (await ana.get(f"/runs/{handle.id}")).text
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA, comment="go <b>on</b>")
        await ended(handle)
        shown = (await ana.get(f"/runs/{handle.id}")).text
        wire = (await ana.get(f"/api/runs/{handle.id}")).json()

    assert f'href="/requests/{handle.id}/{request["id"]}"' in waits
    assert "waiting for people" in waits
    assert "mail.list_customers" in waits
    assert f'href="http://127.0.0.1:2/namespaces/default/workflows/{handle.id}/' in shown
    assert "Dear customer" in shown
    assert shown.count("undo: mail.recall_email(") == 2
    assert "Undo 2 effects" in shown
    assert "go &lt;b&gt;on&lt;/b&gt;" in shown
    assert (wire["open"], wire["result"]["outcome"], wire["undo"]["count"]) == (False, "completed", 2)
    assert [event["n"] for event in wire["events"]] == list(range(1, len(wire["events"]) + 1))
    assert wire["decisions"][0]["verified"] is True


@promise("page:plan")
async def test_the_plan_of_a_run_is_shown_step_by_step_before_and_after(open_engine):
    steps = [
        {"tool": "mail.list_customers", "arguments": {"limit": 1}, "summary": "Who owes"},
        {"tool": "mail.send_email", "arguments": {"to": "a@example.com", "subject": "S", "body": "B"}},
    ]
    async with page_of(open_engine, Scripts()) as (running, served, ana):
        handle = await running.start({"plan": {"title": "Two steps", "steps": steps}, "user_id": ANA})
        (request,) = await pending(handle)
        before = (await ana.get(f"/runs/{handle.id}")).text
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        await ended(handle)
        after = (await ana.get(f"/runs/{handle.id}")).text
        undo = await served.page.backstay.run(handle.id).start_undo(by=ANA)
        await undo.result()
        undone = (await ana.get(f"/runs/{handle.id}")).text
        of_undo = await ana.get(f"/runs/{undo.id}")

    assert ("0 of 2 steps done" in before, "proposed" in before, before.count(">to do<")) == (True, True, 2)
    assert ("2 of 2 steps done" in after, after.count('<span class="state good">done</span>')) == (True, 3)
    assert "Nothing is left to undo." in undone
    assert "undone" in undone
    assert (of_undo.status_code, of_undo.headers["location"]) == (303, f"/runs/{handle.id}")


@promise("page:stream")
async def test_a_stream_replays_goes_on_after_the_last_event_seen_and_ends_with_the_run(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(LIST, send("a"), user_id=ANA))
        (request,) = await pending(handle)
        first = await streamed(ana, handle.id, "approval.asked")
        numbers = [number for number, name, _ in first if not name]
        rest = asyncio.create_task(streamed(ana, handle.id, "", headers={"Last-Event-ID": str(numbers[1])}))
        live = asyncio.create_task(streamed(ana, handle.id, "", params={"after": numbers[-1]}))
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        result = await ended(handle)
        rest, live = await rest, await live
        wrong = await ana.get(f"/runs/{handle.id}/events", headers={"Last-Event-ID": "x"})

    everything = [event["n"] for event in result["events"]]
    assert numbers == everything[: len(numbers)]
    assert [number for number, name, _ in rest if not name] == everything[2:]
    assert [number for number, name, _ in live if not name] == everything[len(numbers) :]
    assert (rest[-1][1], live[-1][1]) == ("end", "end")
    assert [data["name"] for _, name, data in live if not name][-1] == "run.ended"
    assert wrong.status_code == 422


@promise("page:saying")
async def test_what_the_model_is_saying_reaches_those_who_watch_without_a_number(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), user_id=ANA))
        await pending(handle)
        deltas, run = served.page.store.deltas, f"{handle.id}/{handle.first_execution_run_id}"
        unwatched = await deltas.begin(run, 3)
        reading = asyncio.create_task(streamed(ana, handle.id, "is on its way"))
        async with asyncio.timeout(150):
            while (stream := await deltas.begin(run, 3)) is None:
                await asyncio.sleep(0.05)
        await deltas.append(run, stream, 3, "The mail ")
        await deltas.append(run, stream, 3, "is on its way")
        heard = [(number, data) for number, name, data in await reading if name == "model.delta"]
        asked = (await ana.get(f"/api/runs/{handle.id}")).json()["events"][-1]
        over = await deltas.begin(run, asked["step_index"])
        await deltas.append(run, over, asked["step_index"], "is whole")
        from_the_start = await streamed(ana, handle.id, "is whole")
        fresh = await deltas.begin(run, 4)
        await deltas.append(run, fresh, 4, "is new")
        afterwards = await streamed(ana, handle.id, "is new", params={"after": asked["n"]})
        await handle.terminate()

    assert unwatched is None
    assert over in [data["data"]["stream"] for _, name, data in from_the_start if name == "model.delta"]
    assert over not in [data["data"]["stream"] for _, name, data in afterwards if name == "model.delta"]
    assert [number for number, _ in heard] == [None] * len(heard)
    assert "".join(data["text"] for _, data in heard) == "The mail is on its way"
    assert {(data["n"], data["step_index"], data["data"]["stream"]) for _, data in heard} == {(None, 3, stream)}


@promise("page:streams")
async def test_a_person_may_have_so_many_streams_and_no_more(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), user_id=ANA))
        await pending(handle)
        opened, path = [], f"/runs/{handle.id}/events"
        for _ in range(12):
            context = ana.stream("GET", path)
            opened.append(context)
            assert (await context.__aenter__()).status_code == 200
        refused = await ana.get(path)
        by_api = await ana.get(f"/api{path}")
        async with served.person(BO) as bo, bo.stream("GET", path) as other:
            of_other = other.status_code
        for context in opened:
            await context.__aexit__(None, None, None)
        async with asyncio.timeout(150):
            while (again := await first_status(ana, path)) == 429:
                await asyncio.sleep(0.2)
        await handle.terminate()

    assert (refused.status_code, by_api.status_code, of_other, again) == (429, 429, 200, 200)
    assert by_api.json()["error"]["type"] == "TooMany"


@promise("page:blob-places")
async def test_what_a_run_has_stored_is_found_whatever_signs_its_workflow_id_has(open_engine):
    scripts = Scripts()
    many = Reply(calls=[("mail__list_customers", {})])
    async with page_of(open_engine, scripts) as (running, _, ana):
        handle = await running.start(scripts.task(many, user_id=ANA), "odd/name ü?#")
        await ended(handle)
        shown = (await ana.get(f"/runs/{quote(handle.id, safe='')}")).text
        (answer,) = {html.unescape(link) for link in re.findall(r'href="(/blobs/[^"]+)"', shown)}
        opened = await ana.get(answer)

    assert (opened.status_code, "Stored answer" in opened.text) == (200, True)


@promise("page:blob-keys")
async def test_a_link_to_a_part_of_what_is_stored_leads_there_whatever_its_key_is(open_engine):
    stored = {
        "report.md": {"size": [1, {"deep": "x"}]},
        "a": {"b": {"wrong": 1}, "c": {"right": 1}},
        "a.b": {"right": 2},
        "x[0]": {"right": 3},
        ".env": {"right": 4},
        "": {"right": 5},
    }
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(Reply(text="done"), user_id=ANA))
        await ended(handle)
        blobs = served.page.store.blobs.of(f"{handle.id}/{handle.first_execution_run_id}")
        place = f"/blobs/{handle.id}/{await blobs.put_json({'kind': RECORD, 'digest': {'data': stored}})}"
        found, way = {}, {}
        for path in ("", "?path=a"):
            for link, name in re.findall(r'<dt><a href="([^"]+)">([^<]*)</a></dt>', (await ana.get(place + path)).text):
                address = place + html.unescape(link)
                found[name] = (await ana.get(address, headers={"Accept": "application/json"})).json()["value"]
                crumbs = (await ana.get(address)).text.partition('class="crumbs path"')[2].partition("</nav>")[0]
                way[name] = [html.unescape(crumb) for crumb in re.findall(r">([^<]+)</a>", crumbs)[1:]]

    # An entry that no path leads to has no link.
    assert found == {name: value for name, value in stored.items() if name} | {"c": {"right": 1}}
    assert way == {name: [name] for name in stored if name} | {"c": ["a", "c"]}


@promise("page:run-decisions")
async def test_what_people_do_to_a_run_is_among_its_decisions_by_its_name(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), user_id=ANA))
        await pending(handle)
        await post(ana, f"/runs/{handle.id}/pause")
        await post(ana, f"/runs/{handle.id}/resume")
        await post(ana, f"/runs/{handle.id}/top_up", max_steps="1")
        await served.page.backstay.run(handle.id).approve("r1", by=ANA)
        await ended(handle)
        told = card((await ana.get(f"/runs/{handle.id}")).text, "decisions")

    said_there = [words.split()[0] for words in re.findall(r"</strong>\s*([a-z_ ]+)", told)]
    assert said_there[1:] == ["top", "resume", "pause"]


async def first_status(person, path):
    async with person.stream("GET", path) as answer:
        return answer.status_code


@promise("page:stored")
async def test_what_a_run_has_stored_is_read_in_parts_and_downloaded_as_a_file(open_engine):
    scripts = Scripts()
    many = Reply(calls=[("mail__list_customers", {})])
    async with page_of(open_engine, scripts) as (running, _, ana):
        handle = await running.start(scripts.task(many, user_id=ANA))
        result = await ended(handle)
        (ref,) = [event["data"]["summary_ref"] for event in result["events"] if event["name"] == "action.called"]
        place = f"/blobs/{handle.id}/{ref}"
        whole = (await ana.get(place)).text
        rows = (await ana.get(place, params={"path": "customers", "offset": 1, "limit": 2})).text
        cell = await ana.get(place, params={"path": "customers.0.name", "as": "text"})
        wire = (await ana.get(f"/api{place}", params={"path": "customers", "limit": 2})).json()
        file = await ana.get(place, params={"as": "json"})
        refused = [
            (await ana.get(path, params=params)).status_code
            for path, params in (
                (f"/blobs/{handle.id}/{'0' * 40}", {}),
                (f"/blobs/{handle.id}/..%2f..%2fetc%2fpasswd", {}),
                (place, {"path": "no.such"}),
                (place, {"offset": "-1"}),
                (f"/blobs/other/{ref}", {}),
            )
        ]

    assert 'href="?path=customers"' in whole
    assert rows.count('<th scope="row">') == 2
    assert (len(wire["value"]), wire["next"]) == (2, 2)
    assert cell.text == wire["value"][0]["name"]
    assert cell.headers["content-type"] == "text/plain; charset=utf-8"
    assert file.headers["content-disposition"] == f'attachment; filename="{ref[:12]}.json"'
    assert file.headers["x-content-type-options"] == "nosniff"
    assert file.json()["customers"][:2] == wire["value"]
    assert refused == [422, 422, 422, 422, 404]


@promise("page:others")
async def test_nobody_sees_a_run_its_events_and_what_it_has_stored_that_is_not_theirs(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts, policy=NAMED) as (running, served, ana):
        handle = await running.start(scripts.task(LIST, send("a"), user_id=ANA))
        (request,) = await pending(handle)
        events = (await ana.get(f"/api/runs/{handle.id}")).json()["events"]
        ref = next(event["data"]["summary_ref"] for event in events if "summary_ref" in event["data"])
        places = [f"/runs/{handle.id}", f"/runs/{handle.id}/events", f"/blobs/{handle.id}/{ref}"]
        own = [await first_status(ana, path) for path in places]
        async with served.person(BO) as bo:
            theirs = [(await bo.get(path)).status_code for path in places]
            listed = (await bo.get("/runs")).text
            bearer = served.page.csrf(Visitor(by=BO))
            acted = [
                (
                    await bo.post(
                        f"/api/runs/{handle.id}/{name}", json={}, headers={"Authorization": f"Bearer {bearer}"}
                    )
                ).status_code
                for name in ("pause", "resume", "message", "top_up", "cancel", "undo")
            ]
        still = await pending(handle)
        await handle.terminate()

    assert (own, theirs, handle.id in listed) == ([200] * 3, [404] * 3, False)
    assert acted == [404] * 6
    assert still[0]["id"] == request["id"]


@promise("page:deeds")
async def test_people_pause_resume_tell_and_raise_limits_in_their_own_name(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts, policy=NAMED) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), LIST, user_id=ANA))
        (request,) = await pending(handle)
        here = f"/runs/{handle.id}"
        paused = await post(ana, f"{here}/pause", reason="let me look")
        shown = (await ana.get(paused.headers["location"])).text
        twice = await post(ana, f"{here}/pause", reason="again")
        resumed = await post(ana, f"{here}/resume")
        told = await post(ana, f"{here}/message", text="Be polite", event_id="once")
        again = await post(ana, f"{here}/message", text="Be polite", event_id="once")
        before = await handle.query("budget")
        await post(ana, f"{here}/top_up", max_steps="5", event_id="more")
        more = await post(ana, f"{here}/top_up", max_steps="5", event_id="more")
        after = await handle.query("budget")
        wrong = await post(ana, f"{here}/top_up", max_steps="many")
        nothing = await post(ana, f"{here}/top_up", max_steps="")
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        result = await ended(handle)
        late = await post(ana, f"{here}/undo")

    assert (paused.status_code, said(shown)) == (303, "The run is paused before its next step.")
    assert "Paused: let me look" in shown
    assert (twice.status_code, resumed.status_code) == (409, 303)
    assert (told.status_code, again.status_code, more.status_code) == (303, 303, 303)
    assert after["budget"]["max_steps"] == before["budget"]["max_steps"] + 5
    assert [wrong.status_code, nothing.status_code] == [422, 422]
    names = [event["name"] for event in result["events"]]
    assert (names.count("run.paused"), names.count("message.received"), names.count("budget.topped_up")) == (1, 1, 1)
    (message,) = [event for event in result["events"] if event["name"] == "message.received"]
    assert (message["data"]["by"], message["data"]["verified"]) == (ANA, True)
    assert late.status_code == 200


BY_HAND = "a person must undo it by hand: mail.recall_email(message_id="


def card(text, name):
    return text.partition(f'id="h-{name}"')[2].partition("</section>")[0]


@promise("undo:by-hand")
@pytest.mark.thorough
async def test_what_a_person_must_undo_by_hand_is_named_with_its_call(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        stopped = await running.start(scripts.task(send("a", "b"), send("c"), user_id=ANA))
        completed = await running.start(scripts.task(send("d"), user_id=ANA))
        for handle, number in ((stopped, 1), (completed, 1)):
            (request,) = await pending(handle)
            await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
            async with asyncio.timeout(150):
                while not running.mailbox.rows("SELECT 1 FROM sent WHERE effect_id LIKE ?", f"{handle.id}/%/{number}"):
                    await asyncio.sleep(0.1)
            await running.mailbox.refuse_recall(handle.id, number)
        async with asyncio.timeout(150):
            while "r2" not in [request["id"] for request in await pending(stopped)]:
                await asyncio.sleep(0.1)
        await served.page.backstay.run(stopped.id).reject("r2", by=ANA, stop=True)
        assert (await ended(stopped))["outcome"] == "rollback_failed"
        await ended(completed)
        undo = await served.page.backstay.run(completed.id).start_undo(by=ANA)
        assert (await undo.result()).outcome == "rollback_failed"
        in_run = (await ana.get(f"/runs/{stopped.id}")).text
        after_end = (await ana.get(f"/runs/{completed.id}")).text
        here = f"/runs/{completed.id}/undone_by_hand"
        odd = [(await post(ana, here, **given)).text for given in ({}, {"effect": "one"})]
        none_parked = await post(ana, here, effect="2")
        recorded = await post(ana, here, effect="1", comment="deleted it in the shop")
        handled = (await ana.get(recorded.headers["location"])).text

    result, effects = card(in_run, "result"), card(in_run, "effects")
    assert (result.count("not undone"), result.count(BY_HAND)) == (1, 1)
    assert "was already recalled" in result
    assert (effects.count("not undone"), effects.count(BY_HAND)) == (1, 1)
    only = card(after_end, "effects")
    assert (only.count("not undone"), only.count(BY_HAND)) == (1, 1)
    assert "1: mail.recall_email(message_id=" in card(after_end, "do")
    assert ["effect: the number of the effect" in odd[0], "effect: &#39;one&#39; is not a number" in odd[1]] == [
        True
    ] * 2
    assert "the undo of effect 2 is not parked; parked are 1" in none_parked.text
    assert (recorded.status_code, said(handled)) == (303, "Effect 1 is recorded as undone by hand.")
    assert (card(handled, "effects").count("not undone"), "undone-by-hand" in handled) == (0, False)
    assert f"undone by hand, {ANA} says so: deleted it in the shop" in html.unescape(handled)


@promise("page:undo")
async def test_an_undo_shows_first_what_it_undoes_and_does_that_and_nothing_else(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), send("b"), user_id=ANA))
        run, here = served.page.backstay.run(handle.id), f"/runs/{handle.id}"
        (request,) = await pending(handle)
        await run.approve(request["id"], by=ANA)
        async with asyncio.timeout(150):
            while not [r for r in await pending(handle) if r["id"] != request["id"]]:
                await asyncio.sleep(0.1)
        asked = await post(ana, f"{here}/undo")
        old = re.search(r'name="confirm" value="([0-9a-f]+)"', asked.text)[1]
        sent_before = running.mailbox.sent()
        (second,) = await pending(handle)
        await run.approve(second["id"], by=ANA)
        await ended(handle)
        changed = await post(ana, f"{here}/undo", confirm=old)
        sent_still = running.mailbox.sent()
        new = re.search(r'name="confirm" value="([0-9a-f]+)"', changed.text)[1]
        partly = await post(ana, f"{here}/undo", to_step="1")
        begun = await post(ana, f"{here}/undo", confirm=new)
        undone = await served.page.backstay.run(f"undo-{handle.id}").result()
        streamed_after = await streamed(ana, handle.id, "")

    assert (asked.status_code, "1 effect, the last one first" in asked.text) == (200, True)
    assert sent_before == ["a@example.com"]
    assert (changed.status_code, "has changed since you looked" in changed.text) == (409, True)
    assert sent_still == ["a@example.com", "b@example.com"]
    assert "1 effect after step 1, the last one first" in partly.text
    assert begun.status_code == 303
    assert [each.state for each in undone.undone] == ["compensated"] * 2
    assert running.mailbox.sent() == []
    assert [data["name"] for _, name, data in streamed_after if not name][-2:] == ["undo.ran", "undo.ran"]


@promise("page:undo-unseen")
async def test_what_a_run_does_after_the_last_look_is_not_undone_unseen(open_engine, monkeypatch):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), send("b"), send("c"), user_id=ANA))
        await approve(served, handle)
        here, looked = f"/runs/{handle.id}", acting.preview
        asked = await post(ana, f"{here}/undo")
        confirm = re.search(r'name="confirm" value="([0-9a-f]+)"', asked.text)[1]

        async def looked_too_early(*given, **more):
            seen = await looked(*given, **more)
            await approve(served, handle)
            return seen

        monkeypatch.setattr(acting, "preview", looked_too_early)
        refused = await post(ana, f"{here}/undo", confirm=confirm)
        monkeypatch.setattr(acting, "preview", looked)
        sent_still = running.mailbox.sent()
        again = await post(ana, f"{here}/undo", confirm=confirm)
        confirm = re.search(r'name="confirm" value="([0-9a-f]+)"', again.text)[1]
        done = await post(ana, f"{here}/undo", confirm=confirm)
        sent_then = running.mailbox.sent()
        await handle.terminate()

    assert (refused.status_code, "effect 2 is newer than what was shown" in refused.text) == (409, True)
    assert sent_still == ["a@example.com", "b@example.com"]
    assert "2 effects, the last one first" in again.text
    assert (done.status_code, sent_then) == (303, [])


async def approve(served, handle):
    """Approve what a run asks, and wait until it asks something else."""
    (request,) = await pending(handle)
    await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
    async with asyncio.timeout(150):
        while request["id"] in [asked["id"] for asked in await pending(handle)]:
            await asyncio.sleep(0.1)


@promise("page:undo-begun")
async def test_an_undo_is_called_under_way_only_once_a_worker_has_taken_it(temporal, tmp_path, monkeypatch):
    monkeypatch.setattr(acting, "_UNDO_S", 0)
    monkeypatch.setattr("backstay.client.run.ANSWERED_WITHIN", timedelta(seconds=2))
    scripts = Scripts()
    async with AsyncExitStack() as working, AsyncExitStack() as serving:
        running = await working.enter_async_context(engine(temporal, tmp_path, scripts, **behind_a_proxy()))
        served = await serving.enter_async_context(served_page(running))
        ana = await serving.enter_async_context(served.person(ANA))
        handle = await running.start(scripts.task(send("a"), send("b"), user_id=ANA))
        await approve(served, handle)
        path = f"/api/runs/{handle.id}/undo"
        token = served.page.csrf(Visitor(by=ANA))
        told = {"headers": {"Authorization": f"Bearer {token}"}}
        asked = (await ana.post(path, json={}, **told)).json()
        begun = await ana.post(path, json={"confirm": asked["confirm"]}, **told)
        async with asyncio.timeout(150):
            while (asked := (await ana.post(path, json={}, **told)).json())["preview"]["count"]:
                await asyncio.sleep(0.1)
        await working.aclose()
        unheard = await ana.post(path, json={"confirm": asked["confirm"]}, **told)
        await handle.terminate()

    assert (begun.status_code, begun.json()) == (200, {"state": "under way"})
    assert unheard.status_code == 503
    assert re.match("(the run has not answered yet|no worker answers):", unheard.json()["error"]["message"])


@promise("page:end")
async def test_a_run_is_ended_only_after_a_look_and_only_by_those_who_may_stop_it(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts, policy=NAMED) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), send("b"), user_id=BO))
        await approve(served, handle)
        here = f"/runs/{handle.id}"
        async with served.person(BO) as bo:
            asked = await post(bo, f"{here}/cancel")
            digest = re.search(r'name="confirm" value="([0-9a-f]+)"', asked.text)[1]
            refused = await post(bo, f"{here}/cancel", confirm=digest)
            bearer = {"Authorization": f"Bearer {served.page.csrf(Visitor(by=BO))}"}
            wire = (await bo.post(f"/api{here}/cancel", json={}, headers=bearer)).json()
        still_open = await served.page.backstay.run(handle.id).is_open()
        done = await post(ana, f"{here}/cancel", confirm=digest)
        result = await served.page.backstay.run(handle.id).result()
        form = {"csrf": served.page.csrf(Visitor(by=ANA)), "confirm": digest}
        again = await ana.post(f"{here}/cancel", data=form)
        kept = running.mailbox.sent()
        afterwards = await post(ana, f"{here}/undo")

    assert (asked.status_code, "End this run?" in asked.text) == (200, True)
    assert ("Its effects are kept" in asked.text, "are then undone" in asked.text) == (True, False)
    assert (wire["preview"]["count"], wire["preview"]["kept"], kept) == (1, True, ["a@example.com"])
    assert "1 effect, the last one first" in afterwards.text
    assert (refused.status_code, "not an approver" in refused.text, still_open) == (409, True, True)
    assert (done.status_code, str(result.outcome), again.status_code) == (303, "cancelled", 409)


@promise("page:programs")
async def test_programs_act_with_a_bearer_token_and_read_the_objects_of_the_wire(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        handle = await running.start(scripts.task(send("a"), user_id=ANA))
        (request,) = await pending(handle)
        here = f"/api/runs/{handle.id}"
        token = (await ana.get(here)).headers["Backstay-Csrf"]
        bearer = {"Authorization": f"Bearer {token}"}
        paused = await ana.post(f"{here}/pause", json={"reason": "hold"}, headers=bearer)
        bare = await ana.post(f"{here}/resume", json={})
        resumed = await ana.post(f"{here}/resume", json={}, headers=bearer)
        await served.page.backstay.run(handle.id).approve(request["id"], by=ANA)
        await ended(handle)
        asked = await ana.post(f"{here}/undo", json={}, headers=bearer)
        wrong = await ana.post(f"{here}/undo", json={"to_step": "x"}, headers=bearer)
        begun = await ana.post(f"{here}/undo", json={"confirm": asked.json()["confirm"]}, headers=bearer)
        await served.page.backstay.run(begun.json()["workflow_id"]).result()

    assert (paused.status_code, bare.status_code, resumed.status_code) == (200, 401, 200)
    assert (asked.status_code, asked.json()["preview"]["count"]) == (422, 1)
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (422, "DecisionInvalid")
    assert (begun.status_code, begun.json()) == (200, {"workflow_id": f"undo-{handle.id}"})


@promise("page:missing")
@pytest.mark.parametrize("path", ["/runs/no-such-run", "/runs/no-such-run/events", f"/blobs/no-such-run/{'0' * 40}"])
async def test_a_run_that_is_not_there_is_404(open_engine, path):
    async with page_of(open_engine, Scripts()) as (_, _, ana):
        assert (await ana.get(path)).status_code == 404


@promise("page:neighbours")
async def test_runs_of_one_conversation_lead_to_each_other(open_engine):
    scripts = Scripts()
    async with page_of(open_engine, scripts) as (running, served, ana):
        first = await running.start(scripts.task(**FOLLOW_UP))
        await ended(first)
        next_task = scripts.task()
        second = await served.page.backstay.run(first.id).follow_up(next_task["text"])
        await second.result()
        pages = [(await ana.get(f"/runs/{name}")).text for name in (first.id, second.id)]

    assert f'<span class="quiet">after</span> <a href="/runs/{second.id}?run=' in pages[0]
    assert f'<span class="quiet">before</span> <a href="/runs/{first.id}?run=' in pages[1]


@promise("page:not-begun")
async def test_a_run_that_no_worker_has_begun_is_shown_as_such_to_whose_it_is(open_engine):
    async with page_of(open_engine, Scripts(), policy=NAMED) as (running, served, ana):
        handle = await running.client.start_workflow(
            "RunTask", {"text": "wait", "user_id": ANA}, id="not-begun", task_queue="a-queue-that-nobody-serves"
        )
        own = await ana.get("/runs/not-begun")
        async with served.person(BO) as bo, asyncio.timeout(150):
            # Temporal may be too busy to answer.
            while (theirs := await bo.get("/runs/not-begun")).status_code == 503:
                await asyncio.sleep(0.1)
        await handle.terminate()

    assert ("not begun" in own.text, "No worker has taken this run" in own.text) == (True, True)
    assert theirs.status_code == 404


@promise("page:not-begun-outage")
async def test_while_temporal_does_not_answer_nobody_is_told_that_a_run_is_not_there(open_engine, monkeypatch):
    scripts = Scripts()
    async with page_of(open_engine, scripts, policy=NAMED) as (running, served, ana):
        known = await running.start(scripts.task(user_id=ANA), "known")
        await ended(known)
        await ended(await running.undo("known"))
        handle = await running.client.start_workflow(
            "RunTask", {"text": "wait", "user_id": ANA}, id="waits", task_queue="a-queue-that-nobody-serves"
        )
        with monkeypatch.context() as down:

            async def unreachable(*_):
                raise Unreachable("Temporal does not answer")

            down.setattr(Backstay, "execution", unreachable)
            own = await ana.get("/api/runs/waits")
            undone = await ana.get("/runs/undo-known")
            async with served.person(BO) as bo:
                theirs = [await bo.get(f"/api/runs/{name}") for name in ("waits", "known", "no-such-run")]
        later = await ana.get("/api/runs/waits")
        await handle.terminate()

    assert (own.status_code, own.json()["error"]["type"], later.status_code) == (503, "Unreachable", 200)
    assert (undone.status_code, undone.headers["location"].partition("?")[0]) == (303, "/runs/known")
    # Nobody learns in an outage which runs of others there are.
    assert [(answer.status_code, answer.text) for answer in theirs] == [(503, own.text)] * 3


@promise("page:runpage-links")
async def test_the_web_ui_leads_to_the_page_of_a_run_and_to_each_of_its_requests(open_engine):
    scripts = Scripts()
    page = "http://page.example/back(stay)"
    async with open_engine(scripts, url=page) as running:
        backstay = Backstay(running.client, task_queue=running.settings.task_queue, page=page)
        run = await backstay.start({**scripts.task(send("a")), "user_id": ANA}, id="of ana/1")
        handle = running.client.get_workflow_handle(run.id)
        (request,) = await pending(handle)
        details = (await handle.query("__temporal_workflow_metadata")).current_details
        at_start = await (await handle.describe()).static_details()
        await run.approve(request["id"], by=ANA)
        await run.result()
        undoing = await backstay.start_undo(run.id)
        await undoing.result()
        of_undo = running.client.get_workflow_handle(undoing.id)
        undo_details = (await of_undo.query("__temporal_workflow_metadata")).current_details

    place = "http://page.example/back%28stay%29"
    assert f"[the page of this run]({place}/runs/of%20ana%2F1)" in details
    assert f"[Look at it and decide]({place}/requests/of%20ana%2F1/r1)" in details
    assert f"[The page of this run]({place}/runs/of%20ana%2F1)" in at_start
    assert f"[the page of this run]({place}/runs/of%20ana%2F1)" in undo_details
