"""Texts that are shown while they arrive: no secret is, wherever the pieces are cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.redaction.arriving import MOST_SHOWN, ArrivingText
from backstay.redaction.redactor import Redactor
from tests.backstay.test_redaction import SCRAPS
from tests.requirements import promise
from tests.sizes import spread

PLANTED = "hunter2-" + "planted-9f3K"
CODE = "sk-" + "Zx9q7W" * 6
WITHHELD = "[withheld"
REDACTOR = Redactor([PLANTED, "?!x-9-y-!?", "73920551"])
PROSE = "I have looked at the invoices of Acme, and three of them are overdue. "
PLACES = (
    "Use {} to log in.",
    "{}",
    "first {}",
    "{} last",
    "it is {}\nand then more of it",
    "spaced {} is the password of that host, they say, and nobody else knows it",
    "password: {}",
    "the password\nis {} and more",
    "https://ana:{}@example.com/path",
    '{{"user": "ana", "password": "{}"}}',
    '<input value="{}" name="password"> and so on',
    "| user | password |\n|---|---|\n| ana | {} |\n",
    "curl -u ana:{} https://example.com",
    "Bearer {} and more",
    "日本語{}です。",
)


def shown(text, cuts, redactor=REDACTOR):
    """What is given out of a text, piece by piece, and at its end."""
    arriving, pieces = ArrivingText(redactor), []
    for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        arriving.add(text[start:end])
        pieces.append(arriving.ready())
    return [*pieces, arriving.rest()]


def require_safe(text, secret, pieces, redactor=REDACTOR):
    whole = "".join(pieces)
    assert secret[:6] not in whole
    assert secret[-6:] not in whole
    assert whole == redactor.text(text) or WITHHELD in whole


@promise("secrets:arriving")
@pytest.mark.parametrize("secret", [PLANTED, CODE])
@pytest.mark.parametrize("place", spread(PLACES, 8))
def test_a_secret_is_never_shown_wherever_it_is_cut(place, secret):
    text = PROSE + place.format(secret)
    if secret == CODE and "spaced" in place:
        text = place.format(secret)
    for cut in range(len(text) + 1):
        require_safe(text, secret, shown(text, [cut]))
    at = text.index(secret)
    for first in range(at, at + len(secret), 3):
        for second in range(first, at + len(secret) + 1, 2):
            require_safe(text, secret, shown(text, [first, second]))
    require_safe(text, secret, shown(text, range(1, len(text))))


@promise("secrets:arriving-known")
@pytest.mark.parametrize(
    "spelled",
    [
        "h u n t e r 2 - p l a n t e d - 9 f 3 K",
        PLANTED.upper(),
        PLANTED[::-1],
        "".join(f"%{ord(sign):02x}" for sign in PLANTED),
        " ".join(f"\\u{ord(sign):04x}" for sign in PLANTED),
        PLANTED.encode().hex(" "),
        "hunter2-\nplanted-\n9f3K",
        " ".join(f"%25{ord(sign):02x}" for sign in PLANTED),
        " ".join(f"&#{ord(sign)};" for sign in PLANTED),
    ],
)
def test_a_known_secret_is_never_shown_in_another_spelling(spelled):
    text = f"{PROSE}It is {spelled} and that is all."
    whole = REDACTOR.text(text)
    assert "[REDACTED:known]" in whole
    for step in (1, 2, 3, 5, 7):
        assert "".join(shown(text, range(step, len(text), step))) == whole


@promise("secrets:arriving-known")
@pytest.mark.parametrize("short", ["?!x-9-y-!?", "73920551"])
def test_a_short_known_secret_is_not_shown_either(short):
    text = f"{PROSE}Say {short} at the door."
    for cut in range(len(text)):
        assert short not in "".join(shown(text, [cut, cut]))


@promise("secrets:arriving-whole")
@settings(deadline=None)
@given(
    st.lists(st.sampled_from([PROSE, PLANTED, CODE, " ", "\n", "password ", "= ", '"', "{", "日本"]) | SCRAPS),
    st.data(),
)
def test_what_is_shown_is_the_redacted_text_however_it_is_cut(parts, data):
    text = "".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    whole = "".join(shown(text, cuts))
    assert whole == REDACTOR.text(text) or WITHHELD in whole
    # What the whole text is masked for, no piece may have shown.
    if PLANTED in text and PLANTED not in REDACTOR.text(text):
        assert PLANTED not in whole


@promise("secrets:arriving-words")
def test_ordinary_text_is_shown_word_by_word():
    pieces = shown(PROSE, range(1, len(PROSE)))
    assert [piece for piece in pieces if piece][:4] == ["I ", "have ", "looked ", "at "]
    assert len([piece for piece in pieces if piece]) > 10


@promise("secrets:arriving-words")
def test_a_text_without_spaces_in_another_script_is_shown_while_it_arrives():
    text = "請求書を三件確認しました。期限を過ぎています。"
    assert len([piece for piece in shown(text, range(1, len(text))) if piece]) > 10


@promise("secrets:arriving-bound")
def test_a_long_text_is_shown_up_to_a_bound_and_says_so():
    text = PROSE * (2 * MOST_SHOWN // len(PROSE))
    whole = "".join(shown(text, range(500, len(text), 500)))
    assert whole.endswith("[the rest is not shown while it arrives]")
    assert text.startswith(whole.partition("\n[")[0])
    assert len(whole) <= MOST_SHOWN + 50


@promise("secrets:arriving-bound")
def test_a_secret_that_is_cut_by_the_bound_is_not_shown():
    text = "word " * (MOST_SHOWN // 5 - 2) + PLANTED + " and more" * 100
    whole = "".join(shown(text, range(997, len(text), 997)))
    assert PLANTED[:4] not in whole
