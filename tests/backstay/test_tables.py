"""Calls of one tool as a table: what they share once, what differs in columns, and nothing lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.layout import argument_lines
from backstay.approvals.tables import FEWEST, CallTable, groups_of
from backstay.approvals.titles import title_of
from backstay.approvals.view import RequestView
from people.requests.posted import PostedRequest
from tests.requirements import promise

MAIL = {"tool": "mail.send", "safety": "write_safe", "undoable": True, "undo_how": "recall(id=result.id)"}


def view(calls, kind="batch", **more):
    """Return a request about calls, each given by its arguments and what differs from a mail."""
    made = [{"index": at, **MAIL, **call} for at, call in enumerate(calls)]
    values = {"id": "r1", "kind": kind, "question": "May it?", "options": ["approve", "reject"], "calls": made, **more}
    return RequestView.of(ApprovalRequest.model_validate(values))


def table_of(shown):
    """Return the only group of calls, which is a table."""
    (table,) = groups_of(shown)
    assert isinstance(table, CallTable)
    return table


def sizes(shown):
    """Return how many calls each group has."""
    return [len(each.rows) if isinstance(each, CallTable) else 1 for each in groups_of(shown)]


def mails(count=FEWEST, **more):
    return [{"arguments": {"to": f"{at}@x.example", "body": "the same", **more}} for at in range(count)]


@promise("approvals:table")
def test_what_is_the_same_stands_once_and_what_differs_in_columns():
    table = table_of(view(mails()))

    assert [argument.name for argument in table.shared] == ["body"]
    assert table.columns == ("to",)
    assert [row.cells for row in table.rows] == [(f"{at}@x.example",) for at in range(FEWEST)]
    assert all(row.whole and not row.warns for row in table.rows)


LAST = {"arguments": {"to": "a", "body": "b"}}


@promise("approvals:table")
@pytest.mark.parametrize(
    ("calls", "groups"),
    [
        (mails(FEWEST - 1), [1] * (FEWEST - 1)),
        ([*mails(39), LAST | {"tool": "mail.forward"}], [39, 1]),
        ([LAST | {"tool": "mail.forward"}, *mails(39)], [1, 39]),
        ([*mails(39), {"arguments": {"to": "a"}}], [39, 1]),
        ([*mails(), LAST | {"undoable": False}], [FEWEST, 1]),
        ([*mails(), LAST | {"safety": "restricted_write"}], [FEWEST, 1]),
        ([*mails(), *(each | {"tool": "mail.forward"} for each in mails()), LAST], [FEWEST + 1, FEWEST]),
    ],
)
def test_calls_that_differ_in_more_than_values_are_not_in_one_table_and_few_of_them_make_none(calls, groups):
    assert sizes(view(calls)) == groups


@promise("approvals:table")
def test_how_calls_are_undone_stands_once_without_their_values_and_in_a_column_where_it_differs():
    def undone(how):
        return [{**each, "undo_how": how(at)} for at, each in enumerate(mails(40))]

    same = table_of(view(undone(lambda _: "recall(to=arguments.to, body=arguments.body, id=result.id)")))
    assert (same.undo_how, same.undo_differs) == ("recall, with the same to, body the same, id from its answer", False)
    assert {row.undo_how for row in same.rows} == {""}

    differing = table_of(view(undone(lambda at: "recall(id=result.id)" if at % 2 else "forget(to=arguments.to)")))
    assert (differing.undo_how, differing.undo_differs) == ("", True)
    assert [row.undo_how for row in differing.rows[:2]] == [
        "forget, with to 0@x.example",
        "recall, with id from its answer",
    ]
    told = [line.text for line in differing.lines() if line.kind == "undo"]
    assert told == [f"can be undone: {row.undo_how}" for row in differing.rows]


@promise("approvals:table")
def test_a_table_as_lines_has_what_is_shared_once_and_a_line_for_each_call_with_to_whom_it_goes_first():
    calls = [{"arguments": {"n": at, "body": "one⏎two", "to": f"{at}@x.example"}} for at in range(FEWEST)]
    calls[2]["arguments"]["to"] = "a; n: 9"
    calls[3]["arguments"]["to"] = "⏎".join("ab")

    assert [line.text for line in table_of(view(calls)).lines()] == [
        *("mail.send  (write_safe)  4 calls", "the same in all of them:", "body:", "│ one", "│ two"),
        "can be undone: recall, with id from its answer",
        *("[0] to: 0@x.example; n: 0", "[1] to: 1@x.example; n: 1"),
        *("[2] n: 2", "to: a; n: 9", "[3] n: 3", "to:", "│ a", "│ b"),
    ]


VALUES = st.sampled_from(["a", "a; to: b", "b⏎c", "x" * 200, "", 1, 1.0, True, [1, 2], {"k": "v⏎w"}, None, "cut…"])
ARGUMENTS = st.fixed_dictionaries(dict.fromkeys(["body", "to", "n", "cc", "re", "by"], VALUES))


@promise("approvals:table-whole")
@given(st.lists(ARGUMENTS, min_size=FEWEST, max_size=7), st.sampled_from([0, 7]))
def test_each_value_of_each_call_is_said_once_for_all_or_among_the_lines_of_the_call(arguments, clipped):
    shown = view([{"arguments": each, "clipped": clipped} for each in arguments])
    table = table_of(shown)
    shared = {argument.name for argument in table.shared}

    for call, row in zip(shown.calls, table.rows, strict=True):
        own = {argument.name for argument in row.own}
        assert shared | own == set(arguments[0])
        assert not shared & own
        said = "\n".join(line.text for line in row.lines())
        for argument in call.arguments:
            lines = argument_lines(argument.name, argument.value)
            assert argument.name in shared or "\n".join(lines) in said
            assert argument.name not in shared or lines == argument_lines(
                *next((each.name, each.value) for each in table.shared if each.name == argument.name)
            )
        assert ("7 characters clipped" in said) == bool(clipped)
    # What is cut in the same place may go on in different ways.
    assert not clipped or all(argument.value != "cut…" for argument in table.shared)


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
    assert PostedRequest(workflow_id="w", request=asked.request).headline.endswith(f" {title}")
