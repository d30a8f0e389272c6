"""Servers that users add for themselves: whose runs they serve, what is asked, and what nobody sees of them."""

import json
import uuid
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests import signing
from tests.connections.crm import KEY as CRM_KEY
from tests.connections.crm import PATH_KEY, crm
from tests.connections.test_runs import csrf_in
from tests.e2e.subruns.family import begun, delegate
from tests.engine import Scripts, ended, engine, pending
from tests.requirements import promise
from tests.web.pages import KEY, behind_a_proxy, headers, served_page

PAGE = "https://page.example.com"
ANA, BO, DESK = "ana@example.com", "bo@example.com", "desk@example.com"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: ask}\n"
SCRIPTS = Scripts()
JSON = {"accept": "application/json"}


@pytest_asyncio.fixture(scope="module")
async def office(authority, temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("own_servers")
    async with crm(authority) as found:
        toolbox = folder / "toolbox.json"
        said = {"users_servers": {"hosts": [urlsplit(found.url).netloc, "*.example.org"], "most": 2}}
        toolbox.write_text(json.dumps(said), encoding="utf-8")
        options = {"policy": POLICY, "may_act_for": DESK, "toolbox": toolbox, "url": PAGE, **behind_a_proxy()}
        options["profiles"] = "default: {delegation: true}\n"
        async with engine(temporal, folder, SCRIPTS, **options) as running, served_page(running) as page:
            running.crm, running.page = found, page
            yield running


@pytest_asyncio.fixture
async def settled(office):
    """Begin with no server, and nothing written."""
    office.crm.reset()
    for by in (ANA, BO, DESK):
        for server in (await asked(office, by))["servers"]:
            assert (await sent(office, by, f"/servers/{server['name']}/remove")).status_code == 200
    return office


async def asked(office, by=ANA, **params):
    async with office.page.person(by) as person:
        return (await person.get("/api/servers", params=params)).json()


async def sent(office, by, path, **said):
    """Send JSON as a program of a person does."""
    async with office.page.person(by) as person:
        token = (await person.get("/connections", headers=JSON)).headers["Backstay-Csrf"]
        return await person.post(f"/api{path}", json=said, headers={"Authorization": f"Bearer {token}"})


async def add(office, by=ANA, **said):
    """Add the server; return the name of its provider."""
    told = {"name": "crm", "url": office.crm.url, "headers": {"X-Key": CRM_KEY}, **said}
    answer = await sent(office, by, "/servers", **told)
    assert answer.status_code == 200, answer.text
    return answer.json()["provider"]


def call(provider, tool, **arguments):
    return Reply(calls=[(f"{provider}__{tool}", arguments)])


def finish():
    return Reply(calls=[("finish", {"summary": "done", "outputs": {}, "success": True})])


async def start(office, *replies, by=ANA, user=ANA, **fields):
    workflow_id = f"task-{uuid.uuid4()}"
    task = {**SCRIPTS.task(*replies, user_id=user), **fields}
    task = signing.signed_start(office.client, workflow_id, {**task, "by": by}, key=KEY) if by else task
    return await office.start(task, workflow_id)


async def decide(handle, verdict="approve"):
    (request,) = await pending(handle)
    said = {"request_id": request["id"], "verdict": verdict, "by": ANA}
    await handle.execute_update("decide", await signing.signed(handle, said, key=KEY))
    return request


def plan_of(provider, tool="write", **arguments):
    steps = [{"tool": f"{provider}.{tool}", "arguments": arguments}]
    return {"text": "", "plan": {"title": "Use a server of my own", "steps": steps}}


@promise("connections:own-servers")
async def test_a_person_adds_a_server_on_the_page_and_their_run_calls_it_once_they_allow_it(settled):
    office = settled
    async with office.page.person(ANA) as person:
        shown = await person.get("/connections")
        form = {"csrf": csrf_in(shown.text), "name": "crm", "url": office.crm.url, "headers": f"X-Key: {CRM_KEY}\r\n"}
        answer = await person.post("/servers", data=form)
        assert answer.status_code == 303, answer.text
        shown = (await person.get(answer.headers["location"])).text
    (server,) = (await asked(office))["servers"]
    assert server["provider"] in shown
    assert server["headers"] == ["X-Key"]

    handle = await start(office, call(server["provider"], "write", text="of Ana"), finish())
    request = await decide(handle)
    assert request["calls"][0]["tool"] == f"{server['provider']}.write"
    assert office.crm.written == []
    result = await ended(handle)
    assert result["outcome"] == "completed"
    assert office.crm.written == ["of Ana"]
    assert {key for _, key in office.crm.seen} == {CRM_KEY}


@promise("connections:own-servers-whose")
@pytest.mark.parametrize(
    ("by", "user", "served"), [(DESK, ANA, True), (ANA, "singleton", True), ("", ANA, False), (BO, ANA, False)]
)
async def test_a_server_of_ones_own_serves_only_runs_that_its_user_proved_to_have_started(settled, by, user, served):
    office = settled
    provider = await add(office)
    await add(office, BO)
    handle = await start(office, by=by, user=user, **plan_of(provider, text="whose?"))
    if served:
        await decide(handle)
    result = await ended(handle)
    assert result["success"] is served, result
    assert office.crm.written == (["whose?"] if served else [])


@promise("connections:own-servers-sub-runs")
@pytest.mark.parametrize(("by", "served"), [(ANA, True), (BO, False)])
async def test_a_sub_run_reaches_the_servers_of_whoever_started_the_run_above_it(settled, by, served):
    office = settled
    provider = await add(office)
    below = SCRIPTS.task(call(provider, "write", text="from below"), finish())
    handle = await start(office, delegate(below), finish(), by=by, user=by)
    await decide(handle)
    (child,) = await begun(handle)
    if served:
        await decide(office.client.get_workflow_handle(child))
    await ended(handle)
    assert office.crm.written == (["from below"] if served else [])


@promise("tools:registry")
async def test_an_open_run_finds_a_server_that_is_added_and_is_refused_one_that_is_removed(settled):
    office, seen, told = settled, [], []

    async def added(conversation):
        seen.append(await add(office))
        return Reply(calls=[("search_tools", {"query": "write something down"})])

    def found(conversation):
        told.append(json.dumps(conversation.messages, default=str))
        return call(seen[0], "write", text="first")

    async def removed(conversation):
        assert (await sent(office, ANA, "/servers/crm/remove")).status_code == 200
        return call(seen[0], "write", text="second")

    def refused(conversation):
        told.append(json.dumps(conversation.messages, default=str))
        return finish()

    handle = await start(office, added, found, removed, refused)
    for _ in range(2):
        await decide(handle)
    await ended(handle)
    assert f"{seen[0]}.write" in told[0]
    assert "its user has removed this server" in told[1]
    assert office.crm.written == ["first"]
    assert await add(office) != seen[0]


@promise("connections:own-servers-once")
async def test_a_call_is_made_once_and_one_that_waits_while_its_server_is_removed_is_not(settled):
    office = settled
    provider = await add(office)
    writing = [call(provider, "write", text=text) for text in ("kept", "removed")]
    handle = await start(office, *writing, finish())
    await decide(handle)
    (request,) = await pending(handle)
    assert (request["kind"], office.crm.written) == ("call", ["kept"])
    assert (await sent(office, ANA, "/servers/crm/remove")).status_code == 200
    await decide(handle)
    assert (await ended(handle))["outcome"] == "completed"
    assert office.crm.written == ["kept"]


@promise("connections:own-servers-nowhere")
async def test_neither_headers_nor_a_secret_address_are_anywhere_even_where_the_server_repeats_them(
    settled, caplog, capfd
):
    office, seen = settled, []
    office.crm.echoes = True
    provider = await add(office)
    wrong = await add(office, name="wrong", headers={"X-Key": f"not-{CRM_KEY}"})

    def look(conversation):
        seen.append(json.dumps(conversation.messages, default=str))
        return finish()

    handle = await start(office, call(provider, "find", name="Cy"), call(wrong, "find", name="Di"), look)
    await decide(handle)
    result = await ended(handle)
    async with office.page.person(ANA) as person:
        pages = [await person.get(path) for path in ("/connections", f"/runs/{handle.id}", "/api/servers")]
        refused = await person.post(
            "/servers", data={"csrf": csrf_in(pages[0].text), "name": "!", "url": office.crm.url}
        )

    history = (await handle.fetch_history()).to_json()
    kept = b"".join(path.read_bytes() for path in office.settings.home.rglob("*") if path.is_file())
    logged = "".join([caplog.text, *capfd.readouterr()])
    assert "Cy came with" in seen[0]
    assert (refused.status_code, len((await asked(office))["servers"])) == (422, 2)
    shown = "".join(page.text for page in (*pages, refused))
    for place in (history, kept.decode("latin-1"), shown, seen[0], json.dumps(result), logged):
        assert not [secret for secret in (CRM_KEY, PATH_KEY) if secret in place]


URL, MANY = "https://mcp.example.org/mcp", {f"X-{n}": "v" for n in range(17)}
REFUSED = {
    "no name": ({"name": ""}, "name"),
    "a name that could be another's": ({"name": "Crm"}, "name"),
    "a name for a terminal": ({"name": "a\x1b[0m"}, "name"),
    "a name with a dot": ({"name": "a.b"}, "name"),
    "a long name": ({"name": "a" * 33}, "name"),
    "a name that is taken": ({"name": "crm"}, "name"),
    "no address": ({"url": ""}, "url"),
    "http": ({"url": "http://mcp.example.org/mcp"}, "url"),
    "a command": ({"url": "stdio:rm -rf /"}, "url"),
    "a file": ({"url": "file:///etc/passwd"}, "url"),
    "another host": ({"url": "https://mcp.example.com/mcp"}, "url"),
    "a host that only ends alike": ({"url": "https://evilexample.org/mcp"}, "url"),
    "the domain itself": ({"url": "https://example.org/mcp"}, "url"),
    "another port": ({"url": "https://mcp.example.org:8443/mcp"}, "url"),
    "this machine": ({"url": "https://127.0.0.1/mcp"}, "url"),
    "another port of this machine": ({"url": "http://127.0.0.1:7233/mcp"}, "url"),
    "a private address": ({"url": "https://10.0.0.7/mcp"}, "url"),
    "the metadata of a cloud": ({"url": "https://169.254.169.254/mcp"}, "url"),
    "a password": ({"url": "https://a:b@mcp.example.org/mcp"}, "url"),
    "a fragment": ({"url": f"{URL}#x"}, "url"),
    "a port that is none": ({"url": "https://mcp.example.org:99999/mcp"}, "url"),
    "a port below none": ({"url": "https://mcp.example.org:-1/mcp"}, "url"),
    "a name as an address": ({"url": "https://[mcp.example.org]/mcp"}, "url"),
    "an escaped host": ({"url": "https://evil.example.com%2f.example.org/mcp"}, "url"),
    "a host without a part": ({"url": "https://.example.org/mcp"}, "url"),
    "a host with an empty part": ({"url": "https://mcp..example.org/mcp"}, "url"),
    "a host that no name is long enough for": ({"url": f"https://{'a' * 64}.example.org/mcp"}, "url"),
    "a dot behind the host": ({"url": "https://mcp.example.org./mcp"}, "url"),
    "letters that look alike": ({"url": "https://mcp.ex\u0430mple.org/mcp"}, "url"),
    "a line break in an address": ({"url": f"{URL}\r\nX: y"}, "url"),
    "a long address": ({"url": f"{URL}?{'x' * 2000}"}, "url"),
    "headers as a string": ({"headers": "X-Key: y"}, "headers"),
    "headers of numbers": ({"headers": {"X-Key": 1}}, "headers"),
    "many headers": ({"headers": MANY}, "headers"),
    "a header twice": ({"headers": {"X-Key": "a", "x-key": "b"}}, "headers"),
    "a line break in a header": ({"headers": {"X-Key": "a\r\nX-Other: b"}}, "headers"),
    "a line break in a name": ({"headers": {"X-Key\r\nX": "a"}}, "headers"),
    "an empty header": ({"headers": {"X-Key": " "}}, "headers"),
    "a long header": ({"headers": {"X-Key": "a" * 4097}}, "headers"),
    "the header of a host": ({"headers": {"Host": "internal"}}, "headers"),
    "the header of a session": ({"headers": {"Mcp-Session-Id": "x"}}, "headers"),
    "trust": ({"trusted": True}, "trusted"),
    "an audience": ({"audience": "own"}, "audience"),
    "a command beside": ({"command": "sh"}, "command"),
}


@promise("connections:own-servers-bounds")
async def test_what_no_server_of_a_user_may_be_is_refused_by_the_name_of_the_field(settled):
    office = settled
    await add(office)
    for what, (said, field) in REFUSED.items():
        answer = await sent(office, ANA, "/servers", **{"name": "more", "url": URL, "headers": {}, **said})
        assert answer.status_code == 422, what
        assert answer.json()["error"]["message"].startswith(field), (what, answer.text)
    await add(office, name="second", url=URL)
    full = await sent(office, ANA, "/servers", name="third", url=URL)
    assert (full.status_code, "as many as" in full.text) == (422, True)
    assert [each["name"] for each in (await asked(office))["servers"]] == ["crm", "second"]


@promise("connections:own-servers-strangers")
async def test_only_a_person_themselves_or_a_listed_service_adds_and_sees_servers(settled):
    office, theirs = settled, {"name": "crm", "url": URL}
    async with office.page.stranger() as stranger, office.page.person(ANA) as ana:
        assert (await stranger.get("/api/servers")).status_code == 401
        assert (await stranger.post("/servers", data=theirs)).status_code == 401
        for path in ("/servers", "/servers/crm/remove"):
            for csrf in ("", "guessed"):
                assert (await ana.post(path, data={**theirs, "csrf": csrf})).status_code == 403
            assert (await ana.post(f"/api{path}", json=theirs)).status_code == 401
    assert (await sent(office, BO, "/servers", **theirs, user=ANA)).status_code == 403
    assert "error" in await asked(office, BO, user=ANA)
    assert (await sent(office, DESK, "/servers", **theirs, user=ANA)).status_code == 200
    assert (await sent(office, DESK, "/servers", **theirs, user="singleton")).status_code == 422
    assert [each["user"] for each in (await asked(office, DESK, user=ANA))["servers"]] == [ANA]
    assert (await asked(office, BO))["servers"] == []
    assert (await sent(office, BO, "/servers/crm/remove")).status_code == 404
    assert (await sent(office, DESK, "/servers/crm/remove", user=ANA)).status_code == 200
    assert (await asked(office))["servers"] == []


@promise("connections:own-servers-browser")
async def test_a_person_adds_and_removes_a_server_with_a_browser(browser, settled):
    office, long = settled, "n" * 32
    await add(office, name=long, url=f"https://{'a' * 63}.example.org/mcp", headers={"X-" + "K" * 98: CRM_KEY})
    async with (
        served_page(office, url=None) as page,
        browser.tab(phone=True, extra_http_headers=headers(ANA)) as tab,
    ):
        await tab.goto(f"{page.url}/connections")
        await tab.get_by_label("Name").fill("crm")
        await tab.get_by_label("Address").fill(office.crm.url)
        await tab.get_by_label("Headers").fill(f"X-Key: {CRM_KEY}")
        await tab.get_by_role("button", name="Add server", exact=True).click()
        assert "crm is added" in await tab.get_by_role("status").inner_text()
        assert CRM_KEY not in await tab.content()
        await tab.get_by_role("button", name="Remove crm", exact=True).click()
        assert "crm is removed" in await tab.get_by_role("status").inner_text()
        # However long the names are, nothing is beside the window.
        wide, window = await tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide == window
        await tab.get_by_role("button", name=f"Remove {long}", exact=True).click()
    assert (await asked(office))["servers"] == []
