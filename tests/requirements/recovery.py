"""Kills, stops, restarts, locked stores and resets: every run ends and nothing is sent twice."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "effect:kill-matrix",
        "issue Done 4; seed 004 Queue",
        "a worker killed at any of 30 or more named points is replaced, and every mail is sent once",
        in_file(
            "crash/test_kill_points.py",
            "test_a_worker_killed_at_any_point_is_replaced_and_every_mail_is_sent_once",
            "test_the_matrix_names_at_least_thirty_points_and_none_twice",
        ),
    ),
    row(
        "matrix:document",
        "issue Done 4; seed 004 Queue",
        "docs/reliability.md names the places of the matrix and counts the points",
        in_file("crash/test_kill_points.py", "test_the_document_names_every_place_and_how_many_points_there_are"),
    ),
    row(
        "effect:kill-remembered",
        "issue 13",
        "a decision is remembered once, though the worker is killed while it is being remembered",
        in_file("crash/test_remembered.py", "test_a_decision_is_remembered_once_wherever_the_worker_dies"),
    ),
    row(
        "effect:sigstop",
        "issue Done 4; design 4.2",
        "a worker stopped before, during or after its send and continued much later sends nothing again",
        in_file(
            "crash/test_stops_and_restarts.py",
            "test_a_worker_stopped_before_its_send_and_continued_much_later_does_not_send",
            "test_a_worker_stopped_during_its_send_and_continued_much_later_adds_nothing",
            "test_a_worker_stopped_after_its_send_and_continued_much_later_adds_nothing",
        ),
    ),
    row(
        "effect:kill-matrix-postgres",
        "issue 11",
        "with the store in Postgres, a worker killed at one of a few named points is replaced, and every mail is "
        "sent once",
        in_file(
            "crash/test_kill_points_on_postgres.py",
            "test_with_a_store_in_postgres_a_killed_worker_is_replaced_and_every_mail_is_sent_once",
        ),
    ),
    row(
        "matrix:postgres-soak",
        "issue 11",
        "with the store in Postgres, a worker killed at any other named point is replaced too",
        in_file(
            "soak/test_more_points.py",
            "test_with_a_store_in_postgres_a_worker_killed_at_any_other_point_is_replaced",
        ),
    ),
    row(
        "loop:evicted",
        "issue Endless",
        "a run that leaves a worker's memory while it waits writes nothing into the history of any run",
        in_file(
            "e2e/faults/test_eviction.py",
            "test_runs_that_were_evicted_while_they_waited_write_nothing_into_another_runs_history",
        ),
    ),
    row(
        "effect:kills-amid-switches",
        "issue Endless",
        "a worker killed while a run continues as a new execution is replaced, every mail is sent once, events are "
        "numbered without a gap and the last effects can be taken back",
        in_file(
            "crash/test_kills_amid_switches.py",
            "test_a_worker_killed_amid_a_switch_is_replaced_and_nothing_is_lost_or_doubled",
        ),
    ),
    row(
        "switches:soak",
        "issue Endless",
        "fifty kills amid such switches lose and double nothing",
        in_file("soak/test_endless.py", "test_fifty_kills_amid_switches_lose_and_double_nothing"),
    ),
    row(
        "effect:skewed-clocks",
        "issue 11",
        "on Postgres, two workers whose clocks differ by two minutes send nothing twice, though one is stopped "
        "between its intent and its send and continued when the other has sent the call",
        in_file(
            "crash/test_skewed_clocks.py",
            "test_on_postgres_a_worker_ahead_sends_nothing_that_a_stopped_worker_may_still_send",
            "test_on_postgres_a_stopped_worker_that_is_behind_sends_nothing_late",
        ),
    ),
    row(
        "clocks:sqlite",
        "issue 11",
        "on SQLite, two workers whose clocks differ by two minutes send nothing twice, though one is stopped "
        "between its intent and its send and continued when the other has sent the call",
        in_file(
            "crash/test_skewed_clocks.py",
            "test_on_sqlite_a_worker_ahead_sends_nothing_that_a_stopped_worker_may_still_send",
            "test_on_sqlite_a_stopped_worker_that_is_behind_sends_nothing_late",
        ),
    ),
    row(
        "effect:two-hosts",
        "issue 11 Done 4",
        "two workers on Postgres, one with a clock two minutes off, send nothing twice, lose nothing and end every "
        "run while workers, Temporal and Postgres are killed at random",
        in_file(
            "crash/test_two_hosts.py",
            "test_runs_on_two_workers_end_and_send_once_while_workers_temporal_and_postgres_are_killed",
        ),
    ),
    row(
        "hosts:soak",
        "issue 11 Done 4",
        "the same two workers lose and double nothing through 100 kills",
        in_file(
            "soak/test_two_hosts.py",
            "test_runs_on_two_workers_end_and_send_once_however_often_workers_temporal_and_postgres_are_killed",
        ),
    ),
    row(
        "effect:undeclared",
        "issue Done 4",
        "a tool without verify or idempotency, killed after its send, leads to a question and never to a second send",
        in_file(
            "crash/test_stops_and_restarts.py",
            "test_an_undeclared_tool_killed_after_its_send_leads_to_a_question_never_to_a_second_send",
        ),
    ),
    row(
        "effect:server-restart",
        "issue Done 4",
        "a Temporal server killed during the sending and started again loses nothing",
        in_file(
            "crash/test_stops_and_restarts.py",
            "test_a_temporal_server_killed_during_sending_and_started_again_loses_nothing",
        ),
    ),
    row(
        "effect:no-worker",
        "design 4; design 8",
        "a decision made while no worker lives is acted on by the next",
        in_file(
            "crash/test_stops_and_restarts.py", "test_a_decision_made_while_no_worker_lives_is_acted_on_by_the_next"
        ),
    ),
    row(
        "effect:soak",
        "issue Done 4",
        "in make soak, runs end and every mail is sent once over 200 or more random kills and at further named points",
        in_file(
            "soak/test_more_points.py",
            "test_a_worker_killed_at_a_further_point_is_replaced_and_every_mail_is_sent_once",
        ),
        in_file(
            "soak/test_random_kills.py",
            "test_runs_end_and_every_mail_is_sent_once_however_often_their_workers_are_killed",
        ),
    ),
    row(
        "program:killed",
        "issue 3 Done 4",
        "a program whose worker dies at every turn ends with the same readings as if nothing had happened, and no"
        " mail goes out twice",
        in_file(
            "crash/test_programs.py", "test_a_program_whose_worker_dies_at_every_turn_ends_as_if_nothing_had_happened"
        ),
    ),
    row(
        "fault:store-locked",
        "issue Bad input",
        "a locked store is waited for, one that stays locked is asked about, and an answer of the model that "
        "comes meanwhile is not lost",
        in_file(
            "e2e/faults/test_faults_store.py",
            "test_a_store_that_is_locked_for_a_while_is_waited_for",
            "test_a_store_that_stays_locked_is_asked_about_and_the_run_goes_on",
            "test_a_store_locked_before_the_first_step_is_asked_about",
            "test_a_store_locked_while_the_model_thinks_loses_no_answer",
        ),
    ),
    row(
        "fault:two-stores",
        "issue Bad input",
        "a worker with another store is refused naming both",
        in_file("e2e/faults/test_faults_store.py", "test_a_worker_with_another_store_is_refused_naming_both"),
    ),
    row(
        "store:right-one",
        "issue Bad input",
        "of two workers with two stores the right one carries the run or a person is asked",
        in_file(
            "e2e/faults/test_faults_store.py",
            "test_of_two_workers_with_two_stores_the_right_one_carries_the_run_or_a_person_is_asked",
        ),
    ),
    row(
        "fault:reset",
        "issue Bad input",
        "after a reset the same decision finds the recorded outcome, and another decision is a conflict that a "
        "person settles",
        in_file(
            "e2e/faults/test_faults_store.py",
            "test_after_a_reset_the_same_decision_finds_the_recorded_outcome",
            "test_after_a_reset_another_decision_is_a_conflict_that_a_person_settles",
        ),
    ),
    row(
        "fault:bounded",
        "issue Bad input",
        "by the timeouts and retries that are set, a lasting fault of store, model, server or effect is asked "
        "about within a minute",
        in_file(
            "e2e/faults/test_faults_deadlines.py",
            "test_the_pauses_between_attempts_are_those_of_the_retry_policy",
            "test_whatever_an_attempt_takes_a_lasting_fault_is_asked_about_within_a_minute",
            "test_a_locked_store_is_asked_about_within_a_minute",
            "test_an_effect_that_hangs_is_asked_about_within_a_minute",
            "test_an_endpoint_that_cannot_be_reached_is_asked_about_within_a_minute",
            "test_another_store_is_asked_about_within_a_minute",
            "test_a_server_that_is_silent_at_its_start_is_given_up_within_a_minute",
        ),
    ),
    row(
        "fault:attributes",
        "issue Bad input",
        "a new namespace gets the search attributes, and one that cannot take them carries runs all the same",
        in_file(
            "e2e/faults/test_faults_store.py",
            "test_a_namespace_without_our_search_attributes_carries_runs_all_the_same",
            "test_a_new_namespace_gets_our_search_attributes_before_the_first_run",
        ),
    ),
    row(
        "fault:tool-hangs",
        "issue Bad input",
        "a read that hangs is an error to the model, an effect that hangs is asked about and not sent again",
        in_file(
            "e2e/faults/test_faults_tools.py",
            "test_a_read_that_hangs_is_an_error_to_the_model",
            "test_an_effect_that_hangs_is_asked_about_and_not_sent_again",
        ),
    ),
    row(
        "fault:tool-dies",
        "issue Bad input",
        "a server that dies under an effect is a question, garbage between answers is passed over, a missing "
        "server takes only its own tools away",
        in_file(
            "e2e/faults/test_faults_tools.py",
            "test_an_effect_whose_server_died_in_mid_call_is_a_question",
            "test_garbage_between_the_answers_is_passed_over",
            "test_a_missing_server_takes_only_its_own_tools_away",
        ),
    ),
    row(
        "fault:read-again",
        "issue Bad input",
        "a read whose server died once is made again",
        in_file("e2e/faults/test_faults_tools.py", "test_a_read_whose_server_died_once_is_made_again"),
    ),
    row(
        "read:dies-always",
        "issue Bad input",
        "a read whose server dies every time is asked about",
        in_file("e2e/faults/test_faults_tools.py", "test_a_read_whose_server_dies_every_time_is_asked_about"),
    ),
    row(
        "loop:tool-changed",
        "design 3; issue Bad input",
        "a tool that changes after it was ruled on is refused before the intent and asked about again",
        in_file("e2e/faults/test_faults_tools.py", "test_a_tool_that_changes_after_approval_is_asked_about_again"),
        in_file(
            "toolbox/test_catalog.py",
            "test_a_changed_tool_is_refused_before_the_intent",
            "test_a_server_that_was_replaced_is_looked_at_before_it_is_called",
        ),
    ),
)
