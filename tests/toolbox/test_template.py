import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.errors import ArgumentsInvalid
from tests.requirements import promise
from toolbox.configuration.template import holds, render

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
