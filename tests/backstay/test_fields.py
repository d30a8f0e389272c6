"""The schema of an answer as a form: in words, field by field, with what a person types."""

import pytest

from backstay.approvals.fields import answer_of, fields_of, form_lines
from tests.requirements import promise

BOOKING = {
    "type": "object",
    "properties": {
        "day": {"type": "string", "title": "Day", "description": "when to come", "enum": ["friday", "monday"]},
        "seats": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "mail": {"type": "string", "format": "email"},
        "lunch": {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": None},
        "size": {"oneOf": [{"const": "s", "title": "small"}, {"const": "l", "title": "large"}]},
        "extras": {"type": "array", "items": {"enum": ["wifi", "desk"]}, "maxItems": 2},
    },
    "required": ["day", "mail"],
    "minProperties": 2,
}


def typed(schema, **answers):
    fields = {field.name: field for field in fields_of(schema)}
    return answer_of({fields[name].path: fields[name].parse(text) for name, text in answers.items()})


@promise("approvals:fields")
def test_each_field_says_in_one_line_what_fits():
    assert list(form_lines(BOOKING)) == [
        "day: Day - when to come (one of [1] friday, [2] monday; required)",
        "seats (whole number; minimum 1; maximum 5; optional; default 2)",
        "mail (text; format email; required)",
        "lunch (yes or no; optional)",
        "size (one of [1] s small, [2] l large; optional)",
        "extras (any of [1] wifi, [2] desk; maxItems 2; optional)",
        "minProperties: 2",
    ]


@promise("page:form-of-a-server")
def test_what_fits_is_hinted_where_a_field_does_not_show_it_by_itself():
    plain = {"type": "object", "properties": {"who": {"type": "string", "title": "Name"}, "any": {}}}
    assert {field.name: field.hint for field in [*fields_of(BOOKING), *fields_of(plain)]} == {
        "day": "",
        "seats": "whole number; minimum 1; maximum 5",
        "mail": "format email",
        "lunch": "",
        "size": "",
        "extras": "maxItems 2",
        "who": "",
        "any": "JSON",
    }


@promise("approvals:typed")
def test_what_is_typed_becomes_the_value_of_its_type():
    said = {"day": "2", "seats": "3", "mail": "a@x.example", "lunch": "No", "size": "l", "extras": "1, desk"}
    assert typed(BOOKING, **said) == {
        "day": "monday",
        "seats": 3,
        "mail": "a@x.example",
        "lunch": False,
        "size": "l",
        "extras": ["wifi", "desk"],
    }
    assert typed(BOOKING, day="friday", mail='""') == {"day": "friday", "mail": ""}


@promise("approvals:typed")
def test_choices_that_read_as_numbers_are_named_and_never_counted():
    schema = {"type": "object", "properties": {"rooms": {"enum": [2, 3, "1"]}}}
    assert list(form_lines(schema)) == ["rooms (one of 2, 3, 1; optional)"]
    assert (typed(schema, rooms="2"), typed(schema, rooms="1")) == ({"rooms": 2}, {"rooms": "1"})


@promise("approvals:unread")
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("day", "sunday", r"choose from \[1\] friday"),
        ("seats", "2.5", "type a whole number"),
        ("seats", "1_5", "type a whole number, without _"),
        ("lunch", "perhaps", "type yes or no"),
        ("extras", "1, sauna", "choose from"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_type(name, text, said):
    with pytest.raises(ValueError, match=said):
        typed(BOOKING, **{name: text})


@promise("approvals:several")
def test_several_questions_at_once_are_asked_by_their_names_and_one_without_a_form_is_not_asked():
    schema = {"type": "object", "properties": {"who": BOOKING, "visit": {"type": "null"}}, "required": ["who", "visit"]}
    names = [(field.name, field.required, field.kind == "nothing") for field in fields_of(schema)]
    assert names[0] == ("who.day", True, False)
    assert names[-1] == ("visit", True, True)
    assert typed(schema, **{"who.day": "1", "who.seats": "4"}) == {"who": {"day": "friday", "seats": 4}}


@promise("approvals:no-form")
def test_a_schema_that_is_no_form_is_one_field():
    assert list(form_lines({"type": "boolean"})) == ["answer (yes or no; required)"]
    assert typed({"type": "boolean"}, answer="yes") is True
    assert typed({"type": "array"}, answer='["a"]') == ["a"]


@promise("approvals:typed")
def test_line_breaks_of_a_form_that_is_shown_stand_in_its_field_and_can_be_typed():
    schema = {"properties": {"text": {"type": "string", "default": "one⏎two"}, "pick": {"enum": ["a⏎b", "1"]}}}
    text, pick = fields_of(schema)

    assert text.default_text == "one\ntwo"
    assert pick.parse('"a\\nb"') == "a⏎b"
    with pytest.raises(ValueError, match="choose from"):
        pick.parse("a b")
