"""The published figures are those that were measured, and keep what they promise."""

import json

from benchmarks.steps import BEGIN, END, PAGE, RESULTS, SIZES, render

MEASURED = json.loads(RESULTS.read_text(encoding="utf-8"))


def test_every_size_was_measured_beside_the_floor_in_cpu_wall_events_and_bytes():
    assert tuple(row["steps"] for row in MEASURED["rows"]) == SIZES == (10, 50, 200)
    for row in MEASURED["rows"]:
        for part in ("floor", "engine"):
            assert set(row[part]) == {"wall_ms", "cpu_worker_ms", "cpu_server_ms", "events", "bytes"}
    assert MEASURED["parked_kb"] > 0
    assert set(MEASURED["replay_50_ms"]) == {"floor", "engine"}


def test_the_published_table_is_that_of_the_last_run():
    published = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]

    assert published.strip() == render(MEASURED)


def test_in_a_run_of_200_steps_a_step_took_at_most_one_and_a_half_times_the_cpu_of_the_floor():
    assert MEASURED["rows"][-1]["steps"] == 200
    assert MEASURED["rows"][-1]["cpu_ratio"] <= 1.5
