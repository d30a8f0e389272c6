"""Find tokens of issuers nobody has heard of: drawn by chance, behind a prefix."""

import re
from collections.abc import Iterator

from backstay.plausible import is_random, is_uuid
from backstay.span import Span

_PREFIXED = re.compile(r"([A-Za-z]{2,14}[0-9]?(?:[_-][A-Za-z]{2,12}[0-9]?){0,2})[_-]([A-Za-z0-9_-]{20,})\Z")
_SECRET_PREFIXES = frozenset((
    "sk", "pk", "rk", "ak", "key", "apikey", "api", "secret", "sec", "token", "tok", "pat", "tk", "live", "prod",
    "access",
    "auth", "refresh", "priv", "private", "bot", "app", "pass", "pwd", "cred", "license", "lic", "oauth", "jwt", "svc",
    "sat", "srv", "deploy", "admin", "ci", "whsec", "signing", "bearer", "usr", "personal",
))  # fmt: skip
_THING_PREFIXES = frozenset((
    "cs", "pi", "evt", "cus", "sub", "prod", "price", "ch", "req", "acct", "resp", "msg", "chatcmpl", "run", "thread",
    "asst", "file", "call", "toolu", "batch", "cmpl", "gen", "sha", "sha1", "sha256", "sha384", "sha512", "md5", "img",
    "image", "chunk", "main", "vendor", "index", "page", "user", "org", "team", "proj", "project", "trace", "span",
    "session", "item", "order", "inv", "invoice", "txn", "pay", "pm", "in", "seti", "src", "card", "ba", "tr", "po",
    "job", "task", "event", "conv", "doc", "obj", "node", "build", "commit", "snap", "vol", "subnet", "vpc", "ami",
    "eni", "rtb", "sg", "igw", "nat", "acl", "eipalloc", "ws", "env", "ver", "test", "id", "uid", "uuid", "ref",
    "cache",
    "linux", "macos", "windows", "node-modules", "bafy", "bundle", "style", "css", "js", "wasm", "lib", "pkg", "cursor",
))  # fmt: skip
_LEAST_BEHIND_SECRET = 20
_LEAST_BEHIND_ANY = 32


def guessed_in(text: str, runs: list[tuple[int, int]]) -> Iterator[Span]:
    """Yield what is drawn by chance behind a prefix, as issuers nobody has heard of hand out their tokens."""
    for start, end in runs:
        if end - start < _LEAST_BEHIND_SECRET + 3:
            continue
        for word in _WORDS.finditer(text, start, end):
            found = _PREFIXED.match(word.group())
            if found is not None and _is_issued(*found.groups()):
                yield *word.span(), "token"


_WORDS = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z][A-Za-z0-9_-]{22,}(?![/+.][A-Za-z0-9+/]{8})")


def _is_issued(prefix: str, body: str) -> bool:
    parts = re.split(r"[_-]", prefix.lower())
    if not is_random(body) or parts[0] in _THING_PREFIXES:
        return False
    if not _SECRET_PREFIXES.isdisjoint(parts):
        return len(body) >= _LEAST_BEHIND_SECRET
    mixed = any(map(str.islower, body)) and any(map(str.isupper, body)) and any(map(str.isdecimal, body))
    return len(body) >= _LEAST_BEHIND_ANY and mixed and prefix.islower() and not is_uuid(body)
