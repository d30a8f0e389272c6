"""Find secrets that are beside a sensitive name: in settings, code, markup, commands and sentences.

The name is found first; a secret is only looked for around it. Right behind an equals sign or in quotes, nearly
anything is a secret. The farther away a value is, the more it must look like a secret.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from backstay.data_files import data_beside
from backstay.redaction.bare_tokens import tells_of_work
from backstay.redaction.entropy import is_name, is_path, is_random, is_telling, is_uuid, is_version, looks_secret
from backstay.redaction.harmless import (
    PASSWORDS,
    is_doubtful,
    is_harmless_cookie,
    is_label,
    is_placeholder,
    is_sentence,
    is_state,
    starts_as_no_secret,
)
from backstay.redaction.sensitive_names import SensitiveNames
from backstay.redaction.value_ends import WHOLE_LINE, Operator, value_at
from backstay.redaction.vendor_tokens import Span

_LISTS = data_beside(__file__)
_LONGEST_NAME = 64
_LONGEST_RESOURCE = 200
_IN_NAMES = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.")
_REST = re.compile(r"[A-Za-z0-9_-]{0,64}(?:\.[A-Za-z_]\w{0,40}){0,4}")
_SIGN = re.compile(
    r"""(?:\[\])?[\\]{0,8}["'`)\]}*>|]{0,3}[ \t]{0,24}
    (?: (?P<sign>=>|->|\u2192|\|\|=|\?\?=|[?:+]=|[!=]==?
        |:[ \t]{0,2}[&*]?(?:'static[ \t])?[A-Za-z_][\w.:<>\[\]?]{0,40}[ \t]{1,3}=(?!=)
        |=|::?|\uff1a|%3[AaDd]|\\u003[dD])
      | (?P<flag>[ \t]{1,3}(?=[^\s=:|-])) )
    (?:\*{1,2}(?=[ \t]))?[ \t]{0,10}(?:@|[bfru]{1,2}(?=["']))?""",
    re.VERBOSE,
)
"""Between a colon and an equals sign is the type of a variable."""
_QUOTED = re.compile(
    r"""["'`)\]]{0,3}(?P<gap>\s{0,3},\s{0,3}|\s\.\s|[ \t]{1,40}|\(|[ \t]{0,3}\([ \t]?|\s{0,3}@)"""
    r"""(?P<quote>[\\]{0,4}["'`])(?P<value>[^"'`\n\\]{8,4096})(?P=quote)"""
)
_IN_TAG = re.compile(
    r"""(?P<value_in>["']?[^<>]{0,120}?\b(?:value|content|val|data-value)=(?P<quote>["'])(?P<attribute>[^"'<>]{8,4096})(?P=quote))
      | ["']?(?:[ \t][^<>]{0,200})?>(?P<between>\s{0,20}(?:</[^<>]{1,60}>)?(?:\s{0,40}<[^<>/][^<>]{0,80}>){0,3})
        (?P<value>[^<>]{1,4096})(?=</)""",
    re.VERBOSE,
)
_CELL = re.compile(r"[`*\"']{0,2}[ \t]{0,40}(?:\||\u2502)[ \t]{0,9}[`*|]{0,2}(?P<value>[^\s|`]{8,512})")
_FORM_PART = re.compile(
    r"[\"'](?:;[^\r\n]{0,100})?(?:\r?\n[A-Za-z-]{1,40}:[^\r\n]{0,100}){0,3}(?:\r?\n|\\r\\n){2}(?P<value>[^\r\n]{1,4096})"
)
_NEAR = re.compile(
    r"""(?P<gap>(?:[\s"'`*_(\[\])<>|~\#=:,>/?\u2014\u2013\u2192\uff1a-]|[^\W\d_]{1,16}(?=[\s"'`*:,)|.<>]))*?(?<=[\s"'`*(\[<|=:>]))
        (?P<value>(?=[^\s"'`<>]{0,300}?[0-9]|[A-Za-z]{20})[A-Za-z0-9!@$%^&_+/~.#-][A-Za-z0-9_.~+/=:@$!%^&#*-]{7,512})""",
    re.VERBOSE,
)
_LONGEST_GAP = 60
_FARTHEST_BACK = 300
_DRAWN = re.compile(r"[0-9]|[A-Za-z]{20}")
_NEARBY = 3
_LEAST_CHOSEN = 8
_TRAILING = ".,;:!?)]}*`\"'>|"
_FIGURES = frozenset(
    ("pin", "otp", "cvv", "cvc", "passcode", "security_code", "recovery_code", "backup_code", "pass", *PASSWORDS)
)
_PHRASES = frozenset(("mnemonic", "seed_phrase", "recovery_phrase"))
_WALLET = re.compile(
    r"""[^\n]{0,24}?[\s"'`:=](?P<value>
    (?:(?!(?:the|and|was|for|from|your|are|not|but|has|were|with)\b)[a-z]{3,8}[ ,]{1,2}){11,23}[a-z]{3,8})\b""",
    re.VERBOSE,
)
"""Twelve to 24 words in no sentence."""
_CODES = frozenset(("recovery_code", "backup_code"))
_MIXED = re.compile(r"(?=.*[A-Za-z])(?=.*[0-9]).*[!#$%&*?@^]")
_DIGEST = re.compile(r"[0-9a-f]{32,128}")
_LEAST_BARE = 3
_ANOTHER = re.compile(r"[A-Za-z_][\w.-]{0,40}=[^=\s]")
_ARROWS = ("=>", "->", "=", ":", "\u2192")
_VERBS = frozenset[str](_LISTS["verbs"].split())
_BACK = re.compile(
    r"""(?P<value>[A-Za-z0-9][A-Za-z0-9_.~+/=:@$!%^&?#*-]{7,300})[`"'*)\]\s|]{1,6}
        (?:that[ ]|which[ ]|\u2014[ ]|-[ ]|,[ ])?(?:is|was|as|for|=|becomes|\u2190|<-)[ ]
        (?:(?:the|my|our|your|new|a|an|this|old|his|her|their|current|its)[ ]){0,3}(?:[A-Za-z][\w-]{0,30}[ ]){0,3}$""",
    re.VERBOSE,
)
_AFTER_WORD = ")!?,;]}."
_OTHER_THINGS = frozenset[str](_LISTS["other_things"].split())


class _Name(NamedTuple):
    """A sensitive name in a string: its spelling, its position, the kind of its secret, and whether that is certain."""

    text: str
    start: int
    end: int
    kind: str
    certain: bool


def first_name(text: str, names: SensitiveNames) -> int | None:
    """Return where the first name of a secret begins in a string, if there is any."""
    lowered = "".join(sign.lower() if sign.isascii() else sign for sign in text)
    found = (_name_at(text, *cue.span(), names) for cue in names.cue.finditer(lowered))
    return next((name.start for name in found if name is not None), None)


def assignments_in(text: str, cues: list[tuple[int, int]], names: SensitiveNames) -> Iterator[Span]:
    """Yield the secrets beside sensitive names."""
    done = 0
    for cue_start, cue_end in cues:
        if cue_start < done:
            continue
        name = _name_at(text, cue_start, cue_end, names)
        if name is None:
            continue
        done = name.end
        for start, end in _named_by(text, name, names):
            done = max(done, end)
            yield start, end, name.kind


def _name_at(text: str, start: int, end: int, names: SensitiveNames) -> _Name | None:
    least = max(start - _LONGEST_NAME, 0)
    while start > least and text[start - 1] in _IN_NAMES:
        start -= 1
    rest = _REST.match(text, end)
    end = rest.end() if rest else end
    spelled = text[start:end].strip("-.")
    kind, certain = names.read(spelled)
    if kind is None or _in_resource_name(text, start):
        return None
    return _Name(spelled, start, end, kind, certain)


def _in_resource_name(text: str, at: int) -> bool:
    """Return whether a place is inside a name such as `arn:aws:secretsmanager:...:secret:checkout`."""
    start = text.rfind("arn:", max(at - _LONGEST_RESOURCE, 0), at)
    return start >= 0 and not any(map(str.isspace, text[start:at]))


def _named_by(text: str, name: _Name, names: SensitiveNames) -> Iterator[tuple[int, int]]:
    wallet = _WALLET.match(text, name.end) if name.kind in _PHRASES else None
    if wallet is not None:
        yield wallet.span("value")
        return
    sign = _SIGN.match(text, name.end)
    is_flag = text.startswith("--", name.start) or text[name.start - 2 : name.start] == "--"
    if sign is not None and (sign["sign"] or (is_flag and sign.start("flag") == name.end)):
        spaced = sign["sign"] == ":" and sign.group().endswith((" ", "\t"))
        operator = Operator(name.start, name.kind, spaced=spaced, upper=name.text.isupper() and not is_flag)
        start, end = value_at(text, sign.end(), operator)
        if end > start:
            if not _is_harmless(text, start, end, name, names, spaced=spaced):
                yield start, end
            # A value right behind the operator is the only one that is meant.
            return
    for form in (_QUOTED, _FORM_PART, _CELL):
        found = form.match(text, name.end)
        if found is None:
            continue
        start, end = _trimmed(text, *found.span("value"))
        if looks_secret(text[start:end]) or _is_meant(form, found, name):
            if not is_placeholder(text[start:end]):
                yield start, end
            return
    if "<" in text[max(name.start - 80, 0) : name.start] and (found := _IN_TAG.match(text, name.end)):
        yield from _in_tag(text, name, found)
    else:
        yield from _near(text, name)


def _is_meant(form: re.Pattern[str], found: re.Match[str], name: _Name) -> bool:
    """Return whether what follows a name is its secret even if it looks like a word."""
    if form is _FORM_PART and name.certain:
        return True
    after_comma = form is _QUOTED and found["gap"] == ","
    if form is _QUOTED and name.certain and name.kind in PASSWORDS and found["gap"].isspace():
        return any(map(str.isdecimal, found["value"])) and " " not in found["value"]
    return form is not _CELL and not after_comma and name.kind in PASSWORDS and name.text.isupper()


def _in_tag(text: str, name: _Name, found: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield the content of an element with a sensitive name, of its attribute, or of the element behind it."""
    if found.group("value_in"):
        start, end = found.span("attribute")
        good = looks_secret(text[start:end])
    else:
        start, end = found.span("value")
        value = text[start:end].strip()
        direct = not found.group("between").strip() and text[: name.start].endswith(("<", ":"))
        is_content = direct and name.certain and not is_label(value) and not is_state(value)
        good = bool(value) and (is_content or looks_secret(value))
    if good and not is_placeholder(text[start:end]):
        yield start, end


def _near(text: str, name: _Name) -> Iterator[tuple[int, int]]:
    """Yield what looks random some words behind or before a name."""
    if not name.certain:
        return
    # Most names have nothing random near them and are done with here.
    drawn = _DRAWN.search(text, name.end, name.end + _LONGEST_GAP + 40)
    found = _NEAR.match(text, name.end, min(name.end + _LONGEST_GAP + 512, len(text))) if drawn else None
    if found is not None and len(found.group("gap")) <= _LONGEST_GAP:
        gap = found.group("gap")
        words = [word for word in (piece.strip("\"'`*_()[]<>|~#=:,/-").lower() for piece in gap.split()) if word]
        start, end = _trimmed(text, *found.span("value"))
        value = text[start:end]
        bare = gap.rstrip()
        marked = gap.endswith(("`", "**", '"', "'", "||")) or bare.endswith(_ARROWS) or _is_alone(text, gap, end)
        said = bool(words) and words[-1] in _VERBS
        far = len(words) > _NEARBY
        if _OTHER_THINGS.isdisjoint(words) and not is_placeholder(value) and "://" not in value:
            looks_drawn = is_random(value) and not (far and is_uuid(value)) and not is_path(value)
            if words and _DIGEST.fullmatch(value) and (tells_of_work(words[::-1]) or tells_of_work(words[:1])):
                return
            if (
                looks_drawn
                or ((marked or said) and is_telling(value))
                or (said and not far and _is_chosen(value, name.kind))
                or (not words and _is_right_behind(value, name.kind))
            ):
                yield start, end
                return
    if text[name.start - 1 : name.start] == " ":
        least = max(name.start - _FARTHEST_BACK, 0)
        drawn = _DRAWN.search(text, least, name.start)
        before = _BACK.search(text, least, name.start) if drawn else None
        if before is not None:
            start, end = _trimmed(text, *before.span("value"))
            of_work = _DIGEST.fullmatch(text[start:end]) and " for " in before.group()
            if is_random(text[start:end]) and not of_work:
                yield start, end


def _is_chosen(value: str, kind: str) -> bool:
    """Return whether a person may have chosen these letters and digits as a password."""
    figures = any(map(str.isdecimal, value)) and not value[0].isdecimal() and any(map(str.isalpha, value))
    return kind in PASSWORDS and len(value) >= _LEAST_CHOSEN and figures and "/" not in value


def _is_right_behind(value: str, kind: str) -> bool:
    """Return whether a value right behind a name is its secret: `password Maple98&`, `backup code 4f2a-9c1d`."""
    return (kind in PASSWORDS and _MIXED.match(value) is not None) or (
        kind in _CODES and any(map(str.isdecimal, value))
    )


def _is_alone(text: str, gap: str, end: int) -> bool:
    """Return whether a value fills the line behind the name's."""
    return "\n" in gap and not gap[gap.rindex("\n") :].strip() and text[end : end + 1] in ("", "\n", "\r")


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Leave out what belongs to the sentence around a value."""
    while start < end and text[start] in "|*`<([\"'":
        start += 1
    return start, start + len(text[start:end].rstrip(_TRAILING))


def _is_harmless(text: str, start: int, end: int, name: _Name, names: SensitiveNames, *, spaced: bool) -> bool:
    """Return whether the value behind an operator is not a secret but code, a reference, a label or a setting."""
    value = text[start:end].strip()
    quoted = text[start - 1] in "\"'`"
    word = value.rstrip(_AFTER_WORD)
    if name.kind in WHOLE_LINE and name.kind != "authorization":
        return is_harmless_cookie(value)
    if not any(map(str.isalnum, value)) or (not quoted and len(word) < _LEAST_BARE and word.isalpha()):
        return True
    if is_version(word) or (not quoted and _ANOTHER.match(value) is not None) or text.startswith(":?", start - 1):
        return True
    if starts_as_no_secret(text, start, name.text) or is_placeholder(word) or (is_state(word) and not quoted):
        return True
    if not name.certain:
        return is_doubtful(word, name.kind)
    if word.isdecimal() and len(word) < (3 if name.kind in _FIGURES else 6):
        return True
    if (
        word[:1].isalpha()
        and (is_state(word) or is_label(word))
        and not (quoted and name.kind in PASSWORDS and word.islower())
    ):
        return True
    if name.kind in PASSWORDS:
        return _is_said(
            text, end, word, quoted=quoted, spaced=spaced, upper=name.text.isupper() and name.kind == "pass"
        )
    return (
        is_sentence(value)
        or is_path(word)
        or _is_named_again(word, names)
        or (name.kind == "token" and word.isalpha() and len(word) < 20 and not is_random(word))
        or word.startswith(("http://", "https://", "ssh-", "ecdsa-", "-----BEGIN CERT", "-----BEGIN PUBLIC"))
    )


def _is_said(text: str, end: int, word: str, *, quoted: bool, spaced: bool, upper: bool) -> bool:
    """Return whether a word behind `password:` begins a sentence or a test's name."""
    if quoted:
        return is_sentence(word)
    if upper and spaced:
        return True
    going_on = re.match(r"[ \t]{1,3}[A-Za-z]{2,}", text[end : end + 40])
    return bool(spaced and word.isalpha() and going_on) or (is_name(word) and is_path(word))


def _is_named_again(word: str, names: SensitiveNames) -> bool:
    """Return whether a value is itself a name of a secret, as in `secret: checkout-api-key`."""
    plain = all(sign.isalpha() or sign in "_-./:" for sign in word)
    return plain and len(word) > 3 and names.read(word)[1]
