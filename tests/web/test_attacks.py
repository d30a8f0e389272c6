"""What attackers try against the page, and what they get: nothing. docs/attacks-web.md has the table of it."""

import asyncio
import hashlib
import hmac
import json
import re
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import pytest_asyncio
from temporalio.client import WorkflowHandle

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import NoticeDraft, NoticeKind
from backstay.testing import Reply
from gateways.links import Seals
from gateways.web import guard
from gateways.web.identity import Visitor
from tests.docs.blocks import table
from tests.engine import Scripts, engine, pending
from tests.requirements import promise
from tests.web.pages import PROXY, SECRET, Served, behind_a_proxy, form_of, headers, listed, served_page

ANA, BO, EVE = "ana@example.com", "bo@example.com", "eve@example.com"
POLICY = f"""
accepting: {{approvers: ["{BO}"]}}
ask: [{{tool: mail.send_email, approvers: ["{ANA}"]}}]
"""
HOOK_KEY = "the-webhook-key-of-these-tests"
ODD = "a/b ü?#%2F\r\nx"


@dataclass
class Case:
    """Hold a page with an open request of Ana's, and who attacks it."""

    served: Served
    handle: WorkflowHandle[Any, Any]
    form: dict[str, str]
    """What the form of Ana carries."""
    ana: Any
    eve: Any
    """Somebody whom the page knows and whom no request concerns."""
    anybody: Any
    """Whom the page does not know."""

    @property
    def place(self):
        return f"/requests/{quote(self.handle.id, safe='')}/r1"

    @property
    def host(self):
        return urlsplit(self.served.url).netloc

    async def post(self, person=None, place=None, data=None, **given):
        """Send the form of Ana as an attacker would."""
        sent = {**self.form, "verdict": "approve"} if data is None else data
        return await (person or self.ana).post(f"{place or self.place}/decide", data=sent, **given)

    async def raw(self, text, within_s=150.0):
        """Send bytes that no HTTP client would, and return what comes back until the connection is closed."""
        reader, writer = await asyncio.open_connection(*self.host.split(":"))
        writer.write(text if isinstance(text, bytes) else text.encode())
        try:
            async with asyncio.timeout(within_s):
                await writer.drain()
                return (await reader.read(65_536)).decode("latin-1")
        finally:
            writer.close()

    def known(self):
        """Return the head lines that make Ana known, as the proxy would write them."""
        return "".join(f"{name}: {value}\r\n" for name, value in headers(ANA).items())


@pytest_asyncio.fixture(scope="module")
async def case(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("attacks"), Scripts()
        given = behind_a_proxy(webhook_key=HOOK_KEY)
        running = await stack.enter_async_context(engine(temporal, folder, scripts, policy=POLICY, **given))
        served = await stack.enter_async_context(served_page(running))
        mail = Reply(calls=[("mail__send_email", {"to": "k@x.example", "subject": "s", "body": "b"})])
        handle = await running.start(scripts.task(mail, user_id="kim"))
        await pending(handle)
        people = [await stack.enter_async_context(served.person(by)) for by in (ANA, EVE)]
        anybody = await stack.enter_async_context(served.stranger())
        shown = await listed(people[0], handle.id, f"/requests/{quote(handle.id, safe='')}/r1")
        yield Case(served, handle, form_of(shown.text), *people, anybody)
        await handle.terminate()


async def csrf_without_a_token(case):
    form = {name: value for name, value in case.form.items() if name != "csrf"}
    assert (await case.post(data={**form, "verdict": "approve"})).status_code == 403


async def csrf_with_the_token_of_another_person(case):
    stolen = case.served.page.csrf(Visitor(by=EVE))
    assert (await case.post(data={**case.form, "csrf": stolen, "verdict": "approve"})).status_code == 403


async def csrf_with_an_old_token(case):
    old = Seals(SECRET.encode(), lambda: time.time() - 13 * 3600).seal("form", {"by": ANA}, 12 * 3600)
    assert (await case.post(data={**case.form, "csrf": old, "verdict": "approve"})).status_code == 403


async def a_form_of_another_site(case):
    for origin in ("https://evil.example", "http://localhost:1", f"http://{case.host}.evil.example", "null"):
        assert (await case.post(headers={"Origin": origin})).status_code == 403, origin


async def a_form_that_the_browser_says_is_of_another_site(case):
    for site in ("cross-site", "same-site"):
        assert (await case.post(headers={"Sec-Fetch-Site": site})).status_code == 403, site


async def json_in_a_form_that_needs_no_permission(case):
    body = json.dumps({"verdict": "approve"})
    for kind in ("text/plain", "multipart/form-data; boundary=x", "application/json; charset=utf-16", ""):
        answer = await case.ana.post(f"/api{case.place}/decide", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 415, kind


async def a_form_to_the_api(case):
    token = {"Authorization": f"Bearer {case.form['csrf']}"}
    form = {**case.form, "verdict": "approve"}
    assert (await case.ana.post(f"/api{case.place}/decide", data=form, headers=token)).status_code == 415


async def json_without_a_bearer(case):
    assert (await case.ana.post(f"/api{case.place}/decide", json={"verdict": "approve"})).status_code == 401


async def json_with_the_bearer_of_another_person(case):
    token = case.served.page.csrf(Visitor(by=EVE))
    answer = await case.ana.post(
        f"/api{case.place}/decide", json={"verdict": "approve"}, headers={"Authorization": f"Bearer {token}"}
    )
    assert answer.status_code == 403


async def json_sent_as_a_form(case):
    content = json.dumps({**case.form, "verdict": "approve"})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await case.ana.post(f"{case.place}/decide", content=content, headers=kind)).status_code == 403


async def a_decision_by_get(case):
    answer = await case.ana.get(f"{case.place}/decide", params={**case.form, "verdict": "approve"})
    assert answer.status_code == 405


async def a_method_that_overrides_another(case):
    for name in ("X-HTTP-Method-Override", "X-Method-Override"):
        answer = await case.ana.get(f"{case.place}/decide", headers={name: "POST"}, params={"_method": "POST"})
        assert answer.status_code == 405
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
        assert (await case.ana.request(method, case.place)).status_code == 405, method


async def a_question_of_another_site_for_permission(case):
    asks = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = await case.ana.request("OPTIONS", f"{case.place}/decide", headers=asks)
    read = await case.ana.get(case.place, headers={"Origin": "https://evil.example"})
    assert not [name for name in (*answer.headers, *read.headers) if name.startswith("access-control")]


async def dns_rebinding(case):
    for host in ("evil.example", f"evil.example:{case.host.split(':')[1]}", "127.0.0.1.evil.example", "localhost@evil"):
        answer = await case.anybody.get("/", headers={"Host": host})
        assert answer.status_code == 400, host
        assert (await case.post(headers={"Host": host})).status_code == 400


async def two_hosts_or_none(case):
    known = case.known()
    two = await case.raw(
        f"GET / HTTP/1.1\r\nHost: {case.host}\r\nHost: evil.example\r\n{known}Connection: close\r\n\r\n"
    )
    none = await case.raw(f"GET / HTTP/1.0\r\n{known}\r\n")
    assert "400" in two.split("\r\n")[0]
    assert "400" in none.split("\r\n")[0]


async def clickjacking(case):
    for path in ("/", case.place, "/static/page.css", "/no-such-page", "/healthz"):
        answer = await case.ana.get(path)
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"], path
        assert answer.headers["X-Frame-Options"] == "DENY"


async def a_header_without_the_secret_of_the_proxy(case):
    for secret in (
        {},
        {"X-Backstay-Proxy": ""},
        {"X-Backstay-Proxy": PROXY[:-1]},
        {"X-Backstay-Proxy": f"{PROXY}x"},
    ):
        answer = await case.anybody.get("/", headers={"X-Forwarded-Email": ANA, **secret})
        assert answer.status_code == 401


async def a_second_header_beside_that_of_the_proxy(case):
    lines = [*headers(EVE).items(), ("X-Forwarded-Email", ANA)]
    assert (await case.anybody.get("/", headers=lines)).status_code == 401
    twice = [*headers(ANA).items(), ("X-Backstay-Proxy", PROXY)]
    assert (await case.anybody.get("/", headers=twice)).status_code == 401


async def a_header_under_a_name_that_looks_alike(case):
    given = {"X_Forwarded_Email": ANA, "X-Forwarded-User": ANA, "X-Backstay-Proxy": PROXY}
    assert (await case.anybody.get("/", headers=given)).status_code == 401


async def a_name_that_passes_for_another(case):
    for name in (f"{ANA},{EVE}", f"{ANA}\u202e", "\u0430" + ANA[1:], "", "x" * 201, "ana@example.com\xa0bo"):
        given = {"X-Forwarded-Email": name.encode(), "X-Backstay-Proxy": PROXY}
        answer = await case.anybody.get("/", headers=given)
        assert answer.status_code == 401, name


async def a_link_where_a_proxy_says_who_people_are(case):
    link = case.served.page.seals.seal("link", {"by": ANA}, 60)
    assert (await case.anybody.get(f"/link/{link}")).status_code == 404
    assert (await case.anybody.get("/", headers={"Cookie": f"backstay={link}"})).status_code == 401


async def a_token_for_something_else(case):
    for purpose in ("link", "said"):
        token = case.served.page.seals.seal(purpose, {"by": ANA}, 60)
        assert (await case.post(data={**case.form, "csrf": token, "verdict": "approve"})).status_code == 403


async def words_that_somebody_puts_on_a_page(case):
    seals = case.served.page.seals
    for token in (
        seals.seal("said", {"by": EVE, "message": "call 555"}, 60),
        Seals(b"another secret").seal("said", {"by": ANA, "message": "call 555"}, 60),
        "call 555",
    ):
        assert "555" not in (await case.ana.get("/", params={"said": token})).text


async def markup_in_an_address(case):
    for path in ("/<script>alert(1)</script>", "/requests/<script>/r1", "/alike/<script>"):
        assert "<script>" not in (await case.ana.get(path)).text.replace("<script src=", "")
    for name in ("q", "kind", "before", "edit", "f"):
        for place in ("/", "/decided", case.place):
            answer = await case.ana.get(place, params={name: '"><script>alert(1)</script>'})
            assert "<script>" not in answer.text.replace("<script src=", ""), (name, place)


async def a_path_that_leaves_the_static_files(case):
    tries = ("..%2fpage.py", "%2e%2e/page.py", "....//page.py", "..\\page.py", "%00page.css", "../../identity.py")
    for tried in tries:
        answer = await case.raw(f"GET /static/{tried} HTTP/1.1\r\nHost: {case.host}\r\nConnection: close\r\n\r\n")
        assert answer.split(" ")[1] in {"404", "400", "401"}, tried
        assert "import" not in answer


async def the_request_of_another_person(case):
    there = await case.eve.get(case.place)
    nowhere = await case.eve.get("/requests/no-such-run/r1")
    assert (there.status_code, nowhere.status_code) == (404, 404)
    assert there.text == nowhere.text
    there, nowhere = await case.eve.get(f"/api{case.place}"), await case.eve.get("/api/requests/no-such-run/r1")
    assert there.json() == nowhere.json()
    assert case.handle.id not in (await case.eve.get("/")).text


async def the_live_news_of_another_person(case):
    answer = await case.eve.get("/events", params={"w": case.handle.id, "r": "r1"})
    assert answer.status_code == 404


async def a_decision_about_the_request_of_another_person(case):
    form = {**case.form, "csrf": case.served.page.csrf(Visitor(by=EVE)), "verdict": "approve"}
    assert (await case.post(case.eve, data=form)).status_code == 404


async def a_decision_in_the_name_of_another_person(case):
    token = {"Authorization": f"Bearer {case.served.page.csrf(Visitor(by=EVE))}"}
    for claim in ({"by": ANA}, {"proof": "2.9999999999.00.00"}):
        answer = await case.eve.post(f"/api{case.place}/decide", json={"verdict": "approve", **claim}, headers=token)
        assert answer.status_code in {404, 422}
    own = {"Authorization": f"Bearer {case.form['csrf']}"}
    for claim in ({"by": BO}, {"proof": "2.9999999999.00.00"}):
        answer = await case.ana.post(f"/api{case.place}/decide", json={"verdict": "approve", **claim}, headers=own)
        assert answer.status_code == 422


async def a_request_of_another_person_among_equal_ones(case):
    pick = json.dumps([case.handle.id, "r1", case.form["f"], case.form["d"], case.form["a"]])
    form = {"csrf": case.served.page.csrf(Visitor(by=EVE)), "pick": pick, "verdict": "approve", "e": "x"}
    assert (await case.eve.post("/alike", data=form)).status_code == 404


async def a_pick_that_names_nothing(case):
    for pick in ("", "[]", '["a"]', '{"a": 1}', "[" * 5000, "[1, 2, 3, 4, 5]"):
        form = {"csrf": case.form["csrf"], "pick": pick, "verdict": "approve"}
        assert (await case.ana.post("/alike", data=form)).status_code == 422, pick[:20]


async def a_form_about_another_run_or_other_arguments(case):
    for field in ("f", "d"):
        answer = await case.post(data={**case.form, field: "0" * 36, "verdict": "approve"})
        assert answer.status_code == 409, field
    none = {name: value for name, value in case.form.items() if name != "f"}
    assert (await case.post(data={**none, "verdict": "approve"})).status_code == 422


async def a_body_that_is_too_long(case):
    declared = await case.post(data={**case.form, "comment": "x" * (guard.MOST_BYTES + 1)})

    async def endless():
        for _ in range(guard.MOST_BYTES // 65_536 + 2):
            yield b"x" * 65_536

    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    chunked = await case.ana.post(f"{case.place}/decide", content=endless(), headers=kind)
    assert (declared.status_code, chunked.status_code) == (413, 413)


async def a_body_that_never_ends(case):
    head = f"POST {case.place}/decide HTTP/1.1\r\nHost: {case.host}\r\n{case.known()}"
    kind = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 50\r\n\r\ncsrf="
    whole, guard.BODY_S = guard.BODY_S, 0.3
    try:
        assert "408" in (await case.raw(head + kind)).split("\r\n")[0]
    finally:
        guard.BODY_S = whole


async def more_fields_than_a_form_has(case):
    content = "&".join(f"x{number}=1" for number in range(6000))
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await case.ana.post(f"{case.place}/decide", content=content, headers=kind)).status_code == 400


async def json_that_is_nested_without_end(case):
    token = {"Authorization": f"Bearer {case.form['csrf']}", "Content-Type": "application/json"}
    for content in ("[" * 100_000, '{"a":' * 100_000, "\xff", "[]", '{"verdict": NaN}'):
        answer = await case.ana.post(f"/api{case.place}/decide", content=content.encode("latin-1"), headers=token)
        assert answer.status_code in {400, 422}, content[:20]


async def a_line_break_in_an_id(case):
    injected = f"/requests/{quote(ODD, safe='')}/{quote('r1' + chr(13) + chr(10) + 'Set-Cookie: a=b', safe='')}"
    answer = await case.post(place=injected)
    raw = await case.raw(
        f"GET /requests/a%0d%0aSet-Cookie:%20x=1/r1 HTTP/1.1\r\nHost: {case.host}\r\n{case.known()}\r\n", 5
    )
    assert answer.status_code == 404
    assert "set-cookie" not in answer.headers
    assert "set-cookie" not in raw.lower()


async def signs_that_are_no_text(case):
    for path in ("/requests/%ff%fe/r1", "/requests/%00/r1", "/requests/%ed%a0%80/r1", f"/requests/{'x' * 5000}/r1"):
        assert (await case.ana.get(path)).status_code == 404, path
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    broken = b"csrf=" + case.form["csrf"].encode() + b"&comment=%ff%fe"
    assert (await case.ana.post(f"{case.place}/decide", content=broken, headers=kind)).status_code == 400


async def a_way_to_another_site(case):
    for path in ("//evil.example", "//evil.example/%2e%2e", "/\\evil.example", "/https://evil.example"):
        answer = await case.ana.get(f"{case.served.url}{path}")
        assert "location" not in answer.headers, path
        assert answer.status_code == 404


async def a_notice_that_nobody_signed(case):
    body, now = b"{}", str(int(time.time()))
    old = str(int(time.time()) - 3600)

    def signed(stamp, key):
        mac = hmac.new(key.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        return {"backstay-timestamp": stamp, "backstay-signature": mac}

    for given in (
        {},
        signed(now, "wrong"),
        signed(old, HOOK_KEY),
        {**signed(now, HOOK_KEY), "backstay-timestamp": "9" * 40},
    ):
        assert (await case.anybody.post("/hooks/backstay", content=body, headers=given)).status_code == 403
    good = await case.anybody.post("/hooks/backstay", content=body, headers=signed(now, HOOK_KEY))
    assert good.status_code == 204


async def more_live_connections_than_one_person_needs(case):
    async with AsyncExitStack() as stack:
        opened, lines = [], []
        for _ in range(22):
            stream = await stack.enter_async_context(case.eve.stream("GET", "/events"))
            if stream.status_code == 200:
                lines.append(stream.aiter_lines())
                await anext(lines[-1])
            opened.append(stream.status_code)
    assert opened[:20] == [200] * 20
    assert opened[-1] == 429


async def what_a_cache_or_another_person_at_the_machine_finds(case):
    for path in ("/", case.place, "/decided"):
        answer = await case.ana.get(path)
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "server" not in answer.headers


async def a_script_or_a_resource_of_another_site(case):
    policy = (await case.ana.get("/")).headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    # A form may lead to where people sign in, since a proxy answers it so.
    assert re.findall(r"[^;]*https?:[^;]*", policy) == [" form-action 'self' https:"]
    for path in ("/", case.place, "/decided"):
        text = (await case.ana.get(path)).text
        assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!/)", text), path
        assert not re.findall(r"<script(?! src=\"/static/)|<style|\son\w+=|\sstyle=", text), path


ATTACKS = [
    *(csrf_without_a_token, csrf_with_the_token_of_another_person, csrf_with_an_old_token, a_form_of_another_site),
    *(a_form_that_the_browser_says_is_of_another_site, json_in_a_form_that_needs_no_permission, json_without_a_bearer),
    a_form_to_the_api,
    *(json_with_the_bearer_of_another_person, json_sent_as_a_form, a_decision_by_get, a_method_that_overrides_another),
    *(a_question_of_another_site_for_permission, dns_rebinding, two_hosts_or_none, clickjacking),
    *(a_header_without_the_secret_of_the_proxy, a_second_header_beside_that_of_the_proxy),
    *(a_header_under_a_name_that_looks_alike, a_name_that_passes_for_another, a_token_for_something_else),
    *(a_link_where_a_proxy_says_who_people_are, words_that_somebody_puts_on_a_page, markup_in_an_address),
    *(a_path_that_leaves_the_static_files, the_request_of_another_person, the_live_news_of_another_person),
    *(a_decision_about_the_request_of_another_person, a_decision_in_the_name_of_another_person),
    *(a_request_of_another_person_among_equal_ones, a_pick_that_names_nothing, a_body_that_is_too_long),
    *(a_form_about_another_run_or_other_arguments, a_body_that_never_ends, more_fields_than_a_form_has),
    *(json_that_is_nested_without_end, a_line_break_in_an_id, signs_that_are_no_text, a_way_to_another_site),
    *(a_notice_that_nobody_signed, more_live_connections_than_one_person_needs),
    *(what_a_cache_or_another_person_at_the_machine_finds, a_script_or_a_resource_of_another_site),
]
NAMES = [attack.__name__ for attack in ATTACKS]


@promise("page:attacks")
@pytest.mark.parametrize("attack", ATTACKS, ids=NAMES)
async def test_an_attack_gains_nothing_and_decides_nothing(case, attack):
    await attack(case)
    waiting = await pending(case.handle)
    assert [request["id"] for request in waiting] == ["r1"]
    assert waiting[0]["decided"] == []


@promise("page:odd-ids")
async def test_a_workflow_id_of_any_signs_has_a_page_of_its_own(case):
    store = case.served.page.store
    request = ApprovalRequest(id="r1", kind="question", question="Which one?", user_id=EVE, approvers=(EVE,))
    draft = NoticeDraft(sequence=1, event=NoticeKind.ASKED, at="2026-01-01T00:00:00", request=request)
    await store.outbox.write(f"{ODD}/first", ODD, "first", [draft])
    inbox = await case.eve.get("/")
    (path,) = re.findall(r'href="(/requests/[^"]+)"', inbox.text)
    assert path == f"/requests/{quote(ODD, safe='')}/r1"
    shown = await case.eve.get(path)
    assert (shown.status_code, "Which one?" in shown.text) == (200, True)
    assert (await case.ana.get(path)).status_code == 404


@promise("page:attacks-listed")
def test_the_table_of_attacks_is_complete():
    rows = table("docs/attacks-web.md", "## Attacks on the page")
    named = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row[-1])]
    assert sorted(named) == sorted([*NAMES, *OTHERS])


OTHERS = [
    "test_no_field_of_a_request_becomes_markup",
    "test_nothing_of_what_was_decided_of_equal_requests_and_of_runs_becomes_markup",
    "test_a_token_that_is_not_for_this_page_lets_nobody_in",
    "test_a_link_lets_one_person_in_and_an_altered_one_nobody",
    "test_a_link_that_has_expired_lets_nobody_in",
    "test_a_link_of_somebody_else_asks_before_it_takes_the_place_of_who_is_there",
    "test_links_are_for_this_machine_only",
    "test_a_connection_that_says_nothing_is_closed",
    "test_nobody_sees_a_run_its_events_and_what_it_has_stored_that_is_not_theirs",
    "test_of_a_run_people_see_what_it_asks_them_and_not_what_it_asks_others",
    "test_an_older_run_of_a_name_is_shown_as_itself_to_its_own_people_and_is_not_steered",
]
"""Attacks with a test of their own."""
