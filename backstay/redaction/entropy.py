"""Judge by its characters whether a string may be a secret: random, chosen by a person, or plain words."""

import re
import string
from itertools import pairwise

from backstay.data_files import data_beside

_LEAST_RANDOM = 12
_LEAST_TELLING = 8
_LEAST_LETTERS = 20
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(?:-|\Z)|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4}(?:\D|\Z)|[0-9]{1,2}:[0-9]{2}")
_NUMBER = re.compile(r"[-+]?[0-9][0-9._,:]*(?:[a-zA-Z%]{1,3})?(?:/[0-9a-z]{1,5})?")
_VERSION = re.compile(r"v?[0-9]+(?:\.[0-9]+)+(?:[-+.][a-z]+[0-9.]*)*")
_WORD = re.compile(r"(?:[a-z]+|[A-Z]+)?(?:[A-Z][a-z]{2,})*[A-Z]{0,4}[0-9]{0,3}|[0-9]{1,4}|[vVpPxXrR][0-9]+")
"""Part of a name: a word, perhaps numbered, or a short number."""
_ODD = re.compile(r"(?=.{1,7}\Z)(?:[0-9]{1,4}[a-z]{1,6}|[a-z]{1,4}[0-9]{1,4}[a-z]{1,4}[0-9]{0,2}|[A-Z][0-9][A-Z])")
"""Part of a name only beside words: i18n, 1080p, utf8mb4, v1beta1."""
_CUT = re.compile(r"[-_./:@#\\ +=,]+")
_STEPS = re.compile(r"[a-z](?=[0-9])|[0-9](?=[A-Za-z])|[A-Z](?=[0-9])|[a-z](?=[A-Z])|[A-Z]{2}(?=[a-z])")
_COSTS = data_beside(__file__)
_COST_OF = {
    (before, behind): int(cost)
    for before, row in zip(_COSTS["signs"], _COSTS["costs"].split(), strict=True)
    for behind, cost in zip(_COSTS["signs"], row, strict=True)
}
_DEAR = 4.85
"""Words and names cost less for each character, random texts of letters and digits more."""
_CLASSES = (
    dict.fromkeys(range(128), " ")
    | {ord(letter): letter.lower() for letter in string.ascii_letters}
    | {ord(digit): "0" for digit in string.digits}
)
_ALPHABET = re.compile(r"[A-Za-z0-9_.~+/=:$%!*^#@&?-]+")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")


def is_random(text: str) -> bool:
    """Return whether a string looks random: letters and digits alternate far more often than in names."""
    length = len(text)
    if length < _LEAST_RANDOM or _ALPHABET.fullmatch(text) is None or _is_figure(text):
        return False
    steps = len(_STEPS.findall(text))
    digits = sum(map(str.isdecimal, text))
    if digits and digits < length:
        return (steps >= 3 and not is_name(text) and steps * 7 >= length) or _UUID.fullmatch(text) is not None
    return not digits and length >= _LEAST_LETTERS and text.isalpha() and not is_worded(text)


def is_worded(text: str) -> bool:
    """Return whether the characters of a string follow each other as in words and names; it may be a digest too."""
    signs = f" {text} ".translate(_CLASSES)
    return sum(_COST_OF.get(pair, 0) for pair in pairwise(signs)) < _DEAR * (len(signs) - 1)


def is_uuid(text: str) -> bool:
    """Return whether a string is a UUID, which is more often an identifier than a secret."""
    return _UUID.fullmatch(text) is not None


def is_version(text: str) -> bool:
    """Return whether a string is the version of a program, or a range of versions."""
    return _VERSION.fullmatch(text.lstrip("^~<>=! ")) is not None


def is_telling(text: str) -> bool:
    """Return whether a string is too mixed to be a word, a number, a date, an address or the name of something."""
    if (
        len(text) < _LEAST_TELLING
        or " " in text
        or "://" in text
        or "(" in text
        or text.startswith(("./", "$", "http", "~/"))
    ):
        return False
    digits = sum(map(str.isdecimal, text))
    return 0 < digits < len(text) and any(map(str.isalpha, text)) and not _is_figure(text) and not is_name(text)


def looks_secret(text: str) -> bool:
    """Return whether a string looks random or too mixed to be a word, a number, a date, an address or a name."""
    return is_telling(text) or is_random(text)


def is_name(text: str) -> bool:
    """Return whether a string is made of words and short numbers, as names, paths and labels are."""
    odd = [part for part in _CUT.split(text) if part and _WORD.fullmatch(part) is None]
    return not odd or (len(odd) * 2 < len(_CUT.split(text)) + 1 and all(map(_ODD.fullmatch, odd)))


def is_path(text: str) -> bool:
    """Return whether a string is the path of a file in words."""
    rooted = text.startswith(("/", "./", "../", "~/", "file:", "\\\\")) or text[1:3] in (":\\", ":/")
    inner = text[2:] if text[1:2] == ":" else text
    return (rooted or ":/" in text) and "://" not in text and is_name(inner.replace("~", ""))


def _is_figure(text: str) -> bool:
    """Return whether a string is a number with its unit, a version, a date or a time."""
    return bool(_NUMBER.fullmatch(text) or _VERSION.fullmatch(text) or _DATE.match(text) or _MAIL.fullmatch(text))
