"""Calls of one tool as a table: what they share once, what differs in columns, and nothing lost."""

import pytest

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.tables import FEWEST, table_of
from backstay.approvals.titles import title_of
from backstay.approvals.view import RequestView
from tests.requirements import promise

MAIL = {"tool": "mail.send", "safety": "write_safe", "undoable": True, "undo_how": "recall(id=result.id)"}


def view(calls, kind="batch", **more):
    """Return a request about calls, each given by its arguments and what differs from a mail."""
    made = [{"index": at, **MAIL, **call} for at, call in enumerate(calls)]
    given = {"id": "r1", "kind": kind, "question": "May it?", "options": ["approve", "reject"], "calls": made, **more}
    return RequestView.of(ApprovalRequest.model_validate(given))


def mails(count=FEWEST, **more):
    return [{"arguments": {"to": f"{at}@x.example", "body": "the same", **more}} for at in range(count)]


@promise("approvals:table")
def test_what_is_the_same_stands_once_and_what_differs_in_columns():
    table = table_of(view(mails()))

    assert [argument.name for argument in table.shared] == ["body"]
    assert table.columns == ("to",)
    assert [row.cells for row in table.rows] == [(f"{at}@x.example",) for at in range(FEWEST)]
    assert all(row.whole and not row.warns for row in table.rows)


@promise("approvals:table")
@pytest.mark.parametrize(
    "calls",
    [
        mails(FEWEST - 1),
        [*mails(), {"arguments": {"to": "a", "body": "b"}, "tool": "mail.forward"}],
        [*mails(), {"arguments": {"to": "a"}}],
        [*mails(), {"arguments": {"to": "a", "body": "b"}, "undoable": False}],
        [*mails(), {"arguments": {"to": "a", "body": "b"}, "safety": "restricted_write"}],
    ],
)
def test_few_calls_and_such_as_differ_in_more_than_values_make_no_table(calls):
    assert table_of(view(calls)) is None


@promise("approvals:table-whole")
def test_a_row_whose_cells_do_not_say_all_of_it_says_so_and_one_that_warns_stands_open():
    long, lines, none = {"body": "x" * 81}, {"body": "one⏎two"}, {"body": ""}
    rows = table_of(view([{"arguments": {"to": "a", **body}} for body in (long, lines, none, {"body": "short"})])).rows
    assert [row.whole for row in rows] == [False, False, True, True]
    assert rows[0].cells[-1].endswith("…")

    warned = [*mails(), {"arguments": {"to": "z", "body": "the same"}, "repeats": "call 0 beside it is the same"}]
    last = table_of(view(warned)).rows[-1]
    assert (last.whole, last.warns) == (False, True)

    wide = [{"arguments": {f"a{name}": at * name for name in range(1, 7)}} for at in range(FEWEST)]
    assert [row.whole for row in table_of(view(wide)).rows] == [False] * FEWEST


@promise("approvals:table-whole")
def test_values_that_python_takes_for_equal_are_not_shared():
    ones = [{"arguments": {"n": value}} for value in (1, 1.0, True, 1)]

    assert table_of(view(ones)).columns == ("n",)


@promise("approvals:titles")
@pytest.mark.parametrize(
    ("asked", "title"),
    [
        (view(mails(1), "call"), "mail.send to 0@x.example"),
        (view(mails(5)), "5 calls of mail.send to 0@x.example, 1@x.example, 2@x.example and 2 more"),
        (view([*mails(1), {"arguments": {}, "tool": "crm.list"}]), "2 calls: mail.send, crm.list"),
        (view([{"arguments": {"text": "two⏎lines"}, "tool": "notes.add"}], "call"), "notes.add: two…"),
        (view([{"arguments": {}, "tool": "crm.sync"}], "call"), "crm.sync"),
        (view([{"arguments": {"n": 5}, "tool": "crm.drop"}], "call"), "crm.drop: 5"),
        (view(mails(1), "outcome", question="Did it go through?"), "Did it go through?"),
    ],
)
def test_a_title_says_what_is_called_and_to_whom_or_with_what(asked, title):
    assert title_of(asked.request) == title
