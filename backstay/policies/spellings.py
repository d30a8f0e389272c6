"""Find a forbidden text however it is spelled: a rule that denies or asks must not depend on capitals or coding."""

import unicodedata
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from backstay.policies.coded import as_written, decoded
from backstay.policies.signs import HEX, dotted, end_of_authority, is_host, is_numbers, only

_DECODED = 3
"""How often a string may be coded over."""
_DOTS = str.maketrans(dict.fromkeys("\u3002\uff61", "."))
"""Full stops that resolvers take for a dot."""
_NOT_IN_NAMES = dict.fromkeys((*range(32), 127, *map(ord, "_-")))
_SCHEME = frozenset("abcdefghijklmnopqrstuvwxyz0123456789+.-")
_LONGEST_SCHEME = 40
_IN_NUMBERS = frozenset("0123456789abcdef.:[]")
_QUOTING = str.maketrans(dict.fromkeys('"[]\\'))
_USUAL_PORTS = {"http": ":80", "https": ":443"}


def folded(text: str) -> str:
    """Return a string without differences of case, width and invisible characters."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_DOTS)
    hidden = [] if plain.isascii() else _of(plain, _is_format)
    return plain.translate(dict.fromkeys(hidden)) if hidden else plain


@lru_cache(maxsize=1024)
def folded_name(name: str) -> str:
    """Return the name of an argument as lenient readers match it: `isPublic`, `ispublic` and `is_public` are one.

    A sign at its start stays: `_id` and `id` are two.
    """
    if name.isascii():
        return name[:1].lower() + name[1:].lower().translate(_NOT_IN_NAMES)
    plain = folded(name)
    return plain[:1] + "".join(sign for sign in plain[1:] if sign not in "_-" and sign.isprintable())


def may_be_name(name: str, wanted: str) -> bool:
    """Return whether lenient readers match the name of an argument with a folded one in ASCII."""
    # Most names begin with another letter, and folding thousands of them would take long.
    return _first_sign(name[:1]) in ("", wanted[:1]) and folded_name(name) == wanted


@lru_cache(maxsize=1024)
def _first_sign(sign: str) -> str:
    return folded(sign)[:1]


def _is_format(sign: str) -> bool:
    return unicodedata.category(sign) == "Cf"


def _of(text: str, fits: Callable[[str], bool]) -> list[int]:
    """Return the codes of those of its characters that fit, each looked at once."""
    return [ord(sign) for sign in set(text) if fits(sign)]


@lru_cache(maxsize=4)
def readings(text: str) -> tuple[str, ...]:
    """Return a string as different readers may take it: controls as spaces or as nothing, and decoded.

    Every rule asks about the same texts, one after the other.
    """
    if text.isascii() and text.isalnum():
        return (text.lower(),)
    found = {folded(text): None}
    for _ in range(_DECODED):
        last = next(reversed(found))
        if (plain := _decoded(last)) != last:
            found[folded(plain)] = None
    found |= dict.fromkeys(map(folded, _all_decoded(text)))
    found |= dict.fromkeys([folded(as_written(known)) for known in found if "xn--" in known])
    for known in list(found):
        if not known.isprintable():
            unseen = _of(known, lambda sign: not sign.isprintable())
            found[known.translate(dict.fromkeys(unseen, " "))] = None
            found[known.translate(dict.fromkeys(unseen))] = None
    for known in list(found):
        if "@" in known:
            found["@".join(part.strip() for part in known.split("@"))] = None
            found[_without_comments(known)] = None
    for known in [bare for known in found if (bare := _unwrapped(known)) != known]:
        found[known] = None
    for known in list(found):
        if "//" in known or "\\" in known:
            found[_url_of(known.strip()) or known] = None
    return tuple(found)


def _unwrapped(text: str) -> str:
    """Return a URL without the brackets and the prefix that readers such as Python's take off."""
    bare = text.strip()
    if bare.startswith("<") and bare.endswith(">"):
        bare = bare[1:-1].strip()
    return bare.removeprefix("url:").strip() if bare.startswith("url:") else text


def _all_decoded(text: str) -> list[str]:
    """Return a string with every kind of code taken off, each by itself and all of them over and over."""
    # Wide characters may write a code.
    found: list[str] = []
    last = [text, *([plain] if (plain := folded(text)) != text else [])]
    for number in range(_DECODED):
        codes = {known: decoded(known) for known in last}
        found += [each for code in codes.values() for each in (code if number == 0 else code[-1:])]
        last = [code[-1] for known, code in codes.items() if code and code[-1] != known]
    return found


def _wanted(operand: str) -> tuple[str, ...]:
    """Return what is looked for in readings: a host in ASCII also in its own letters."""
    return tuple(dict.fromkeys((plain := folded(operand), folded(as_written(plain)))))


def _without_comments(text: str) -> str:
    """Return addresses as mail programs read them: no comments, quotes, brackets, or spaces around a dot."""
    first, *opened = text.split("(")
    kept, depth = [first], 0
    for part in opened:
        depth += 1
        _, *after = part.split(")")
        for piece in after:
            depth = max(depth - 1, 0)
            kept += [piece] if depth == 0 else []
    parts = "".join(kept).translate(_QUOTING)
    for sign in "@.":
        parts = sign.join(part.strip() for part in parts.split(sign))
    return parts


def may_equal(value: str, operand: str) -> bool:
    """Return whether a string could be read as the other one, or, of an address, holds it."""
    if value == operand:
        return True
    every = readings(value)
    for wanted in map(_whole, _wanted(operand)):
        known = _numbered(every, wanted)
        if any(_whole(reading) == wanted for reading in known):
            return True
        if "@" in wanted and any(_mentions(reading, wanted) for reading in known):
            return True
    return False


def may_start(value: str, operand: str) -> bool:
    """Return whether a string could be read as one that begins so."""
    if value.startswith(operand):
        return True
    known = readings(value)
    return any(_starts(_numbered(known, wanted), wanted) for wanted in _wanted(operand))


def _starts(known: tuple[str, ...], wanted: str) -> bool:
    url = _url_of(wanted) if "/" in wanted else ""
    # A string that begins with "@" names somebody by a handle, or a package by its owner.
    within = "@" in wanted[1:] and "/" not in wanted
    for reading in known:
        bare = reading.lstrip(" <\"'")
        if reading.startswith(wanted) or bare.startswith(wanted):
            return True
        if (url and _leads(bare, url)) or (within and _mentions(reading, wanted, to_its_end=False)):
            return True
    return False


def _leads(text: str, url: str) -> bool:
    """Return whether a string is a URL that begins so; many tools take one without its scheme."""
    own, schemeless = _url_of(text), text.lstrip("/\\")
    rest = url.partition("://")[2]
    return any(each.startswith(url) for each in (own, _rooted(own))) or any(
        each.startswith(rest) for each in (schemeless, _rooted(f"//{schemeless}")[2:])
    )


def may_end(value: str, operand: str) -> bool:
    """Return whether a string could be read as one that ends so; an address or a host may stand within it."""
    if value.endswith(operand):
        return True
    known = readings(value)
    return any(_ends(known, wanted) for wanted in _wanted(operand))


def _ends(known: tuple[str, ...], wanted: str) -> bool:
    # A host has letters of any script.
    within = "@" in wanted or is_host("".join(sign if sign.isascii() else "x" for sign in wanted))
    for reading in known:
        if reading.endswith(wanted) or reading.rstrip(" .").endswith(wanted):
            return True
        if within and _mentions(reading, wanted.rstrip("."), from_its_start=False):
            return True
    return False


def may_hold(value: str, operand: str) -> bool:
    """Return whether a string could be read as one that holds the other."""
    # Characters that are put together may hide a string that is there as it is.
    if operand in value:
        return True
    known = readings(value)
    return any(wanted in reading for wanted in _wanted(operand) for reading in _numbered(known, wanted))


def may_be_same(value: Any, operand: Any) -> bool | None:
    """Compare two texts; None for what is not a pair of texts."""
    return may_equal(value, operand) if isinstance(value, str) and isinstance(operand, str) else None


def _whole(text: str) -> str:
    """Return a string without what changes neither a host nor a URL at its ends."""
    bare = text.strip()
    found = _rooted(_url_of(bare)) or bare
    return found.rstrip("./") or found


def _url_of(text: str) -> str:
    """Return a URL as browsers read it: no user, no usual port, no dot behind the host; empty for what is none."""
    scheme, colon, rest = text.partition(":")
    rest = rest.replace("\\", "/").lstrip("/")
    if not colon or not rest or len(scheme) > _LONGEST_SCHEME or not only(scheme, _SCHEME):
        return ""
    end = end_of_authority(rest)
    host = rest[:end].rpartition("@")[2]
    number = host.rpartition(":")[2]
    port = f":{number}" if ":" in host and (not number or number.isdecimal()) else ""
    name = host[: len(host) - len(port)].rstrip(".")
    name = dotted(name) or name
    return f"{scheme}://{name}{'' if port in (':', _USUAL_PORTS.get(scheme)) else port}{rest[end:]}"


def _rooted(url: str) -> str:
    """Return a URL with the path `/` where it has none; this is what browsers ask for then."""
    start = url.find("//") + 2
    end = start + end_of_authority(url[start:])
    return url if not url or url[end : end + 1] == "/" else f"{url[:end]}/{url[end:]}"


def _numbered(known: tuple[str, ...], wanted: str) -> tuple[str, ...]:
    """Return readings, and what they name as a host in numbers if one is looked for."""
    if not is_numbers(wanted) and not (":" in wanted and only(wanted, _IN_NUMBERS)):
        return known
    hosts = list(filter(None, map(_host_in_numbers, known)))
    return (*known, *hosts, *(host.strip("[]") for host in hosts))


def _host_in_numbers(text: str) -> str:
    """Return the host that a string without a scheme names in numbers, written in the usual way; empty for none."""
    bare = text.strip()
    host = bare[: end_of_authority(bare)].rpartition("@")[2]
    if "]" in host:
        host = host[: host.find("]") + 1]
    elif host.count(":") > 1:
        host = f"[{host}]"
    return dotted(host.partition(":")[0].rstrip(".") if host[:1] != "[" else host)


def _mentions(text: str, wanted: str, *, from_its_start: bool = True, to_its_end: bool = True) -> bool:
    """Return whether a string holds an address or a host that does not go on, or, where flags allow, a part of one."""
    at = text.find(wanted)
    while at >= 0:
        before, after = text[:at][-1:], text[at + len(wanted) :][:2]
        begins = not from_its_start or not (_is_word(before) or before in (".", "+", "-"))
        goes_on = _is_word(after[:1]) or after[:1] == "-" or (after[:1] == "." and _is_word(after[1:]))
        if begins and not (to_its_end and goes_on):
            return True
        at = text.find(wanted, at + 1)
    return False


def _is_word(sign: str) -> bool:
    return sign.isalnum() or sign == "_"


def _decoded(text: str) -> str:
    """Return a string with its `%` codes of plain characters replaced by these."""
    first, *parts = text.split("%")
    return first + "".join(map(_after_code, parts))


def _after_code(part: str) -> str:
    code = part[:2]
    is_plain = len(code) == 2 and code[0] in "01234567" and code[1] in HEX
    return chr(int(code, 16)) + part[2:] if is_plain else f"%{part}"
