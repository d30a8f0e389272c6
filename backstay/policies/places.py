"""Compare texts with what looks like an address, a host or a URL; one that only begins or ends right may go wrong.

`eve@evil.test, bo@example.com` ends with `@example.com`, and `https://example.com.evil.test` begins with
`https://example.com`: a condition that permits something must not hold for them, in whichever way a tool reads them.
"""

import re
import unicodedata

_ADDRESS = re.compile(r"[A-Za-z0-9_+'~][A-Za-z0-9._+'~-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*")
"""One mailbox and nothing else: no name, no list, no comment, no quotes, nothing coded, and no route through a host."""
_HOST = re.compile(r"\.?(?:[A-Za-z0-9_-]+\.)+[A-Za-z][A-Za-z0-9-]*\.?")
_NUMBERS = re.compile(r"\d+\.[\d.]*")
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//")
_PATH = re.compile(r"[/~]|\.{1,2}/|[A-Za-z]:\\")
_CODED_CONTROL = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff]|5[Cc])")
_AUTHORITY_ENDS = re.compile(r"[/?#]")
_SEPARATORS = "@+-._"
_AFTER_PREFIX = "/?#&=:"


def is_place(operator: str, operand: object) -> bool:
    """Return whether a condition compares parts of a text with what looks like an address, a host or a URL."""
    if operator not in ("starts_with", "ends_with", "contains") or not isinstance(operand, str):
        return False
    return bool(
        _URL.search(operand)
        or _is_address(operator, operand)
        or _HOST.fullmatch(operand)
        or (operator == "starts_with" and _NUMBERS.fullmatch(operand))
    )


def surely(operator: str, value: str, operand: str) -> bool:
    """Return whether a text that fits, as it is written, leads nowhere else than the operand says."""
    if operator == "starts_with" and operand.startswith("/") and re.match(r"/[/\\]", value):
        # A host may follow, as in a URL without its scheme.
        return operand.startswith("//") and _surely_url(value, operand)
    if not is_place(operator, operand):
        return True
    if not _is_plain(value):
        return False
    if _URL.search(operand):
        return value.startswith(operand) and _surely_url(value, operand)
    if "@" in operand:
        return _surely_address(operator, value, operand)
    if _NUMBERS.fullmatch(operand):
        return re.fullmatch(r"[\d.]+(?:[:/]\d+)?", value) is not None
    return _surely_host(operator, value, operand)


def _is_address(operator: str, operand: str) -> bool:
    at = operand.find("@")
    # A text that begins with a handle or with the name of a package's owner says nothing of a mailbox.
    if at < 0 or (at == 0 and operator == "starts_with"):
        return False
    # "git@example.com:owner/" ends its host by itself.
    return operator != "starts_with" or not re.search(r"@[^@]*[:/]", operand) or operand.lower().startswith("mailto:")


def _is_plain(value: str) -> bool:
    """Return whether nothing in a text is read in more than one way: no space, no control, no backslash, none coded."""
    return (
        "\\" not in value
        and not _CODED_CONTROL.search(value)
        and not any(sign.isspace() or unicodedata.category(sign)[0] == "C" for sign in value)
    )


def _surely_url(value: str, operand: str) -> bool:
    """Return whether a URL that begins as the operand does stays at its host, and below its path."""
    if not _is_plain(value):
        return False
    scheme = _URL.match(operand)
    if scheme is None:
        return False
    host, path = _split(operand[scheme.end() :])
    real_host, real_path = _split(value[scheme.end() :])
    if not host and not path:
        return not re.search(r"[@%]|[^\x21-\x7e]", real_host)
    if real_host != host:
        return False
    return not path or path[-1] in _AFTER_PREFIX or "?" in path or "#" in path or _ends(real_path[len(path) :])


def _split(rest: str) -> tuple[str, str]:
    """Return the authority of a URL, and what follows it."""
    found = _AUTHORITY_ENDS.search(rest)
    return (rest, "") if found is None else (rest[: found.start()], rest[found.start() :])


def _ends(rest: str) -> bool:
    return rest == "" or rest[0] in "/?#"


def _surely_address(operator: str, value: str, operand: str) -> bool:
    if _ADDRESS.fullmatch(value) is None:
        return False
    return value == operand or (operator != "starts_with" and operand[0] in _SEPARATORS and value.endswith(operand))


def _surely_host(operator: str, value: str, operand: str) -> bool:
    if operator == "starts_with":
        rest = value[len(operand) :]
        host, _ = _split(value)
        return _ends(re.sub(r"^:\d+", "", rest)) and "@" not in host
    if "@" in value:
        return _ADDRESS.fullmatch(value) is not None and _is_below(value.rpartition("@")[2], operand)
    if scheme := _URL.match(value):
        return _is_below(_split(value[scheme.end() :])[0], operand)
    if _URL.search(value):
        return False
    if re.fullmatch(r"[A-Za-z0-9._-]+", value):
        return _is_below(value, operand)
    # What is no name of a host is the path of a file, unless its first part could be a host.
    return _PATH.match(value) is not None or "." not in _split(value)[0]


def _is_below(host: str, operand: str) -> bool:
    """Return whether a host is the one named, or below it; none that is coded, has a port or names somebody."""
    if re.fullmatch(r"[A-Za-z0-9._-]+", host) is None or not host.endswith(operand):
        return False
    return operand.startswith(".") or host == operand or host.endswith(f".{operand}")


def how_to_write(operator: str, operand: object) -> str:
    """Return what to know of a condition that permits something by a part of an address, host or URL; else nothing."""
    if not isinstance(operand, str) or not is_place(operator, operand):
        return ""
    if scheme := _URL.search(operand):
        return _url_written(operator, operand, scheme)
    if "@" in operand:
        return _address_written(operator, operand)
    if _NUMBERS.fullmatch(operand):
        return "holds for numbers and dots only"
    name = operand.strip(".")
    if operator == "ends_with" and operand.startswith("."):
        return ""
    return (
        f"holds only for the host {name}, one below it or one address at it; "
        f'for a URL write starts_with: "https://{name}/", for an address ends_with: "@{name}"'
    )


def _url_written(operator: str, operand: str, scheme: "re.Match[str]") -> str:
    host, path = _split(operand[scheme.end() :])
    if operator != "starts_with" or scheme.start():
        return f'holds only where the text begins so; write starts_with: "{operand[scheme.start() :].rstrip("/")}/"'
    if not host and not path:
        return ""
    if not path:
        return f'holds for this host only, as if it ended in "/"; write starts_with: "{operand}/"'
    if path[-1] not in _AFTER_PREFIX and "?" not in path and "#" not in path:
        return f'holds for this path and what is below it; write starts_with: "{operand}/"'
    return ""


def _address_written(operator: str, operand: str) -> str:
    domain = operand.rpartition("@")[2].strip("<>, ")
    if operator == "ends_with" and operand.startswith("@") and domain.isascii() and _ADDRESS.fullmatch(f"x{operand}"):
        return ""
    whole = _ADDRESS.fullmatch(operand)
    exact = f'write equals: "{operand}"' if whole else f'write ends_with: "@{domain or "example.com"}"'
    return f"holds for one plain address only, never for a list or a name; {exact}, or in: [...] with whole addresses"
