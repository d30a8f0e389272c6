"""A client without a token finds out where its person signs in, and comes back as that person."""

import re

import httpx2
import pytest_asyncio
from starlette.applications import Starlette
from starlette.routing import Route

from tests.engine import Scripts, engine
from tests.engine_mcp.served import Wire, served_engine
from tests.engine_mcp.test_runs import DONE
from tests.requirements import promise
from tests.serving import served
from tests.web.pages import SECRET
from tests.web.test_oidc import ANA, AUDIENCE, Issuer

SCRIPTS = Scripts()


@pytest_asyncio.fixture
async def opened(temporal, tmp_path):
    issuer = Issuer()
    issuer.add("one")
    routes = [Route("/.well-known/openid-configuration", issuer.described), Route("/keys", issuer.published)]
    async with served(Starlette(routes=routes)) as issuer.url:
        given = {"web_identity": "oidc", "oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "web_secret": SECRET}
        async with engine(temporal, tmp_path, SCRIPTS, web_starters=(ANA,), **given) as running:
            yield issuer, running


async def refused(wire):
    async with httpx2.AsyncClient(timeout=30) as client:
        return await client.post(
            f"{wire.url}/mcp", json=wire.body("tools/list"), headers=wire.headers("tools/list", {})
        )


@promise("clients:mcp-sign-in")
async def test_a_client_is_told_of_the_issuer_and_its_token_names_the_caller(opened):
    issuer, running = opened
    async with served_engine(running) as url:
        answer = await refused(Wire(url, ANA))
        (place,) = re.findall(r'^Bearer resource_metadata="([^"]+)"$', answer.headers["WWW-Authenticate"])
        async with httpx2.AsyncClient(timeout=30) as client:
            told = (await client.get(place)).json()
        assert (answer.status_code, told["resource"], told["authorization_servers"]) == (
            401,
            f"{url}/mcp",
            [issuer.url],
        )
        ana = Wire(url, ANA, more={"Authorization": f"Bearer {issuer.token()}"})
        task = await ana.started(SCRIPTS.task(DONE)["text"])
        assert (await ana.until(task["taskId"], "completed"))["result"]["isError"] is False
        for token in (issuer.token(aud="another"), issuer.token(exp=1), "x"):
            wrong = Wire(url, ANA, more={"Authorization": f"Bearer {token}"})
            assert (await refused(wrong)).status_code == 401


@promise("clients:mcp-sign-in")
async def test_behind_a_proxy_the_public_address_is_named(opened):
    _, running = opened
    async with served_engine(running, url="https://agents.example.com") as url:
        answer = await refused(Wire(url, ANA))
    public = "https://agents.example.com/.well-known/oauth-protected-resource/mcp"
    assert answer.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{public}"'
