"""What a plan writes and what is sent: `${…}` refers, `$${` is the text itself, and what a reference brings is data."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.errors import ArgumentsInvalid
from backstay.stored_texts import escape_object, is_stored_text, unescape_object
from backstay.task.plan import fill_in, references_in, resolve, step_named
from tests.requirements import promise
from tests.sizes import sized

PIECES = st.sampled_from(["$", "$$", "{", "}", "${", "$${", "${steps.0.result.x}", "${input.a}", "a", " ", "\\", "'"])
TEXTS = st.lists(PIECES, max_size=8).map("".join)
DATA = st.recursive(TEXTS | st.integers(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner))
STORED = {"$ref": "a" * 40, "bytes": 5000}

OWN = {
    # argoproj/argo-workflows#2430, warpdotdev/warp#3352, open-workflow-specification#285
    "echo $${HOME}": "echo ${HOME}",
    "run: $${{ github.ref }}": "run: ${{ github.ref }}",
    "`total $${sum} EUR`": "`total ${sum} EUR`",
    # a default in a variable of the shell, as in files of Docker Compose
    "$${TAG:-latest} $${1}": "${TAG:-latest} ${1}",
    # Terraform's own template in a text
    'name = "$${var.env}-app"': 'name = "${var.env}-app"',
    # CloudFormation's pseudo parameters
    "arn:aws:iam::$${AWS::AccountId}:role": "arn:aws:iam::${AWS::AccountId}:role",
    "$${steps.0.result.x}": "${steps.0.result.x}",
    "$${unclosed": "${unclosed",
    "$$$${twice}": "$${twice}",
    "costs $$$${input.a}": "costs $${input.a}",
    "costs $$${input.a}": "costs $7",
    "$ $$ $$$ {} $HOME $(pwd) {{ x }} {% y %}": "$ $$ $$$ {} $HOME $(pwd) {{ x }} {% y %}",
    "unclosed ${input.a": "unclosed ${input.a",
}


def sent(arguments, given, results=()):
    """Return what is sent of a step: the input is filled in when the plan is checked, the results right before."""
    filled = fill_in(arguments, given)
    return resolve(filled, {"steps": [{"result": result} for result in results]})


@promise("plans:own-notation")
@pytest.mark.parametrize("text", OWN)
def test_a_text_with_dollar_and_brace_of_its_own_can_be_said(text):
    assert sent({"text": text, "in": [text]}, {"a": "7"}) == {"text": OWN[text], "in": [OWN[text]]}


@promise("plans:brought-is-data")
@pytest.mark.thorough
@settings(max_examples=sized(300, 60), database=None, deadline=None)
@given(DATA, TEXTS, TEXTS, TEXTS)
def test_what_the_input_and_earlier_results_hold_arrives_as_it_was_and_refers_to_nothing(
    whole, given_text, found, plain
):
    arguments = {
        "whole": "${input.whole}",
        "joined": "<${input.text}{${steps.0.result}$$$${steps.0.result}${input.text}>",
        "beside": "$${input.whole}${input.text}${steps.0.result}",
    }
    given = {"whole": whole, "text": given_text}
    filled = fill_in(arguments, given)
    assert set(references_in(filled)) == {"steps.0.result"}
    assert fill_in(filled, {"whole": "another", "text": "another"}) == filled
    assert sent(arguments, given, [found]) == {
        "whole": whole,
        "joined": f"<{given_text}{{{found}$${{steps.0.result}}{given_text}>",
        "beside": f"${{input.whole}}{given_text}{found}",
    }
    # Within a text of the plan as well, where data ends with a sign and the plan goes on with a brace.
    assert fill_in({"x": "${input.text}{steps.0.result}"}, {"text": "$"}) == {"x": "$${steps.0.result}"}
    assert sent({"x": "${input.text}"}, {"text": plain}) == {"x": plain}


@promise("plans:own-notation")
def test_the_refusal_of_another_reference_says_how_the_text_itself_is_written():
    with pytest.raises(ArgumentsInvalid, match=r"\$\$\{ for the text \$\{ itself"):
        step_named(1, "HOME")


@promise("secrets:own-ref")
def test_of_the_objects_of_an_input_none_stands_for_a_stored_text():
    look = {"as it is": STORED, "escaped": {"$$ref": "a" * 40, "bytes": 1}, "schema": {"$ref": "#/$defs/A", "bytes": 1}}
    filled = fill_in({"x": "${input.look}"}, {"look": look})["x"]
    assert not any(is_stored_text(item) for item in filled.values())
    assert {name: unescape_object(item) for name, item in filled.items()} == look
    assert escape_object(STORED) == {"$$ref": "a" * 40, "bytes": 5000}


@promise("plans:own-notation")
def test_a_text_of_many_signs_is_read_in_linear_time():
    # Quadratic, this would take minutes.
    for text in ("${" * 100_000, "$" * 200_000, "$${" * 60_000, "${a" * 60_000 + "$" * 1000):
        assert references_in(text) == []
        assert fill_in({"x": text}, {})
