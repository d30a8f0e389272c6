"""How the issuer of a server is found, also where a server, an issuer or a gateway before them says it oddly."""

import pytest

from backstay.errors import SignInRefused
from tests.connections.issuer import Issuer, go_to, offered
from tests.connections.test_sign_in import ANA, BACK, opened, sign_in, token_of
from tests.requirements import promise


@promise("connections:issuer-slash")
@pytest.mark.parametrize("by_server", ["", "/"])
@pytest.mark.parametrize("by_operator", [None, "", "/"])
@pytest.mark.parametrize("by_itself", ["", "/"])
async def test_an_issuer_is_the_same_one_with_and_without_a_slash_behind_its_host(
    authority, tmp_path, by_server, by_operator, by_itself
):
    async with offered(authority) as (issuer, notes):
        notes.guard.servers = [issuer.url + by_server]
        issuer.iss = issuer.url + by_itself
        issuer.said = {"issuer": issuer.iss}
        auth = {} if by_operator is None else {"issuer": issuer.url + by_operator}
        async with opened(tmp_path, notes, **auth) as connections:
            known = await sign_in(connections, authority, issuer)
            assert await token_of(connections) in issuer.access
            assert (await connections.renewed(known)).grant.access_token in issuer.access


def scopes(count):
    return [f"https://www.example.com/auth/workspace.{n:03}.readonly" for n in range(count)]


@promise("connections:many-scopes")
async def test_a_long_list_of_scopes_is_asked_for_and_none_of_them_is_lost_when_more_are_wanted(authority, tmp_path):
    async with offered(authority, Issuer(scopes=scopes(170))) as (issuer, notes):
        notes.guard.scopes = scopes(170)
        async with opened(tmp_path, notes) as connections:
            known = await sign_in(connections, authority, issuer)
            assert issuer.asked[-1]["scope"].split() == known.grant.scope.split() == scopes(170)
            notes.guard.scopes = ["notes"]
            await connections.refused(known, "write")
            await go_to((await connections.begin(ANA, "notes", BACK)).url, authority)
            assert {*issuer.asked[-1]["scope"].split()} == {*scopes(170), "notes", "write"}


@promise("connections:many-scopes")
async def test_what_is_no_scope_is_left_out_and_more_than_an_address_holds_is_refused(authority, tmp_path):
    async with offered(authority) as (issuer, notes):
        async with opened(tmp_path, notes) as connections:
            notes.guard.scopes = ["notes", 'no"scope', "admin"]
            await sign_in(connections, authority, issuer)
            assert issuer.asked[-1]["scope"] == "notes admin"
            notes.guard.scopes = scopes(500)
            with pytest.raises(SignInRefused, match="`scopes`"):
                await connections.begin(ANA, "notes", BACK)
        issuer.given = {"scope": " ".join(scopes(500))}
        async with opened(tmp_path, notes, scopes=["notes"]) as connections:
            assert (await sign_in(connections, authority, issuer)).grant.scope == "notes"


RESOURCE = "/.well-known/oauth-protected-resource"
ISSUER, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"


@promise("connections:gateways")
@pytest.mark.parametrize(
    ("server", "issuers", "says"),
    [
        ({f"{RESOURCE}/mcp": 502}, {}, None),
        ({f"{RESOURCE}/mcp": 429}, {ISSUER: 503}, None),
        ({f"{RESOURCE}/mcp": 502, RESOURCE: 404}, {}, "HTTP 502"),
        ({f"{RESOURCE}/mcp": 404, RESOURCE: 503}, {}, "HTTP 503"),
        ({}, {ISSUER: 502, OPENID: 404}, "HTTP 502"),
        ({}, {ISSUER: 404, OPENID: 404}, "does not say how to sign in there$"),
    ],
)
async def test_a_gateway_that_fails_at_one_guessed_address_hides_no_other(authority, tmp_path, server, issuers, says):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        notes.guard.down, issuer.down, notes.guard.metadata_at = server, issuers, None
        if says is None:
            assert (await sign_in(connections, authority, issuer)).grant.access_token in issuer.access
            return
        with pytest.raises(SignInRefused, match=says):
            await connections.begin(ANA, "notes", BACK)


@promise("connections:gateways")
@pytest.mark.parametrize(("path", "says"), [("/elsewhere", "HTTP 503"), (f"{RESOURCE}/mcp", "HTTP 503")])
async def test_where_the_address_that_a_server_names_fails_no_guess_says_who_gives_tokens_for_it(
    authority, tmp_path, path, says
):
    async with offered(authority) as (_, notes), opened(tmp_path, notes) as connections:
        notes.guard.metadata_at, notes.guard.down = f"{notes.guard.url}{path}", {path: 503}
        # At the addresses that are guessed, another server describes itself.
        notes.guard.resource, notes.guard.servers = notes.guard.url, ["https://issuer.example.com"]
        with pytest.raises(SignInRefused, match=says):
            await connections.begin(ANA, "notes", BACK)
