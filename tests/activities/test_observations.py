"""What is believed of a model by the evidence of its answers; one odd answer is none."""

import time
from dataclasses import replace

import pytest

from activities.endpoints.client import ModelClient
from activities.endpoints.endpoints import Target
from activities.model.learned import HELD_S, ForgottenModels
from activities.model.observations import CHATTY, DOUBTED_S, PROBE_EVERY, RUNS, Observations
from activities.model.transcript import Transcript
from tests.requirements import promise

NEW = Transcript("", ())
CHATTED = Transcript("", ({"kind": "said", "text": "Hello!", "form": "text"},))
AS_JSON = Transcript("", ({"kind": "said", "text": "", "calls": [], "form": "json"},))
CALLED = Transcript("", ({"kind": "said", "text": "", "calls": []},))


def target(name="m", **more):
    return Target(name, False, name, "", ModelClient(), None, **more)


def begins_with_json(seen, transcript, name="m"):
    return seen.ways(target(name), transcript)[0] != "functions"


def choices(seen):
    return [begins_with_json(seen, transcript) for transcript in (NEW, CHATTED, AS_JSON, CALLED)]


@promise("models:wire")
def test_a_run_whose_model_wrote_text_tries_json_and_no_other_run_does():
    seen = Observations()
    assert choices(seen) == [False, True, True, False]
    seen.note_form("m", "run 1", "text")
    seen.note_form("m", "run 1", "json")
    seen.note_form("m", "run 1", "json")
    assert choices(seen) == [False, True, True, False]


@promise("models:wire")
def test_where_json_worked_in_several_runs_others_begin_with_it_until_a_function_is_called():
    seen = Observations()
    for run in range(RUNS):
        seen.note_form("m", f"run {run}", "text")
        seen.note_form("m", f"run {run}", "json")
    begun = [begins_with_json(seen, NEW) for _ in range(2 * PROBE_EVERY)]
    assert begun.count(False) == 2
    assert not begins_with_json(seen, NEW, "other")
    seen.note_form("m", "a probe", None)
    assert choices(seen) == [False, False, False, False]


@promise("models:wire")
def test_a_model_that_has_called_functions_must_chat_several_times_in_a_row_to_be_doubted():
    seen = Observations()
    seen.note_form("m", "run", None)
    for _ in range(CHATTY - 1):
        seen.note_form("m", "run", "text")
    assert not begins_with_json(seen, CHATTED)
    seen.note_form("m", "run", "text")
    assert begins_with_json(seen, CHATTED)
    assert not begins_with_json(seen, NEW)
    seen.note_form("m", "run", None)
    assert not begins_with_json(seen, CHATTED)


@promise("models:wire")
def test_an_endpoint_that_refused_json_is_asked_for_it_again_when_its_model_only_chats():
    seen = Observations()
    seen.note_refused("m", "strict")
    seen.note_refused("m", "loose")
    assert not begins_with_json(seen, CHATTED)
    for _ in range(CHATTY):
        seen.note_form("m", "run", "text")
    assert begins_with_json(seen, CHATTED)


@promise("models:capabilities")
def test_what_an_endpoint_refuses_is_not_sent_again_for_an_hour():
    now = [0.0]
    seen = Observations(clock=lambda: now[0])
    assert seen.ways(target(), NEW) == ["functions", "strict", "loose", "free"]
    seen.note_refused("m", "functions")
    seen.note_refused("m", "strict")
    assert seen.ways(target(), NEW) == ["loose", "free"]
    now[0] = DOUBTED_S
    assert seen.ways(target(), NEW) == ["functions", "strict", "loose", "free"]


@promise("models:capabilities")
def test_what_a_run_found_out_holds_where_the_worker_knows_nothing():
    said = {"kind": "said", "text": "", "calls": [], "form": "json", "refuses": ["functions", "strict"]}
    said |= {"refused_at": time.time()}
    assert Observations().ways(target(), Transcript("", (said,))) == ["loose", "free"]
    # Another model of the same run is asked as it is known itself.
    assert Observations().ways(replace(target(), listed=True), Transcript("", (said,)))[0] == "functions"
    signed = Transcript("", (said | {"by": "m"}, said | {"by": "other", "refuses": []}))
    assert Observations().ways(replace(target(), listed=True), signed) == ["loose", "free"]


@promise("models:capabilities")
@pytest.mark.parametrize(
    ("declared", "ways"),
    [
        ({"tools": True}, ["functions"]),
        ({"tools": False}, ["strict", "loose", "free"]),
        ({"tools": False, "strict": True}, ["strict", "free"]),
        ({"tools": False, "strict": False}, ["loose", "free"]),
    ],
)
def test_what_the_operator_says_of_a_model_is_not_tried_out(declared, ways):
    seen = Observations()
    assert seen.ways(target(**declared), NEW) == ways
    seen.note_form("m", "run", None)
    assert seen.ways(target(**declared), CALLED) == ways


@promise("models:dialects-age")
def test_what_a_run_found_out_holds_for_a_day_and_until_an_operator_lets_it_be_forgotten():
    now = [1_000_000.0]
    forgotten = ForgottenModels(clock=lambda: now[0])
    seen = Observations(forgotten=forgotten)
    said = {"kind": "said", "text": "", "form": "json", "refuses": ["functions"], "refused_at": now[0]}
    known = Transcript("", (said,))
    now[0] += HELD_S
    assert seen.ways(target(), known) == ["strict", "loose", "free"]
    assert seen.refused_in(target(), known) == ({"functions"}, 1_000_000.0)
    seen.note_refused("m", "loose")
    now[0] += 1
    assert seen.ways(target(), known) == ["functions"]
    now[0] -= 1
    forgotten.forget("other")
    assert seen.ways(target(), known) == ["strict", "free"]
    now[0] += 0.5
    forgotten.forget("m")
    now[0] -= 0.4
    assert seen.ways(target(), known) == ["functions"]
    assert seen.ways(target(), NEW) == ["functions", "strict", "loose", "free"]
