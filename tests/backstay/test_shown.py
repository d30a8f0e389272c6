import json
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.shown import markdown_line, one_line, shown_arguments, shown_line

UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


def test_what_cannot_be_seen_is_written_out():
    assert one_line("a\u202eb\u200bc\x1b[2Jd\u00a0e\ue000\ud800", 200) == (
        "a<U+202E>b<U+200B>c<U+001B>[2Jd<U+00A0>e<U+E000><U+D800>"
    )
    assert one_line("one\ntwo\r\nthree\u2028four\u0085five\rsix", 200) == (
        "one⏎two⏎three<U+2028>four<U+0085>five<U+000D>six"
    )


def test_letters_of_all_scripts_stay_as_they_are():
    assert shown_line("Grüße, 你好, שלום, 🙂 é", 100) == ("Grüße, 你好, שלום, 🙂 é", 0)


@given(st.text(alphabet=st.characters()), st.integers(0, 60))
@settings(deadline=None)
def test_a_line_is_visible_short_and_counts_what_it_hides(text, limit):
    line, hidden = shown_line(text, limit)
    assert len(line) <= limit
    assert not {unicodedata.category(sign) for sign in line} & UNSEEN
    assert 0 <= hidden <= len(text)
    assert (hidden == 0) == (one_line(text, 10 * len(text) + 10) == line)


def test_a_clipped_line_says_how_much_is_hidden():
    assert shown_line("x" * 50, 10) == ("xxxxxxxxx…", 41)


@given(st.dictionaries(st.text(max_size=20), JSON, max_size=4), st.integers(1, 300))
@settings(deadline=None)
def test_arguments_are_shown_as_strict_json_within_the_limit(arguments, limit):
    shown, hidden = shown_arguments(arguments, limit)
    text = json.dumps(shown, allow_nan=False, ensure_ascii=False)
    assert not {unicodedata.category(sign) for sign in text} & UNSEEN
    assert hidden >= 0
    everything, nothing_hidden = shown_arguments(arguments, 1_000_000)
    assert nothing_hidden == 0
    assert hidden > 0 or shown == everything


def test_names_that_look_alike_do_not_hide_each_other():
    shown, _ = shown_arguments({"to\u200b": "eve", "to<U+200B>": "ana"})
    assert sorted(shown.values()) == ["ana", "eve"]


def test_what_is_left_out_of_arguments_is_counted():
    shown, hidden = shown_arguments({"body": "x" * 5000, "then": {"deep": ["y" * 100]}}, 100)
    assert len(json.dumps(shown)) < 300
    assert hidden >= 4900 + 100
    assert shown["…"] == "1 more"


def test_deep_and_huge_values_are_shown_without_failing():
    deep = []
    for _ in range(5000):
        deep = [deep, 1]
    shown, hidden = shown_arguments({"deep": deep, "huge": 10**5000, "nan": float("nan")})
    assert hidden > 0
    assert shown["huge"] == "a number of 16610 bits"
    assert shown["nan"] == "nan"


def test_markdown_shows_hostile_text_literally():
    hostile = "[click](https://evil.example) ![i](x) `rm -rf` <b>|a|b| **bold** # no\n- list"
    assert markdown_line(hostile) == (
        r"\[click\]\(https: //evil.example\) \!\[i\]\(x\) \`rm -rf\` \<b\>\|a\|b\| \*\*bold\*\* \# no⏎- list"
    )
    assert markdown_line("- item") == r"\- item"
    assert markdown_line("1. item") == r"1\. item"
    assert markdown_line("    code") == "code"
    assert markdown_line("www.evil.example") == "www .evil.example"


@given(st.text())
@settings(deadline=None)
def test_no_acting_sign_stands_unescaped_in_markdown(text):
    line = markdown_line(text)
    at = 0
    while at < len(line):
        if line[at] == "\\":
            at += 2
            continue
        assert line[at] not in "`|[]<>*_#!\n"
        at += 1
