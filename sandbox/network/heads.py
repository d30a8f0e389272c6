"""Read what a program in a jail asks of the proxy: strictly, so that no two readers of it understand it differently."""

import re
from typing import NamedTuple

from backstay.policies.network import HTTP, Site, site
from backstay.shown import one_line

END = b"\r\n\r\n"
MOST_HEAD = 16 << 10
_MOST_FIELDS = 100
_MOST_LENGTH = 15
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_TARGET = re.compile(r"[\x21-\x7e]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OF_THE_HOP = frozenset(
    {
        "connection",
        "proxy-connection",
        "proxy-authorization",
        "proxy-authenticate",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "host",
        "content-length",
    }
)


class HeadInvalid(ValueError):
    """The request cannot be read in one way only; `status` is what HTTP calls it."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class ProxyRequest(NamedTuple):
    """Hold one request to the proxy."""

    to: Site
    """With the port."""
    head: bytes
    """What is sent in its place; empty for a tunnel."""
    length: int = 0
    """Of the body, in bytes; nothing behind it is passed on."""


def read_head(head: bytes) -> ProxyRequest:
    """Read a request line and its fields, up to and with the empty line; raises HeadInvalid."""
    try:
        lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    except UnicodeDecodeError:
        raise HeadInvalid(400, "the request holds signs beyond ASCII; write names of hosts as xn--...") from None
    words = lines[0].split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1") or not _TOKEN.fullmatch(words[0]):
        raise HeadInvalid(400, "the request line cannot be read")
    if not _TARGET.fullmatch(words[1]):
        raise HeadInvalid(400, "the target of the request cannot be read")
    fields = _fields(lines[1:])
    if words[0] == "CONNECT":
        return ProxyRequest(_authority(words[1]), b"")
    return _plain(words[0], words[1], fields)


def _fields(lines: list[str]) -> list[tuple[str, str]]:
    if len(lines) > _MOST_FIELDS:
        raise HeadInvalid(431, f"more than {_MOST_FIELDS} fields")
    found: list[tuple[str, str]] = []
    for line in lines:
        name, sign, value = line.partition(":")
        # No line goes on in the next one, and nothing stands between a name and its colon.
        if not sign or not _TOKEN.fullmatch(name) or not _VALUE.fullmatch(value):
            raise HeadInvalid(400, "a field of the request cannot be read")
        found.append((name, value.strip(" \t")))
    return found


def _plain(method: str, target: str, fields: list[tuple[str, str]]) -> ProxyRequest:
    """Return a request that is passed on, in the form that the host itself expects."""
    if target[:7].lower() != "http://":
        raise HeadInvalid(400, "not a request to a proxy; ask for http://host/..., or CONNECT host:443")
    if "#" in target:
        raise HeadInvalid(400, "the target of the request cannot be read")
    end = next((at for at, sign in enumerate(target) if at >= 7 and sign in "/?"), len(target))
    authority, path = target[7:end], target[end:]
    to = _authority(authority, usual=HTTP)
    if any(name.lower() == "transfer-encoding" for name, _ in fields):
        raise HeadInvalid(411, "a body whose length is not said is not passed on; say Content-Length")
    hosts = {value.lower() for name, value in fields if name.lower() == "host"}
    if hosts - {authority.lower(), to.host, to.words}:
        raise HeadInvalid(400, "Host names another host than the target")
    named = {
        part.strip().lower() for name, value in fields if name.lower() == "connection" for part in value.split(",")
    }
    kept = [(name, value) for name, value in fields if name.lower() not in _OF_THE_HOP | named]
    length = _length([value for name, value in fields if name.lower() == "content-length"])
    host = to.host if to.port == HTTP else to.words
    said = [f"{method} {path if path.startswith('/') else f'/{path}'} HTTP/1.1", f"Host: {host}", "Connection: close"]
    said += [] if length is None else [f"Content-Length: {length}"]
    said += [f"{name}: {value}" for name, value in kept]
    return ProxyRequest(to, "\r\n".join([*said, "", ""]).encode("ascii"), length or 0)


def _authority(said: str, usual: int | None = None) -> Site:
    """Return the host and port of a target; the name is taken in lower case and without a dot at its end."""
    if "@" in said:
        raise HeadInvalid(400, "the target holds a name or a password, which is not passed on")
    host, sign, port = said.rpartition(":") if ":" in said else (said, "", "")
    host = host.lower().removesuffix(".")
    try:
        found = site(f"{host}{sign}{port}")
    except ValueError as error:
        raise HeadInvalid(403, one_line(str(error), 200)) from None
    if found.port is not None:
        return found
    if usual is None:
        raise HeadInvalid(400, "CONNECT names no port")
    return Site(found.host, usual)


def _length(said: list[str]) -> int | None:
    if not said:
        return None
    value = said[0]
    if len(said) > 1 or not (value.isascii() and value.isdecimal()) or len(value) > _MOST_LENGTH:
        raise HeadInvalid(400, "Content-Length cannot be read")
    return int(value)
