import hashlib
import hmac
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.approvals.proof import Binding, message, nonce_of, sign, verify
from tests.requirements import promise

KEY = b"a key only gateways and workers hold"
PAYLOAD = {"request_id": "r1", "verdict": "approve", "by": "ana@example.com"}
BOUND = Binding(
    namespace="default", workflow_id="task-1", run_id="first", update="decide", request_id="r1", digest="d" * 64
)
NONCE = "0123456789abcdef" * 2


@promise("approvals:proof")
def test_a_proof_holds_for_exactly_what_was_signed():
    proof = sign(KEY, BOUND, 2000, PAYLOAD, NONCE)
    assert verify(KEY, proof, BOUND, {**PAYLOAD, "proof": proof}, 1000) is None
    assert nonce_of(proof) == (NONCE, 2000)
    assert verify(b"another key", proof, BOUND, PAYLOAD, 1000) == "wrong"
    for name in Binding.model_fields:
        other = BOUND.model_copy(update={name: "other"})
        assert verify(KEY, proof, other, PAYLOAD, 1000) == "wrong", name
    assert verify(KEY, proof, BOUND, {**PAYLOAD, "by": "eve@example.com"}, 1000) == "wrong"
    assert verify(KEY, proof, BOUND, {**PAYLOAD, "comment": ""}, 1000) == "wrong"
    assert verify(KEY, proof.replace("2000", "2001"), BOUND, PAYLOAD, 1000) == "wrong"
    assert verify(KEY, proof.replace(NONCE, NONCE[::-1]), BOUND, PAYLOAD, 1000) == "wrong"


@promise("approvals:proof-foreign")
def test_a_program_without_this_package_can_sign():
    said = ["default", "task-1", "first", "decide", "r1", "d" * 64, 2000, NONCE, PAYLOAD]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert message(BOUND, 2000, NONCE, PAYLOAD) == text.encode()
    mac = hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()
    assert verify(KEY, f"2.2000.{NONCE}.{mac}", BOUND, PAYLOAD, 1999.5) is None


@promise("approvals:proof")
def test_a_proof_lives_for_a_day_at_most():
    proof = sign(KEY, BOUND, 100_000, PAYLOAD, NONCE)
    assert verify(KEY, proof, BOUND, PAYLOAD, 100_000 - 24 * 3600) is None
    assert verify(KEY, proof, BOUND, PAYLOAD, 100_000 - 24 * 3600 - 1) == "lifetime over 24 h"
    assert verify(KEY, proof, BOUND, PAYLOAD, 100_000) == "expired"


@promise("approvals:no-proof")
@pytest.mark.parametrize(
    "proof",
    [
        None,
        "",
        "...",
        "2",
        "2.2000",
        f"2.2000.{NONCE}",
        f"2.2000.{NONCE}.ab",
        f"3.2000.{NONCE}.{'a' * 64}",
        f"2.x.{NONCE}.{'a' * 64}",
        f"2.-1.{NONCE}.{'a' * 64}",
        f"2.².{NONCE}.{'a' * 64}",
        f"2.2000.{NONCE[1:]}.{'a' * 64}",
        f"2.2000.{NONCE.upper()}.{'a' * 64}",
        f"2.2000.{NONCE}.{'a' * 64}.",
        "2." + "9" * 5000 + ".a.a",
    ],
)
def test_what_is_no_proof_is_malformed(proof):
    assert verify(KEY, proof, BOUND, PAYLOAD, 1000) == "malformed"


@promise("approvals:no-proof")
@given(st.text(), st.text(), st.text())
@settings(deadline=None)
def test_no_text_is_taken_for_a_proof(proof, workflow_id, update):
    bound = BOUND.model_copy(update={"workflow_id": workflow_id, "update": update})
    assert verify(KEY, proof, bound, {"x": "\ud800"}, 1000) is not None


@promise("approvals:no-key")
def test_without_a_key_nothing_is_signed_and_nothing_holds():
    with pytest.raises(ValueError, match="BACKSTAY_APPROVER_KEY"):
        sign(b"", BOUND, 2000, PAYLOAD, NONCE)
    assert verify(b"", f"2.2000.{NONCE}.{'a' * 64}", BOUND, PAYLOAD, 1000) == "malformed"
