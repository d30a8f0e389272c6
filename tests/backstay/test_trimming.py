"""Trimming keeps what is pinned, breaks no exchange, and always does the same."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from backstay.canonical import canonical
from backstay.task.context import BYTES_PER_TOKEN, PINNED, as_earlier, shorten, trim, weigh, weight
from tests.requirements import promise

TEXTS = st.text(max_size=600)


@st.composite
def transcripts(draw):
    """Draw a transcript as runs make them: prompt, task, then exchanges with answers, notes and facts."""
    items = [{"kind": "system", "text": draw(TEXTS)}, {"kind": "task", "text": draw(TEXTS)}]
    for step in range(draw(st.integers(0, 8))):
        ids = [f"c{step}-{n}" for n in range(draw(st.integers(0, 3)))]
        items.append({"kind": "said", "text": draw(TEXTS), "calls": [{"id": call_id} for call_id in ids]})
        items += [{"kind": "answer", "call_id": call_id, "text": draw(TEXTS)} for call_id in ids]
        items += [
            {"kind": kind, "text": draw(TEXTS)}
            for kind in draw(st.lists(st.sampled_from(["note", "fact"]), max_size=2))
        ]
    return items


@promise("context:trim")
@settings(deadline=None)
@given(transcripts(), st.integers(50, 3000))
def test_what_is_pinned_stays_in_order_and_every_answer_keeps_its_call(items, cap):
    kept, _ = trim(items, cap)
    pinned = [item for item in items if item["kind"] in PINNED]
    assert [item for item in kept if item in pinned] == pinned
    called = {call["id"] for item in kept for call in item.get("calls", ())}
    answered = {item["call_id"] for item in kept if item["kind"] == "answer"}
    assert called == answered


@promise("context:trim")
@settings(deadline=None)
@given(transcripts(), st.integers(50, 3000))
def test_it_fits_or_only_the_last_exchange_and_what_is_pinned_are_left(items, cap):
    kept, dropped = trim(items, cap)
    total = sum(weight(item) for item in kept)
    exchanges = sum(1 for item in kept if item["kind"] == "said")
    # The note that names what was dropped comes on top.
    assert total <= cap * BYTES_PER_TOKEN + 150 or exchanges <= 1
    assert (kept == items) == (dropped == 0)
    assert trim(items, cap) == (kept, dropped)


@promise("context:trim")
@settings(deadline=None)
@given(transcripts(), st.integers(50, 3000), st.integers(50, 3000))
def test_to_shorten_what_was_shortened_to_a_larger_cap_leads_to_the_same(items, cap, more):
    once, dropped, _ = shorten(items, cap + more, weigh(items))

    twice, again, _ = shorten(once, cap, weigh(once))

    assert twice == shorten(items, cap, weigh(items))[0]
    assert dropped + again >= len(items) - len(twice)


@promise("context:trim")
def test_the_oldest_answers_go_first_and_the_newest_two_stay():
    items = [{"kind": "task", "text": "t"}]
    for step in range(4):
        items.append({"kind": "said", "text": "", "calls": [{"id": str(step)}]})
        text = canonical({"sample": "x" * 4000, "storage_ref": f"ref{step}"})
        items.append({"kind": "answer", "call_id": str(step), "text": text})
    kept, dropped = trim(items, 3000)
    answers = [json.loads(item["text"]) for item in kept if item["kind"] == "answer"]
    assert dropped == 2
    assert ["dropped" in answer for answer in answers] == [True, True, False, False]
    assert answers[0]["ref"] == "ref0"
    assert "read_result reads it again" in answers[0]["dropped"]


@promise("sessions:bound")
def test_earlier_tasks_can_be_dropped_and_the_own_one_stays():
    before = [
        {"kind": "system", "text": "old"},
        {"kind": "task", "text": "z" * 4000},
        {"kind": "said", "text": "y" * 900},
    ]
    fact = {"kind": "fact", "text": "what was undone"}
    items = [{"kind": "system", "text": "new"}, *as_earlier([*before, fact]), {"kind": "task", "text": "own"}]
    items += [{"kind": "said", "text": "first"}, {"kind": "said", "text": "second"}]

    assert [item["kind"] for item in items] == ["system", "earlier", "said", "note", "task", "said", "said"]
    kept, dropped = trim(items, 500)
    assert [item["text"][:6] for item in kept] == ["new", "1 olde", "yyyyyy", "what w", "own", "first", "second"]
    assert dropped == 1
    assert [item["text"] for item in shorten(items, 10, weigh(items))[0]] == ["new", "own", "second"]


@promise("context:trim")
def test_what_was_dropped_whole_is_named():
    items = [{"kind": "task", "text": "t"}, *({"kind": "said", "text": "y" * 4000} for _ in range(4))]
    kept, dropped = trim(items, 1500)
    assert dropped == 3
    assert [item["text"] for item in kept if item["kind"] == "fact"] == [
        "3 older items were dropped or cut to save space."
    ]
