"""Each stand-in takes a correct conversation, and refuses each breach of what its vendor publishes."""

import json
from copy import deepcopy

import pytest

from tests.requirements import promise
from tests.vendors.all import VENDORS
from tests.vendors.wire import Turn

RULES = [(vendor, rule) for vendor in VENDORS for rule in vendor.rules]
TALK = Turn(text="Three of them.", calls=(("note", {"number": 3, "why": "it is next"}),), thought="hm")


@promise("testing:vendors")
@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_a_stand_in_takes_what_its_vendor_takes_and_refuses_each_breach_of_its_rules(vendor):
    refused = vendor.refusal(vendor.correct())
    assert refused is None or vendor.name.endswith("-plain"), refused
    for rule in vendor.rules:
        assert rule.source.startswith("https://")
        broken = deepcopy(vendor.correct())
        rule.breach(broken)
        found = rule.refused(broken)
        assert found is not None, rule.name
        assert found.status in {400, 401, 403, 404, 422, 500}, rule.name


@promise("testing:vendors")
@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_a_stand_in_streams_what_it_answers_whole(vendor):
    asked = vendor.correct()
    heard = vendor.hear(asked)
    assert (heard.rounds, heard.results, set(heard.functions)) == (1, 2, {"note"})
    assert {"Go.", "Note."} <= {line.strip() for line in heard.told.splitlines()}
    whole = json.dumps(vendor.whole(TALK, asked).body, ensure_ascii=False)
    pieces = b"".join(vendor.pieces(TALK, asked)).decode()
    for word in ("Three ", "note", "next"):
        assert word in whole
        assert word in pieces


@promise("testing:vendors")
@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_a_stream_that_breaks_says_so_and_has_no_end(vendor):
    pieces = list(vendor.pieces(Turn(text="Three of them.", end="broken"), vendor.correct()))
    told = b"".join(pieces)
    assert b"Three " in told
    assert b"them." not in told
    assert b"error" in told or b"insufficient_system_resource" in told or b"[DONE]" not in told
