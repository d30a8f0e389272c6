"""Until when a live stream is sent: as long as who opened it would be let in, and no longer."""

import asyncio
import time

import pytest_asyncio
from starlette.applications import Starlette
from starlette.routing import Route

from backstay.testing import Reply
from gateways.web.oidc import LEEWAY_S
from tests.engine import Scripts, engine, pending
from tests.requirements import promise
from tests.serving import served as serving
from tests.web.pages import KEY, SECRET, listed, served_page
from tests.web.test_oidc import ANA, AUDIENCE, Issuer

ENOUGH_S = 6
"""How long somebody is let in whose stream is to end soon."""


@pytest_asyncio.fixture(params=["link", "oidc"])
async def page(request, temporal, tmp_path):
    """Yield a page, what makes a token for Ana that lets her in for so many seconds, and a run that waits for her."""
    issuer, scripts, given = Issuer(), Scripts(), {"web_secret": SECRET}
    issuer.add("one")
    routes = [Route("/.well-known/openid-configuration", issuer.described), Route("/keys", issuer.published)]
    async with serving(Starlette(routes=routes)) as issuer.url:
        if request.param == "oidc":
            given |= {"web_identity": "oidc", "oidc_issuer": issuer.url, "oidc_audience": AUDIENCE}
        async with (
            engine(temporal, tmp_path, scripts, approver_key=KEY, **given) as running,
            served_page(running) as served,
        ):

            def token(life_s):
                if request.param == "oidc":
                    return issuer.token(exp=int(time.time()) + life_s - LEEWAY_S)
                return served.page.seals.seal("link", {"by": ANA}, life_s)

            handle = await running.start(scripts.task(Reply(calls=[("ask_person", {"question": "Which one?"})])))
            await pending(handle)
            yield served, token, handle
            await handle.terminate()


@promise("page:until")
async def test_live_streams_end_when_who_opened_them_is_let_in_no_more_and_not_those_of_who_still_is(page):
    served, token, handle = page
    paths = ["/events", f"/events?w={handle.id}&r=r1", f"/runs/{handle.id}/events"]
    async with served.stranger(Authorization=f"Bearer {token(3600)}") as later:
        await listed(later, handle.id)
        async with served.stranger(Authorization=f"Bearer {token(ENOUGH_S)}") as soon, asyncio.timeout(150):
            go_on = [asyncio.create_task(read(later, path)) for path in paths]
            sent = await asyncio.gather(*(read(soon, path) for path in paths))
            refused = [(await soon.get(path)).status_code for path in paths]
        assert not any(task.done() for task in go_on)
        for task in go_on:
            task.cancel()
        await asyncio.gather(*go_on, return_exceptions=True)
    assert all(sent)
    assert refused == [401, 401, 401]


async def read(person, path):
    """Read a stream to its end; return what it sent."""
    async with person.stream("GET", path) as answer:
        assert answer.status_code == 200
        return "".join([part async for part in answer.aiter_text()])
