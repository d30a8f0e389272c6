"""Understand the fields in the address of a Postgres as its own tools do, so that these and the store take the same."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode

from sqlalchemy import URL

from backstay.errors import SettingsInvalid

_HOSTS = frozenset({"host", "port"})
"""What `hosts_of` reads."""
_CACHE = "prepared_statement_cache_size"
_READ_BY_SQLALCHEMY = frozenset({"user", "password", "database", _CACHE})
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_BESIDE_SYSTEM = frozenset({"sslmode", "sslrootcert", "sslnegotiation"})
"""What counts of TLS where the authorities of this machine do."""
_TLS = _BESIDE_SYSTEM | {*_FILES, "sslpassword", "ssl_min_protocol_version", "ssl_max_protocol_version"}
_READ_BY_DRIVER = _TLS | {*("application_name", "options", "target_session_attrs", "passfile", "krbsrvname", "gsslib")}
_WITHOUT_EFFECT = frozenset(
    {
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
        *("gssencmode", "fallback_application_name"),
    }
)
"""What may be left out: the store has time limits of its own, and the driver never encrypts by GSSAPI."""
_VALUES: Mapping[str, tuple[str, ...]] = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "channel_binding": ("disable", "prefer", "require"),
    "gssencmode": ("disable", "prefer"),
    # The store is written to wherever it is opened.
    "target_session_attrs": ("any", "primary", "read-write"),
}
_KNOWN = _READ_BY_DRIVER | _WITHOUT_EFFECT | {"channel_binding", "connect_timeout"}
_SYSTEM = ("sslrootcert", "system")
"""The authorities that this machine trusts."""


def driver_arguments(url: URL) -> tuple[URL, dict[str, Any]]:
    """Return the address without hosts and the fields that only the driver knows, and what it is given for those.

    Raises SettingsInvalid for a field that cannot be heeded: above all, none that asks for TLS is left out.
    """
    fields = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    database = fields.pop("dbname", url.database)
    plain = {name: value for name, value in fields.items() if name in _READ_BY_SQLALCHEMY}
    if not plain.get(_CACHE, "0").isdecimal():
        _refuse(_CACHE, "write a number of statements")
    address = URL.create(url.drivername, url.username, url.password, database=database, query=plain)
    asked = {name: value for name, value in fields.items() if name not in _READ_BY_SQLALCHEMY | _HOSTS and value}
    if "ssl" in asked:
        _take_old_name(asked)
    _require_known(asked)
    given = _timeout(asked) | _authorities(asked)
    told = {"application_name": "backstay", "target_session_attrs": "read-write"}
    told |= {name: asked[name] for name in asked if name in _READ_BY_DRIVER}
    return address, {"dsn": f"postgresql://?{urlencode(told)}", **given}


def _take_old_name(asked: dict[str, str]) -> None:
    """Take `ssl` for `sslmode`, as the driver names it, and `true` for what Postgres's own tools make of it."""
    said = asked.pop("ssl")
    mode = "require" if said == "true" else said
    if asked.setdefault("sslmode", mode) != mode:
        _refuse("ssl", "it says something else than sslmode; remove it")


def _require_known(asked: Mapping[str, str]) -> None:
    for name, value in asked.items():
        if name == "pgbouncer":
            _refuse(name, "it tells of transaction pooling, where locks are lost; name the address for whole sessions")
        if name not in _KNOWN:
            _refuse(name, "nothing here would heed it; remove it if you can do without")
        if value not in _VALUES.get(name, (value,)):
            _refuse(name, f"write one of {', '.join(_VALUES[name])}")
        if name in _FILES and (name, value) != _SYSTEM and not _is_readable(value):
            _refuse(name, "there is no such file that this user may read")


def _is_readable(file: str) -> bool:
    return Path(file).is_file() and os.access(file, os.R_OK)


def _timeout(asked: Mapping[str, str]) -> dict[str, Any]:
    try:
        seconds = int(asked.get("connect_timeout", 0))
    except ValueError:
        _refuse("connect_timeout", "write a number of seconds")
    # Where none is wanted, that of the store counts: nothing here waits for ever.
    return {"timeout": float(seconds)} if seconds > 0 else {}


def _authorities(asked: dict[str, str]) -> dict[str, Any]:
    """Return what lets the driver trust the authorities of this machine, where they are asked for.

    The driver cannot bind a channel. A person who demands that wants nobody in between, and a server that proves its
    name is as good, so then it must.
    """
    binds = asked.get("channel_binding") == "require"
    roots = asked.get("sslrootcert", "system" if binds else "")
    mode = asked.get("sslmode", "verify-full")
    if binds and mode == "disable":
        _refuse("channel_binding", "there is none without TLS; remove it, or sslmode=disable")
    if binds:
        mode = asked["sslmode"] = "verify-full"
    if roots != "system":
        return {}
    if mode != "verify-full":
        _refuse("sslmode", "write verify-full beside sslrootcert=system")
    if unheeded := sorted(asked.keys() & _TLS - _BESIDE_SYSTEM):
        _refuse(unheeded[0], "it is not heeded with the authorities of this machine; name a file as sslrootcert")
    return {"ssl": True}


def _refuse(name: str, why: str) -> NoReturn:
    """Raise SettingsInvalid; a strange name may be part of a password that was not encoded, so it is not told."""
    field = f"the field {name}" if name.isidentifier() and len(name) <= 40 else "one of the fields"
    raise SettingsInvalid(f"BACKSTAY_DATABASE_URL: {field} after the question mark cannot be used: {why}")
