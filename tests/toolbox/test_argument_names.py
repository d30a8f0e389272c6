"""Which names of arguments a person may write."""

import pytest

from tests.requirements import promise
from toolbox.argument_names import fault_in_names

ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}
SCHEMA = {
    "type": "object",
    "properties": {
        "subject": {"type": "string"},
        "to": {"$ref": "#/$defs/address"},
        "lines": {"type": "array", "items": {"properties": {"cents": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "free": {"type": "object"},
    },
    "required": ["subject"],
    "allOf": [{"properties": {"priority": {"type": "string"}}}],
    "$defs": {"address": ADDRESS},
}
BEFORE = {"subject": "s", "to": {"street": "x"}, "lines": [{"cents": 1}], "odd": 1}


def fault(**changed):
    return fault_in_names(SCHEMA, BEFORE, {**BEFORE, **changed})


@promise("approvals:change-names")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"subjct": "t"}, "arguments.subjct: unknown name; did you mean subject?"),
        ({"Subject": "t"}, "arguments.Subject: unknown name; did you mean subject?"),
        ({"zzz": 1}, "arguments.zzz: unknown name; it has subject, to, lines, labels, free, priority"),
        ({"to": {"stret": "y"}}, "arguments.to.stret: unknown name; did you mean street?"),
        ({"lines": [{"cents": 1}, {"cent": 2}]}, "arguments.lines[1].cent: unknown name; did you mean cents?"),
    ],
)
def test_a_name_that_the_schema_does_not_have_is_named_with_the_nearest_also_where_others_are_let_in(changed, said):
    assert fault(**changed) == said
    open_schema = SCHEMA | {"additionalProperties": True}
    assert fault_in_names(open_schema, BEFORE, {**BEFORE, **changed}) == said


@promise("approvals:change-names")
@pytest.mark.parametrize(
    "changed",
    [
        {"subject": "t"},
        {"priority": "high"},
        {"labels": {"any": "name"}},
        {"free": {"any": {"thing": 1}}},
        {"to": {"city": "y"}},
        {"odd": 2},
    ],
)
def test_names_that_the_schema_has_or_means_to_let_in_or_that_stood_there_before_are_taken(changed):
    assert fault(**changed) is None


@promise("approvals:change-names")
def test_only_what_is_required_cannot_be_left_out():
    without = {name: value for name, value in BEFORE.items() if name != "subject"}
    assert fault_in_names(SCHEMA, BEFORE, without) == (
        "arguments: subject is required and cannot be left out; give it a value"
    )
    without = {name: value for name, value in BEFORE.items() if name != "lines"}
    assert fault_in_names(SCHEMA, BEFORE, without) is None


@promise("approvals:change-names")
def test_a_schema_that_refers_to_itself_or_is_broken_ends_in_an_answer():
    loop = {"properties": {"a": {"$ref": "#"}}, "allOf": [{"$ref": "#"}, 7], "required": "a"}
    assert fault_in_names(loop, {}, {"a": {"a": {"b": 1}}}) == "arguments.a.a.b: unknown name; it has a"
    assert fault_in_names({"properties": 3}, {}, {"x": 1}) is None
