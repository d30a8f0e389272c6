"""Pages of stored payloads and of events."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.canonical import canonical
from backstay.errors import ArgumentsInvalid, TaskInvalid
from backstay.task.event import Event
from backstay.task.reading import PAGE_BYTES, Reading, at_path, page_of, page_of_events
from tests.requirements import promise

REF = "a" * 40


def pages(value, **more):
    offset = 0
    while offset is not None:
        page = page_of(value, Reading(ref=REF, offset=offset, **more))
        assert len(canonical(page.value).encode("utf-8", "surrogatepass")) <= PAGE_BYTES
        assert page.next is None or page.next > offset
        yield page
        offset = page.next


@promise("clients:reading-pages")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(max_size=30_000), max_size=12), st.integers(1, 5) | st.none())
def test_the_pages_of_a_list_are_the_list(value, limit):
    assert [item for page in pages(value, limit=limit) for item in page.value] == value


@promise("clients:reading-pages")
@settings(deadline=None, max_examples=30)
@given(st.text(min_size=1, max_size=30), st.integers(1, 20_000))
def test_the_pages_of_a_text_are_the_text(piece, times):
    assert "".join(page.value for page in pages(piece * times)) == piece * times


@promise("clients:reading-large")
def test_a_large_record_is_read_as_its_json_and_a_large_item_by_its_path():
    record = {"a": ["b" * 1000] * 300}
    assert page_of({"a": 1}, Reading(ref=REF)).value == {"a": 1}
    assert "".join(page.value for page in pages(record)) == canonical(record)
    with pytest.raises(ArgumentsInvalid, match=r"item 1 is larger than a page; read path 'rows\.1'"):
        page_of([1, "x" * PAGE_BYTES], Reading(ref=REF, path="rows", offset=1))


HELD = {
    "a": {"b": "wrong", "c": [{"x": 1}, [7]], ".h": 2, "h": 3},
    "a.b": {"z": 4},
    "report.md": {"k": [5]},
    "x[0]": 6,
}


@promise("clients:reading-paths")
@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("", HELD),
        ("a.b", {"z": 4}),
        ("a.b.z", 4),
        ("report.md.k.0", 5),
        ("x[0]", 6),
        ("a.c[0].x", 1),
        ("$.a.c.1[0]", 7),
        (".a..h", 2),
        ("a.h", 3),
    ],
)
def test_a_path_leads_to_a_key_with_dots_or_brackets_of_its_own(path, there):
    assert at_path(HELD, path) == there


@promise("clients:reading-paths")
@pytest.mark.parametrize(("path", "said"), [("a.q", "'q' does not exist; there is b, c, .h, h"), ("a.c.2", "a list")])
def test_a_path_that_leads_nowhere_says_what_is_there(path, said):
    with pytest.raises(ArgumentsInvalid, match=said):
        at_path(HELD, path)


@promise("clients:reading-events-end")
def test_events_end_with_the_last_one_and_say_where_to_go_on():
    events = [Event(n=n, name="x", at="2026", text="t" * 30_000) for n in range(3, 9)]
    page = page_of_events(events, 8, Reading(after=2))
    assert ([event.n for event in page.events], page.next, page.total) == ([3, 4, 5], 5, 8)
    assert page_of_events(events[4:], 8, Reading(after=6)).next is None
    assert page_of_events([], 8, Reading(after=8)).next is None


@promise("clients:reading-refused")
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, 'give either "ref", "after" or "messages"'),
        ({"ref": REF, "after": 0}, 'give either "ref", "after" or "messages"'),
        ({"after": 0, "path": "a"}, '"path", "offset" and "as_text" go with "ref"'),
        ({"after": -1}, "after: "),
        ({"ref": REF, "offset": "1"}, "offset: "),
        ({"ref": REF, "limit": 0}, "limit: "),
        ({"ref": REF, "page": 2}, "page: unknown field"),
    ],
)
def test_what_cannot_be_read_is_refused_by_field(data, said):
    with pytest.raises(TaskInvalid, match=said):
        Reading.admit(data)
