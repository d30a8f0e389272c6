"""JSON as people write it: what is read, and what an addition leaves as it was."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.canonical import KeyTwice
from tests.requirements import promise
from toolbox.configuration.commented import add, read, remove

PEOPLES = """// mine
{
  "mcpServers": {
    "a": {"command": "x", "args": ["// no comment", "a, ]"]}, // the first, {
  },
  /* everybody
     sees it */
  "users": {"*": {"providers": ["a"]}},
}
"""
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@promise("tools:commented")
def test_comments_and_trailing_commas_are_read_over():
    assert read(PEOPLES) == {
        "mcpServers": {"a": {"command": "x", "args": ["// no comment", "a, ]"]}},
        "users": {"*": {"providers": ["a"]}},
    }


@promise("tools:commented-plain")
@given(VALUES)
def test_plain_json_is_read_as_it_is(value):
    assert read(json.dumps(value)) == value
    assert read(json.dumps(value, indent=1, ensure_ascii=False)) == value


@promise("tools:commented-plain")
@pytest.mark.parametrize("text", ["{,}", "[,]", "[1,,]", '{"a":,}', '{"a" 1}', "[1 2]", '"a', "{} x", ""])
def test_what_no_json_is_stays_a_fault(text):
    with pytest.raises(json.JSONDecodeError):
        read(text)


@promise("tools:commented-twice")
def test_a_key_that_is_there_twice_is_refused():
    with pytest.raises(KeyTwice, match="a: duplicate key"):
        read('{"b": {"a": 1, /* "a": 2, */ "a": 3}}')


@promise("tools:commented-added")
def test_an_addition_loses_no_comment_and_makes_the_objects_on_the_way():
    text = add(PEOPLES, ["mcpServers", "b"], {"url": "http://h/"})
    text = add(text, ["users", "*", "providers", "-"], "b")
    text = add(text, ["providers", "b", "tools", "get"], {"safety": "read_only"})

    assert [line for line in PEOPLES.splitlines() if line not in text.splitlines()] == [
        '  "users": {"*": {"providers": ["a"]}},'
    ]
    found = read(text)
    assert list(found["mcpServers"]) == ["a", "b"]
    assert found["users"]["*"]["providers"] == ["a", "b"]
    assert found["providers"] == {"b": {"tools": {"get": {"safety": "read_only"}}}}


@promise("tools:commented-removed")
def test_a_removal_takes_the_comments_inside_and_behind_and_leaves_those_above():
    text = """{
  "mcpServers": {
    // above
    "a": {"command": "x"}, // behind, {
    "b": {
      // inside
      "url": "u"
    } /* behind,
    too */
  },
  "users": {"*": {"providers": ["a", /* of b */ "b"]}},
}
"""
    without_a = remove(remove(text, ["mcpServers", "a"]), ["users", "*", "providers", "a"])
    without_b = remove(remove(text, ["mcpServers", "b"]), ["users", "*", "providers", "b"])

    assert without_a == text.replace('    "a": {"command": "x"}, // behind, {\n', "").replace('["a", /*', "[ /*")
    assert read(without_b) == {"mcpServers": {"a": {"command": "x"}}, "users": {"*": {"providers": ["a"]}}}
    assert without_b.count("//") == 2
    assert remove(remove(text, ["mcpServers"]), ["users"]) == "{}\n"


SPACES = st.sampled_from(["", " ", "\n", "\n  ", '/* "a": [ */', ' // }, "b": "\n', " /* , \n */ "])


@promise("tools:commented-removed")
@given(st.dictionaries(st.text("ab,/*"), VALUES, min_size=1, max_size=4), st.data())
def test_what_is_removed_is_gone_and_nothing_else_however_it_was_laid_out(known, data):
    def space():
        return data.draw(SPACES)

    members = [f"{space()}{json.dumps(key)}:{space()}{json.dumps(value)}{space()}" for key, value in known.items()]
    comma = data.draw(st.sampled_from(["", f",{space()}"]))
    name = data.draw(st.sampled_from(sorted(known)))
    text = remove(f'{{"in": {{{",".join(members)}{comma}}}}}', ["in", name])

    assert read(text) == {"in": {key: value for key, value in known.items() if key != name}}


@promise("tools:commented-added")
@given(st.dictionaries(st.text(), VALUES, max_size=3), st.text(), VALUES, st.sampled_from([None, 0, 2]))
def test_what_is_added_is_read_back_and_nothing_else_changes(known, name, value, indent):
    known.pop(name, None)
    text = add(json.dumps({"in": known}, indent=indent), ["in", name], value)

    assert read(text) == {"in": {**known, name: value}}


@promise("tools:commented-refused")
@pytest.mark.parametrize(
    "path", [["mcpServers", "b"], ["users", "ana", "providers", "a"], ["users", "*", "providers", "b"]]
)
def test_what_is_not_there_cannot_be_removed(path):
    with pytest.raises(ValueError, match=f"{re.escape('.'.join(path))}: is not there"):
        remove(PEOPLES, path)


@promise("tools:commented-refused")
def test_a_taken_name_and_a_way_through_no_object_are_refused():
    with pytest.raises(ValueError, match=r"mcpServers\.a: is there already"):
        add(PEOPLES, ["mcpServers", "a"], {})
    with pytest.raises(ValueError, match="neither an object nor a list"):
        add('{"mcpServers": 7}', ["mcpServers", "a"], {})


@promise("tools:commented-one-pass")
@pytest.mark.parametrize("sign", ["/*", "//", ",", '"', "[", "{,"])
def test_a_hostile_text_is_read_in_one_pass(sign):
    """Quadratic time would take minutes."""
    with pytest.raises((json.JSONDecodeError, RecursionError)):
        read("[" + sign * 500_000)
