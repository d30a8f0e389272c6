"""Look up names, and tell which addresses are never reached whatever name leads there."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_NEVER_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",
            # A cloud's own service at an address that looks public.
            "168.63.129.16/32",
        ),
    )
)
"""Near, reserved, for documents, for many, and where clouds tell machines their secrets."""
_PUBLIC_6 = ipaddress.IPv6Network("2000::/3")
_NEVER_6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Of what is public: reserved, for documents, and tunnels, which lead to addresses of the other kind."""
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
"""What DNS64 answers for a name that has addresses of the old kind only: the last 32 bits are such an address."""
_RESOLVERS = 4
_HOSTS = Path("/etc/hosts")


def is_never_reached(address: Address) -> bool:
    """Return whether nothing is ever sent to an address, whoever asks for it."""
    address = _translated(address)
    if isinstance(address, ipaddress.IPv4Address):
        return any(address in network for network in _NEVER_4)
    # Addresses of the other kind that are written as one of these lie outside of what is public.
    return address not in _PUBLIC_6 or any(address in network for network in _NEVER_6)


def _translated(address: Address) -> Address:
    """Return where an address leads that stands for another one in networks that know the new kind only."""
    if isinstance(address, ipaddress.IPv6Address) and address in _TRANSLATED:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine by its very name, whatever a server of names would say of it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_named_here(host: str) -> bool:
    """Return whether a name is in this machine's own list of hosts, as containers have theirs for the machine below."""
    known = set[str]()
    with suppress(OSError, UnicodeError):
        for line in _HOSTS.read_text(encoding="utf-8").splitlines():
            known.update(word.lower() for word in line.partition("#")[0].split()[1:])
    return host == "localhost" or host in known


class Internet:
    """Look up names and connect to addresses, as the process of the workspaces' host can."""

    def __init__(self) -> None:
        """Look up a few names at a time, and none that nobody may reach."""
        self._resolvers = ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="names")

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """Return all addresses that a name stands for; raises OSError when there is none."""

        def found() -> list[Address]:
            # With the dot, no name of the own network is added; this machine's own names are known without one only.
            name = host if _is_named_here(host) else f"{host}."
            said = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            return list(dict.fromkeys(ipaddress.ip_address(str(row[4][0]).partition("%")[0]) for row in said))

        return await asyncio.get_running_loop().run_in_executor(self._resolvers, found)

    def is_own(self, address: Address) -> bool:
        """Return whether an address is one of this machine's, however public it looks."""
        address = _translated(address)
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asked:
            # Nothing is sent: the kernel only chooses where it would send from.
            asked.connect((str(address), 9))
            return ipaddress.ip_address(asked.getsockname()[0]) == address
        return False

    async def connect(self, address: Address, port: int) -> Streams:
        """Connect to an address, which is not looked up again; raises OSError."""
        return await asyncio.open_connection(str(address), port)

    def close(self) -> None:
        """Look up nothing any more."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)
