from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.policies.glob import matches, overlap

PATTERNS = st.text(alphabet="ab.*?", max_size=8)
TEXTS = st.text(alphabet="ab.*?", max_size=8)


@given(PATTERNS, TEXTS)
@settings(deadline=None)
def test_a_pattern_fits_exactly_what_the_standard_library_says(pattern, text):
    assert matches(pattern, text) == fnmatchcase(text, pattern)


@given(PATTERNS, PATTERNS, TEXTS)
@settings(deadline=None)
def test_two_patterns_that_fit_one_text_overlap(left, right, text):
    if matches(left, text) and matches(right, text):
        assert overlap(left, right)
        assert overlap(right, left)


def test_patterns_without_a_common_text_do_not_overlap():
    assert not overlap("stripe.*", "mail.*")
    assert not overlap("*.read", "*.write")
    assert not overlap("a.?", "a.??")
    assert overlap("stripe.*", "*.refund")


def test_case_counts():
    assert not matches("Mail.*", "mail.send")


def test_a_hostile_pattern_does_not_blow_up():
    assert not matches("*a" * 60 + "b", "a" * 5000)
    assert overlap("*a" * 60, "*b*" * 60)
