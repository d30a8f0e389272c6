"""Find secrets by the format around them: key files, URLs, commands with a password, Authorization schemes."""

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from backstay.redaction.entropy import is_name, is_random, is_uuid, looks_secret
from backstay.redaction.harmless import is_placeholder
from backstay.redaction.vendor_tokens import Span

_SHORTEST = 12
_LEAST_SEGMENT = 16
_PEM_KEY = re.compile(
    r"""(-{4,5}[ ]?BEGIN[ ][A-Za-z0-9 ]{0,40}(?:PRIVATE|SECRET|[Ss]tatic)[ ][Kk](?:EY|ey)(?:[ ]BLOCK|[ ]V[0-9])?
        [ ]?-{4,5}(?:[^-]|-(?!---))*(?:-{4,5}[ ]?END[^\n-]{0,60}-{4,5})?)""",
    re.VERBOSE,
)
_PUTTY_KEY = re.compile(
    r"(PuTTY-User-Key-File-[0-9](?s:.){0,8000}?Private-Lines: ?[0-9]{1,4}(?s:.){0,8000}?Private-MAC: ?[0-9a-f]{0,64})"
)
_JSON_WEB_KEY = re.compile(r"""\\{0,4}["'](?:d|p|q|dp|dq|qi|k)\\{0,4}["'][ ]?:[ ]?\\{0,4}["']([A-Za-z0-9_-]{16,})""")
_TELEGRAM = re.compile(r"(?<![0-9])([0-9]{8,10}:AA[\w-]{32,}+)")
_WEBHOOK = re.compile(
    r"""(?:hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/|/hooks/catch/|/webhookb2/|/with/key/)
        ([A-Za-z0-9/_@-]{6,})""",
    re.VERBOSE,
)
_LIKE_WEBHOOK = re.compile(
    r"/(?:(?:incoming-?webhooks?|webhooks?|hooks?|services/hooks|triggers?)/|bot(?=[0-9]+:))([A-Za-z0-9/_@:.-]{16,})"
)
_URL_PASSWORD = re.compile(r"://[^\s/@:\"'<>]{0,256}+:([^\s/]{1,256})@")
_URL_USER = re.compile(r"://([^\s/@:\"'<>]{16,256}+):[^\s/]{1,256}@")
_URL_TOKEN = re.compile(r"://([^\s/@:]{16,256}+)@")
_HOST = re.compile(r"@(?!sha[0-9])(?:(?:tcp|udp|unix)\(|//|[\w.-]{3,80}:[0-9]{2,5}(?![0-9]))")
_BEFORE_HOST = re.compile(r"(?<![\w.-])[A-Za-z][\w.-]{0,60}[/:]([^\s@/:\"'<>]{3,128})$")
_SIGNED_QUERY = re.compile(
    r"""[?&;](?:sig|signature|key|code|hash|hmac|x-amz-signature|x-goog-signature|sv_sig|hdnts|policy|se_sig|auth_?key
        |k|t|st|s)=([^\s&"'<>\#;,)]{16,})""",
    re.IGNORECASE | re.VERBOSE,
)
_ESCAPED = re.compile(r"%[0-9A-F]{2}")
_USER_OPTION = re.compile(
    r"(?:-u|-a|--user|-U|--proxy-user|--creds?|--auth|auth=\(?)[ =]{1,2}['\"]?[\w.@-]{1,60}:([^\s'\":][^\s'\"]{3,200})"
)
_PASSWORD_OPTION = re.compile(
    r"""(?:sshpass[ ]-p[ ]?|-passin[ ]pass:|-passout[ ]pass:|\bpass:|\bmysql[a-z]*[^\n|;&]{0,120}?[ ]-p|requirepass[ ]
        |masterauth[ ]|-storepass[ ]|-keypass[ ]|http-basic\.\S{1,80}[ ]\S{1,60}[ ]
        |identified[ ](?:with[ ]\S{1,40}[ ])?by[ ]|login[ ]\S{1,60}[ ]password[ ]|-P[ ]['"]|\bhttpauth[ ])
        ['"]?([^\s'"]{6,200})""",
    re.IGNORECASE | re.VERBOSE,
)
_LOGIN_CALL = re.compile(
    r"(?i:auth|login|credentials?)\w{0,20}\s?=?\s?[(\[]['\"][^'\"\n]{1,60}['\"],\s?['\"]([^'\"\n]{6,200})['\"][)\]]"
)
_SHORT_OPTION = re.compile(
    r"""\b(?:mysql\w*|mariadb\w*|mongo\w*|redis-cli|zip|unzip|7z|openssl|docker[ ]login|podman[ ]login|https?|xh|cqlsh
        |helm[ ]registry[ ]login|sqlcmd|ldap\w+|smbclient|rabbitmqctl|mosquitto_\w+|kinit|snmp\w+|ipmitool|influx
        |clickhouse-client|bcp|az[ ]login|cf[ ]login|oc[ ]login)
        \b[^\n|;&]{0,160}?[ ]-[apPkwW][ ]['"]?([^\s'"]{6,200})""",
    re.VERBOSE,
)
_PGPASS_LINE = re.compile(r"^[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(\S{6,200})$", re.MULTILINE)
_SCHEME = re.compile(r"(?<![a-z0-9])(?:bearer|basic|digest|token|apikey)[ \t]{1,4}(?=[a-z0-9._~+/=-]{8})")
_SCHEME_SIGNS = ("bearer ", "basic ", "digest ", "token ", "apikey ", "bearer\t", "basic\t", "token\t")
_CREDENTIALS = re.compile(r"[A-Za-z0-9._~+/=:-]{8,}+")


def _is_anything(_found: str) -> bool:
    return True


def _is_literal(found: str) -> bool:
    return not is_placeholder(found)


def _is_no_variable(found: str) -> bool:
    return _is_literal(found) and not found.startswith(("$", "%", "<"))


def _is_mixed(found: str) -> bool:
    return _is_no_variable(found) and any(map(str.isdecimal, found)) and any(map(str.isalpha, found))


def _is_signature(found: str) -> bool:
    return is_random(_ESCAPED.sub("", found))


def _has_random_segment(path: str) -> bool:
    return any(len(part) >= _LEAST_SEGMENT and is_random(part) and not is_uuid(part) for part in path.split("/"))


_Patterns = tuple[tuple[tuple[str, ...], str, re.Pattern[str], Callable[[str], bool]], ...]
"""Substrings of which a text must contain one, the kind of secret, the pattern with the secret in its only group, and
what the group must look like.
"""
_KEYS_AND_URLS: _Patterns = (
    (("BEGIN ",), "private_key", _PEM_KEY, _is_anything),
    (("PuTTY-",), "private_key", _PUTTY_KEY, _is_anything),
    ((":AA",), "telegram_token", _TELEGRAM, _is_anything),
    (('"kty', "'kty", 'kty\\"'), "private_key", _JSON_WEB_KEY, _is_anything),
    (("hook", "/key/"), "webhook_url", _WEBHOOK, _is_anything),
    (("/",), "webhook_url", _LIKE_WEBHOOK, _has_random_segment),
    (("://",), "url_password", _URL_PASSWORD, _is_literal),
    (("://",), "url_token", _URL_USER, is_random),
    (("://",), "url_token", _URL_TOKEN, _is_anything),
)
_COMMANDS: _Patterns = (
    (("?",), "signature", _SIGNED_QUERY, _is_signature),
    ((" -u", "--user", "--proxy-user", " -U", "--cred", "--auth", "auth=", " -a"), "password", _USER_OPTION,
     _is_no_variable),
    (("pass", "auth", " -p", " -P", "http-basic", "dentified", "DENTIFIED"), "password", _PASSWORD_OPTION, _is_mixed),
    (("', ", '", ', "','"), "password", _LOGIN_CALL, looks_secret),
    ((" -a ", " -p ", " -P ", " -k ", " -w ", " -W "), "password", _SHORT_OPTION, looks_secret),
    ((":5432:", ":*:", ":6432:", ":5433:", ":3306:"), "password", _PGPASS_LINE, _is_mixed),
)  # fmt: skip


def keys_and_urls_in(text: str) -> Iterator[Span]:
    """Yield private keys, and the passwords, tokens and webhooks in URLs."""
    if len(text) < _SHORTEST:
        return
    yield from _matches(text, _KEYS_AND_URLS)
    if "@" in text and "/" in text:
        yield from _before_hosts(text)


def commands_in(text: str) -> Iterator[Span]:
    """Yield the passwords that commands pass to programs, and the signatures of URLs."""
    yield from _matches(text, _COMMANDS)


def _matches(text: str, patterns: _Patterns) -> Iterator[Span]:
    for signs, kind, pattern, is_secret in patterns:
        if any(sign in text for sign in signs):
            for found in pattern.finditer(text):
                if is_secret(found[1]):
                    yield *found.span(1), kind


def _before_hosts(text: str) -> Iterator[Span]:
    """Yield passwords before a host that has no URL scheme: `root:secret@tcp(db:3306)`."""
    for host in _HOST.finditer(text):
        found = _BEFORE_HOST.search(text, max(host.start() - 200, 0), host.start())
        if found is not None and not is_placeholder(found[1]):
            yield *found.span(1), "url_password"


def schemes_in(text: str, lowered: str) -> Iterator[Span]:
    """Yield what follows `Bearer`, `Basic` and other schemes where it is no ordinary word."""
    if not any(sign in lowered for sign in _SCHEME_SIGNS):
        return
    for found in _SCHEME.finditer(lowered):
        scheme = found.group().rstrip()
        token = _CREDENTIALS.match(text, found.end())
        if token is None or is_placeholder(token.group()):
            continue
        told = token.group()
        long_or_numbered = len(told) >= 20 or any(map(str.isdecimal, told))
        if _is_basic(told) if scheme == "basic" else long_or_numbered and not is_name(told):
            yield *token.span(), f"{scheme}_token"


def _is_basic(token: str) -> bool:
    try:
        return b":" in base64.b64decode(token + "=" * (-len(token) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
