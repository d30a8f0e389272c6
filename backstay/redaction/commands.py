"""Find the passwords that commands, addresses and files of programs hold in places of their own."""

import re
from collections.abc import Iterator

from backstay.redaction.entropy import is_random, is_telling
from backstay.redaction.placeholders import is_placeholder
from backstay.redaction.shapes import Span

_QUERY = re.compile(
    r"[?&;](?:sig|signature|key|code|hash|hmac|x-amz-signature|x-goog-signature|sv_sig|hdnts|policy|se_sig|auth_?key|k|t|st|s)=([^\s&\"'<>#;,)]{16,})",
    re.IGNORECASE,
)
_CARRIED = re.compile(
    r"(?:-u|-a|--user|-U|--proxy-user|--creds?|--auth|auth=\(?)[ =]{1,2}['\"]?[\w.@-]{1,60}:([^\s'\":][^\s'\"]{3,200})"
)
_PAIR_OF_LOGIN = re.compile(
    r"(?i:auth|login|credentials?)\w{0,20}\s?=?\s?[(\[]['\"][^'\"\n]{1,60}['\"],\s?['\"]([^'\"\n]{6,200})['\"][)\]]"
)
_PASS_OPTION = re.compile(
    r"(?:sshpass -p ?|-passin pass:|-passout pass:|\bpass:|\bmysql[a-z]*[^\n|;&]{0,120}? -p"
    r"|requirepass |masterauth |-storepass |-keypass |http-basic\.\S{1,80} \S{1,60} "
    r"|identified (?:with \S{1,40} )?by |login \S{1,60} password |-P ['\"]|\bhttpauth )['\"]?([^\s'\"]{6,200})",
    re.IGNORECASE,
)
_SHORT_OPTION = re.compile(
    r"\b(?:mysql\w*|mariadb\w*|mongo\w*|redis-cli"
    r"|zip|unzip|7z|openssl|docker login|podman login|helm registry login|https?|xh|cqlsh|sqlcmd"
    r"|ldap\w+|smbclient|rabbitmqctl|mosquitto_\w+|kinit|snmp\w+"
    r"|ipmitool|influx|clickhouse-client|bcp|az login|cf login|oc login)"
    r"\b[^\n|;&]{0,160}? -[apPkwW] ['\"]?([^\s'\"]{6,200})"
)
_POSTGRES_PASS = re.compile(r"^[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(\S{6,200})$", re.MULTILINE)


def commands_in(text: str) -> Iterator[Span]:
    """Yield what programs are given as passwords, and what signs an address."""
    if "?" in text and "=" in text:
        for found in _QUERY.finditer(text):
            if is_random(_ESCAPED.sub("", found.group(1))):
                yield *found.span(1), "signature"
    for signs, form, is_password in _PLACES:
        if not any(sign in text for sign in signs):
            continue
        for found in form.finditer(text):
            if is_password(found.group(1)):
                yield *found.span(1), "password"


def _is_literal(value: str) -> bool:
    return not is_placeholder(value) and not value.startswith(("$", "%", "<"))


def _is_mixed(value: str) -> bool:
    return _is_literal(value) and any(map(str.isdecimal, value)) and any(map(str.isalpha, value))


def _is_drawn(value: str) -> bool:
    return is_random(value) or is_telling(value)


_ESCAPED = re.compile(r"%[0-9A-F]{2}")
_PLACES = (
    ((" -u", "--user", "--proxy-user", " -U", "--cred", "--auth", "auth=", " -a"), _CARRIED, _is_literal),
    (("pass", "auth", " -p", " -P", "http-basic", "dentified", "DENTIFIED"), _PASS_OPTION, _is_mixed),
    (("', ", '", ', "','"), _PAIR_OF_LOGIN, _is_drawn),
    ((" -a ", " -p ", " -P ", " -k ", " -w ", " -W "), _SHORT_OPTION, _is_drawn),
    ((":5432:", ":*:", ":6432:", ":5433:", ":3306:"), _POSTGRES_PASS, _is_mixed),
)
"""Signs of which one must be there, the form that holds a password, and what it must look like."""
