from fnmatch import fnmatchcase

from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.policies.glob import matches, overlap
from tests.requirements import promise

PATTERNS = st.text(alphabet="ab.*?", max_size=8)
TEXTS = st.text(alphabet="ab.*?", max_size=8)


@promise("policy:glob")
@given(PATTERNS, TEXTS)
@settings(deadline=None)
def test_a_pattern_fits_exactly_what_the_standard_library_says(pattern, text):
    assert matches(pattern, text) == fnmatchcase(text, pattern)


@promise("policy:overlap")
@given(PATTERNS, PATTERNS, TEXTS)
@settings(deadline=None)
def test_two_patterns_that_fit_one_text_overlap(left, right, text):
    if matches(left, text) and matches(right, text):
        assert overlap(left, right)
        assert overlap(right, left)


@promise("policy:overlap")
def test_patterns_without_a_common_text_do_not_overlap():
    assert not overlap("stripe.*", "mail.*")
    assert not overlap("*.read", "*.write")
    assert not overlap("a.?", "a.??")
    assert overlap("stripe.*", "*.refund")


@promise("policy:glob")
def test_case_counts():
    assert not matches("Mail.*", "mail.send")


@promise("policy:glob")
def test_a_hostile_pattern_does_not_blow_up():
    assert not matches("*a" * 60 + "b", "a" * 5000)
    assert overlap("*a" * 60, "*b*" * 60)
