"""The YAML in which a person changes the arguments of a call in an editor."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.errors import DecisionRefused
from backstay.shown import one_line
from gateways.terminal.asking.editing import arguments_as_yaml, arguments_in_yaml
from tests.requirements import promise

TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(
    [
        "no",
        "~",
        "",
        "12:30",
        "2026-01-01",
        "0x1f",
        "1_000",
        "a\u202eb",
        "- x",
        "# x",
        "a: b",
        "x\n",
        "\n x \n\n",
        "\r\n",
        "1e5",
        "=",
        "<<",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@promise("approvals:edited-yaml")
@given(st.dictionaries(TEXT, JSON, max_size=5))
def test_arguments_come_out_of_the_editor_as_they_went_in_and_nothing_in_it_is_invisible(arguments):
    text = arguments_as_yaml(arguments)
    read = arguments_in_yaml(text) or {}

    assert read == arguments
    assert json.dumps(read) == json.dumps(arguments)
    assert all(one_line(line, 16 * len(line) + 16) == line for line in text.split("\n"))


@promise("approvals:edited-yaml")
def test_what_a_person_types_there_is_a_text_unless_json_has_it_as_something_else():
    typed = "a: no\nb: 12:30\nc: 2026-01-01\nd: true\ne: 5\nf: 1.5\ng: null\nh: |\n  one\n  two\ni: [x, 1]\nj: 007\n"
    assert arguments_in_yaml(typed) == {
        "a": "no",
        "b": "12:30",
        "c": "2026-01-01",
        "d": True,
        "e": 5,
        "f": 1.5,
        "g": None,
        "h": "one\ntwo\n",
        "i": ["x", 1],
        "j": "007",
    }
    for wrong in ("a: [", "a: 1\na: 2", "a: !!python/object:os.system x", "a: &x [*x, *x", "- \t- x: :"):
        with pytest.raises(DecisionRefused, match="arguments: "):
            arguments_in_yaml(wrong)
