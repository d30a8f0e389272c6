"""Forty calls, all but one alike: at every door what they share is said once, and nothing of any call is hidden."""

import re

import pytest

from backstay.approvals.approval import ApprovalRequest
from tests.e2e.approvals.test_every_field import page, slack, teams, terminal
from tests.requirements import promise

BODY = ("Dear customer,", "your invoice is due.", "Kind regards")


def forty(**last):
    """Return a request about 39 mails and a call of another tool, each with how it is undone."""
    mails = [
        {
            "index": at,
            "tool": "mail.send",
            "arguments": {"body": "⏎".join(BODY), "subject": "Due", "to": f"c{at}@x.example"},
        }
        for at in range(39)
    ]
    other = {"index": 39, "tool": "crm.close", "arguments": {"id": "case-39"}, "undo_how": "reopen(id=arguments.id)"}
    told = {"safety": "write_safe", "undoable": True, "undo_how": "recall(to=arguments.to, id=result.id)"}
    given = {
        "id": "r1",
        "kind": "batch",
        "question": "May it?",
        "options": ["approve", "modify", "reject"],
        "digest": "d",
    }
    calls = [told | call for call in [*mails, other]]
    calls[5] |= last
    return ApprovalRequest.model_validate(given | {"calls": calls})


@promise("approvals:many-alike")
@pytest.mark.parametrize("door", [terminal, page, slack, teams])
async def test_forty_calls_are_read_at_once_and_can_be_approved_at_every_door(door):
    said = door("calls", forty())
    said = said if isinstance(said, str) else await said

    assert all(re.search(rf"\bc{at}@x\.example", said) for at in range(39))
    assert [said.count(line) for line in (BODY[-1], "recall, with the same to, id from its answer")] == [1, 1]
    assert said.count("case-39") >= 1
    assert re.search(r"\[a\]pprove|\bApprove\b", said)
    assert "no room" not in said


@promise("approvals:many-alike")
@pytest.mark.parametrize("door", [terminal, page, slack, teams])
async def test_what_is_cut_changed_repeated_or_minded_of_one_call_stands_beside_it_at_every_door(door):
    source = {"/to": [{"kind": "tool", "tool": "crm.read", "content": "others"}]}
    more = {"clipped": 123, "changed": ["~ to: a -> b"], "changed_by": "bo", "repeats": "made before", "diff": "+new"}
    said = door("calls", forty(**more, sources=source, minded=["/to"]))
    said = said if isinstance(said, str) else await said

    for words in ("123 characters", "~ to: a", "by bo", "made before", "new", "the answer of crm.read"):
        assert said.count(words) >= 1
    if door in {slack, teams}:
        assert not re.search(r"^Approve$", said, re.MULTILINE)
