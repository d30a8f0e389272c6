"""What commands reach: a proxy that reads strictly, looks at the address that it connects to, and bounds it all."""

import asyncio
import socket
from contextlib import asynccontextmanager
from ipaddress import ip_address

import pytest

from backstay.errors import IsolationUnavailable
from backstay.policies.network import site
from sandbox.isolation.cgroups import Cgroups
from sandbox.isolation.nsjail import Nsjail
from sandbox.isolation.profile import JailProfile
from sandbox.isolation.self_test import check_profile, run_workspace_self_test
from sandbox.limits import shell_limits
from sandbox.network.proxy import NetworkBounds, Proxy
from sandbox.snapshots.snapshots import Snapshots
from sandbox.workspaces.effects import WorkspaceEffects
from sandbox.workspaces.owner import prepare
from system.addresses import Internet, is_never_reached
from tests.requirements import promise
from tests.sandbox.places import image
from tests.workspace.driver import FAR, NAMES, TRANSLATED, Elsewhere, answer

NEAR = """
0.0.0.0 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.9.9.9 168.63.129.16 169.254.169.254 172.16.0.1 172.31.255.255
192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.1.1.1 240.0.0.1
255.255.255.255 :: ::1 ::ffff:10.0.0.1 ::ffff:93.184.216.34 ::10.0.0.1 64:ff9b::a00:1 64:ff9b::7f00:1
64:ff9b::a9fe:a9fe 64:ff9b:: 64:ff9b::ffff:ffff 64:ff9b:0:0:0:1:0808:0808 64:ff9b:1::0808:0808 64:ff9b:1::1
100::1 2001::1
2001:db8::1 2002:a00:1::1 3fff::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 5f00::1
"""
FAR_ONES = "93.184.216.34 1.1.1.1 172.32.0.1 100.128.0.1 2606:2800:220:1::1 2a00:1450::1 64:ff9b::808:808"
HEAD = "GET http://far.example/a?b HTTP/1.1\r\nHost: far.example\r\n"


@asynccontextmanager
async def proxied(*hosts, names=NAMES, bounds=None, serve=answer):
    """A proxy before a far server; yields it, where it listens, and its internet."""
    far = await asyncio.start_server(serve, "127.0.0.1", 0)
    internet = Elsewhere(far.sockets[0].getsockname()[1], names)
    proxy = Proxy([site(host) for host in hosts], internet, bounds)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        serving = asyncio.create_task(proxy.serve(listening))
        try:
            yield proxy, port, internet
        finally:
            serving.cancel()
            await asyncio.wait({serving})
            far.close()


async def ask(port, said, *, ends=True):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said if isinstance(said, bytes) else said.encode())
    if ends:
        writer.write_eof()
    try:
        async with asyncio.timeout(60):
            return (await reader.read()).decode(errors="replace")
    except ConnectionError:
        return ""
    finally:
        writer.close()


def status(said):
    return int(said.split()[1])


@promise("workspaces:network-addresses")
def test_near_and_reserved_addresses_are_never_reached_in_any_spelling():
    assert [each for each in NEAR.split() if not is_never_reached(ip_address(each))] == []
    assert [each for each in FAR_ONES.split() if is_never_reached(ip_address(each))] == []


@promise("workspaces:network-addresses")
async def test_addresses_of_this_machine_count_as_near_however_public_they_look():
    internet = Internet()
    assert internet.is_own(ip_address("127.0.0.1"))
    # On a network with translated addresses, its own one is reached by them as well.
    assert internet.is_own(ip_address("64:ff9b::7f00:1"))
    assert not internet.is_own(FAR)
    async with proxied("far.example") as (proxy, port, elsewhere):
        elsewhere.is_own = lambda address: address == FAR
        assert status(await ask(port, f"{HEAD}\r\n")) == 403
        assert "private or reserved" in proxy.notes[0]


@promise("workspaces:network-addresses")
async def test_a_host_of_the_old_kind_is_reached_from_a_network_that_knows_the_new_kind_only():
    names = {"far.example": lambda: [TRANSLATED]}
    async with proxied("far.example", names=names) as (proxy, port, _):
        assert status(await ask(port, f"{HEAD}\r\n")) == 200
    names["far.example"] = lambda: [ip_address("64:ff9b::c0a8:101")]
    async with proxied("far.example", names=names) as (proxy, port, _):
        assert status(await ask(port, f"{HEAD}\r\n")) == 403
        assert "private or reserved" in proxy.notes[0]


@promise("workspaces:network-addresses")
async def test_the_address_that_was_looked_at_is_the_one_that_is_connected_to():
    given = [[FAR], [ip_address("127.0.0.1")], [FAR, ip_address("::1")], []]
    async with proxied("far.example", names={"far.example": lambda: given.pop(0)}) as (proxy, port, internet):
        said = [status(await ask(port, f"{HEAD}\r\n")) for _ in range(4)]
        assert said == [200, 403, 403, 502]
        assert internet.looked_up == [("far.example", 80)] * 4
        assert [each.connections for each in proxy.reached] == [1]


@promise("workspaces:network-proxy")
async def test_a_request_is_passed_on_alone_and_without_what_is_for_the_proxy():
    async with proxied("far.example") as (proxy, port, _):
        fields = "Proxy-Authorization: Basic eDp5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nExpect: 100-continue\r\n"
        fields += "Accept: */*\r\n"
        said = await ask(
            port, f"{HEAD}{fields}Content-Length: 4\r\n\r\nbodyGET http://far.example/other HTTP/1.1\r\n\r\n"
        )
        head = "GET /a?b HTTP/1.1|Host: far.example|Connection: close|Content-Length: 4|Accept: */*||"
        assert said.partition("asked: ")[2] == f"{head}more: body"
        assert status(await ask(port, "get HTTP://FAR.example.?q HTTP/1.0\r\n\r\n")) == 200
        (reached,) = proxy.reached
        assert (reached.host, reached.port, reached.connections) == ("far.example", 80, 2)
        assert reached.received > len(said) / 2


@promise("workspaces:network-proxy")
async def test_a_tunnel_carries_what_it_is_given_to_the_port_that_is_usual_or_named():
    async with proxied("far.example", "near.example:8443") as (proxy, port, _):
        said = await ask(port, "CONNECT FAR.example.:443 HTTP/1.1\r\nHost: other\r\n\r\nhello\r\n\r\nagain")
        assert said.startswith("HTTP/1.1 200")
        assert said.endswith("asked: hello||more: again")
        assert [(each.host, each.port) for each in proxy.reached] == [("far.example", 443)]
        for refused in ("far.example:80", "far.example:8443", "near.example:443", "near.example"):
            assert status(await ask(port, f"CONNECT {refused} HTTP/1.1\r\n\r\n")) in (400, 403)
        assert status(await ask(port, "GET http://far.example:443/ HTTP/1.1\r\n\r\n")) == 403


SMUGGLED = {
    "two lengths": f"{HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a length and chunks": f"{HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks in disguise": f"{HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a length with a sign": f"{HEAD}Content-Length: +4\r\n\r\nbody",
    "a length in hex": f"{HEAD}Content-Length: 0x4\r\n\r\nbody",
    "an endless length": f"{HEAD}Content-Length: {'9' * 30}\r\n\r\nbody",
    "a space before the colon": f"{HEAD}Content-Length : 4\r\n\r\nbody",
    "a folded line": f"{HEAD}X: a\r\n Transfer-Encoding: chunked\r\n\r\n",
    "a bare line feed": f"{HEAD}X: a\nHost: near.example\r\n\r\n",
    "a bare return": f"{HEAD}X: a\rHost: near.example\r\n\r\n",
    "a zero byte": f"{HEAD}X: a\0b\r\n\r\n",
    "another Host": "GET http://far.example/ HTTP/1.1\r\nHost: near.example\r\n\r\n",
    "a second Host": f"{HEAD}Host: near.example\r\n\r\n",
    "a name and a password": "GET http://far.example:80@near.example/ HTTP/1.1\r\n\r\n",
    "a password before the name": "GET http://near.example@far.example/ HTTP/1.1\r\n\r\n",
    "a backslash for a host": "GET http://far.example\\@near.example/ HTTP/1.1\r\n\r\n",
    "a fragment": "GET http://far.example#near.example/ HTTP/1.1\r\n\r\n",
    "a path alone": "GET / HTTP/1.1\r\nHost: far.example\r\n\r\n",
    "another scheme": "GET https://far.example/ HTTP/1.1\r\n\r\n",
    "another version": "GET http://far.example/ HTTP/2.0\r\n\r\n",
    "two spaces": "GET  http://far.example/ HTTP/1.1\r\n\r\n",
    "letters of another script": "GET http://f\u0430r.example/ HTTP/1.1\r\n\r\n",
    "no port": "CONNECT far.example HTTP/1.1\r\n\r\n",
    "a body without a head": "\r\n\r\n",
    "many fields": HEAD + "X: y\r\n" * 200 + "\r\n",
    "an endless field": f"{HEAD}X: {'y' * 20_000}\r\n\r\n",
}


@promise("workspaces:network-proxy")
async def test_what_two_readers_could_read_in_two_ways_reaches_nobody():
    async with proxied("far.example", "near.example") as (proxy, port, internet):
        for name, said in SMUGGLED.items():
            told = await ask(port, said)
            assert told, name
            assert status(told) in (400, 403, 411, 431), name
        assert internet.looked_up == []
        assert proxy.reached == ()
        assert proxy.refused == len(SMUGGLED)
        assert status(await ask(port, f"{HEAD}\r\n")) == 200


@promise("workspaces:network-proxy")
async def test_a_redirect_to_another_host_is_a_request_of_its_own():
    async def elsewhere(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://metadata.example/\r\nConnection: close\r\n\r\n")
        writer.close()

    async with proxied("far.example", serve=elsewhere) as (proxy, port, _):
        assert "metadata.example" in await ask(port, f"{HEAD}\r\n")
        assert status(await ask(port, "GET http://metadata.example/ HTTP/1.1\r\n\r\n")) == 403
        assert 'add "metadata.example" there' in proxy.notes[0]


@promise("workspaces:network-bounds")
async def test_slow_and_silent_connections_end_and_make_room_for_others():
    bounds = NetworkBounds(at_once=2, head_s=0.3, idle_s=0.3)
    async with proxied("far.example", bounds=bounds) as (_, port, _):
        slow = [asyncio.create_task(ask(port, "GET http://far", ends=False)) for _ in range(6)]
        silent = asyncio.create_task(ask(port, "CONNECT far.example:443 HTTP/1.1\r\n\r\n", ends=False))
        assert status(await ask(port, f"{HEAD}\r\n")) == 200
        assert await asyncio.gather(*slow) == [""] * 6
        assert status(await silent) == 200


@promise("workspaces:network-bounds")
async def test_connections_and_bytes_of_one_call_are_counted_and_end():
    bounds = NetworkBounds(connections=3)
    async with proxied("far.example", bounds=bounds) as (proxy, port, _):
        for _ in range(3):
            assert status(await ask(port, f"{HEAD}\r\n")) == 200
        async with asyncio.timeout(30):
            while "it made 3 connections, and may make no more" not in proxy.notes:
                await asyncio.sleep(0.01)
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)
    async with proxied("far.example", bounds=NetworkBounds(bytes=100_000)) as (proxy, port, _):
        head = "CONNECT far.example:443 HTTP/1.1\r\n\r\n"
        assert status(await ask(port, head.encode() + b"\r\n\r\n" + bytes(200_000))) == 200
        assert status(await ask(port, head)) == 403
        assert proxy.reached[0].sent <= 100_000


@promise("workspaces:network-cut-off")
async def test_a_command_that_was_cut_off_and_could_reach_hosts_is_not_known_to_have_done_nothing(tmp_path, desk):
    effects = WorkspaceEffects(desk.root, Snapshots(tmp_path / "snapshots"), tmp_path / "written", written_mb=1)

    def call(effect, **arguments):
        return desk.call("run", effect=effect, command="make", **arguments)

    async def cut_off():
        (desk.root / "half").touch()
        raise ConnectionResetError

    async def unconfined():
        raise IsolationUnavailable("none")

    for effect, arguments in (("e1", {}), ("e2", {"network": ["far.example"]})):
        with pytest.raises(ConnectionResetError):
            await effects.write(call(effect, **arguments), cut_off)
    with pytest.raises(IsolationUnavailable):
        await effects.write(call("e3", network=["far.example"]), unconfined)
    assert list(desk.root.iterdir()) == []
    assert effects.outcome("e1") == effects.outcome("e3") == {"ok": {"applied": False, "answer": None}}
    told = "its files were undone, and what it told far.example is not known"
    assert effects.outcome("e2") == {"error": told}


@promise("workspaces:network-cut-off")
async def test_what_reaches_hosts_is_not_rehearsed(desk):
    call = desk.call("run", command="true", network=["far.example"]).model_copy(update={"rehearsal": "r"})
    said = await desk.workspaces.call(call)
    assert said == {"error": "what it does to other hosts cannot be rehearsed; leave out `network`"}


@pytest.fixture
def trial(area):
    place = area / "trial"
    place.mkdir(exist_ok=True)
    prepare(place)
    return place


@promise("workspaces:network-jail")
async def test_every_property_of_a_jail_that_reaches_hosts_is_proven(area, trial):
    proven = await run_workspace_self_test(
        Nsjail.find(), image("shell"), area / "jails", trial, limits=shell_limits(), cgroups=Cgroups(), kind="network"
    )
    proven.require_isolation()


@promise("workspaces:network-jail")
async def test_a_jail_that_reaches_hosts_has_no_network_of_the_machine_or_does_not_start(area, trial):
    profile = JailProfile(Nsjail.find(), image("shell"), kind="network", workspace=trial)
    whole = profile.start(area / "jails")
    bare = whole[whole.index("-I") - 1 :]
    process = await asyncio.create_subprocess_exec(*bare, "--", "/usr/bin/true", stderr=asyncio.subprocess.PIPE)
    _, told = await process.communicate()
    assert process.returncode == 255
    assert told == b"no network of its own could be made: the network is the machine's\n"
    without = await check_profile(profile, [str(profile.nsjail.path), "--config", str(profile.write(area / "jails"))])
    lacking = {each.name for each in without.properties if not each.proven and each.required}
    assert {"has no network of the machine", "has namespaces of its own"} <= lacking
