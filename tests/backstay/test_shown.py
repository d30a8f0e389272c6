import json
import shlex
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.shown import (
    brief_arguments,
    markdown_code,
    markdown_line,
    money,
    one_line,
    shell_words,
    shown_arguments,
    shown_line,
)
from tests.requirements import promise

UNSEEN = {"Cc", "Cf", "Zl", "Zp", "Cs", "Co"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


@promise("budget:shown")
@pytest.mark.parametrize(
    ("amount", "shown", "exact"),
    [
        (0, "0.0000", "0.00"),
        (0.5, "0.5000", "0.50"),
        (0.001, "0.0010", "0.001"),
        (0.0000123, "0.000012", "0.0000123"),
        (1e-7, "0.0000001", "0.0000001"),
        (1_000_000, "1000000.0000", "1000000.00"),
    ],
)
def test_a_sum_that_is_not_zero_is_never_shown_as_zero_and_a_limit_as_it_was_set(amount, shown, exact):
    assert (money(amount), money(amount, exact=True)) == (shown, exact)


@promise("approvals:one-line")
def test_what_cannot_be_seen_is_written_out():
    assert one_line("a\u202eb\u200bc\x1b[2Jd\u00a0e\ue000\ud800", 200) == (
        "a<U+202E>b<U+200B>c<U+001B>[2Jd<U+00A0>e<U+E000><U+D800>"
    )
    assert one_line("one\ntwo\r\nthree\u2028four\u0085five\rsix", 200) == (
        "one⏎two⏎three<U+2028>four<U+0085>five<U+000D>six"
    )


@promise("approvals:one-line")
def test_letters_of_all_scripts_stay_as_they_are():
    assert shown_line("Grüße, 你好, שלום, 🙂 é", 100) == ("Grüße, 你好, שלום, 🙂 é", 0)


@promise("approvals:one-line")
@given(st.text(alphabet=st.characters()), st.integers(0, 60))
@settings(deadline=None)
def test_a_line_is_visible_short_and_counts_what_it_hides(text, limit):
    line, hidden = shown_line(text, limit)
    assert len(line) <= limit
    assert not {unicodedata.category(sign) for sign in line} & UNSEEN
    assert 0 <= hidden <= len(text)
    assert (hidden == 0) == (one_line(text, 10 * len(text) + 10) == line)


@promise("approvals:one-line")
def test_a_clipped_line_says_how_much_is_hidden():
    assert shown_line("x" * 50, 10) == ("xxxxxxxxx…", 41)


@promise("approvals:arguments")
@given(st.dictionaries(st.text(max_size=20), JSON, max_size=4), st.integers(1, 300))
@settings(deadline=None)
def test_arguments_are_shown_as_strict_json_within_the_limit(arguments, limit):
    shown, hidden, _ = shown_arguments(arguments, limit)
    text = json.dumps(shown, allow_nan=False, ensure_ascii=False)
    assert not {unicodedata.category(sign) for sign in text} & UNSEEN
    assert hidden >= 0
    everything, nothing_hidden, nothing_left_out = shown_arguments(arguments, 1_000_000)
    assert (nothing_hidden, nothing_left_out) == (0, 0)
    assert hidden > 0 or shown == everything


@promise("docs:events-arguments")
def test_a_long_argument_hides_none_of_the_others_from_an_event():
    shown, hidden, left_out = brief_arguments({"body": "x" * 5000, "to": "a@x.example", "cc": ["b@x.example"], "n": 7})
    assert (shown.pop("body").strip("x"), hidden > 4900, left_out) == ("…", True, 0)
    assert shown == {"to": "a@x.example", "cc": ["b@x.example"], "n": 7}
    assert brief_arguments(shown) == (shown, 0, 0)


@promise("docs:events-arguments")
@given(st.dictionaries(st.text(max_size=200), JSON | st.text(min_size=60, max_size=200), max_size=60))
@settings(deadline=None)
def test_the_arguments_of_an_event_take_few_bytes_and_say_when_something_is_left_out(arguments):
    shown, hidden, left_out = brief_arguments(arguments)
    text = json.dumps(shown, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) <= 440
    assert not {unicodedata.category(sign) for sign in text} & UNSEEN
    assert bool(hidden or left_out) == (shown != shown_arguments(arguments, 1_000_000).arguments)


@promise("approvals:alike-names")
def test_names_that_look_alike_do_not_hide_each_other():
    shown, *_ = shown_arguments({"to\u200b": "eve", "to<U+200B>": "ana"})
    assert sorted(shown.values()) == ["ana", "eve"]


@promise("approvals:left-out")
def test_what_is_left_out_of_arguments_is_counted():
    shown, hidden, left_out = shown_arguments({"body": "x" * 5000, "then": {"deep": ["y" * 100]}}, 100)
    assert left_out == 1
    assert len(json.dumps(shown)) < 300
    assert hidden >= 4900 + 100
    assert shown["…"] == "1 more"


@promise("approvals:arguments")
def test_deep_and_huge_values_are_shown_without_failing():
    deep = []
    for _ in range(5000):
        deep = [deep, 1]
    shown, hidden, _ = shown_arguments({"deep": deep, "huge": 10**5000, "nan": float("nan")})
    assert hidden > 0
    assert shown["huge"] == "a number of 16610 bits"
    assert shown["nan"] == "nan"


@promise("approvals:markdown")
def test_markdown_shows_hostile_text_literally():
    hostile = "[click](https://evil.example) ![i](x) `rm -rf` <b>|a|b| **bold** # no\n- list"
    assert markdown_line(hostile) == (
        r"\[click\]\(https: //evil.example\) \!\[i\]\(x\) \`rm -rf\` \<b\>\|a\|b\| \*\*bold\*\* \# no⏎- list"
    )
    assert markdown_line("- item") == r"\- item"
    assert markdown_line("1. item") == r"1\. item"
    assert markdown_line("    code") == "code"
    assert markdown_line("www.evil.example") == "www .evil.example"


@promise("approvals:left-out")
def test_an_argument_that_is_named_like_the_count_is_not_hidden_by_it():
    shown, _, left_out = shown_arguments({"…": "bcc@x.example", "body": "x" * 90, "then": "y", "last": "z"}, 40)
    assert (shown["…"], left_out) == ("bcc@x.example", 2)


@promise("approvals:lookalikes")
def test_a_letter_of_another_script_is_written_out_in_a_word():
    assert one_line("p\u0430ypal.com and \u0430\u0440\u0440\u04cf\u0435.com", 200) == (
        "p<U+0430>ypal.com and <U+0430><U+0440><U+0440><U+04CF><U+0435>.com"
    )
    assert one_line("Сберб\u0061нк, \u03bfffice, ex\uff41mple, K\u0456ev, \U0001d5c9\U0001d5ba\U0001d5d2", 200) == (  # noqa: RUF001 - the subject of this test
        "Сберб<U+0061>нк, <U+03BF>ffice, ex<U+FF41>mple, K<U+0456>ev, <U+1D5C9><U+1D5BA><U+1D5D2>"  # noqa: RUF001 - the subject of this test
    )
    assert one_line("DE\u09ea9 1\u0967", 200) == "DE<U+09EA>9 1<U+0967>"


@promise("approvals:lookalikes-marks")
def test_marks_that_strike_out_or_change_nothing_that_can_be_seen_are_written_out():
    assert one_line("pay 10\u03360 i\u0307d a\u20dd e" + "\u0301" * 6, 200) == (
        "pay 10<U+0336>0 i<U+0307>d a<U+20DD> e" + "\u0301" * 4 + "<U+0301>" * 2
    )


@promise("approvals:lookalikes-honest")
@pytest.mark.parametrize(
    "text",
    [
        "Переведи 10 евро на почта.ru, пример.com и ivan@пример.рф; PDF-е в iPhone-ов, IT-специалист",  # noqa: RUF001 - the subject of this test
        "Σίσυφος και λόγος: μm, kΩ, Δt, α-helix, β-carotene, λx",  # noqa: RUF001 - the subject of this test
        "日本語のTシャツ、ＡＢＣ株式会社、１２３、カタカナ；안녕Google은，แอปFacebook",  # noqa: RUF001 - the subject of this test
        "naïve façade, Việt Nam, Vie\u0323\u0302t Nam, Œuvre, m², 1ª, nº, Љубљана/Ljubljana",
        "שָׁלוֹם, Հայաստան, हिन्दी Google, Москва\u0301, النص",
    ],
)
def test_honest_text_in_any_script_is_not_marked(text):
    assert one_line(text, 1000) == text


@promise("approvals:lookalikes-once")
@given(st.text(alphabet=st.sampled_from("a\u0431\u0432o\u0430\u043e\u03bf\u0301\u0336 \n.-1\u0661\uff50")))
@settings(deadline=None)
def test_a_text_that_is_shown_twice_is_marked_once(text):
    line = one_line(text, 1000)
    assert one_line(line, 1000) == line


@promise("approvals:commands")
@given(st.text(max_size=60))
@settings(deadline=None)
def test_words_for_a_shell_are_one_visible_line_and_mean_the_text(text):
    words = shell_words(text)
    assert one_line(words, 100_000) == words
    if not words.removeprefix("-- ").startswith("$'"):
        assert shlex.split(words)[-1:] == [text]


@promise("approvals:markdown")
def test_code_in_markdown_cannot_be_left():
    assert markdown_code("backstay undo x") == "`backstay undo x`"
    assert markdown_code("a ``b`` c") == "``` a ``b`` c ```"


@promise("approvals:markdown")
def test_markdown_says_how_much_of_a_line_is_left_out():
    assert markdown_line("x" * 3000, 10) == "xxxxxxxxx… (2,991 characters clipped)"


@promise("approvals:markdown")
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
