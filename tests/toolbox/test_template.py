import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.errors import ArgumentsInvalid
from tests.requirements import promise
from toolbox.configuration.template import holds, render, render_call

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@promise("undo:values")
@given(value=JSON)
def test_one_expression_keeps_the_value_as_it_is(value):
    assert render({"a": ["{{ result }}"]}, {"result": value}) == {"a": [value]}
    assert render("{{result.x}}", {"result": {"x": value}}) == value


@promise("undo:template")
@given(text=st.text())
def test_what_tools_answer_is_never_a_template(text):
    hostile = "{{ 7 * 7 }}" + text
    assert render("id: {{ result }}!", {"result": hostile}) == f"id: {hostile}!"


@promise("undo:values")
def test_text_that_looks_like_a_number_stays_text():
    assert render({"id": "{{ result.id }}"}, {"result": {"id": "0012"}}) == {"id": "0012"}
    assert render({"n": 3, "b": None}, {}) == {"n": 3, "b": None}


@promise("undo:values")
def test_fields_win_over_methods_of_the_same_name():
    result = {"items": [1], "keys": 2, "messages": [{"id": 5}, {"id": 6}]}
    assert render(["{{ result.items }}", "{{ result.keys }}"], {"result": result}) == [[1], 2]
    assert render("{{ result.messages | map(attribute='id') }}", {"result": result}) == [5, 6]
    assert render("{{ result['messages'][0].id + 1 }}", {"result": result}) == 6


@promise("undo:template")
@pytest.mark.parametrize(
    "template",
    [
        "{{ result.missing }}",
        "{{ result.missing.deeper }}",
        "x {{ result.missing }}",
        "{{ result.__class__ }}",
        "{{ result.__class__.__mro__ }}",
        "x {{ ''.__class__ }}",
        "{{ result.update }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 10 ** 10 ** 10 }}",
        "{{ range(10000000) }}",
        "{% for i in range(99999) %}xxxxxxxx{% endfor %}",
        "{{ result.big }}",
        "{{ result | nothing }}",
        "{{ 1 // 0 }}",
        "{{ cycler }}",
    ],
)
def test_what_cannot_be_computed_is_one_error(template):
    with pytest.raises(ArgumentsInvalid):
        render({"a": template}, {"result": {"id": 1, "big": "x" * 70_000}})


@promise("undo:template")
def test_an_error_quotes_the_template_and_never_the_value():
    for template in ("{{ {}[result.secret] }}", "{{ result[result.secret] }}", "{{ [1] | join(result.secret, 3, 4) }}"):
        with pytest.raises(ArgumentsInvalid) as caught:
            render(template, {"result": {"secret": "hidden-value"}})
        assert template in str(caught.value)
        assert "hidden-value" not in str(caught.value)


@promise("undo:conditions")
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("{{ result.messages | length > 0 }}", True),
        ("{{ result.messages | length > 1 }}", False),
        ("{{ result.messages }}", True),
        ("{{ result.none }}", False),
        ("{{ effect.id in result.tokens }}", True),
    ],
)
def test_a_condition_is_true_or_false(condition, expected):
    variables = {"result": {"messages": [1], "none": None, "tokens": ["w/r/1"]}, "effect": {"id": "w/r/1"}}
    assert holds(condition, variables) is expected


@promise("undo:conditions")
@pytest.mark.parametrize("condition", ["true", "{{ result.text }}", "{{ result.gone }}", "{{ 1 }}{{ 1 }}", "{{ 1", ""])
def test_a_condition_that_says_neither_is_an_error(condition):
    with pytest.raises(ArgumentsInvalid):
        holds(condition, {"result": {"text": "false"}})


EMPTY = [None, "", " ", "\n"]
NO_NAMES = [*EMPTY, True, False, [], [1], {}, {"a": 1}]


@promise("undo:call-template")
@pytest.mark.parametrize("value", NO_NAMES, ids=repr)
@pytest.mark.parametrize(
    "template",
    [
        "/items/{{ result.id }}",
        "{{ result.id }}/x",
        "{{ '/items/' ~ result.id }}",
        "{{ '/items/' ~ ('a' ~ result.id) ~ '/x' }}",
        "{% for part in [result.id] %}/{{ part }}{% endfor %}",
    ],
)
def test_a_text_of_a_call_takes_nothing_that_names_nothing(template, value):
    with pytest.raises(ArgumentsInvalid) as caught:
        render_call({"a": [template]}, {"result": {"id": value}})
    assert template[:80] in str(caught.value).replace('"', "'") or template[:80] in str(caught.value)


@promise("undo:call-template")
@pytest.mark.parametrize(("value", "said"), [("a1", "a1"), (0, "0"), (7, "7"), (1.5, "1.5"), ("007", "007")])
def test_a_text_of_a_call_takes_strings_and_numbers(value, said):
    result = {"result": {"id": value}}
    assert render_call("/items/{{ result.id }}", result) == f"/items/{said}"
    assert render_call("{{ '/items/' ~ result.id }}", result) == f"/items/{said}"


@promise("undo:call-template")
@pytest.mark.parametrize("value", EMPTY, ids=repr)
def test_a_value_of_the_answer_is_not_empty_unless_the_template_says_so(value):
    variables = {"result": {"id": value}, "arguments": {"note": value}}
    with pytest.raises(ArgumentsInvalid, match="names nothing"):
        render_call({"id": "{{ result.id }}"}, variables)
    assert render_call("{{ arguments.note }}", variables) == value
    assert render_call("{{ result.id | default('none', true) }}", {"result": {"id": None}}) == "none"
    assert render_call("{{ result.id or '' }}", {"result": {"id": ""}}) == ""
    assert render_call("a{% if result.id %}/{{ result.id }}{% endif %}", {"result": {"id": None}}) == "a"


@promise("undo:call-template")
def test_what_is_no_target_is_filled_in_as_before():
    assert render("cc: {{ arguments.cc }}", {"arguments": {"cc": None}}) == "cc: None"
    assert render("{{ result }}", {"result": None}) is None
    with pytest.raises(ArgumentsInvalid):
        render_call("{{ '/items/' + result.id }}", {"result": {"id": ""}})
    assert render_call("{{ result.number + 1 }}", {"result": {"number": 1}}) == 2
