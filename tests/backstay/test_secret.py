import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.redaction.handles import belongs_to, handle_for, handles_in, provider_of, replace_handles
from tests.requirements import promise

KEY = b"key of one run"
NAMES = st.text(min_size=1, max_size=60)


@promise("secrets:grammar")
@given(NAMES, NAMES, st.text() | st.integers() | st.floats())
@settings(deadline=None)
def test_a_handle_is_found_again_and_knows_its_provider(provider, label, value):
    handle = handle_for(KEY, provider, label, value)
    assert handles_in({"a": [f"before {handle} after"]}) == [handle]
    assert belongs_to(handle, provider)
    assert len(handle) < 120


@promise("secrets:handles")
def test_equal_secrets_have_equal_handles_in_one_run_only():
    handle = handle_for(KEY, "crm", "token", "value")
    assert handle == handle_for(KEY, "crm", "token", "value")
    others = [
        handle_for(b"another run", "crm", "token", "value"),
        handle_for(KEY, "mail", "token", "value"),
        handle_for(KEY, "crm", "key", "value"),
        handle_for(KEY, "crm", "token", "other"),
    ]
    assert len({handle, *others}) == 5


@promise("secrets:grammar")
def test_providers_that_look_alike_in_a_handle_stay_apart():
    handle = handle_for(KEY, "my crm", "token", "value")
    assert not belongs_to(handle, "my_crm")
    assert not belongs_to(handle, provider_of(handle) + "x")


@promise("secrets:grammar")
def test_a_handle_keeps_to_its_grammar_whatever_the_label():
    handle = handle_for(KEY, "crm", "⟧ ${x}/:\n" * 20, "value")
    assert handle.startswith("⟦secret:crm/")
    assert handles_in(handle) == [handle]


@promise("secrets:grammar")
def test_what_only_looks_like_a_handle_is_none():
    genuine = handle_for(KEY, "crm", "token", "value")
    for text in ("⟦secret:crm/token:12⟧", "⟦secret:⟧", genuine[:-1], genuine.replace("/", "|"), "⟦secret:" * 5000):
        assert handles_in(text) == []
        assert not provider_of(text)


@promise("secrets:replaced")
def test_handles_become_their_values_whole_or_inside_a_text():
    number, text = handle_for(KEY, "crm", "pin", 1234), handle_for(KEY, "crm", "token", "value")
    shown = {"pin": number, "header": f"Bearer {text}", text: [number], "unknown": handle_for(KEY, "x", "y", "z")}
    assert replace_handles(shown, {number: 1234, text: "value"}) == {
        "pin": 1234,
        "header": "Bearer value",
        "value": [1234],
        "unknown": handle_for(KEY, "x", "y", "z"),
    }


@promise("secrets:json-text")
def test_in_json_text_a_number_goes_back_as_a_number():
    number, text = handle_for(KEY, "crm", "pin", 1234), handle_for(KEY, "crm", "token", "value")
    values = {number: 1234, text: "value"}
    shown = f'{{"pin": "{number}", "{number}": "{text}", "note": "\\"{number}\\""}}'
    assert replace_handles(shown, values) == '{"pin": 1234, "1234": "value", "note": "\\"1234\\""}'
    assert replace_handles(f'say "{number}"', values) == 'say "1234"'
    assert replace_handles(f'[urgent] the pin is "{number}", [call]', values) == '[urgent] the pin is "1234", [call]'


@promise("secrets:grammar")
def test_a_broken_handle_does_not_hide_the_one_after_it():
    handle = handle_for(KEY, "crm", "token", "value")
    assert handles_in(f"⟦secret:crm/{handle}") == [handle]


@promise("secrets:json-text")
@pytest.mark.parametrize("value", ['Tr0ub"4dor', "-----BEGIN KEY-----\nMIIE\n", "a\\b", "Pässw0rt-99"])
def test_a_handle_becomes_its_value_alone_and_what_json_writes_for_it_in_json_text(value):
    handle = handle_for(KEY, "mail", "key", value)
    inner = json.dumps({"key": f"{handle} and"}, ensure_ascii=False)
    text = json.dumps({"a": f"x {handle}", "b": inner, handle: 1}, ensure_ascii=False)
    assert replace_handles({"key": handle}, {handle: value}) == {"key": value}
    assert replace_handles(f"--key={handle}", {handle: value}) == f"--key={value}"
    revealed = json.loads(replace_handles(text, {handle: value}))
    assert (revealed["a"], revealed[value]) == (f"x {value}", 1)
    assert json.loads(revealed["b"]) == {"key": f"{value} and"}


@promise("secrets:json-text")
def test_a_handle_that_json_text_spells_with_escapes_moves_no_other_one():
    first, second = (handle_for(KEY, "mail", name, f"value of {name}") for name in ("first", "second"))
    values = {first: "value of first", second: "value of second"}
    spelled = json.dumps(first)[1:-1]
    text = f'{{"a": "{spelled}", "b": "{second}", "c": ["{spelled} {first}", "{second}"]}}'
    revealed = json.loads(replace_handles(text, values))
    assert (revealed["b"], revealed["c"]) == ("value of second", [f"{first} value of first", "value of second"])
    assert revealed["a"] == first
