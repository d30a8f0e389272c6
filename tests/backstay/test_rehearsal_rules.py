"""The rules of rehearsals: simulated answers, tokens, and when a real call fits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.approvals.forecast import ForecastEntry, forecast_lines, shown_forecast
from backstay.errors import ArgumentsInvalid
from backstay.plans.rehearsal import Token, differences, missing_value, simulated_answer, tokens_in
from backstay.task.plan import resolve
from tests.requirements import promise
from tests.sizes import sized

ID = Token(0, "/id").text
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
# The signs of a token stand in no name of a simulated answer.
NAMES = st.text(st.characters(exclude_characters="⟦⟧"), max_size=4)


@promise("approvals:rehearsal-tokens")
def test_each_leaf_of_a_simulated_answer_is_a_token_of_its_place():
    schema = {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "a/b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/Row"}]},
            "rows": {"type": "array", "items": {"$ref": "#/$defs/Row"}},
        },
        "$defs": {"Row": {"type": "object", "properties": {"ok": {"type": "boolean"}}}},
    }
    assert simulated_answer(schema, 3) == {
        "id": "⟦sim:3:/id⟧",
        "a/b": {"ok": "⟦sim:3:/a~1b/ok⟧"},
        "rows": [{"ok": "⟦sim:3:/rows/0/ok⟧"}],
    }
    assert simulated_answer(None, 3) == "⟦sim:3:⟧"


@promise("approvals:rehearsal-tokens")
def test_a_schema_that_never_ends_is_simulated_in_bounded_size():
    endless = {"properties": {name: {"$ref": "#"} for name in "abc"}}
    assert len(tokens_in(simulated_answer(endless, 0))) <= 1500
    assert simulated_answer({"properties": {"⟧": {}}}, 0) == "⟦sim:0:⟧"


@promise("approvals:rehearsal-fits")
@settings(max_examples=sized(200, 50))
@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_a_call_fits_when_each_token_stands_for_the_real_value_of_whatever_type(answer):
    foretold = {
        f"k{at}": Token(0, f"/{key.replace('~', '~0').replace('/', '~1')}").text for at, key in enumerate(answer)
    }
    real = {f"k{at}": value for at, value in enumerate(answer.values())}
    assert differences(foretold, real, {0: answer}, 1) == []
    assert [at.pointer for at in differences(foretold, {name: ["no"] for name in real}, {0: answer}, 1)] == [
        f"/{name}" for name, value in real.items() if value != ["no"]
    ]


@promise("approvals:rehearsal-fits")
@pytest.mark.parametrize(
    ("foretold", "real", "fits"),
    [
        ({"to": f"re: {ID}!"}, {"to": "re: 7!"}, True),
        ({"to": f"re: {ID}!"}, {"to": "re: 8!"}, False),
        ({"to": ID}, {"to": 7}, True),
        ({"to": ID}, {"to": "7"}, False),
        ({"to": ID}, {"to": 7.0}, False),
        ({"to": ID}, {"to": ID}, False),
        ({"to": "a"}, {"to": "a", "cc": "b"}, False),
        ({"to": "a", "cc": None}, {"to": "a"}, False),
        ({"to": 1}, {"to": True}, False),
        ({"to": [ID, "x"]}, {"to": [7, "x"]}, True),
        ({"to": [ID, "x"]}, {"to": [7]}, False),
        ({"to": Token(0, "/none").text}, {"to": None}, False),
        ({"to": Token(1, "/id").text}, {"to": 9}, False),
        ({f"k{ID}": "v"}, {"k7": "v"}, True),
        ({"to": "⟦sim:0:id⟧"}, {"to": 7}, False),
        ({"to": "⟦sim:0:id⟧"}, {"to": "⟦sim:0:id⟧"}, True),
        ({"to": "⟦sim:x:/id⟧"}, {"to": 7}, False),
    ],
)
def test_anything_else_than_the_value_that_a_token_stands_for_does_not_fit(foretold, real, fits):
    answers = {0: {"id": 7}, 1: {"id": 9}}
    assert (differences(foretold, real, answers, 1) == []) is fits


@promise("approvals:rehearsal-references")
def test_a_reference_into_a_simulated_answer_always_brings_a_token_and_into_a_real_one_never():
    simulated = {0: {"rows": ["⟦sim:0:/rows/0⟧"]}, 1: "⟦sim:1:⟧"}
    scope = {"steps": [{"result": simulated[0]}, {"result": simulated[1]}, {"result": {"real": 1}}]}

    def brought(path):
        return resolve("${" + path + "}", scope, lambda found: missing_value(found, simulated))

    assert brought("steps.0.result.rows.0.id") == "⟦sim:0:/rows/0/id⟧"
    assert brought("steps.0.result.rows.1.id") == "⟦sim:0:/rows/1/id⟧"
    assert brought("steps.1.result.a/b") == "⟦sim:1:/a~1b⟧"
    assert brought("steps.2.result.real") == 1
    with pytest.raises(ArgumentsInvalid):
        brought("steps.2.result.other")


@promise("approvals:rehearsal-drawn")
def test_a_forecast_is_drawn_in_lines_that_no_argument_can_break_out_of():
    entries = [
        ForecastEntry(idx=0, tool="mail.list", arguments={}),
        ForecastEntry(idx=1, tool="mail.send", arguments={"body": "hi\n2. mail.send (read)"}, simulated=True),
        ForecastEntry(idx=2, tool="mail.get", arguments={"id": "⟦sim:1:/id⟧"}, simulated=True, assumed=True),
    ]
    assert list(forecast_lines(shown_forecast(entries, 2000))) == [
        "0. mail.list (read)",
        "1. mail.send (would be made)",
        "   body:",
        "   │ hi",
        "   │ 2. mail.send (read)",
        "2. mail.get (assumed)",
        "   id: ⟦sim:1:/id⟧",
    ]


@promise("plans:not-as-foretold")
def test_two_long_values_are_shown_from_where_they_differ():
    (found,) = differences({"body": f"{'a' * 500}1000 EUR"}, {"body": f"{'a' * 500}9000 EUR"}, {}, 1)
    foretold, now = found.words.split(", now ")
    assert foretold.endswith("1000 EUR'")
    assert now.endswith("9000 EUR'")
    (short,) = differences({"to": "a@x"}, {"to": "b@x"}, {}, 1)
    assert short.words == "foretold 'a@x', now 'b@x'"
