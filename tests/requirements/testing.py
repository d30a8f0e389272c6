"""The manifest, the make targets, the published figures and the scripted model."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "house:manifest",
        "issue Done 12",
        "every row has a name of its own, a source and a behaviour",
        in_file("test_requirements.py", "test_every_row_has_a_name_of_its_own_a_source_and_a_behaviour"),
    ),
    row(
        "manifest:proven",
        "issue Done 12",
        "every row has a test or a reason, and not both",
        in_file("test_requirements.py", "test_every_row_has_a_test_or_a_reason_and_not_both"),
    ),
    row(
        "manifest:tests",
        "issue Done 12",
        "every test that a row names exists, and every test stands in exactly one row",
        in_file(
            "test_requirements.py",
            "test_every_test_that_a_row_names_exists",
            "test_every_test_stands_in_exactly_one_row",
        ),
    ),
    row(
        "manifest:lines",
        "issue Done 12",
        "the files of rows have lines of normal length",
        in_file("test_requirements.py", "test_the_files_of_rows_have_lines_of_normal_length"),
    ),
    row(
        "house:manifest-reasons",
        "issue Done 12",
        "a reason names a feature and no number, and nothing that is in scope is deferred",
        in_file(
            "test_requirements.py",
            "test_a_reason_names_a_feature_and_no_number",
            "test_nothing_that_is_in_scope_is_deferred",
        ),
    ),
    row(
        "house:manifest-sources",
        "issue Done 12",
        "rows cover all seeds, the sections of the design that are built, and the twelve points of the first scope",
        in_file("test_requirements.py", "test_every_source_is_covered"),
    ),
    row(
        "demo:two-commands",
        "issue Done 1",
        "in a fresh clone make demo and make test each make their own environment from the lock first",
        in_file("test_makefile.py", "test_each_of_the_two_commands_first_makes_its_own_environment_from_the_lock"),
        by_hand="both commands in a fresh clone with an empty home, as root and as an ordinary user",
    ),
    row(
        "demo:test-time",
        "issue Done 3",
        "make test is green in 15 minutes on 2 cores, and nothing is skipped but what a jail cannot show on this "
        "machine",
        in_file("test_makefile.py", "test_no_test_is_skipped_or_expected_to_fail"),
        by_hand="make test with a clock on two cores",
    ),
    row(
        "demo:checks-beside",
        "issue 29",
        "make test checks style and types beside the tests, fails where either does, and says last what was checked",
        in_file("test_makefile.py", "test_checks_run_beside_the_tests_and_either_fails_the_whole_and_says_so"),
    ),
    row(
        "demo:matrix",
        "issue Done 3",
        "make test-matrix runs the same tests on Python 3.11, 3.12 and 3.13",
        in_file("test_makefile.py", "test_the_matrix_runs_the_same_tests_on_every_supported_python"),
        by_hand="make test-matrix where the three Pythons are installed",
    ),
    row(
        "demo:steps-benchmark",
        "issue Done 11",
        "a step is measured against the bare floor in runs of 10, 50 and 200 steps, and takes at most 1.5 of its "
        "CPU in the longest",
        in_file(
            "test_benchmarks.py",
            "test_every_size_was_measured_beside_the_floor_in_cpu_wall_events_and_bytes",
            "test_in_a_run_of_200_steps_a_step_took_at_most_one_and_a_half_times_the_cpu_of_the_floor",
        ),
        by_hand="make bench; the ratio of short runs is in docs/performance.md",
    ),
    row(
        "docs:figures",
        "issue Done 11",
        "the published tables of figures are those of the last run of each benchmark",
        in_file("test_benchmarks.py", "test_the_published_table_is_that_of_the_last_run"),
    ),
    row(
        "docs:figures-compared",
        "issue: no figure is worse than in the release before",
        "python -m benchmarks.compare measures this checkout and another one in turns and prints the ratios",
        in_file(
            "test_benchmarks.py",
            "test_a_comparison_measures_a_checkout_in_its_own_process_and_names_every_figure",
            "test_a_comparison_shows_the_ratio_of_the_medians_and_the_ratios_of_single_rounds",
        ),
        by_hand="python -m benchmarks.compare with a checkout of the release before",
    ),
    row(
        "door:model",
        "issue Demo",
        "the scripted model answers text, function calls, streams and empty answers over a socket as the OpenAI "
        "client reads them",
        in_file(
            "testing/test_scripted_model.py",
            "test_a_text_is_answered_with_usage_in_the_shape_the_client_reads",
            "test_calls_are_answered_as_native_function_calls_with_ids_of_their_own",
            "test_an_answer_can_be_empty_and_say_nothing_of_its_usage",
            "test_a_stream_carries_text_calls_and_usage",
        ),
    ),
    row(
        "model:rules",
        "issue Demo",
        "a rule of the scripted model sees task, tools, calls and answers of any request, and may wait for the test",
        in_file(
            "testing/test_scripted_model.py",
            "test_a_rule_sees_task_tools_calls_and_answers",
            "test_a_rule_may_wait_for_what_the_test_decides",
            "test_any_request_can_be_read_as_a_conversation",
        ),
    ),
    row(
        "model:bill",
        "issue Demo",
        "the scripted model bills what it computed, lost answers, silence and repeated context included, and sums"
        " it exactly",
        in_file(
            "testing/test_scripted_model.py",
            "test_a_growing_conversation_is_billed_as_cached_where_it_repeats",
            "test_what_was_computed_and_never_arrived_is_billed_all_the_same",
            "test_silence_is_billed_and_ends_with_the_client_or_the_server",
            "test_the_bill_is_the_exact_sum_rounded_up_once",
            "test_a_model_without_a_price_is_no_free_model",
        ),
    ),
    row(
        "model:faults",
        "issue Demo",
        "the scripted model plays a page of HTML, refusals with their codes and headers, and an answer that is cut",
        in_file(
            "testing/test_scripted_model.py",
            "test_a_page_of_html_is_answered_byte_for_byte",
            "test_a_refusal_names_its_code_and_its_headers_and_costs_nothing",
            "test_an_answer_longer_than_the_request_allows_is_cut_and_billed_as_cut",
        ),
    ),
    row(
        "model:script-faults",
        "issue Demo",
        "a script that ends, raises or cannot be loaded says so, and waiting for requests is bounded",
        in_file(
            "testing/test_scripted_model.py",
            "test_a_script_at_its_end_and_a_script_that_raises_say_so",
            "test_waiting_for_requests_that_never_come_is_bounded",
            "test_a_script_that_cannot_be_loaded_is_refused_by_name",
        ),
    ),
    row(
        "model:process",
        "issue Demo",
        "as a process the scripted model prints its address, serves and ends on a signal",
        in_file(
            "testing/test_scripted_model.py", "test_as_a_process_it_prints_its_address_serves_and_ends_on_a_signal"
        ),
    ),
)
