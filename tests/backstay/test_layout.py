"""Arguments as lines: readable, and never another part of a request than they are."""

from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.approvals.layout import BAR, argument_lines, changed_lines
from backstay.shown import shown_arguments
from tests.requirements import promise

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)


def lines(**arguments):
    shown = shown_arguments(arguments, 100_000).arguments
    return [line for name, value in shown.items() for line in argument_lines(name, value)]


@promise("approvals:lines")
def test_a_text_of_several_lines_is_shown_as_lines_and_its_own_signs_stay_apart_from_them():
    assert lines(to="ana@x.example", body="Dear Ana,\n\nplease ⏎ pay.") == [
        "to: ana@x.example",
        "body:",
        "│ Dear Ana,",
        "│",
        "│ please <U+23CE> pay.",
    ]


@promise("approvals:tables")
def test_objects_with_the_same_names_are_a_table():
    rows = [{"number": "A-17", "days": 71, "paid": False}, {"number": "A-20", "days": 6400, "paid": None}]
    assert lines(invoices=rows * 2)[:3] == [
        "invoices:",
        "│ number │ days │ paid",
        "│ A-17   │ 71   │ false",
    ]


@promise("approvals:long-json")
def test_other_long_json_has_a_line_for_each_value_and_short_json_stays_as_it_is():
    rows = [{"a": "x" * 40}, {"b": {"text": "one\ntwo", "list": [1, "2"]}}, {"a │ b": "c", "d": "e" * 30}]
    assert lines(short={"bcc": ["x@y.example"]}, filter=rows) == [
        'short: {"bcc": ["x@y.example"]}',
        "filter:",
        '│ [0]: {"a": "' + "x" * 40 + '"}',
        "│ [1]:",
        "│ │ b:",
        "│ │ │ text:",
        "│ │ │ │ one",
        "│ │ │ │ two",
        '│ │ │ list: [1, "2"]',
        '│ [2]: {"a │ b": "c", "d": "' + "e" * 30 + '"}',
    ]


@promise("approvals:tables")
def test_a_cell_cannot_pass_for_two():
    rows = [{"to": "ana │ 5", "cents": 900_000, "why": "x" * 30}, {"to": "bo", "cents": 1, "why": "y" * 30}]
    assert "│ │ to: ana │ 5" in lines(transfers=rows)


@promise("approvals:change-lines")
def test_a_change_that_only_leaves_arguments_out_adds_nothing():
    assert list(changed_lines({"to": "ana", "data": {}}, {"data": {}})) == ["- to: ana"]
    assert list(changed_lines({"to": "ana"}, {})) == ["- to: ana"]
    assert list(changed_lines({}, {"to": "ana"})) == ["+ to: ana"]
    assert list(changed_lines({"data": {"a": 1}}, {"data": {}})) == ["- data.a: 1", "+ data: {}"]


@promise("approvals:fact-names")
def test_an_argument_that_is_named_as_a_fact_of_the_engine_is_quoted():
    said = {"can be undone": "recall_email", "changes": "nothing", "REPEATED": "never", "CHANGED by bo": "x\ny"}
    assert lines(**said, change="all", undone="no") == [
        *('"can be undone": recall_email', '"changes": nothing', '"REPEATED": never', '"CHANGED by bo":', "│ x", "│ y"),
        *("change: all", "undone: no"),
    ]


@promise("approvals:quoted")
def test_a_text_that_reads_as_another_value_is_quoted():
    assert lines(a="5", b=5, c="null", d=None, e="", f=" x", g='{"h": 1}', i='"') == [
        *('a: "5"', "b: 5", 'c: "null"', "d: null", 'e: ""', 'f: " x"'),
        *('g: "{\\"h\\": 1}"', 'i: "\\""'),
    ]


@promise("approvals:bar")
@given(st.dictionaries(st.text(max_size=20), JSON, max_size=5))
@settings(deadline=None)
def test_whatever_an_argument_says_its_lines_stand_behind_a_bar_and_names_are_one_name(arguments):
    for name, value in shown_arguments(arguments, 100_000).arguments.items():
        head, *rest = argument_lines(name, value)
        assert all(line.startswith(BAR) for line in rest)
        assert "\n" not in "".join([head, *rest])
        assert not head.startswith((" ", BAR))


@promise("approvals:changes")
def test_a_change_is_told_value_by_value():
    before = {"to": "ana", "rows": [{"cents": 80}, {"cents": 7}], "cc": ["x"], "n": 1, "body": "a⏎b⏎c⏎d⏎e"}
    after = {"to": "bo", "rows": [{"cents": 75}, {"cents": 7}], "bcc": "z", "n": True, "body": "a⏎b⏎C⏎d⏎e"}
    assert list(changed_lines(before, after)) == [
        "~ to: ana -> bo",
        "~ rows.0.cents: 80 -> 75",
        "- cc.0: x",
        "~ n: 1 -> true",
        "~ body:",
        *("│ @@ -2,3 +2,3 @@", "│  b", "│ -c", "│ +C", "│  d"),
        "+ bcc: z",
    ]
