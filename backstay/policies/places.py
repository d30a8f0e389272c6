"""Compare texts with what looks like an address, a host or a URL; one that only begins or ends right may go wrong.

`eve@evil.test, bo@example.com` ends with `@example.com`, and `https://example.com.evil.test` begins with
`https://example.com`: a condition that permits something must not hold for them, in whichever way a tool reads them.
"""

import unicodedata
from string import ascii_letters, digits

from backstay.policies.signs import (
    HEX,
    end_of_authority,
    is_host,
    is_numbers,
    only,
    scheme_in,
)
from backstay.policies.spellings import folded

_LOCAL = frozenset(ascii_letters + digits + "._+'~-")
_DOMAIN = frozenset(ascii_letters + digits + "-")
_IN_HOST = frozenset(ascii_letters + digits + "._-")
_SEPARATORS = "@+-._"
_LOCAL_HOST = "localhost"
_HOST_NAMES = ("host", "domain", "server", "origin", "url", "uri", "endpoint")
"""Parts of the names of arguments that take a host."""
_AFTER_PREFIX = "/?#&=:"


def is_place(operator: str, operand: object) -> bool:
    """Return whether a condition compares parts of a string with what looks like an address, a host or a URL."""
    if operator not in ("starts_with", "ends_with", "contains") or not isinstance(operand, str):
        return False
    return bool(
        scheme_in(operand) is not None
        or _is_address(operator, operand)
        or is_host(operand)
        or (operator == "starts_with" and (is_numbers(operand) or _is_host_with_port(operand)))
    )


def stays_at_label(path: str, value: object, operand: str) -> bool:
    """Return whether the host in an argument named for hosts has one label only, where the operand is part of one.

    A value that begins with `intranet` could be `intranet.evil.test`.
    """
    if not isinstance(value, str) or not only(operand.removesuffix(":"), _DOMAIN):
        return True
    if not any(word in path.rpartition(".")[2].casefold() for word in _HOST_NAMES):
        return True
    name, sign, port = _split(value)[0].partition(":")
    return _is_plain(value) and only(name, _DOMAIN) and (not sign or only(port, digits))


def _is_host_with_port(operand: str) -> bool:
    """Return whether an operand is a host with a port, or the colon before one; `localhost` is one also without."""
    host, sign, port = operand.partition(":")
    of_host = is_host(host) or host.casefold() == _LOCAL_HOST
    return of_host and (not port or only(port, digits)) and (bool(sign) or host.casefold() == _LOCAL_HOST)


def is_domain_of_mail(operator: str, operand: object) -> bool:
    """Return whether a condition permits an address of mail, or those at a domain."""
    if operator in ("equals", "in"):
        operands: list[object] = operand if isinstance(operand, list) else [operand]
        return any(isinstance(each, str) and each.find("@") > 0 and _has_mail_host(each) for each in operands)
    return isinstance(operand, str) and is_place(operator, operand) and "@" in operand and _has_mail_host(operand)


def _has_mail_host(operand: str) -> bool:
    return scheme_in(operand) is None and is_host(operand.rpartition("@")[2].rstrip("> "))


def surely(operator: str, value: str, operand: str) -> bool:
    """Return whether a string that fits, as it is written, leads nowhere else than the operand says."""
    if operator == "starts_with" and operand.startswith("/") and value.startswith(("//", "/\\")):
        # A host may follow, as in a URL without its scheme.
        return operand.startswith("//") and _surely_url(value, operand)
    if not is_place(operator, operand):
        return True
    if not _is_plain(value):
        return False
    if scheme_in(operand) is not None:
        return value.startswith(operand) and _surely_url(value, operand)
    if "@" in operand:
        return _surely_address(operator, value, operand)
    if is_numbers(operand):
        number, sign, rest = value.partition(":" if ":" in value else "/")
        return only(number, digits + ".") and (not sign or only(rest, digits))
    return _surely_host(operator, value, operand)


def _is_address(operator: str, operand: str) -> bool:
    at = operand.find("@")
    # A string that begins with a handle or with the name of a package's owner says nothing of an address.
    if at < 0 or (at == 0 and operator == "starts_with"):
        return False
    # "git@example.com:owner/" ends its host by itself.
    ends = any(sign in operand.rpartition("@")[2] for sign in ":/")
    return operator != "starts_with" or not ends or operand.lower().startswith("mailto:")


def _is_plain(value: str) -> bool:
    """Return whether a string is read in one way only: no space, no control, no backslash, none coded."""
    return (
        "\\" not in value
        and not any(map(_is_control, value.split("%")[1:]))
        and not any(sign.isspace() or unicodedata.category(sign)[0] == "C" for sign in value)
    )


def _is_control(coded: str) -> bool:
    """Return whether what follows a `%` stands for a control character or a backslash."""
    code = coded[:2].lower()
    return len(code) == 2 and (code in ("7f", "5c") or (code[0] in "01" and code[1] in HEX))


def _surely_url(value: str, operand: str) -> bool:
    """Return whether a URL that begins as the operand does stays at its host, and below its path."""
    if not _is_plain(value):
        return False
    scheme = scheme_in(operand)
    if scheme is None or scheme[0] > 0:
        return False
    host, path = _split(operand[scheme[1] :])
    real_host, real_path = _split(value[scheme[1] :])
    if not host and not path:
        return real_host.isascii() and "@" not in real_host and "%" not in real_host
    if real_host != host:
        return False
    return not path or path[-1] in _AFTER_PREFIX or "?" in path or "#" in path or _ends(real_path[len(path) :])


def _split(rest: str) -> tuple[str, str]:
    """Return the authority of a URL, and what follows it."""
    end = end_of_authority(rest)
    return rest[:end], rest[end:]


def _ends(rest: str) -> bool:
    return rest == "" or rest[0] in "/?#"


def _is_one_address(value: str) -> bool:
    """Return whether a string is one address: no name, list, comment, quotes or coding, and no route through a host."""
    local, at, domain = value.partition("@")
    return (
        bool(at)
        and only(local, _LOCAL)
        and local[0] not in "-."
        and all(only(label, _DOMAIN) for label in domain.split("."))
    )


def _surely_address(operator: str, value: str, operand: str) -> bool:
    if not _is_one_address(value):
        return False
    return value == operand or (operator != "starts_with" and operand[0] in _SEPARATORS and value.endswith(operand))


def _surely_host(operator: str, value: str, operand: str) -> bool:
    if operator == "starts_with":
        host, sign, port = operand.partition(":")
        name, colon, number = _split(value)[0].partition(":")
        at_port = only(number, digits) if colon else not sign
        return name == host and at_port and port in ("", number)
    if "@" in value:
        return _is_one_address(value) and _is_below(value.rpartition("@")[2], operand)
    if scheme := scheme_in(value):
        return scheme[0] == 0 and _is_below(_split(value[scheme[1] :])[0], operand)
    if only(value, _IN_HOST):
        return _is_below(value, operand)
    # A value that is not a name of a host is the path of a file, unless its first part could be a host, coded or not.
    return value.startswith(("/", "~", "./", "../")) or not any(sign in folded(_split(value)[0]) for sign in ".%&=")


def _is_below(host: str, operand: str) -> bool:
    """Return whether a host is the one named, or below it; none that is coded, has a port or names somebody."""
    if not only(host, _IN_HOST) or not host.endswith(operand):
        return False
    return operand.startswith(".") or host == operand or host.endswith(f".{operand}")


def how_to_write(operator: str, operand: object) -> str:
    """Return what to know of a condition that permits something by a part of an address, host or URL; else nothing."""
    if not isinstance(operand, str) or not is_place(operator, operand):
        return ""
    if scheme := scheme_in(operand):
        return _url_written(operator, operand, *scheme)
    if "@" in operand:
        return _address_written(operator, operand)
    if is_numbers(operand):
        return "applies to numbers and dots only"
    name = operand.partition(":")[0].strip(".")
    if operator == "ends_with" and operand.startswith("."):
        return ""
    return (
        f"holds only for the host {name}, one below it or one address at it; "
        f'for a URL write starts_with: "https://{name}/", for an address ends_with: "@{name}"'
    )


def _url_written(operator: str, operand: str, start: int, end: int) -> str:
    host, path = _split(operand[end:])
    if operator != "starts_with" or start:
        return f'holds only where the text begins so; write starts_with: "{operand[start:].rstrip("/")}/"'
    if not host and not path:
        return ""
    if not path:
        return f'applies to this host only, as if it ended in "/"; write starts_with: "{operand}/"'
    if path[-1] not in _AFTER_PREFIX and "?" not in path and "#" not in path:
        return f'applies to this path and what is below it; write starts_with: "{operand}/"'
    return ""


def _address_written(operator: str, operand: str) -> str:
    domain = operand.rpartition("@")[2].strip("<>, ")
    if operator == "ends_with" and operand.startswith("@") and _is_one_address(f"x{operand}"):
        return ""
    whole = _is_one_address(operand)
    exact = f'write equals: "{operand}"' if whole else f'write ends_with: "@{domain or "example.com"}"'
    return f"applies to one plain address only, never for a list or a name; {exact}, or in: [...] with whole addresses"
