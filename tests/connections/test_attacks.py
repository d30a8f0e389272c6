"""What servers, issuers and strangers try against sign-ins, and what they get: nothing.

docs/attacks-web.md has the table of it.
"""

import ipaddress
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
import pytest
import pytest_asyncio
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from backstay.errors import SignInRefused, ToolboxInvalid, ToolUnavailable
from store.opening import open_store
from system.addresses import Internet
from system.dialing import MOST_BYTES, AddressRefused, Dialer
from tests.connections.issuer import Issuer, go_to, offered, secure
from tests.connections.test_runs import ATTACKS_ON_THE_PAGE
from tests.docs.blocks import table
from tests.requirements import promise
from toolbox.configuration.configuration import ServerEntry
from toolbox.configuration.load import load
from toolbox.mcp.authorization import Authorization
from toolbox.oauth.connections import OAuthConnections

ANA, BO = "ana@example.com", "bo@example.com"
BACK = "https://page.example.com/connections/{}/callback"
FAR = "https://mcp.example.com/mcp"
NEAR = {
    "the_metadata_of_a_cloud": "https://169.254.169.254/latest/meta-data",
    "the_same_in_version_six": "https://[fd00:ec2::254]/latest/meta-data",
    "a_private_network": "https://10.0.0.7/token",
    "a_network_at_home": "https://192.168.1.1/token",
    "a_network_of_a_carrier": "https://100.64.0.1/token",
    "this_machine": "https://127.0.0.1:8234/decide",
    "this_machine_by_its_name": "https://localhost/token",
    "this_machine_in_version_six": "https://[::1]/token",
    "every_address": "https://0.0.0.0/token",
    "a_private_network_behind_version_six": "https://[::ffff:10.0.0.7]/token",
    "a_private_network_behind_a_translator": "https://[64:ff9b::a00:7]/token",
    "an_address_of_a_link": "https://[fe80::1]/token",
    "a_plain_http_address": "http://issuer.example.com/token",
    "a_file": "file:///etc/passwd",
    "another_scheme": "gopher://issuer.example.com/token",
    "a_name_before_the_host": "https://issuer.example.com@10.0.0.7/token",
    "a_line_break": "https://issuer.example.com/\r\nHost: internal",
    "a_backslash": "https://issuer.example.com\\@10.0.0.7/token",
    "a_name_for_a_private_network": "https://private.example.com/token",
    "a_name_for_two_networks": "https://both.example.com/token",
    "one_number_for_an_address": "https://167772167/token",
}


KNOWN = {
    "private.example.com": ["10.0.0.7"],
    "both.example.com": ["93.184.215.14", "10.0.0.7"],
    "localhost": ["127.0.0.1"],
    "167772167": ["10.0.0.7"],
}


class Names(Internet):
    """Stand for the internet's names; nothing is looked up elsewhere."""

    async def addresses(self, host, port):
        return [ipaddress.ip_address(each) for each in KNOWN.get(host, ["93.184.215.14"])]

    def is_own(self, address):
        return False


@promise("connections:near")
@pytest.mark.parametrize("address", NEAR.values(), ids=NEAR)
async def test_no_request_goes_to_an_address_in_our_own_network(address):
    dialer = Dialer([FAR], Names())
    with pytest.raises(AddressRefused):
        await dialer.request("GET", address)
    dialer.close()


@dataclass
class Case:
    """Hold a server with its issuer, another one that attacks, and who signs people in at both."""

    issuer: Issuer
    notes: object
    evil: Issuer
    lures: object
    connections: OAuthConnections
    store: object
    authority: object

    def reset(self):
        for issuer in (self.issuer, self.evil):
            issuer.said, issuer.iss, issuer.token, issuer.person = {}, "", "", "somebody"
            issuer.given, issuer.fault, issuer.expires_in = {}, b"", 3600.0
        for server in (self.notes, self.lures):
            server.guard.servers, server.guard.resource, server.guard.metadata_at = None, "", ""

    async def left(self, user=ANA, provider="notes"):
        departure = await self.connections.begin(user, provider, BACK.format(provider))
        return await go_to(departure.url, self.authority)

    async def refused(self, said, user=ANA, provider="notes"):
        with pytest.raises(SignInRefused) as told:
            await self.connections.finish(user, provider, said)
        assert await self.store.connections.listed(None) == []
        return str(told.value)

    async def refused_to_begin(self, provider="notes"):
        with pytest.raises((SignInRefused, ToolUnavailable)) as told:
            await self.connections.begin(ANA, provider, BACK.format(provider))
        return str(told.value)


@pytest_asyncio.fixture(scope="module")
async def both(authority, tmp_path_factory):
    async with (
        offered(authority) as (issuer, notes),
        offered(authority) as (evil, lures),
        open_store(database_url=None, home=tmp_path_factory.mktemp("attacks"), encryption_keys=[]) as store,
    ):
        entries = {name: {"url": server.url, "auth": {}} for name, server in (("notes", notes), ("lures", lures))}
        servers = {name: ServerEntry.model_validate(entry) for name, entry in entries.items()}
        connections = OAuthConnections(servers, store.connections)
        yield Case(issuer, notes, evil, lures, connections, store, authority)
        await connections.close()


ATTACKS = []


def attack(tried):
    ATTACKS.append(tried)
    return tried


@attack
async def a_server_that_names_an_issuer_in_our_network(case):
    case.lures.guard.servers = ["https://10.0.0.7"]
    assert "private" in await case.refused_to_begin("lures")


@attack
async def a_server_that_is_described_in_our_network(case):
    case.lures.guard.metadata_at = "https://169.254.169.254/latest"
    assert "private" in await case.refused_to_begin("lures")


@attack
async def an_issuer_whose_sign_in_is_in_our_network(case):
    case.evil.said = {"authorization_endpoint": "https://10.0.0.7/authorize"}
    assert "private" in await case.refused_to_begin("lures")


@attack
async def an_issuer_whose_sign_in_is_a_script(case):
    case.evil.said = {"authorization_endpoint": "javascript:alert(1)"}
    await case.refused_to_begin("lures")


@attack
async def an_issuer_whose_tokens_are_in_our_network(case):
    case.evil.said = {"token_endpoint": "https://192.168.1.1/token"}
    assert "private" in await case.refused_to_begin("lures")


@attack
async def an_issuer_that_registers_in_our_network(case):
    case.evil.said = {"registration_endpoint": "https://10.0.0.7/register"}
    assert "private" in await case.refused_to_begin("lures")


@attack
async def an_issuer_that_revokes_in_our_network(case):
    case.evil.said = {"revocation_endpoint": "https://10.0.0.7/revoke"}
    assert "private" in await case.refused_to_begin("lures")


@attack
async def a_server_that_says_it_is_another_one(case):
    case.lures.guard.resource = case.notes.url
    assert "another" in await case.refused_to_begin("lures")


@attack
async def an_issuer_that_says_it_is_another_one(case):
    case.evil.said = {"issuer": case.issuer.url}
    assert "another" in await case.refused_to_begin("lures")


@attack
async def an_issuer_without_pkce(case):
    case.evil.said = {"code_challenge_methods_supported": ["plain"]}
    assert "PKCE" in await case.refused_to_begin("lures")


@attack
async def a_registration_that_cannot_be_used(case):
    case.evil.said = {"registration_endpoint": f"{case.evil.url}/token"}
    assert "register" in await case.refused_to_begin("lures")


@attack
async def an_answer_of_another_issuer(case):
    case.issuer.iss = case.evil.url
    assert "another issuer" in await case.refused(await case.left())


@attack
async def an_answer_without_the_issuer_that_was_promised(case):
    case.issuer.iss = None
    assert "another issuer" in await case.refused(await case.left())


@attack
async def a_code_of_one_issuer_brought_to_another(case):
    mine, theirs = await case.left(), await case.left(provider="lures")
    asked = case.evil.counted["authorization_code"]
    await case.refused({**theirs, "code": mine["code"], "iss": mine["iss"]}, provider="lures")
    assert case.evil.counted["authorization_code"] == asked


@attack
async def a_state_of_one_server_brought_back_as_another(case):
    assert "another server" in await case.refused(await case.left(), provider="lures")


@attack
async def a_code_of_the_attacker_in_the_sign_in_of_a_victim(case):
    theirs, victims = await case.left(BO), await case.left(ANA)
    await case.refused({**victims, "code": theirs["code"]})


@attack
async def a_sign_in_of_the_attacker_finished_by_a_victim(case):
    assert "somebody else" in await case.refused(await case.left(BO), ANA)


@attack
async def a_sign_in_of_a_victim_finished_by_the_attacker(case):
    back = await case.left(ANA)
    await case.refused(back, BO)
    assert "ended" in await case.refused(back, ANA)


@attack
async def a_sign_in_that_is_finished_twice(case):
    back = await case.left()
    await case.connections.finish(ANA, "notes", back)
    await case.connections.disconnect(ANA, "notes")
    assert "ended" in await case.refused(back)


@attack
async def a_state_that_nobody_made(case):
    back = await case.left()
    assert "ended" in await case.refused({**back, "state": back["state"][::-1]})


@attack
async def a_sign_in_after_ten_minutes(case):
    now, parts = case.store.connections._now, case.store.connections
    back = await case.left()
    parts._now = lambda transaction: now(transaction) + 601
    try:
        assert "ended" in await case.refused(back)
    finally:
        parts._now = now


@attack
async def a_sign_in_of_what_was_disconnected_meanwhile(case):
    back = await case.left()
    await case.connections.disconnect(ANA, "notes")
    assert "ended" in await case.refused(back)


@attack
async def a_fault_with_words_of_the_attacker(case):
    back = await case.left()
    said = await case.refused({"state": back["state"], "iss": back["iss"], "error": "<script>alert(1)</script>"})
    assert "script" not in said


@attack
async def a_token_with_a_line_break(case):
    case.issuer.token = "token-1\r\nX-Admin: yes"
    await case.refused(await case.left())


@attack
async def a_token_with_a_time_that_no_number_holds(case):
    case.issuer.expires_in = 10**400
    made = await case.connections.finish(ANA, "notes", await case.left())
    assert made.grant.expires_at < time.time() + 4000 * 86_400
    await case.connections.disconnect(ANA, "notes")


@attack
async def a_token_with_a_scope_for_the_terminal(case):
    case.issuer.given = {"scope": "notes \x1b[2J" + "x" * 2000}
    made = await case.connections.finish(ANA, "notes", await case.left())
    assert made.grant.scope == "notes"
    await case.connections.disconnect(ANA, "notes")


@attack
async def a_fault_that_is_nested_without_an_end(case):
    case.issuer.fault = b"[" * 100_000
    await case.refused(await case.left())


@attack
async def a_token_for_the_server_of_before(case):
    await case.connections.finish(ANA, "notes", await case.left())
    for changed in ({"url": case.lures.url}, {"auth": {"issuer": case.evil.url}}):
        entry = {"url": case.notes.url, "auth": {}} | changed
        now = OAuthConnections({"notes": ServerEntry.model_validate(entry)}, case.store.connections)
        assert await now.usable(ANA, "notes") is None
        assert [each.state for each in await now.of_user(ANA)] == ["ended"]
        await now.close()
    assert await case.connections.disconnect(ANA, "notes")


@attack
async def a_secret_for_an_issuer_that_the_server_names(case):
    with pytest.raises(ToolboxInvalid, match="issuer"):
        load_of({"url": FAR, "auth": {"client_id": "known", "client_secret": "${SECRET}"}})


@attack
async def a_user_whom_everybody_could_be(case):
    for nobody in ("singleton", ""):
        with pytest.raises(SignInRefused):
            await case.connections.begin(nobody, "notes", BACK.format("notes"))


@attack
async def more_sign_ins_than_a_person_can_finish(case):
    for n in range(60):
        await case.store.connections.begin_sign_in(f"state {n}", ANA, "notes", {})
    taken = [await case.store.connections.take_sign_in(f"state {n}") for n in range(60)]
    assert sum(each is not None for each in taken) <= 20


@asynccontextmanager
async def elsewhere(case):
    """Serve another host, which keeps what comes, and an address that leads there."""
    seen = []

    async def taken(request):
        seen.append((request.headers.get("authorization"), await request.body()))
        return Response("thanks")

    async def moved(request):
        return RedirectResponse(f"{address}/taken", 307)

    methods = ["GET", "POST"]
    app = Starlette(routes=[Route("/taken", taken, methods=methods), Route("/moved", moved, methods=methods)])
    async with secure(app, case.authority) as address:
        yield address, seen


@attack
async def a_renewal_that_leads_elsewhere(case):
    async with elsewhere(case) as (address, seen):
        known = await case.connections.finish(ANA, "notes", await case.left())
        moved = replace(known.grant, token_endpoint=f"{address}/moved", revocation_endpoint=f"{address}/moved")
        kept = await case.store.connections.connect(ANA, "notes", moved, ends_at=None)
        with pytest.raises(ToolUnavailable):
            await case.connections.renewed(kept)
        assert await case.connections.disconnect(ANA, "notes") is False
        assert seen == []


@attack
async def a_call_to_another_host_with_the_token(case):
    async with elsewhere(case) as (address, seen):
        await case.connections.finish(ANA, "notes", await case.left())
        tokens = Authorization(case.connections, ANA, "notes", case.notes.url)
        async with httpx2.AsyncClient(auth=tokens) as client:
            await client.get(f"{address}/taken")
        assert [authorization for authorization, _ in seen] == [None]
    await case.connections.disconnect(ANA, "notes")


@attack
async def a_server_that_is_reached_without_tls(case):
    with pytest.raises(ToolboxInvalid, match="https"):
        load_of({"url": "http://notes.example.com/mcp", "auth": {}})


@attack
async def a_header_beside_a_sign_in(case):
    with pytest.raises(ToolboxInvalid, match="Authorization"):
        load_of({"url": FAR, "auth": {}, "headers": {"Authorization": "Bearer somebody's"}})


def load_of(entry):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "toolbox.json"
        file.write_text(json.dumps({"mcpServers": {"notes": entry}}), encoding="utf-8")
        return load(file, {})


@attack
async def an_answer_without_an_end(case):
    async def answer(request):
        return Response(b"x" * (MOST_BYTES + 1))

    async def packed(request):
        return Response(b"x", headers={"content-encoding": "gzip"})

    app = Starlette(routes=[Route("/long", answer), Route("/packed", packed)])
    async with secure(app, case.authority) as address:
        dialer = Dialer([address])
        for path in ("long", "packed"):
            with pytest.raises(httpx2.HTTPError):
                await dialer.request("GET", f"{address}/{path}")
        dialer.close()


@attack
async def a_host_with_the_certificate_of_another(case):
    address = case.issuer.url.replace("127.0.0.1", "127.0.0.2")
    dialer = Dialer([case.notes.url])
    with pytest.raises(httpx2.HTTPError):
        await dialer.request("GET", f"{address}/.well-known/oauth-authorization-server")
    dialer.close()


@promise("connections:attacks")
@pytest.mark.parametrize("tried", ATTACKS, ids=lambda tried: tried.__name__)
async def test_an_attack_on_a_sign_in_gains_nothing(both, tried):
    both.reset()
    await tried(both)
    assert await both.store.connections.listed(None) == []


@promise("connections:attacks-listed")
def test_the_table_of_attacks_on_sign_ins_is_complete():
    rows = table("docs/attacks-web.md", "## Attacks on connections")
    names = [*NEAR, *(tried.__name__ for tried in (*ATTACKS, *ATTACKS_ON_THE_PAGE))]
    assert sorted(row[-1].strip("`") for row in rows) == sorted(names)
    assert len(names) >= 40
