"""Who is let in, under which name, and what a stranger reads: nothing."""

import asyncio
import dataclasses
from contextlib import asynccontextmanager

import pytest
from temporalio.client import Client

from backstay.client.connecting import DATA_CONVERTER
from backstay.errors import SettingsInvalid
from backstay.testing import Reply
from gateways.links import link_for, open_seals
from gateways.web.serving import open_identity
from system.addresses import is_loopback
from tests.engine import Scripts, pending
from tests.postgres import open_postgres
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, headers, served_page

SEND = Reply(calls=[("mail__send_email", {"to": "ana@example.com", "subject": "Hi", "body": "Hello"})])
READS = ["/", "/decided", "/requests/x/r1", "/link/no-such-token"]


@promise("page:strangers")
async def test_a_stranger_reads_nothing_and_health_says_nothing_of_runs(open_engine):
    async with open_engine(Scripts(), **behind_a_proxy()) as running, served_page(running) as served:
        async with served.stranger() as stranger:
            refused = [(await stranger.get(path)).status_code for path in READS]
            healthy = [
                (await stranger.get(path, headers={"Host": "10.0.0.7"})).json() for path in ("/healthz", "/readyz")
            ]
        assert set(refused) <= {401, 404}
        assert healthy == [{"status": "ok"}] * 2


@asynccontextmanager
async def relayed(target):
    """Yield an address that leads to a server, and the task that has to live for it to."""
    host, _, port = target.rpartition(":")

    async def passed_on(reader, writer):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()

    async def serve(listener):
        async with asyncio.TaskGroup() as lines:

            async def taken(reader, writer):
                there, back = await asyncio.open_connection(host, int(port))
                ends = lines.create_task(passed_on(reader, back)), lines.create_task(passed_on(there, writer))
                try:
                    await asyncio.wait(ends)
                finally:
                    writer.transport.abort()
                    back.transport.abort()

            server = await asyncio.start_server(lambda *pair: lines.create_task(taken(*pair)), "127.0.0.1", 0)
            async with server:
                listener.set_result(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
                await asyncio.Event().wait()

    listener = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve(listener))
    try:
        yield await listener, serving
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


async def readiness(anybody):
    """Return what a page says of itself: whether it is ready, and whether it lives."""
    ready, lives = [await anybody.get(path) for path in ("/readyz", "/healthz")]
    assert (lives.status_code, lives.json()) == (200, {"status": "ok"})
    return ready.status_code, ready.json()


@promise("page:readiness")
async def test_a_page_is_not_ready_while_its_store_does_not_answer_and_is_when_it_does_again(open_engine):
    async with open_postgres() as server:
        shared = {"database_url": await server.new_database(), **behind_a_proxy()}
        async with (
            open_engine(Scripts(), **shared) as running,
            served_page(running) as served,
            served.stranger() as anybody,
        ):
            assert await readiness(anybody) == (200, {"status": "ok"})
            await server.kill()
            assert await readiness(anybody) == (503, {"status": "unavailable", "error": "StoreUnavailable"})
            await server.start()
            assert await readiness(anybody) == (200, {"status": "ok"})


@promise("page:ready-file")
async def test_a_page_is_not_ready_while_the_file_of_its_store_is_gone(open_engine):
    async with open_engine(Scripts(), **behind_a_proxy()) as running:
        file = running.settings.home / "backstay.db"
        async with served_page(running) as served, served.stranger() as anybody:
            assert await readiness(anybody) == (200, {"status": "ok"})
            away = file.rename(file.with_suffix(".away"))
            assert await readiness(anybody) == (503, {"status": "unavailable", "error": "StoreUnavailable"})
            away.rename(file)
            assert await readiness(anybody) == (200, {"status": "ok"})


@promise("page:ready-temporal")
async def test_a_page_is_not_ready_when_temporal_cannot_be_reached(open_engine):
    async with (
        open_engine(Scripts(), **behind_a_proxy()) as running,
        relayed(running.client.service_client.config.target_host) as (address, relay),
    ):
        client = await Client.connect(address, data_converter=DATA_CONVERTER)
        async with (
            served_page(dataclasses.replace(running, client=client)) as served,
            served.stranger() as anybody,
        ):
            assert await readiness(anybody) == (200, {"status": "ok"})
            relay.cancel()
            assert await readiness(anybody) == (503, {"status": "unavailable", "error": "Unreachable"})


@promise("page:links")
async def test_a_link_lets_one_person_in_and_an_altered_one_nobody(open_engine):
    scripts = Scripts()
    async with open_engine(scripts) as running, served_page(running) as served:
        handle = await running.start(scripts.task(SEND))
        await pending(handle)
        token = link_for(open_seals(running.settings), "ana@example.com")
        async with served.stranger() as person:
            come = await person.get(f"/link/{token}")
            inbox = await person.get("/")
        async with served.stranger() as stranger:
            altered = [await stranger.get(f"/link/{text}") for text in (token[:-1], f"A{token}", "x.y")]
        cookie = come.headers["set-cookie"].lower()
        assert (come.status_code, inbox.status_code) == (303, 200)
        assert "httponly" in cookie
        assert "samesite=lax" in cookie
        assert "ana@example.com" in inbox.text
        assert [answer.status_code for answer in altered] == [401] * 3
        assert not any("set-cookie" in answer.headers for answer in altered)
        await handle.terminate()


@promise("page:proxy-header")
async def test_a_header_counts_only_from_the_proxy_that_says_its_secret(open_engine):
    async with open_engine(Scripts(), **behind_a_proxy()) as running, served_page(running) as served:
        known = headers("ana@example.com")
        wrong = [
            {"X-Forwarded-Email": "ana@example.com"},
            {**known, "X-Backstay-Proxy": "x" * 32},
            {**known, "X-Forwarded-Email": ""},
            {**known, "X-Forwarded-Email": "ana@example.com, bo@example.com"},
        ]
        async with served.stranger() as anybody:
            came = [(await anybody.get("/", headers=given)).status_code for given in (known, *wrong)]
            twice = await anybody.get("/", headers=[*known.items(), ("X-Forwarded-Email", "bo@example.com")])
        assert (came, twice.status_code) == ([200, 401, 401, 401, 401], 401)


@promise("page:proxy-header")
async def test_the_header_that_names_people_is_the_one_that_is_set(open_engine):
    said = {"X-Backstay-Proxy": headers("")["X-Backstay-Proxy"]}
    async with (
        open_engine(Scripts(), **behind_a_proxy(web_header="X-Auth-Request-User")) as running,
        served_page(running) as served,
    ):
        async with served.stranger(**said) as anybody:
            known = await anybody.get(
                "/", headers={"X-Auth-Request-User": "ana", "X-Forwarded-Email": "bo@example.com"}
            )
            usual = await anybody.get("/", headers={"X-Forwarded-Email": "bo@example.com"})
        assert (known.status_code, usual.status_code) == (200, 401)
        assert (">ana<" in known.text, "bo@example.com" in known.text) == (True, False)
        assert "the header X-Auth-Request-User" in usual.text


@promise("page:links")
@pytest.mark.thorough
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com"])
async def test_links_are_for_this_machine_only(open_engine, host):
    assert not is_loopback(host)
    async with open_engine(Scripts()) as running, served_page(running) as served:
        with pytest.raises(SettingsInvalid, match="BACKSTAY_WEB_IDENTITY"):
            open_identity(running.settings, served.page.seals, host)
