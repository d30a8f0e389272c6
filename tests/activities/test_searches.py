"""What is kept of a search: no more than people and models may read."""

import pytest

from activities.tools.elicitations import _offered
from activities.tools.searches import shown_hit
from backstay.redaction.redactor import Redactor
from backstay.tools.tool import Hit
from tests.requirements import promise

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
