"""Whose token a call carries, over random users, sign-ins, endings and callers."""

import asyncio
import json
import random
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from backstay.errors import ToolUnavailable
from backstay.memory.item import owner_of
from backstay.tools.connection import ConnectionPlace
from store.opening import open_store
from tests.connections.issuer import Issuer, go_to, offered
from tests.requirements import promise
from toolbox.oauth.connections import OAuthConnections
from toolbox.providers.provider import Caller
from toolbox.toolbox import open_toolbox

USERS = ["ana@example.com", "bo@example.com", "cy@example.com"]
DESK = "desk@example.com"
NOBODY = "singleton"
BACK = "https://page.example.com/connections/notes/callback"


class Office:
    """Hold workers that share one store, the issuer, and what each person has let backstay do."""

    def __init__(self, issuer, notes, authority, store):
        self.issuer, self.notes, self.authority, self.store = issuer, notes, authority, store
        self.workers, self.signed_in = [], {}

    async def sign_in(self, user):
        connections = self.workers[0].connections
        self.issuer.person = f"{user}-at-notes"
        back = await go_to((await connections.begin(user, "notes", BACK)).url, self.authority)
        await connections.finish(user, "notes", back)
        self.signed_in[user] = f"{user}-at-notes"

    async def disconnect(self, user):
        await self.workers[-1].connections.disconnect(user, "notes")
        self.signed_in.pop(user, None)

    async def whoami(self, user_id, started_by, worker=0):
        """Return whose notes a run of these would read; None where the person is asked to sign in first."""
        owner, toolbox = owner_of(user_id, started_by, [DESK]), self.workers[worker].toolbox
        catalog = await toolbox.catalog(user_id, owner=owner)
        if (found := catalog.definitions.get("notes.whoami")) is None:
            return None
        answer = await toolbox.call(found, {}, deadline_s=20, caller=Caller(user_id=user_id, owner=owner))
        return None if answer.question is not None else answer.data["result"]


class Worker:
    def __init__(self, toolbox, connections):
        self.toolbox, self.connections = toolbox, connections


@asynccontextmanager
async def opened(authority, folder, workers, issuer=None):
    async with AsyncExitStack() as stack:
        issuer, notes = await stack.enter_async_context(offered(authority, issuer))
        file = folder / "toolbox.json"
        told = {"mcpServers": {"notes": {"url": notes.url, "auth": {}}}, "providers": {"notes": {"trusted": True}}}
        file.write_text(json.dumps(told), encoding="utf-8")
        office = None
        for _ in range(workers):
            store = await stack.enter_async_context(open_store(database_url=None, home=folder, encryption_keys=[]))
            place = ConnectionPlace(store.connections)
            made = open_toolbox(file, environment={}, home=folder / "home", connections=place)
            toolbox = await stack.enter_async_context(made)
            servers = toolbox._configuration.servers
            office = office or Office(issuer, notes, authority, store)
            connections = OAuthConnections(servers, store.connections)
            stack.push_async_callback(connections.close)
            office.workers.append(Worker(toolbox, connections))
        yield office


@pytest_asyncio.fixture(scope="module")
async def office(authority, tmp_path_factory):
    async with opened(authority, tmp_path_factory.mktemp("whose"), 1) as found:
        yield found


person = st.sampled_from(USERS)
anybody = st.sampled_from([*USERS, DESK, NOBODY, "", "Ana@Example.com", "ana@example.com "])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("sign_in"), person),
        st.tuples(st.just("disconnect"), person),
        st.tuples(st.just("revoke"), st.just("")),
        st.tuples(st.just("call"), anybody, anybody),
    ),
    min_size=4,
    max_size=12,
)


@promise("connections:property")
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(steps=STEPS, last=st.lists(st.tuples(anybody, anybody), min_size=2, max_size=4))
async def test_a_call_never_carries_the_token_of_anybody_but_its_owner(office, steps, last):
    for user in USERS:
        await office.disconnect(user)
    for step in [*steps, *(("call", *each) for each in last)]:
        match step:
            case "sign_in", user:
                await office.sign_in(user)
            case "disconnect", user:
                await office.disconnect(user)
            case "revoke", _:
                office.issuer.forget()  # the next call of each renews its own
            case "call", user_id, started_by:
                owner = owner_of(user_id, started_by, [DESK])
                assert await office.whoami(user_id, started_by) == office.signed_in.get(owner)


@promise("connections:version")
async def test_another_sign_in_is_another_version_of_the_catalog_and_a_renewal_is_not(office):
    ana, connections = USERS[0], office.workers[0].connections
    versions = []
    for change in (office.disconnect, office.sign_in, office.sign_in):
        await change(ana)
        versions.append((await office.workers[0].toolbox.catalog(ana, owner=ana)).version)
    await connections.renewed(await connections.usable(ana, "notes"))
    versions.append((await office.workers[0].toolbox.catalog(ana, owner=ana)).version)
    assert len(set(versions)) == 3
    assert versions[2] == versions[3]


@promise("connections:property")
@pytest.mark.soak
async def test_five_hundred_calls_of_twenty_users_at_two_workers_amid_expiry_reach_their_own_notes(authority, tmp_path):
    users, chance = [f"user{n}@example.com" for n in range(20)], random.Random(7)
    async with opened(authority, tmp_path, 2, Issuer(expires_in=3)) as office:
        for user in users:
            await office.sign_in(user)
        room = asyncio.Semaphore(20)

        async def call(user, worker):
            async with room:
                try:
                    return user, await office.whoami(user, user, worker)
                except ToolUnavailable as error:
                    return user, f"unavailable: {error}"

        calls = [call(chance.choice(users), chance.randrange(2)) for _ in range(500)]
        found = await asyncio.gather(*calls)

        assert [each for each in found if each[1] != f"{each[0]}-at-notes"] == []
        kept = await office.store.connections.listed(None)
        assert 0 < office.issuer.counted["refresh_token"] == sum(each.version - 1 for each in kept)
        # A refresh token that was used twice would have ended its connection.
        assert office.issuer.counted["replayed"] == 0
        assert len(kept) == 20
