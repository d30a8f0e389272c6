import hashlib
import hmac
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.approvals.proof import message, sign, verify

KEY = b"a key only gateways and workers hold"
PAYLOAD = {"request_id": "r1", "verdict": "approve", "by": "ana@example.com"}


def test_a_proof_holds_for_exactly_what_was_signed():
    proof = sign(KEY, "task-1", "decide", 2000, PAYLOAD)
    assert verify(KEY, proof, "task-1", "decide", {**PAYLOAD, "proof": proof}, 1000) is None
    assert verify(b"another key", proof, "task-1", "decide", PAYLOAD, 1000) == "wrong"
    assert verify(KEY, proof, "task-2", "decide", PAYLOAD, 1000) == "wrong"
    assert verify(KEY, proof, "task-1", "top_up", PAYLOAD, 1000) == "wrong"
    assert verify(KEY, proof, "task-1", "decide", {**PAYLOAD, "by": "eve@example.com"}, 1000) == "wrong"
    assert verify(KEY, proof, "task-1", "decide", {**PAYLOAD, "comment": ""}, 1000) == "wrong"
    assert verify(KEY, proof.replace("2000", "2001"), "task-1", "decide", PAYLOAD, 1000) == "wrong"


def test_a_program_without_this_package_can_sign():
    text = json.dumps(["task-1", "decide", 2000, PAYLOAD], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert message("task-1", "decide", 2000, PAYLOAD) == text.encode()
    mac = hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()
    assert verify(KEY, f"2000.{mac}", "task-1", "decide", PAYLOAD, 1999.5) is None


def test_a_proof_lives_for_a_day_at_most():
    proof = sign(KEY, "task-1", "decide", 100_000, PAYLOAD)
    assert verify(KEY, proof, "task-1", "decide", PAYLOAD, 100_000 - 24 * 3600) is None
    assert verify(KEY, proof, "task-1", "decide", PAYLOAD, 100_000 - 24 * 3600 - 1) == "lifetime over 24 h"
    assert verify(KEY, proof, "task-1", "decide", PAYLOAD, 100_000) == "expired"


@pytest.mark.parametrize(
    "proof",
    [None, "", ".", "2000", "2000.", "2000.ab", "x." + "a" * 64, "-1." + "a" * 64, "²." + "a" * 64, "9" * 5000 + ".a"],
)
def test_what_is_no_proof_is_malformed(proof):
    assert verify(KEY, proof, "task-1", "decide", PAYLOAD, 1000) == "malformed"


@given(st.text(), st.text(), st.text())
@settings(deadline=None)
def test_no_text_is_taken_for_a_proof(proof, workflow_id, update):
    assert verify(KEY, proof, workflow_id, update, {"x": "\ud800"}, 1000) is not None


def test_without_a_key_nothing_is_signed_and_nothing_holds():
    with pytest.raises(ValueError, match="BACKSTAY_APPROVER_KEY"):
        sign(b"", "task-1", "decide", 2000, PAYLOAD)
    assert verify(b"", "2000." + "a" * 64, "task-1", "decide", PAYLOAD, 1000) == "malformed"
