"""The operator's limits on the servers that users add for themselves."""

import ipaddress
import re
from contextlib import suppress
from typing import Annotated

from pydantic import Field, field_validator

from system.addresses import is_loopback, is_never_reached
from toolbox.providers.declaration import Strict

_HOST = re.compile(r"(?:\*|(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:]{2,45}\])(?::[0-9]{1,5})?")
_USUAL_PORT = 443
_MOST = 50


class UsersServers(Strict):
    """Say at which hosts users may have servers of their own, and how many each."""

    hosts: Annotated[list[str], Field(min_length=1, max_length=200)]
    """Names, `*.` and a name for all below it, or `*` for all public ones; each with a port, or for port 443."""
    most: Annotated[int, Field(ge=1, le=_MOST)] = 5

    @field_validator("hosts")
    @classmethod
    def _usable(cls, hosts: list[str]) -> list[str]:
        for host in hosts:
            name, port = _parts(host)
            if _HOST.fullmatch(host) is None or not 0 < port < 65_536:
                raise ValueError(f"{host[:80]!a} is not a host; write mcp.example.com, *.example.com, or * for all")
            if is_loopback(name) and host.strip("[]") == name:
                raise ValueError(f"{host!a} needs a port, such as {host}:9000: not all of this machine is meant")
            if _is_near(name) and not is_loopback(name):
                raise ValueError(f"{host!a} is private or reserved, and never reached; remove it")
        return hosts

    def allows(self, host: str, port: int) -> bool:
        """Return whether a server may be there; this machine only where that is written out."""
        return any(_is_at(allowed, host, port) for allowed in self.hosts)


def _is_at(allowed: str, host: str, port: int) -> bool:
    name, at = _parts(allowed)
    if at != port:
        return False
    if name == "*":
        return not is_loopback(host)
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _parts(host: str) -> tuple[str, int]:
    """Return name and port of a host as the operator wrote it."""
    name, colon, port = host.rpartition(":")
    if not colon or "]" in port:
        name, port = host, str(_USUAL_PORT)
    return name.strip("[]"), int(port) if port.isdecimal() else 0


def _is_near(name: str) -> bool:
    with suppress(ValueError):
        return is_never_reached(ipaddress.ip_address(name))
    return False
