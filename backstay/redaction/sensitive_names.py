"""Tell from a name whether its value is a secret."""

import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from backstay.data_files import data_beside

_LISTS = data_beside(__file__)
DEFAULT_SENSITIVE_KEYS = tuple[str, ...](_LISTS["default_sensitive_keys"].split())
"""Names of secrets; those of up to five letters must be the last word of a key, longer ones may stand anywhere."""

_SHORT = 5
_ABOUT = frozenset[str](_LISTS["about"].split())
"""A name with one of these words describes a secret and does not hold it."""
_ABOUT_AT_THE_END = frozenset[str](_LISTS["about_at_the_end"].split())
"""The same for what comes last: `token_file` holds a path, `file_token` and `revoke_token` hold secrets."""
_STILL = frozenset[str](_LISTS["still"].split())
"""A name that ends with these words still names the secret itself."""
_IDENTIFIED = ("secretid", "sessionid", "accesskeyid", "tokenid")
_KEYS_OF_THINGS = frozenset[str](_LISTS["keys_of_things"].split())
"""Keys of these things grant no access."""
_PLACE = frozenset(("url", "uri", "endpoint"))
_OWNERS = ("access", "refresh", "auth", "api", "session", "bearer", "id", "security", "device", "bot", "user")
_LOOK_ALIKES = tuple[str, ...](_LISTS["look_alikes"].split())
_MOST_REMEMBERED = 10_000


class SensitiveNames:
    """Recognise the names of secrets in any spelling."""

    def __init__(self, names: Iterable[str] = DEFAULT_SENSITIVE_KEYS) -> None:
        """Take names such as `api_key`; apiKey, API-KEY and x_api_key are then known too."""
        given = [name for name in names if _compact(name)]
        self._kinds = {_compact(name): _kind(name) for name in given}
        self._usual = "apikey" in self._kinds
        self.read = lru_cache(_MOST_REMEMBERED)(self._read)
        """Returns which kind of secret is under a name, and whether the name says so to its end.

        `api_token` names a token; `token_bucket` may name anything that concerns tokens.
        """
        keys = [r"(?<=[a-z0-9])[_.-]?key(?![a-z])"] if self._usual else []
        self.cue = re.compile("|".join([*_cues(given), *keys]) or r"(?!)")
        """Finds where a name might be in a lower-case text; most texts have none and are done with then."""

    def is_given(self, name: str) -> bool:
        """Return whether a string is one of the names themselves, in any spelling."""
        return _compact(name[:200]) in self._kinds

    def tells_about(self, name: str) -> bool:
        """Return whether a name describes a secret without holding it: `secretName`, `password_changed_at`."""
        compact = _compact(name[:200])
        return _is_about(words_of(name[:200])) and any(fragment in compact for fragment in self._kinds)

    def _read(self, name: str) -> tuple[str | None, bool]:
        name = name if len(name) <= 200 else f"{name[:100]} {name[-100:]}"
        compact = _compact(name)
        if compact in self._kinds:
            return self._kinds[compact], True
        words = words_of(name)
        if not words or (_is_about(words) and not compact.endswith(_IDENTIFIED)):
            return None, False
        for look_alike in _LOOK_ALIKES:
            compact = compact.replace(look_alike, " ")
        ended = _without_ending(words)
        for fragment, kind in self._kinds.items():
            if len(fragment) <= _SHORT and fragment != "token":
                if ended and ended[-1] == fragment:
                    return kind, True
            elif fragment in compact and self._is_meant(fragment, compact, words):
                tail = "".join(ended)
                return kind, tail.endswith((fragment, fragment + "s", fragment + "es")) or compact.endswith(fragment)
        if ended and len(ended) > 1 and ended[-1] == "key" and _KEYS_OF_THINGS.isdisjoint(ended) and self._usual:
            return "key", False
        return None, False

    def _is_meant(self, fragment: str, compact: str, words: list[str]) -> bool:
        if fragment not in ("token", "authorization"):
            return True
        if not _PLACE.isdisjoint(words):
            return False
        # "tokens" alone are what models read; "access tokens" are secrets.
        if "tokens" in compact and "token" not in compact.replace("tokens", ""):
            return any(owner + "tokens" in compact for owner in _OWNERS)
        return True


def _without_ending(words: list[str]) -> list[str]:
    """Drop words at the end of a name that do not change its meaning."""
    end = len(words)
    while end > 1 and (words[end - 1] in _STILL or words[end - 1].isdecimal()):
        end -= 1
    return words[:end]


def _cues(names: list[str]) -> list[str]:
    """Return patterns for the names in lower-case text, with words joined in any way, grouped by their beginning."""
    patterns: dict[str, set[str]] = {}
    for name in names:
        words = words_of(name)
        # A short name is a word or the end of a word; inside other words it means nothing.
        edge = "(?![a-z])" if len(_compact(name)) <= _SHORT and name != "token" else ""
        pattern = "[ _.-]?".join(map(re.escape, words)) + edge
        patterns.setdefault(pattern[0], set()).add(pattern[1:])
    return [
        f"{re.escape(first)}(?:{'|'.join(sorted(rest, key=lambda pattern: (-len(pattern), pattern)))})"
        for first, rest in sorted(patterns.items())
    ]


def _is_about(words: list[str]) -> bool:
    return not _ABOUT.isdisjoint(words) or (len(words) > 1 and words[-1] in _ABOUT_AT_THE_END)


def _compact(name: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", name).lower()))


def _kind(name: str) -> str:
    kind = unicodedata.normalize("NFKD", "_".join(words_of(name)))
    return "".join(sign for sign in kind if sign.isascii())[:40] or "secret"


def words_of(name: str) -> list[str]:
    """Cut a name into lower-case words at signs and at changes to upper case."""
    words, word, before = [], "", ""
    text = unicodedata.normalize("NFKC", name)
    for at, sign in enumerate(text):
        after = text[at + 1 : at + 2]
        if not sign.isalnum() or (sign.isupper() and (before.islower() or (before.isupper() and after.islower()))):
            words.append(word)
            word = ""
        if sign.isalnum():
            word += sign.lower()
        before = sign
    return [word for word in [*words, word] if word]
