"""Who is let in, under which name, and what a stranger reads: nothing."""

import pytest

from backstay.errors import SettingsInvalid
from backstay.testing import Reply
from gateways.web.identity import is_loopback, link_for
from gateways.web.serving import open_identity
from gateways.web.tokens import open_seals
from tests.engine import Scripts, pending
from tests.web.pages import behind_a_proxy, headers, served_page

SEND = Reply(calls=[("mail__send_email", {"to": "ana@example.com", "subject": "Hi", "body": "Hello"})])
READS = ["/", "/decided", "/requests/x/r1", "/link/no-such-token"]


async def test_a_stranger_reads_nothing_and_health_says_nothing_of_runs(open_engine):
    async with open_engine(Scripts(), **behind_a_proxy()) as running, served_page(running) as served:
        async with served.stranger() as stranger:
            refused = [(await stranger.get(path)).status_code for path in READS]
            healthy = [
                (await stranger.get(path, headers={"Host": "10.0.0.7"})).json() for path in ("/healthz", "/readyz")
            ]
        assert set(refused) <= {401, 404}
        assert healthy == [{"status": "ok"}] * 2


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


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.com"])
async def test_links_are_for_this_machine_only(open_engine, host):
    assert not is_loopback(host)
    async with open_engine(Scripts()) as running, served_page(running) as served:
        with pytest.raises(SettingsInvalid, match="BACKSTAY_WEB_IDENTITY"):
            open_identity(running.settings, served.page.seals, host)
