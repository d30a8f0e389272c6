"""Find a forbidden text however it is spelled: what is denied or asked about must not depend on capitals or coding."""

import re
import unicodedata
from typing import Any

_CODED = re.compile(r"%([0-7][0-9a-f])")
_DECODED = 3
"""How often a text may be coded over."""
_DOTS = str.maketrans(dict.fromkeys("\u3002\uff61", "."))
"""Full stops that resolvers take for a dot."""
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,40}")
_PORT = re.compile(r":\d*$")
_AUTHORITY_ENDS = re.compile(r"[/?#]")
_USUAL_PORTS = {"http": ":80", "https": ":443"}
_HOST = re.compile(r"\.?(?:[\w-]+\.)+[^\W\d][\w-]*\.?")


def folded(text: str) -> str:
    """Return a text without differences of case, width and invisible characters."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_DOTS)
    if plain.isascii():
        return plain
    return "".join(sign for sign in plain if unicodedata.category(sign) != "Cf")


def readings(text: str) -> list[str]:
    """Return a text as different readers may take it: controls as spaces or as nothing, and decoded."""
    found = {folded(text): None}
    for _ in range(_DECODED):
        last = next(reversed(found))
        found[folded(_CODED.sub(lambda code: chr(int(code[1], 16)), last))] = None
    for known in list(found):
        if not known.isprintable():
            found["".join(sign if sign.isprintable() else " " for sign in known)] = None
            found["".join(sign for sign in known if sign.isprintable())] = None
    for known in list(found):
        found["@".join(part.strip() for part in known.split("@"))] = None
    return list(found)


def may_equal(value: str, operand: str) -> bool:
    """Return whether a text could be read as the other one, or, of an address, holds it."""
    if value == operand:
        return True
    wanted = _whole(folded(operand))
    if "@" in wanted:
        return any(_mentions(reading, wanted, from_its_start=True) for reading in readings(value))
    return any(_whole(reading) == wanted for reading in readings(value))


def may_start(value: str, operand: str) -> bool:
    """Return whether a text could be read as one that begins so."""
    if value.startswith(operand):
        return True
    wanted = folded(operand)
    url = _url_of(wanted) if "/" in wanted else ""
    for reading in readings(value):
        bare = reading.lstrip(" <\"'")
        if reading.startswith(wanted) or bare.startswith(wanted):
            return True
        # Many tools take a URL without its scheme.
        if url and (_url_of(bare).startswith(url) or bare.lstrip("/\\").startswith(url.partition("://")[2])):
            return True
    return False


def may_end(value: str, operand: str) -> bool:
    """Return whether a text could be read as one that ends so; an address or a host may stand within it."""
    if value.endswith(operand):
        return True
    wanted = folded(operand)
    within = "@" in wanted or _HOST.fullmatch(wanted) is not None
    for reading in readings(value):
        if reading.endswith(wanted) or reading.rstrip(" .").endswith(wanted):
            return True
        if within and _mentions(reading, wanted.rstrip("."), from_its_start=False):
            return True
    return False


def may_hold(value: str, operand: str) -> bool:
    """Return whether a text could be read as one that holds the other."""
    wanted = folded(operand)
    # Signs that are put together may hide a text that stands there as it is.
    return operand in value or any(wanted in reading for reading in readings(value))


def may_be_same(value: Any, operand: Any) -> bool | None:
    """Compare two texts; None for what is no pair of texts."""
    return may_equal(value, operand) if isinstance(value, str) and isinstance(operand, str) else None


def _whole(text: str) -> str:
    """Return a text without what changes neither a host nor a URL at its ends."""
    bare = text.strip()
    found = _url_of(bare) or bare
    return found.rstrip("./") or found


def _url_of(text: str) -> str:
    """Return a URL as browsers read it: no user, no usual port, no dot behind the host; empty for what is none."""
    scheme, colon, rest = text.partition(":")
    rest = rest.replace("\\", "/").lstrip("/")
    if not colon or not rest or _SCHEME.fullmatch(scheme) is None:
        return ""
    end = found.start() if (found := _AUTHORITY_ENDS.search(rest)) else len(rest)
    host = rest[:end].rpartition("@")[2]
    port = found[0] if (found := _PORT.search(host)) else ""
    name = host[: len(host) - len(port)].rstrip(".")
    return f"{scheme}://{name}{'' if port in (':', _USUAL_PORTS.get(scheme)) else port}{rest[end:]}"


def _mentions(text: str, wanted: str, *, from_its_start: bool) -> bool:
    """Return whether a text holds an address or a host that does not go on."""
    before = r"(?<![\w.+-])" if from_its_start else ""
    return re.search(rf"{before}{re.escape(wanted)}(?![\w-]|\.\w)", text) is not None
