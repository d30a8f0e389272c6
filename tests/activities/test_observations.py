"""What is believed of a model by the evidence of its answers; one odd answer is none."""

import pytest
from structlog.testing import capture_logs

from activities.model.observations import CHATTY, DOUBTED_S, PROBE_EVERY, RUNS, Observations
from activities.model.transcript import Transcript

NEW = Transcript("", ())
CHATTED = Transcript("", ({"kind": "said", "text": "Hello!", "form": "text"},))
AS_JSON = Transcript("", ({"kind": "said", "text": "", "calls": [], "form": "json"},))
CALLED = Transcript("", ({"kind": "said", "text": "", "calls": []},))


def choices(seen):
    return [seen.asks_as_json("m", transcript) for transcript in (NEW, CHATTED, AS_JSON, CALLED)]


def test_a_run_whose_model_wrote_text_tries_json_and_no_other_run_does():
    seen = Observations()
    assert choices(seen) == [False, True, True, False]
    seen.note_form("m", "run 1", "text")
    seen.note_form("m", "run 1", "json")
    seen.note_form("m", "run 1", "json")
    assert choices(seen) == [False, True, True, False]


def test_where_json_worked_in_several_runs_others_begin_with_it_until_a_function_is_called():
    seen = Observations()
    for run in range(RUNS):
        seen.note_form("m", f"run {run}", "text")
        seen.note_form("m", f"run {run}", "json")
    begun = [seen.asks_as_json("m", NEW) for _ in range(2 * PROBE_EVERY)]
    assert begun.count(False) == 2
    assert not seen.asks_as_json("other", NEW)
    seen.note_form("m", "a probe", None)
    assert choices(seen) == [False, False, False, False]


def test_a_model_that_has_called_functions_must_chat_several_times_in_a_row_to_be_doubted():
    seen = Observations()
    seen.note_form("m", "run", None)
    for _ in range(CHATTY - 1):
        seen.note_form("m", "run", "text")
    assert not seen.asks_as_json("m", CHATTED)
    seen.note_form("m", "run", "text")
    assert seen.asks_as_json("m", CHATTED)
    assert not seen.asks_as_json("m", NEW)
    seen.note_form("m", "run", None)
    assert not seen.asks_as_json("m", CHATTED)


@pytest.mark.parametrize(("billed", "worst", "factor"), [(50, 100, 1), (100, 100, 1), (300, 100, 3), (5, 0, 1)])
def test_what_a_model_billed_beyond_what_was_asked_is_assumed_from_then_on(billed, worst, factor):
    seen = Observations()
    with capture_logs() as logs:
        seen.note_bill("m", billed, worst)
    assert seen.factor("m") == factor
    assert [entry["event"] for entry in logs] == (["model.overbilled"] if factor > 1 else [])


def test_honest_bills_bring_the_trust_back_step_by_step():
    seen = Observations()
    seen.note_bill("m", 300, 100)
    factors = []
    for _ in range(3):
        seen.note_bill("m", 90, 100)
        factors.append(seen.factor("m"))
    assert factors == [1.5, 1, 1]


def test_a_model_that_nobody_can_afford_any_more_is_believed_again_after_a_while():
    now = [0.0]
    seen = Observations(clock=lambda: now[0])
    seen.note_bill("m", 300, 100)
    now[0] = DOUBTED_S - 1
    assert seen.factor("m") == 3
    now[0] = DOUBTED_S
    assert seen.factor("m") == 1


def test_an_endpoint_that_refused_json_is_asked_for_it_again_when_its_model_only_chats():
    seen = Observations()
    seen.of("m").takes_no_json = True
    assert not seen.asks_as_json("m", CHATTED)
    for _ in range(CHATTY):
        seen.note_form("m", "run", "text")
    assert seen.asks_as_json("m", CHATTED)


def test_only_so_many_models_are_remembered():
    seen = Observations()
    for number in range(2000):
        seen.note_bill(f"m{number}", 300, 100)
    assert seen.factor("m1999") == 3
    assert seen.factor("m0") == 1
