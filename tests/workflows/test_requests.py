"""Requests across versions of the product."""

from backstay.approvals.approval import ApprovalRequest
from tests.requirements import promise
from workflows.asking.opening import digest_of_request

REQUEST = ApprovalRequest.model_validate(
    {
        "id": "r1",
        "kind": "call",
        "question": "May it?",
        "options": ["approve", "reject"],
        "reason": "because",
        "rule": "ask[0]",
        "approvers": ["ana@example.com"],
        "quorum": 2,
        "no_self_approval": True,
        "cost_so_far": 0.25,
        "created_at": "2026-01-01T00:00:00+00:00",
        "expires_at": "2026-01-02T00:00:00+00:00",
        "on_expiry": "escalate",
        "args_digest": "d" * 64,
        "namespace": "default",
        "run_id": "f",
        "task": "Write",
        "user_id": "bo",
        "session_id": "s",
        "step": 3,
        "sequence": 4,
        "calls": [
            {
                "index": 0,
                "tool": "mail.send_email",
                "arguments": {"to": "a@x.example"},
                "args_digest": "d" * 64,
                "safety": "restricted_write",
                "undoable": False,
            }
        ],
    }
)


@promise("approvals:proofs-digest")
def test_the_digest_of_a_request_is_what_it_was_in_version_0_1():
    """A proof names it, and who signed before an upgrade must be heard after it."""
    digest = "a8c5d2e64bba0261bb1af590a4894be05d789263a02951c01e0bf987732f1f63"
    assert digest_of_request(REQUEST) == digest
    escalated = REQUEST.model_copy(update={"escalated": True, "escalated_to": ("cy@example.com",)})
    assert digest_of_request(escalated) == digest
