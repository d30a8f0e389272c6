"""Sign-ins, and what they bring: each to whoever began it, once, and renewed once for all."""

import asyncio
import json
import time
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from structlog.testing import CapturingLogger

from backstay.errors import SignInRefused, StoreUnavailable, ToolUnavailable
from backstay.tools.connection import SERVICE
from store.opening import open_store
from tests.connections.issuer import Issuer, go_to, offered
from tests.requirements import promise
from toolbox.configuration.configuration import ServerEntry
from toolbox.oauth import connections as oauth_connections
from toolbox.oauth.connections import OAuthConnections

ANA, BO = "ana@example.com", "bo@example.com"
BACK = "https://page.example.com/connections/notes/callback"


@asynccontextmanager
async def opened(folder, notes, url=None, **auth):
    """Open what signs people in, as one worker has it."""
    servers = {"notes": ServerEntry.model_validate({"url": notes.url, "auth": auth})}
    async with open_store(database_url=url, home=folder, encryption_keys=[]) as store:
        connections = OAuthConnections(servers, store.connections)
        yield connections
        await connections.close()


async def sign_in(connections, authority, issuer, user=ANA, person="ana-at-notes"):
    issuer.person = person
    departure = await connections.begin(user, "notes", BACK)
    return await connections.finish(user, "notes", await go_to(departure.url, authority))


async def token_of(connections, user=ANA):
    known = await connections.usable(user, "notes")
    return None if known is None else known.grant.access_token


@promise("connections:sign-in")
async def test_a_person_signs_in_over_https_and_only_their_own_name_finds_the_token(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        made = await sign_in(connections, authority, issuer)

        (asked,) = issuer.asked
        assert asked["code_challenge_method"] == "S256"
        assert asked["resource"] == notes.url
        assert issuer.access[await token_of(connections)].account == "ana-at-notes"
        assert await token_of(connections, BO) is None
        assert await token_of(connections, "singleton") is None
        assert not any(secret in repr(made) or secret in json.dumps(made.told()) for secret in issuer.secrets)


@promise("connections:at-rest")
@pytest.mark.parametrize("keys", [[], ["kA5rVbn4P8DqM3Z9s0Qh1uXJYtLw2eRfGiKo7cWvUTE="]])
async def test_no_token_stands_in_the_database_as_it_is(authority, tmp_path, keys):
    async with offered(authority) as (issuer, notes):
        servers = {"notes": ServerEntry.model_validate({"url": notes.url, "auth": {}})}
        async with open_store(database_url=None, home=tmp_path, encryption_keys=keys) as store:
            connections = OAuthConnections(servers, store.connections)
            await sign_in(connections, authority, issuer)
            await connections.begin(ANA, "notes", BACK)
            await connections.close()

        kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        secrets = [*issuer.secrets, *(asked["state"] for asked in issuer.asked)]
        assert len(secrets) >= 4
        assert not [secret for secret in secrets if secret.encode() in kept]


@promise("connections:one-renewal")
async def test_a_hundred_calls_at_two_workers_renew_a_token_once_each_time(authority, tmp_path, database_url):
    async with (
        offered(authority, Issuer(expires_in=1)) as (issuer, notes),
        opened(tmp_path, notes, database_url) as here,
        opened(tmp_path, notes, database_url) as there,
    ):
        await sign_in(here, authority, issuer)
        issuer.pause_s, issuer.expires_in = 0.2, 3600
        for renewals in (1, 2):
            issuer.forget()  # revoked, so that each worker finds out by itself
            known = await here.usable(ANA, "notes")
            asked = [each.renewed(known) for _ in range(50) for each in (here, there)]
            found = await asyncio.gather(*asked)

            assert issuer.counted["refresh_token"] == renewals
            assert {each.grant.access_token for each in found} == set(issuer.access)
        assert issuer.counted["replayed"] == 0


@promise("store:connections")
async def test_a_token_that_ends_is_renewed_before_its_next_use(authority, tmp_path):
    async with offered(authority, Issuer(expires_in=1)) as (issuer, notes), opened(tmp_path, notes) as connections:
        await sign_in(connections, authority, issuer)
        first = await token_of(connections)
        issuer.expires_in = 3600
        async with asyncio.timeout(20):
            while await token_of(connections) == first:
                await asyncio.sleep(0.05)
        await asyncio.gather(*(token_of(connections) for _ in range(20)))
        assert issuer.counted["refresh_token"] == 1


@promise("connections:ended")
async def test_what_the_issuer_renews_no_more_has_ended_and_a_new_sign_in_begins_another(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        first = await sign_in(connections, authority, issuer)
        issuer.forget(refresh=True)
        assert await connections.renewed(first) is None
        assert await token_of(connections) is None

        second = await sign_in(connections, authority, issuer)
        assert second.id != first.id
        assert await token_of(connections) == second.grant.access_token


@promise("connections:ended")
async def test_an_issuer_that_is_away_for_a_while_ends_nothing(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        known = await sign_in(connections, authority, issuer)
        issuer.status = 503
        with pytest.raises(ToolUnavailable):
            await connections.renewed(known)
        issuer.status = 0
        fresh = await connections.renewed(known)
        assert fresh.grant.access_token in issuer.access


@promise("connections:refused-client")
@pytest.mark.parametrize("word", ["invalid_client", "unauthorized_client"])
async def test_an_issuer_that_refuses_the_client_of_the_operator_ends_no_sign_in(authority, tmp_path, word):
    async with offered(authority) as (issuer, notes):
        secret = {"client_id": "known", "client_secret": "the secret of before", "issuer": issuer.url}
        async with opened(tmp_path, notes, **secret) as connections:
            known = await sign_in(connections, authority, issuer)
            issuer.renewal = 401, json.dumps({"error": word})
            for _ in range(2):
                with pytest.raises(ToolUnavailable, match="client_secret"):
                    await connections.renewed(known)
            issuer.fault = issuer.renewal[1].encode()
            with pytest.raises(SignInRefused, match="client_secret"):
                await sign_in(connections, authority, issuer)
        issuer.renewal = None
        async with opened(tmp_path, notes, **{**secret, "client_secret": "the secret of today"}) as connections:
            assert (await connections.renewed(known)).grant.access_token in issuer.access


DOCUMENT = "https://page.example.com/client.json"


@promise("connections:refused-client")
@pytest.mark.parametrize(
    ("auth", "field"),
    [
        ({"client_id": "known"}, "client_id"),
        ({"client_id": "known", "client_secret": "of before"}, "client_secret"),
        ({"client_metadata_url": DOCUMENT}, "client_metadata_url"),
    ],
)
async def test_who_is_told_of_a_refused_client_is_told_the_field_that_says_who_it_is_also_by_the_log(
    authority, tmp_path, monkeypatch, auth, field
):
    log = CapturingLogger()
    monkeypatch.setattr(oauth_connections, "_log", log)
    async with (
        offered(authority) as (issuer, notes),
        opened(tmp_path, notes, **auth, issuer=issuer.url) as connections,
    ):
        known = await sign_in(connections, authority, issuer)
        issuer.renewal = 400, '{"error": "invalid_client", "error_description": "document not found"}'
        with pytest.raises(ToolUnavailable, match=rf"^notes: .*the `{field}` in `mcpServers\.notes\.auth`"):
            await connections.renewed(known)
        (told,) = [call.kwargs for call in log.calls if call.args == ("connection.client_refused",)]
        assert told == {"provider": "notes", "field": field, "reason": "invalid_client"}
        issuer.renewal = None
        assert (await connections.renewed(known)).grant.access_token in issuer.access


@promise("connections:refused-client")
@pytest.mark.parametrize(
    ("description", "ends"),
    [
        ("refresh_token is invalid", True),
        ("The refresh token was not found", True),
        ("The authorization has expired or was revoked; try again later", True),
        ("unknown, invalid, or expired refresh token", True),
        ("Invalid client credentials", False),
        ("Invalid client credentials for refresh_token grant", False),
        ("Refresh token flow is invalid for this app", False),
        ("The app's trial has expired", False),
        ("the client secret has expired", False),
        ("Grant type 'refresh_token' is invalid for the client", False),
        ("", False),
    ],
)
async def test_an_issuer_that_blames_the_client_for_a_dead_refresh_token_ends_the_sign_in(
    authority, tmp_path, description, ends
):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes, client_id="known") as connections:
        known = await sign_in(connections, authority, issuer)
        issuer.renewal = 403, json.dumps({"error": "unauthorized_client", "error_description": description})
        if ends:
            assert await connections.renewed(known) is None
            return
        with pytest.raises(ToolUnavailable, match="client_id"):
            await connections.renewed(known)


@promise("connections:refused-client")
async def test_an_issuer_that_refuses_a_client_that_backstay_has_registered_ends_the_sign_in(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        known = await sign_in(connections, authority, issuer)
        issuer.renewal = 401, '{"error": "invalid_client"}'
        assert await connections.renewed(known) is None


def ended(description, error="invalid_request"):
    return json.dumps({"error": error, "error_description": description})


@promise("connections:passing-refusals")
@pytest.mark.parametrize(
    ("status", "body", "ends"),
    [
        (200, '{"ok": false, "error": "ratelimited"}', False),
        (200, '{"error": "internal_error"}', False),
        (200, "<html>maintenance</html>", False),
        (200, '{"access_token": "two words", "token_type": "bearer"}', False),
        (403, "<html>are you a robot?</html>", False),
        (400, '{"error": {"code": 5}}', False),
        (429, '{"error": "access_denied"}', False),
        (429, '{"error": "no_more_of_this"}', False),
        (200, '{"error": "no_more_of_this"}', False),
        (403, '{"error": "no_more_of_this"}', False),
        (400, '{"error": ""}', False),
        (400, '{"status": "BAD_REQUEST"}', False),
        (400, '{"error": "temporarily_unavailable"}', False),
        (401, '{"error": "server_error"}', False),
        (400, '{"error": "slow_down"}', False),
        (400, '{"error": "Rate limit exceeded"}', False),
        (400, '{"error": "too_many_requests"}', False),
        (400, '{"error": "internal_failure", "error_description": "Backend Error"}', False),
        (400, '{"error": "unknown_error", "error_description": "retry your request"}', False),
        (400, '{"error": "invalid_request", "error_description": "internal_failure"}', False),
        (401, '{"error": "no_more_of_this", "error_description": "A transient error has occurred."}', False),
        (400, '{"error": "invalid_request", "error_description": "The authorization server is unavailable."}', False),
        (400, '{"error": "access_denied", "error_description": "Please retry in 30 seconds."}', False),
        (401, '{"error": "no_more_of_this", "error_description": "Please try again later."}', False),
        (400, '{"error": "try_again"}', False),
        (400, ended("Retry-After: 10"), False),
        (400, ended("The server is busy, please try again"), False),
        (400, ended("Please try again in an hour"), False),
        (400, ended("Database reconnecting, service unavailable"), False),
        (400, '{"error": "invalid_request", "error_description": 5}', True),
        (400, ended("Refresh token is invalid, please authorize the app and try again"), True),
        (400, ended("Please reconnect your account and try again"), True),
        (400, ended("Please reconnect your account and try again later"), True),
        (400, ended("Please reconnect and try again", "access_denied"), True),
        (400, ended("Log back in and try again later"), True),
        (400, ended("User must authenticate again; retry in a minute"), True),
        (400, ended("User must authenticate again; retry"), True),
        (400, ended("Do not retry"), True),
        (400, ended("scope is limited to read"), True),
        (400, '{"error": "invalid_request", "error_description": "Sign in again, and then try again."}', True),
        (400, '{"error": "invalid_grant", "error_description": "internal_failure"}', True),
        (400, '{"error": "login_required", "error_description": "please try again"}', True),
        (400, '{"error": "invalid_target"}', True),
        (400, '{"error": "expired-refresh-token"}', True),
        (400, '{"error": "no_more_of_this"}', True),
        (401, '{"error": "Unauthorized"}', True),
        (400, '{"status": "BAD_REFRESH_TOKEN", "message": "missing or unknown"}', True),
        (200, '{"ok": false, "error": "token_revoked"}', True),
        (200, '{"ok": false, "error": "invalid_refresh_token"}', True),
        (200, '{"error": "bad_refresh_token"}', True),
        (400, '{"error": "interaction_required"}', True),
        (403, '{"error": "invalid_grant"}', True),
    ],
)
async def test_a_sign_in_ends_only_where_its_issuer_says_so(authority, tmp_path, status, body, ends):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        known = await sign_in(connections, authority, issuer)
        issuer.renewal = (status, body)
        if ends:
            assert await connections.renewed(known) is None
            return
        with pytest.raises(ToolUnavailable, match="gives no tokens now"):
            await connections.renewed(known)
        issuer.renewal = None
        assert (await connections.renewed(known)).grant.access_token in issuer.access


@promise("connections:odd-tokens")
@pytest.mark.parametrize(
    ("given", "holds_s"),
    [
        ({"token_type": "user"}, 3600),
        ({"token_type": None}, 3600),
        ({"expires_in": 3599.5}, 3599),
        ({"expires_in": "1800.5"}, 1800),
        ({"expires_in": ""}, None),
        ({"scope": ["notes"]}, 3600),
    ],
)
async def test_tokens_are_taken_in_the_forms_that_issuers_give_them(authority, tmp_path, given, holds_s):
    async with offered(authority, Issuer(given=given)) as (issuer, notes), opened(tmp_path, notes) as connections:
        grant = (await sign_in(connections, authority, issuer)).grant
    assert grant.access_token in issuer.access
    assert grant.scope == "notes"
    if holds_s is None:
        assert grant.expires_at is None
    else:
        assert holds_s - 60 < grant.expires_at - time.time() <= holds_s


@promise("connections:odd-tokens")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"token_type": "DPoP"}, "token_type"),
        ({"access_token": None}, "access_token"),
        ({"access_token": "short"}, "access_token"),
        ({"refresh_token": "two words of it"}, "refresh_token"),
        ({"scope": 5}, "scope"),
    ],
)
async def test_a_field_of_tokens_that_cannot_be_used_is_named(authority, tmp_path, given, field):
    async with offered(authority, Issuer(given=given)) as (issuer, notes), opened(tmp_path, notes) as connections:
        with pytest.raises(SignInRefused, match=field):
            await sign_in(connections, authority, issuer)


@promise("connections:lost-renewal")
async def test_when_a_worker_is_lost_amid_a_renewal_another_one_renews(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        known = await sign_in(connections, authority, issuer)
        async with open_store(database_url=None, home=tmp_path, encryption_keys=[]) as store:
            assert await store.connections.claim(known, 0.3)  # and then the worker is gone
            assert not await store.connections.claim(known, 0.3)
        fresh = await connections.renewed(known)
        assert fresh.grant.access_token in issuer.access
        assert issuer.counted["refresh_token"] == 1


@promise("connections:kept-renewal")
async def test_a_store_that_is_away_for_a_moment_after_a_renewal_loses_no_token(authority, tmp_path, monkeypatch):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        known = await sign_in(connections, authority, issuer)
        faults, keep = [StoreUnavailable("away")] * 3, connections._store.renewed

        async def renewed(*asked):
            if faults:
                raise faults.pop()
            return await keep(*asked)

        monkeypatch.setattr(connections._store, "renewed", renewed)
        fresh = await connections.renewed(known)
        assert fresh.grant.access_token in issuer.access
        assert await token_of(connections) == fresh.grant.access_token
        assert (faults, issuer.counted["refresh_token"]) == ([], 1)


@promise("connections:days")
async def test_after_the_days_that_the_operator_allows_a_person_signs_in_again(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes, days=1e-6) as connections:
        made = await sign_in(connections, authority, issuer)
        async with asyncio.timeout(10):
            while time.time() < made.ends_at:
                await asyncio.sleep(0.02)
        assert await token_of(connections) is None
        assert await connections.renewed(made) is None
        assert issuer.counted["refresh_token"] == 0


@promise("connections:disconnect")
async def test_a_disconnected_token_is_revoked_and_forgotten_even_amid_a_renewal(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        known = await sign_in(connections, authority, issuer)
        issuer.pause_s = 0.3
        renewing = asyncio.create_task(connections.renewed(known))
        async with asyncio.timeout(10):
            while not issuer.counted["refresh_token"]:
                await asyncio.sleep(0.01)
        assert await connections.disconnect(ANA, "notes")

        assert await renewing is None
        assert await connections.of_user(ANA) == []
        assert not issuer.access
        assert not issuer.refresh
        assert await connections.disconnect(ANA, "notes") is None


@promise("connections:service")
async def test_backstay_signs_in_itself_at_a_server_of_the_operator_and_nobody_is_asked(authority, tmp_path):
    secret = {"client_id": "service", "client_secret": "own secret of the service"}
    async with (
        offered(authority) as (issuer, notes),
        opened(tmp_path, notes, grant="client_credentials", issuer=issuer.url, **secret) as connections,
    ):
        assert issuer.access[await token_of(connections, SERVICE)].account == "the service"
        assert list(connections.providers) == []
        assert await token_of(connections, ANA) is None
        with pytest.raises(SignInRefused):
            await connections.begin(ANA, "notes", BACK)


@promise("connections:service")
async def test_calls_at_once_at_two_workers_find_a_token_also_where_backstay_has_not_signed_in_yet(
    authority, tmp_path, database_url
):
    async with offered(authority) as (issuer, notes):
        more = {"client_id": "service", "client_secret": "own secret of the service", "issuer": issuer.url}
        more["grant"] = "client_credentials"
        async with (
            opened(tmp_path, notes, database_url, **more) as here,
            opened(tmp_path, notes, database_url, **more) as there,
        ):
            issuer.pause_s = 0.1
            found = await asyncio.gather(*(token_of(each, SERVICE) for _ in range(10) for each in (here, there)))
        assert all(token in issuer.access for token in found)
        assert issuer.counted["client_credentials"] <= 2
        assert issuer.counted["described"] <= 2


@promise("connections:clients")
@pytest.mark.parametrize(
    ("auth", "said", "client"),
    [
        ({"client_id": "known"}, {}, "known"),
        ({"client_metadata_url": "https://page.example.com/client.json"}, {}, "https://page.example.com/client.json"),
        ({"client_metadata_url": "https://page.example.com/c"}, {"client_id_metadata_document_supported": None}, "new"),
        ({}, {}, "new"),
        ({"register": False}, {}, None),
        ({}, {"registration_endpoint": None}, None),
    ],
)
async def test_a_registered_client_comes_before_a_document_and_that_before_a_registration(
    authority, tmp_path, auth, said, client
):
    async with offered(authority, Issuer(said=said)) as (issuer, notes), opened(tmp_path, notes, **auth) as connections:
        if client is None:
            with pytest.raises(SignInRefused, match="client_id"):
                await connections.begin(ANA, "notes", BACK)
            return
        for _ in range(2):
            await sign_in(connections, authority, issuer)
        assert issuer.counted["registered"] == (1 if client == "new" else 0)
        known = {asked["client_id"] for asked in issuer.asked}
        assert known == ({*issuer.clients} if client == "new" else {client})


BASIC, POST = "client_secret_basic", "client_secret_post"


@promise("connections:registered-secret")
@pytest.mark.parametrize(
    ("offered_methods", "answered", "wanted", "used"),
    [
        (None, None, "none", BASIC),
        (None, "none", "none", "none"),
        ([POST], None, POST, POST),
        ([POST, BASIC], None, BASIC, BASIC),
        ([POST, BASIC], POST, BASIC, POST),
        (["none", BASIC], "none", "none", "none"),
        (["private_key_jwt"], POST, "none", POST),
    ],
)
async def test_a_registration_asks_for_a_method_that_the_issuer_has_and_its_secret_is_sent(
    authority, tmp_path, offered_methods, answered, wanted, used
):
    issuer = Issuer(registers={"token_endpoint_auth_method": answered})
    issuer.said = {"token_endpoint_auth_methods_supported": offered_methods}
    async with offered(authority, issuer) as (_, notes), opened(tmp_path, notes) as connections:
        assert await connections.renewed(await sign_in(connections, authority, issuer)) is not None
    (client,) = issuer.clients.values()
    assert [said["token_endpoint_auth_method"] for said in issuer.registering] == [wanted]
    assert issuer.proven == [(used, None if used == "none" else client["client_secret"])] * 2


@promise("connections:added-secret")
@pytest.mark.parametrize(("methods", "used"), [(None, BASIC), ([POST], POST), (["none", BASIC], BASIC)])
async def test_a_secret_that_the_operator_adds_or_replaces_later_is_sent_to_renew_and_to_revoke(
    authority, tmp_path, methods, used
):
    async with offered(authority, Issuer(said={"token_endpoint_auth_methods_supported": methods})) as (issuer, notes):
        auth = {"client_id": "known", "issuer": issuer.url}
        async with opened(tmp_path, notes, **auth) as connections:
            known = await sign_in(connections, authority, issuer)
        for secret in ("first", "next"):
            issuer.proven.clear()
            async with opened(tmp_path, notes, **auth, client_secret=secret) as connections:
                known = await connections.renewed(known)
                assert issuer.proven == [(used, secret)]
        async with opened(tmp_path, notes, **auth, client_secret="last") as connections:
            issuer.proven.clear()
            assert await connections.disconnect(ANA, "notes")
            assert issuer.proven == [(used, "last")] * 2


@promise("connections:lost-registration")
async def test_where_an_issuer_has_lost_a_registration_the_next_attempt_registers_anew(
    authority, tmp_path, monkeypatch
):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        await sign_in(connections, authority, issuer)
        issuer.lost = {*issuer.clients}
        monkeypatch.setattr(oauth_connections, "REGISTERED_S", 0.0)
        with pytest.raises(KeyError, match="location"):  # the person is stuck on the page of the issuer
            await sign_in(connections, authority, issuer)
        for _ in range(2):
            assert issuer.access[(await sign_in(connections, authority, issuer)).grant.access_token]
        assert issuer.counted["registered"] == 2


@promise("connections:lost-registration")
async def test_a_person_who_begins_again_and_again_causes_one_registration(authority, tmp_path):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        for _ in range(3):
            await connections.begin(ANA, "notes", BACK)
        assert issuer.counted["registered"] == 1


class Clock:
    """Show later times than it is."""

    def __init__(self):
        self.ahead_s, self.monotonic = 0.0, time.monotonic

    def time(self):
        return time.time() + self.ahead_s


@pytest.fixture
def clock(monkeypatch):
    shown = Clock()
    monkeypatch.setattr(oauth_connections, "time", shown)
    return shown


@promise("connections:lost-registration")
async def test_people_who_sign_in_at_once_cause_no_registration_however_old_the_one_before_is(
    authority, tmp_path, clock
):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        await sign_in(connections, authority, issuer)
        for ahead_s, registered in ((6000, 1), (6001, 1), (6590, 1), (6700, 2)):
            clock.ahead_s = ahead_s
            await connections.begin(BO, "notes", BACK)
            assert issuer.counted["registered"] == registered


@promise("connections:lost-registration")
async def test_a_registration_of_an_older_version_is_used_until_somebody_did_not_come_back(authority, tmp_path, clock):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        await sign_in(connections, authority, issuer)
        place = "notes", issuer.url, BACK
        kept = await connections._store.client(*place)
        await connections._store.keep_client(*place, {**kept, "registered_at": 0.0, oauth_connections.LEFT: True})
        for ahead_s, registered in ((0, 1), (700, 2)):
            clock.ahead_s = ahead_s
            await connections.begin(ANA, "notes", BACK)
            assert issuer.counted["registered"] == registered


@promise("connections:lost-registration")
@pytest.mark.parametrize(("ends_in_s", "holds"), [(None, True), (5000, True), (1000, False)])
async def test_where_an_issuer_registers_nobody_any_more_the_registration_of_before_is_used_while_it_holds(
    authority, tmp_path, clock, ends_in_s, holds
):
    ends = 0 if ends_in_s is None else int(time.time()) + ends_in_s
    issuer = Issuer(registers={"client_secret_expires_at": ends})
    async with offered(authority, issuer) as (_, notes), opened(tmp_path, notes) as connections:
        await sign_in(connections, authority, issuer)
        await connections.begin(BO, "notes", BACK)
        clock.ahead_s, issuer.registers = 2000, {"client_id": None}
        if not holds:
            with pytest.raises(SignInRefused, match="does not register us"):
                await connections.begin(ANA, "notes", BACK)
            return
        for _ in range(2):
            await connections.begin(ANA, "notes", BACK)
        assert issuer.access[(await sign_in(connections, authority, issuer)).grant.access_token]
        assert issuer.counted["registered"] == 2


@promise("connections:lost-registration")
@pytest.mark.parametrize(("ends", "registered"), [(0, 1), (2**40, 1), (1, 2)])
async def test_a_registration_whose_secret_ends_is_made_anew_once_in_ten_minutes(
    authority, tmp_path, clock, ends, registered
):
    issuer = Issuer(registers={"client_secret_expires_at": ends})
    async with offered(authority, issuer) as (_, notes), opened(tmp_path, notes) as connections:
        for ahead_s, count in ((0, 1), (500, 1), (700, registered), (1200, registered)):
            clock.ahead_s = ahead_s
            await sign_in(connections, authority, issuer)
            assert issuer.counted["registered"] == count


@promise("connections:lost-registration")
@pytest.mark.parametrize(("error", "registered"), [("access_denied", 1), ("unauthorized_client", 2)])
async def test_a_person_who_comes_back_without_a_code_shows_that_a_registration_is_known(
    authority, tmp_path, clock, error, registered
):
    async with offered(authority) as (issuer, notes), opened(tmp_path, notes) as connections:
        back = await go_to((await connections.begin(ANA, "notes", BACK)).url, authority)
        with pytest.raises(SignInRefused, match=error):
            await connections.finish(ANA, "notes", {"state": back["state"], "iss": back["iss"], "error": error})
        clock.ahead_s = 6000
        await connections.begin(ANA, "notes", BACK)
        assert issuer.counted["registered"] == registered


MANY = ("notes", "admin", "offline_access")


@promise("connections:scopes")
@pytest.mark.parametrize(("needed", "asked"), [(["notes"], "notes offline_access"), (None, None), ([], None)])
async def test_no_more_is_asked_for_than_the_server_needs(authority, tmp_path, needed, asked):
    async with offered(authority, Issuer(scopes=MANY)) as (issuer, notes), opened(tmp_path, notes) as connections:
        notes.guard.scopes = needed
        await sign_in(connections, authority, issuer)
        assert issuer.asked[0].get("scope") == asked


@promise("connections:scopes")
async def test_backstay_asks_for_itself_for_nothing_that_only_renewals_need(authority, tmp_path):
    auth = {"client_id": "service", "client_secret": "own secret of the service", "grant": "client_credentials"}
    async with (
        offered(authority, Issuer(scopes=MANY)) as (issuer, notes),
        opened(tmp_path, notes, issuer=issuer.url, **auth) as connections,
    ):
        assert issuer.access[await token_of(connections, SERVICE)].scope == "notes"


@promise("connections:scopes")
async def test_what_backstay_was_allowed_for_itself_follows_what_the_operator_names(authority, tmp_path):
    auth = {"client_id": "service", "client_secret": "own secret of the service", "grant": "client_credentials"}
    async with offered(authority, Issuer(scopes=MANY)) as (issuer, notes):
        auth["issuer"] = issuer.url
        for scopes in (["notes", "admin"], ["notes"], []):
            async with opened(tmp_path, notes, scopes=scopes, **auth) as connections:
                tokens = {await token_of(connections, SERVICE) for _ in range(3)}
                assert [issuer.access[token].scope for token in tokens] == [" ".join(scopes or ["notes"])]
                # A version before this one kept what was granted, and not what was asked for.
                known = await connections.usable(SERVICE, "notes")
                client = {name: value for name, value in known.grant.client.items() if name != "scopes"}
                older = replace(known.grant, scope="notes admin", client=client)
                await connections._store.connect(SERVICE, "notes", older, ends_at=None, before=known.id)
                known = await connections.renewed(await connections.usable(SERVICE, "notes"))
                assert issuer.access[known.grant.access_token].scope == " ".join(scopes or ["notes"])


@promise("connections:scopes")
async def test_what_was_allowed_before_is_asked_for_where_it_is_still_meant(authority, tmp_path):
    async with offered(authority) as (issuer, notes), offered(authority) as (other, _):
        notes.guard.scopes = ["notes", "admin"]
        async with opened(tmp_path, notes) as connections:
            await sign_in(connections, authority, issuer)
            notes.guard.scopes = ["notes"]
            known = await sign_in(connections, authority, issuer)
            await connections.refused(known, "write")
            await go_to((await connections.begin(ANA, "notes", BACK)).url, authority)
            assert set(issuer.asked[-1]["scope"].split()) == {"notes", "admin", "write"}
        async with opened(tmp_path, notes, scopes=["notes"]) as connections:
            await go_to((await connections.begin(ANA, "notes", BACK)).url, authority)
            assert set(issuer.asked[-1]["scope"].split()) == {"notes", "write"}
        notes.guard.servers = [other.url]
        async with opened(tmp_path, notes) as connections:
            await go_to((await connections.begin(ANA, "notes", BACK)).url, authority)
            assert other.asked[-1]["scope"] == "notes"
