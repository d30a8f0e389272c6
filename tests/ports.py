"""Ports that are a test's own, also where two runs of all tests share a machine."""

import secrets
import socket
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


def _claimed(claim: socket.socket, port: int) -> bool:
    try:
        claim.bind(f"\0port-of-a-test-{port}")
    except OSError:
        return False
    return True
