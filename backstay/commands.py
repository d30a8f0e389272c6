"""Find the passwords that commands, addresses and files of programs hold in places of their own."""

import re
from collections.abc import Iterator

from backstay.placeholder import is_placeholder
from backstay.plausible import is_random, is_telling
from backstay.span import Span

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
    r"(?:sshpass -p ?|-passin pass:|-passout pass:|\bpass:|\bmysql[a-z]*[^\n|;&]{0,120}? -p|requirepass |masterauth |-storepass |-keypass |http-basic\.\S{1,80} \S{1,60} |identified (?:with \S{1,40} )?by |login \S{1,60} password |-P ['\"]|\bhttpauth )['\"]?([^\s'\"]{6,200})",
    re.IGNORECASE,
)
_SHORT_OPTION = re.compile(
    r"\b(?:mysql\w*|mariadb\w*|mongo\w*|redis-cli|zip|unzip|7z|openssl|docker login|podman login|helm registry login|https?|xh|cqlsh|sqlcmd"
    r"|ldap\w+|smbclient|rabbitmqctl|mosquitto_\w+|kinit|snmp\w+|ipmitool|influx|clickhouse-client|bcp|az login|cf login|oc login)"
    r"\b[^\n|;&]{0,160}? -[apPkwW] ['\"]?([^\s'\"]{6,200})"
)
_POSTGRES_PASS = re.compile(r"^[\w.*-]{1,80}:(?:[0-9]{2,5}|\*):[\w.*-]{1,60}:[\w.*-]{1,60}:(\S{6,200})$", re.MULTILINE)


def commands_in(text: str) -> Iterator[Span]:
    """Yield what programs are given as passwords, and what signs an address."""
    if "?" in text and "=" in text:
        for found in _QUERY.finditer(text):
            if is_random(found.group(1).replace("%2B", "").replace("%2F", "").replace("%3D", "")):
                yield *found.span(1), "signature"
    if ":" in text and ("-u" in text or "--" in text or "-U" in text or "auth" in text):
        for found in _CARRIED.finditer(text):
            if not is_placeholder(found.group(1)) and not found.group(1).startswith("$"):
                yield *found.span(1), "password"
    if (
        "pass" in text
        or "auth" in text
        or " -p" in text
        or "http-basic" in text
        or "dentified" in text
        or "DENTIFIED" in text
    ):
        for found in _PASS_OPTION.finditer(text):
            value = found.group(1)
            if not is_placeholder(value) and not value.startswith(("$", "%", "<")) and any(map(str.isdecimal, value)):
                yield *found.span(1), "password"
    if "', " in text or '", ' in text or "','" in text:
        for found in _PAIR_OF_LOGIN.finditer(text):
            if is_random(found.group(1)) or is_telling(found.group(1)):
                yield *found.span(1), "password"
    if " -" in text:
        for found in _SHORT_OPTION.finditer(text):
            if is_random(found.group(1)) or is_telling(found.group(1)):
                yield *found.span(1), "password"
    if text.count(":") >= 4:
        for found in _POSTGRES_PASS.finditer(text):
            if any(map(str.isdecimal, found.group(1))) and any(map(str.isalpha, found.group(1))):
                yield *found.span(1), "password"
