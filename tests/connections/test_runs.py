"""Runs and connections: the person signs in, the same call goes on, and no token is anywhere it should not be."""

import json
import uuid

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests import signing
from tests.connections.issuer import go_to, offered
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import KEY, behind_a_proxy, headers, served_page

PAGE = "https://page.example.com"
ANA, BO, DESK, STRANGER = "ana@example.com", "bo@example.com", "desk@example.com", "robot@example.com"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
SCRIPTS = Scripts()


@pytest_asyncio.fixture(scope="module")
async def office(authority, temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("connections")
    async with offered(authority) as (issuer, notes):
        toolbox = folder / "toolbox.json"
        said = {"mcpServers": {"notes": {"url": notes.url, "auth": {}}}}
        said["providers"] = {"notes": {"trusted": True, "tools": {"write": {"safety": "write_safe"}}}}
        toolbox.write_text(json.dumps(said), encoding="utf-8")
        options = {"policy": POLICY, "may_act_for": DESK, "toolbox": toolbox, "url": PAGE, **behind_a_proxy()}
        async with engine(temporal, folder, SCRIPTS, **options) as running, served_page(running) as page:
            running.issuer, running.notes, running.page, running.authority = issuer, notes, page, authority
            yield running


def call(tool, **arguments):
    return Reply(calls=[(f"notes__{tool}", arguments)])


def finish(summary="done"):
    return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": True})])


async def start(office, *replies, by=ANA, user=ANA, **fields):
    workflow_id = f"task-{uuid.uuid4()}"
    task = {**SCRIPTS.task(*replies, user_id=user), **fields}
    if by:
        task = signing.signed_start(office.client, workflow_id, {**task, "by": by}, key=KEY)
    return await office.start(task, workflow_id)


def csrf_in(text):
    return text.partition('name="csrf" value="')[2].partition('"')[0]


async def left(office, by=ANA):
    """Begin a sign-in on the page; return where the person is to go."""
    async with office.page.person(by) as person:
        shown = await person.get("/connections")
        answer = await person.post("/connections/notes/sign-in", data={"csrf": csrf_in(shown.text)})
        assert answer.status_code == 200, answer.text
        return answer.text.partition('rel="noreferrer" href="')[2].partition('"')[0].replace("&amp;", "&")


async def sign_in(office, by=ANA, person="ana-at-notes"):
    office.issuer.person = person
    back = await go_to(await left(office, by), office.authority)
    async with office.page.person(by) as browser:
        return await browser.get("/connections/notes/callback", params=back)


async def disconnect(office, by=ANA):
    async with office.page.person(by) as person:
        shown = await person.get("/connections")
        await person.post("/connections/notes/disconnect", data={"csrf": csrf_in(shown.text)})


async def settle(office, by=ANA):
    """Begin a test without a connection, and with nothing written."""
    office.notes.written.clear()
    office.issuer.person = "nobody"
    office.notes.echo, office.notes.guard.wanted, office.issuer.token = False, "", ""
    await disconnect(office, by)


@promise("connections:parked")
async def test_a_call_without_a_sign_in_waits_and_the_same_call_goes_on_when_the_person_has_signed_in(office):
    await settle(office)
    await sign_in(office)
    handle = await start(office, call("write", text="first"), call("write", text="second"), finish())
    await ended(handle)
    office.issuer.forget(refresh=True)

    handle = await start(office, call("write", text="third"), finish())
    (request,) = await pending(handle)
    assert request["calls"][0]["tool"] == "notes.write"
    assert f"{PAGE}/connections#notes" in request["question"]
    assert ("ana-at-notes", "third") not in office.notes.written
    answer = await sign_in(office)
    assert answer.status_code == 303

    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert [text for _, text in office.notes.written] == ["first", "second", "third"]
    assert [effect["state"] for effect in result["effects"]] == ["applied"]
    (decided,) = [event for event in result["events"] if event["name"] == "approval.decided"]
    assert (decided["data"]["by"], decided["data"]["verified"]) == (ANA, True)


@promise("connections:asked-for")
async def test_a_run_asks_for_a_sign_in_and_then_finds_the_tools(office):
    await settle(office)
    seen = []

    def look(conversation):
        seen.append(set(conversation.tools))
        return call("write", text="found")

    handle = await start(office, call("sign_in"), look, finish())
    await pending(handle)
    await sign_in(office)
    result = await ended(handle)

    assert result["outcome"] == "completed"
    assert office.notes.written == [("ana-at-notes", "found")]
    assert any(name.endswith("__sign_in") for name in seen[0])


@promise("connections:declined")
async def test_a_person_who_does_not_sign_in_lets_the_call_fail_and_nothing_is_sent(office):
    await settle(office)
    told = []

    def look(conversation):
        told.append(str(conversation.calls("notes__sign_in")[0].answer))
        return finish()

    handle = await start(office, call("sign_in"), look)
    (request,) = await pending(handle)
    no = {"request_id": request["id"], "verdict": "reject", "by": ANA}
    await handle.execute_update("decide", await signing.signed(handle, no, key=KEY))
    await ended(handle)
    assert "did not sign in" in told[0]


@promise("connections:owner")
@pytest.mark.parametrize(
    ("by", "user", "served"),
    [
        (ANA, ANA, True),
        (ANA, "singleton", True),
        (DESK, ANA, True),
        ("", ANA, False),
        (STRANGER, ANA, False),
        (BO, ANA, False),
        (DESK, "singleton", False),
        ("", "singleton", False),
    ],
)
async def test_a_connection_serves_the_runs_that_its_person_or_a_listed_service_proved_to_have_started(
    office, by, user, served
):
    await settle(office)
    await sign_in(office)
    steps = [{"tool": "notes.write", "arguments": {"text": "by whom?"}}]
    plan = {"title": "Write a note", "steps": steps}
    handle = await start(office, by=by, user=user, plan=plan, text="")
    result = await ended(handle)

    assert result["success"] is served, result
    assert office.notes.written == ([("ana-at-notes", "by whom?")] if served else [])


@promise("connections:nowhere")
async def test_no_token_is_in_history_store_page_prompt_or_answer_even_where_the_server_repeats_it(
    office, caplog, capfd
):
    await settle(office)
    office.notes.echo = True
    # Nothing in it looks like a secret, so that it is found by what it is.
    office.issuer.token = "violet-harbour-lantern"
    seen = []

    def look(conversation):
        seen.append(json.dumps(conversation.messages, default=str))
        return finish()

    handle = await start(office, call("sign_in"), call("whoami"), look)
    await pending(handle)
    callback = await sign_in(office)
    result = await ended(handle)
    async with office.page.person(ANA) as person:
        pages = [await person.get(path) for path in ("/connections", f"/runs/{handle.id}", "/decided")]
        shown = "".join(page.text for page in pages)

    history = (await handle.fetch_history()).to_json()
    kept = b"".join(path.read_bytes() for path in office.settings.home.rglob("*") if path.is_file())
    logged = "".join([caplog.text, *capfd.readouterr()])
    assert "came with" in seen[0]
    assert len(office.issuer.secrets) >= 3
    for place in (history, kept.decode("latin-1"), shown, callback.text, seen[0], json.dumps(result), logged):
        assert not [secret for secret in office.issuer.secrets if secret in place]


@promise("connections:more-rights")
async def test_a_server_that_wants_more_rights_has_the_person_asked_and_both_are_asked_for(office):
    await settle(office)
    await sign_in(office)
    office.notes.guard.wanted = "admin"
    handle = await start(office, call("write", text="as admin"), finish())
    (request,) = await pending(handle)
    assert request["calls"][0]["tool"] == "notes.write"
    await sign_in(office)
    await ended(handle)

    assert set(office.issuer.asked[-1]["scope"].split()) == {"notes", "admin"}
    assert office.notes.written == [("ana-at-notes", "as admin")]


@promise("connections:callback")
async def test_who_comes_back_must_be_who_left_and_a_sign_in_is_over_after_the_first_who_comes(office):
    await settle(office)
    await settle(office, BO)
    office.issuer.person = "ana-at-notes"
    back = await go_to(await left(office), office.authority)
    async with office.page.person(BO) as thief, office.page.stranger() as stranger, office.page.person(ANA) as ana:
        assert (await stranger.get("/connections/notes/callback", params=back)).status_code == 401
        assert (await thief.get("/connections/notes/callback", params=back)).status_code == 409
        assert (await ana.get("/connections/notes/callback", params=back)).status_code == 409
        for person in (thief, ana):
            shown = (await person.get("/connections", headers={"accept": "application/json"})).json()
            assert [each["state"] for each in shown["connections"]] == [""]


@promise("connections:browser")
async def test_a_person_signs_in_with_a_browser_and_the_run_that_waits_goes_on(browser, office):
    await settle(office)
    office.issuer.person = "ana-at-notes"
    handle = await start(office, call("sign_in"), call("write", text="by browser"), finish())
    await pending(handle)
    # Without a public address the person comes back to the address of this machine.
    async with (
        served_page(office, url=None) as page,
        browser.tab(extra_http_headers=headers(ANA), ignore_https_errors=True) as tab,
    ):
        await tab.goto(f"{page.url}/connections")
        await tab.get_by_role("button", name="Sign in", exact=True).click()
        async with tab.expect_navigation(url="**/connections?said=*"):
            await tab.get_by_role("link", name="Go to 127.0.0.1").click()
        assert "the call that waited goes on" in await tab.get_by_role("status").inner_text()
        assert await tab.get_by_text("signed in", exact=True).is_visible()
    await ended(handle)
    assert office.notes.written == [("ana-at-notes", "by browser")]


ATTACKS_ON_THE_PAGE = []


def attack(tried):
    ATTACKS_ON_THE_PAGE.append(tried)
    return tried


@attack
async def a_form_of_another_site_that_begins_a_sign_in(office):
    async with office.page.person(ANA) as person:
        for sent in ({"csrf": ""}, {"csrf": "guessed"}):
            assert (await person.post("/connections/notes/sign-in", data=sent)).status_code == 403
        assert (await person.get("/connections/notes/sign-in")).status_code == 405


@attack
async def a_form_of_another_site_that_disconnects(office):
    await sign_in(office)
    async with office.page.person(ANA) as person:
        assert (await person.post("/connections/notes/disconnect", data={"csrf": "guessed"})).status_code == 403
        assert "signed in</span>" in (await person.get("/connections")).text


@attack
async def a_return_address_of_the_attacker(office):
    office.issuer.person = "ana-at-notes"
    back = await go_to(await left(office), office.authority)
    evil = "https://evil.example"
    async with office.page.person(ANA) as person:
        more = dict.fromkeys(("return_to", "redirect_uri", "next", "url"), evil)
        answer = await person.get("/connections/notes/callback", params={**back, **more})
    assert answer.headers["location"].startswith("/connections?said=")
    assert office.issuer.asked[-1]["redirect_uri"] == f"{PAGE}/connections/notes/callback"


@attack
async def a_return_address_for_an_issuer_of_another_server(office):
    async with office.page.stranger() as issuer:
        told = (await issuer.get("/connections/notes/client.json")).json()
        assert told["client_id"] == f"{PAGE}/connections/notes/client.json"
        assert told["redirect_uris"] == [f"{PAGE}/connections/notes/callback"]
        for other in ("/connections/client.json", "/connections/none/client.json"):
            assert "redirect_uris" not in (await issuer.get(other)).text


@attack
async def an_answer_that_says_something_twice(office):
    back = await go_to(await left(office), office.authority)
    async with office.page.person(ANA) as person:
        twice = [*back.items(), ("iss", "https://evil.example")]
        assert (await person.get("/connections/notes/callback", params=twice)).status_code == 409


@attack
async def a_fault_that_is_markup(office):
    back = await go_to(await left(office), office.authority)
    said = {"state": back["state"], "iss": back["iss"], "error": "<img src=x onerror=alert(1)>"}
    async with office.page.person(ANA) as person:
        answer = await person.get("/connections/notes/callback", params=said)
    assert answer.status_code == 409
    assert "onerror" not in answer.text


@attack
async def a_link_in_the_hands_of_somebody_else(office):
    """What a run hands out is an address of ours; who follows it acts for themselves."""
    async with office.page.person(BO) as other, office.page.stranger() as stranger:
        shown = await other.get("/connections")
        assert BO in shown.text
        assert ANA not in shown.text
        assert (await stranger.get("/connections")).status_code == 401


@attack
async def a_server_that_asks_as_if_it_were_us(office):
    """Its question looks like ours and has no mark of ours, so no sign-in answers it."""
    await sign_in(office)
    handle = await start(office, call("ask_me"), finish())
    await pending(handle)
    answer = await sign_in(office)
    assert answer.status_code == 303
    (request,) = await pending(handle)
    no = {"request_id": request["id"], "verdict": "reject", "by": ANA}
    await handle.execute_update("decide", await signing.signed(handle, no, key=KEY))
    await ended(handle)


@promise("connections:attacks")
@pytest.mark.parametrize("tried", ATTACKS_ON_THE_PAGE, ids=lambda tried: tried.__name__)
async def test_an_attack_on_the_page_of_connections_gains_nothing(office, tried):
    await settle(office)
    await tried(office)
