"""The YAML in which a person changes the arguments of a call in an editor."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.approvals.approval import RequestedCall
from backstay.errors import DecisionRefused
from backstay.shown import one_line
from gateways.terminal.asking.editing import arguments_as_yaml, arguments_in_yaml, edits_of
from gateways.terminal.terminal import Terminal
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


@promise("approvals:edited-unreadable")
@pytest.mark.parametrize(
    ("does", "why"),
    [("printf 'to: caf\\351\\n' >", "it is not UTF-8"), ("rm", "FileNotFoundError")],
    ids=["latin", "removed"],
)
async def test_a_file_that_the_editor_leaves_in_no_state_to_be_read_changes_nothing(tmp_path, does, why):
    editor = tmp_path / "editor.sh"
    editor.write_text(f'#!/bin/sh\n{does} "$1"\n', encoding="utf-8")
    editor.chmod(0o755)
    call = RequestedCall(index=0, tool="mail.send", arguments={"to": "x"}, safety="write_safe", undoable=False)

    async def arguments(*_):
        return {"to": "x"}

    with pytest.raises(DecisionRefused, match=f"{why}; save it as UTF-8; nothing was changed"):
        await edits_of(Terminal(), SimpleNamespace(arguments=arguments), "r1", [call], str(editor))
