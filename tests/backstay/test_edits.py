"""What a change of arguments leads to, and how it is shown."""

import pytest

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import CallVerdict
from backstay.approvals.edits import change_lines, edited
from tests.requirements import promise

MAIL = {"to": "a@x.example", "bcc": "m@x.example", "body": "Hello"}


def change(arguments, *without):
    return edited(MAIL, MAIL, CallVerdict(verdict="modify", arguments=arguments, without=without), "calls.0")


@promise("clients:prompt-deleted")
def test_what_is_left_out_is_gone_and_shown_so_and_what_is_not_named_stays():
    after = change({"body": "Bye"}, "bcc")

    assert after == {"to": "a@x.example", "body": "Bye"}
    assert change_lines(MAIL, after) == ("~ body: Hello -> Bye", "- bcc: m@x.example")


@promise("approvals:change-names")
def test_an_argument_that_is_not_there_cannot_be_left_out():
    with pytest.raises(DecisionInvalid, match=r"calls\.0\.without: the call has no argument cc; it has to, bcc, body"):
        change({}, "cc")
    with pytest.raises(DecisionInvalid, match=r"bcc is given a value as well"):
        change({"bcc": "n@x.example"}, "bcc")


@promise("approvals:change-lines")
def test_a_long_difference_is_cut_and_counted_and_texts_that_are_kept_apart_differ_by_their_digests():
    before = {"text": {"$ref": "a" * 40, "bytes": 5000}, "many": {str(at): "x" * 50 for at in range(200)}}
    after = {"text": {"$ref": "b" * 40, "bytes": 5000}, "many": {str(at): "y" * 50 for at in range(200)}}

    first, *rest = change_lines(before, after)

    assert first == "~ text: text of 5,000 bytes (aaaaaaaaaaa…) -> text of 5,000 bytes (bbbbbbbbbbb…)"
    assert sum(map(len, rest[:-1])) <= 2000
    assert rest[-1].endswith(" characters clipped of the difference")
