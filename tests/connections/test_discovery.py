"""How the issuer of a server is found, also where a server, an issuer or a gateway before them says it oddly."""

import pytest

from tests.connections.issuer import offered
from tests.connections.test_sign_in import opened, sign_in, token_of
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
