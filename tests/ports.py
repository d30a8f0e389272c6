"""Ports that are a test's own, also where two runs of all tests share a machine."""

import ipaddress
import secrets
import socket
import struct
from contextlib import suppress
from pathlib import Path

from gateways.terminal.local.ports import is_free

LOWEST = 10_000
_claims: list[socket.socket] = []


def own_port() -> int:
    """Return a port that no other test has, and that the system gives to nobody who asks for any port.

    A port that was only seen to be free is gone when another process, or a connection to elsewhere, is given it before
    what the test starts listens there. The claim is a name that ends with this process.
    """
    highest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    for _ in range(1000):
        port = LOWEST + secrets.randbelow(highest - LOWEST)
        claim = socket.socket(socket.AF_UNIX)
        if _claimed(claim, port) and is_free(port):
            _claims.append(claim)
            return port
        claim.close()
    raise AssertionError(f"no port from {LOWEST} to {highest} is free")


def listening(process: int | None = None) -> set[tuple[str, int]]:
    """Return the addresses and ports on which this machine, or one process of it, listens."""
    folder = Path("/proc", str(process or "self"), "net")
    tables = [(folder / name).read_text(encoding="ascii").splitlines()[1:] for name in ("tcp", "tcp6")]
    rows = [row for row in (line.split() for table in tables for line in table) if row[3] == "0A"]
    if process is not None:
        held = open_links(process)
        rows = [row for row in rows if f"socket:[{row[9]}]" in held]
    return {(_address(host), int(port, 16)) for host, port in (row[1].split(":") for row in rows)}


def open_links(process: int) -> list[str]:
    """Return what each open descriptor of a process leads to, but for those that it closes meanwhile."""
    links = list[str]()
    for number in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(str(number.readlink()))
    return links


def _address(told: str) -> str:
    """Read an address as the kernel tells it: words of 32 bits in the machine's own order."""
    words = [int(told[start : start + 8], 16) for start in range(0, len(told), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)))


def _claimed(claim: socket.socket, port: int) -> bool:
    try:
        claim.bind(f"\0port-of-a-test-{port}")
    except OSError:
        return False
    return True
