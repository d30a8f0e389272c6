"""What is kept of a search: no more than people and models may read."""

import pytest

from activities.tools.elicitations import _offered
from activities.tools.searches import masked_hits, shown_hit
from backstay.redaction.redactor import Redactor
from backstay.tools.tool import Hit
from tests.requirements import promise
from toolbox.mcp.scrubbing import Scrubber
from toolbox.providers.listing import ListedTool, Listing

SECRET = "hunter2hunter2"


@promise("secrets:echoed-reason")
def test_why_a_tool_is_not_available_is_kept_without_the_secret_that_its_server_echoes():
    hit = Hit(provider="m", tool="m.t", short_description="", available=False, reason=f"HTTP 403: bad key {SECRET}")
    shown = shown_hit(hit, Redactor([SECRET]))
    assert shown["reason"] == "HTTP 403: bad key [REDACTED:known]"
    assert {**shown, "reason": None} == {**hit.plain(), "reason": None}
    assert shown_hit(Hit(provider="m", tool="m.t", short_description=""), Redactor([SECRET]))["reason"] is None


@promise("tools:others-questions")
@pytest.mark.parametrize("options", [5, "a", None, True, {"const": "a"}])
def test_a_form_whose_options_are_no_list_offers_none(options):
    assert list(_offered({"oneOf": options, "anyOf": [{"const": "b"}, 1]})) == ["b"]


@promise("models:secret-words")
@pytest.mark.parametrize("word", ["customer", "available", "parameters", "properties"])
def test_of_a_tool_that_was_found_an_ordinary_word_is_masked_only_in_what_is_said_of_it(word):
    parameters = {"type": "object", "properties": {"customer": {"type": "string", "description": word}}}
    about = {"provider": "customer", "short_description": f"by {word}", "parameters": parameters}
    hits = [Hit(tool=f"customer.{name}", **about).plain() for name in ("find", f"find_{SECRET}")]
    (shown,) = masked_hits(hits, Redactor([word, SECRET]))
    told = "[REDACTED:known]"
    parameters["properties"]["customer"]["description"] = told
    assert shown == {**hits[0], "short_description": f"by {told}", "parameters": parameters}


@promise("models:secret-words")
def test_of_a_server_that_is_called_with_a_word_the_tools_stay_what_they_are():
    schema = {"type": "object", "properties": {"customer": {"type": "string", "description": "a customer"}}}
    tools = tuple(ListedTool(name, "Find a customer.", schema, None) for name in ("customer_find", f"tell_{SECRET}"))
    found = Scrubber(["customer", "properties", SECRET]).listing(Listing(tools=tools))
    told = {**schema, "properties": {"customer": {"type": "string", "description": "a [REDACTED:known]"}}}
    assert found.tools == (ListedTool("customer_find", "Find a [REDACTED:known].", told, None),)
