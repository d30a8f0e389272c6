"""How long the servers of users stay open, at which they sign in or which they have added."""

import asyncio

from backstay.tools.connection import Connection, Grant
from tests.requirements import promise
from toolbox.mcp.of_users import UserServers
from toolbox.mcp.open_servers import OpenServer, OpenServers
from toolbox.providers.listing import Listing

MOST = 20


class Server(OpenServer):
    """Note when it is closed."""

    closed = False

    async def close(self):
        self.closed = True


class Slow(Server):
    """List its tools when a test says so."""

    def __init__(self):
        super().__init__()
        self.answers = asyncio.Event()

    async def list(self, *, fresh=False):
        await self.answers.wait()
        return Listing()


class Tokens:
    """Know everybody as signed in."""

    async def usable(self, user_id, provider):
        grant = Grant(issuer="", resource="", access_token=f"token-of-{user_id}", token_endpoint="", client={})
        signed_in = {"version": 1, "state": "connected", "connected_at": 0, "refreshed_at": 0}
        return Connection(id=user_id, user_id=user_id, provider=provider, grant=grant, **signed_in)


def closed(servers):
    return [number for number, server in enumerate(servers) if server.closed]


@promise("tools:open-most")
async def test_of_idle_servers_the_ones_used_longest_ago_are_closed_and_only_those_beyond_the_most():
    opened, servers = OpenServers(MOST), [Server() for _ in range(MOST + 3)]

    def use(number):
        opened.get(str(number), lambda: servers[number])

    for number in range(MOST):
        use(number)
    await asyncio.sleep(0)
    assert closed(servers) == []
    with servers[0].used():
        for number in (1, *range(MOST, MOST + 3)):
            use(number)
        await asyncio.sleep(0)
        assert closed(servers) == [2, 3, 4]
    await opened.close()
    assert closed(servers) == list(range(MOST + 3))


@promise("tools:open-used")
async def test_a_server_at_which_a_user_is_signed_in_is_not_closed_while_it_lists_its_tools(monkeypatch):
    monkeypatch.setattr("toolbox.mcp.of_users._MOST_USERS", 1)
    made = []

    def make(owner, known, scrubber):
        made.append(Slow())
        return made[-1]

    servers = UserServers("notes", Tokens(), make)
    listing = asyncio.create_task(servers.of("ana").list())
    await asyncio.sleep(0.01)
    servers.of("bo")
    await asyncio.sleep(0.01)
    assert not made[0].closed
    made[0].answers.set()
    assert (await listing).reason is None
    servers.of("cy")
    await asyncio.sleep(0.01)
    assert made[0].closed
    await servers.close()
