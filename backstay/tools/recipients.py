"""Know the arguments that say whom a call goes to, and put them first where a call is written on one line."""

import unicodedata
from collections.abc import Mapping
from string import digits
from typing import Any

from backstay.canonical import canonical
from backstay.data_files import data_beside

_RECIPIENTS = frozenset[str](data_beside(__file__)["recipients"].split())
_LONGEST = 100


def is_recipient(name: str) -> bool:
    """Return whether an argument says, by its name, whom a message goes to."""
    plain = unicodedata.normalize("NFKC", name[:_LONGEST]).casefold()
    return "".join(filter(str.isalnum, plain)).rstrip(digits).removeprefix("x") in _RECIPIENTS


def call_line(tool: str, arguments: Mapping[str, Any]) -> str:
    """Return a call on one line, with its arguments as JSON: first those that say whom it goes to."""
    names = sorted(arguments, key=lambda name: (not is_recipient(name), name))
    inside = ",".join(f"{canonical(name)}:{canonical(arguments[name])}" for name in names)
    return f"{tool} {{{inside}}}" if inside else tool
