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


PERSON = {"type": "object", "properties": {"email": {"type": "string"}}}
WAYS = {
    "type": "object",
    "properties": {
        "pair": {"type": "array", "prefixItems": [PERSON], "items": {"properties": {"n": {}}}},
        "tuple": {"type": "array", "items": [PERSON], "additionalItems": {"properties": {"n": {}}}},
        "by_name": {"type": "object", "additionalProperties": PERSON},
        "by_key": {"type": "object", "patternProperties": {"^k[0-9]$": PERSON}},
        "by_odd_key": {"type": "object", "patternProperties": {"^(?!x)": PERSON}},
        "anchored": {"$ref": "#person"},
        "coded": {"$ref": "#/$defs/of%20one"},
        "dependent": {"properties": {"a": {}}, "dependentSchemas": {"a": {"properties": {"b": {}}}}},
    },
    "$defs": {"a": {"$anchor": "person"} | PERSON, "of one": PERSON},
}


@promise("approvals:change-names")
@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"pair": [{"emial": 1}]}, "pair[0].emial"),
        ({"pair": [{}, {"email": 1}]}, "pair[1].email"),
        ({"tuple": [{"emial": 1}]}, "tuple[0].emial"),
        ({"tuple": [{}, {"email": 1}]}, "tuple[1].email"),
        ({"by_name": {"any": {"emial": 1}}}, "by_name.any.emial"),
        ({"by_key": {"k1": {"emial": 1}}}, "by_key.k1.emial"),
        ({"by_key": {"x": {}}}, "by_key.x"),
        ({"anchored": {"pair": 1}}, "anchored.pair"),
        ({"coded": {"emial": 1}}, "coded.emial"),
        ({"dependent": {"c": 1}}, "dependent.c"),
    ],
)
def test_an_unknown_name_is_found_in_whichever_way_the_schema_says_what_stands_there(changed, where):
    assert str(fault_in_names(WAYS, {}, changed)).startswith(f"arguments.{where}: unknown name; ")


@promise("approvals:change-names")
@pytest.mark.parametrize(
    "changed",
    [
        {"pair": [{"email": 1}, {"n": 1}]},
        {"tuple": [{"email": 1}, {"n": 1}]},
        {"by_name": {"any": {"email": 1}}},
        {"by_key": {"k1": {"email": 1}}},
        {"by_odd_key": {"y": {"any": 1}}},
        {"anchored": {"email": 1}},
        {"coded": {"email": 1}},
        {"dependent": {"a": 1, "b": 1}},
    ],
)
def test_a_name_is_taken_in_whichever_way_the_schema_lets_it_in(changed):
    assert fault_in_names(WAYS, {}, changed) is None


@promise("approvals:change-names")
def test_an_unknown_name_is_found_as_deep_as_a_decision_may_go():
    schema, value = {"properties": {"end": {}}}, {"edn": 1}
    for _ in range(90):
        schema, value = {"properties": {"a": {"items": schema}}}, {"a": [value]}
    assert str(fault_in_names(schema, {}, value)).endswith(".edn: unknown name; did you mean end?")
