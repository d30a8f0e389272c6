"""Find the hosts in the address of a Postgres as its own tools do, and the one among them that serves."""

import re
from typing import Any, NamedTuple
from urllib.parse import unquote

from sqlalchemy import URL

from backstay.errors import SettingsInvalid

_TOKEN = re.compile(r"(?:\[(?P<bare>[^\[\]]+)\]|(?P<name>[^/:\[\]]+))(?::(?P<port>\d*))?")
"""A host with its port, if it has one; a folder of sockets and an IPv6 address without brackets have none."""
_PORTS = range(1, 1 << 16)


class Host(NamedTuple):
    """Name a server; None leaves it to the driver, which asks the variables of Postgres and then this machine."""

    name: str | None
    port: int | None


def hosts_of(url: URL) -> list[Host]:
    """Return all hosts in the order of the address; raises SettingsInvalid for any that cannot be used.

    Hosts behind the question mark come before that in front of it. One port, or none, counts for all of them.
    """
    tokens = _parts(url.query.get("host"))
    named = [_split(token) for token in tokens] if tokens else [(unquote(url.host or ""), "")]
    ports = _parts(url.query.get("port")) or ["" if url.port is None else str(url.port)]
    if len(ports) == 1:
        ports = ports * len(named)
    if len(ports) != len(named):
        raise _unusable()
    return [Host(name or None, _port(own or port)) for (name, own), port in zip(named, ports, strict=True)]


async def connect_first(hosts: list[Host], **options: Any) -> Any:
    """Connect to the first host that answers in time and is what the options ask for, and ask it first from then on.

    Each has the time to itself, or a host that is silent would keep those after it from being asked. Raises what the
    last one answered.
    """
    import asyncpg

    fault: Exception | None = None
    for host in tuple(hosts):
        try:
            connection = await asyncpg.connect(host=host.name, port=host.port, **options)
        except (
            OSError,
            asyncpg.PostgresConnectionError,
            asyncpg.TargetServerAttributeNotMatched,
            asyncpg.CannotConnectNowError,
        ) as error:
            fault = error
            continue
        hosts.remove(host)
        hosts.insert(0, host)
        return connection
    raise fault or _unusable()


def _parts(value: str | tuple[str, ...] | None) -> list[str]:
    """Return the items of a field that was written once with commas, or several times."""
    whole = ",".join(value) if isinstance(value, tuple) else value
    return whole.split(",") if whole else []


def _split(token: str) -> tuple[str, str]:
    found = _TOKEN.fullmatch(token)
    if found is not None:
        return found["bare"] or found["name"], found["port"] or ""
    if not token.startswith("/") and token.count(":") < 2:
        raise _unusable()
    return token, ""


def _port(said: str) -> int | None:
    if said and not (said.isdecimal() and int(said[:9]) in _PORTS):
        raise _unusable()
    return int(said) if said else None


def _unusable() -> SettingsInvalid:
    return SettingsInvalid(
        "BACKSTAY_DATABASE_URL: its hosts or ports cannot be used; write several as host=A,B&port=5432,5432"
    )
