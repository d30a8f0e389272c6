"""Programs that a model writes: how they are checked, run, replayed and ended."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "program:one-path",
        "design 5",
        "every call of a program is asked about, charged and recorded like any other, and a rejected one is an "
        "error it can catch",
        in_file(
            "e2e/programs/test_programs.py",
            "test_a_program_reads_computes_and_sends_after_one_approval_for_all_its_mails",
            "test_a_rejected_call_is_an_error_that_the_program_can_catch",
        ),
    ),
    row(
        "program:policy",
        "design 22",
        "a policy may ask about a program itself and shows its source",
        in_file("e2e/programs/test_programs.py", "test_a_policy_may_ask_about_the_program_itself_and_shows_its_source"),
    ),
    row(
        "program:approved-whole",
        "design 8",
        "what is approved of a long program is all of it",
        in_file("e2e/programs/test_programs.py", "test_what_is_approved_of_a_long_program_is_all_of_it"),
    ),
    row(
        "program:as-written",
        "design 5",
        "a program runs as it was written, and no secret stands in it",
        in_file(
            "e2e/programs/test_programs.py", "test_code_runs_as_it_was_written_whatever_its_names_are_and_no_secret_stands_in_it"
        ),
    ),
    row(
        "program:results",
        "design 5",
        "a program reads an earlier stored result whole by its ref",
        in_file("e2e/programs/test_programs.py", "test_a_program_reads_an_earlier_answer_whole"),
        in_file("sandbox/test_runner.py", "test_an_earlier_result_is_read_by_its_ref"),
    ),
    row(
        "program:not-offered",
        "design 13",
        "where no sandbox worker polls, no program is offered",
        in_file("e2e/programs/test_programs.py", "test_where_no_sandbox_worker_polls_no_program_is_offered"),
    ),
    row(
        "program:ends",
        "issue 3 Done 8",
        "a program that fails, loops or passes a limit is an answer with its cause, and the run goes on",
        in_file("e2e/programs/test_programs.py", "test_a_program_that_fails_is_an_answer_with_its_cause_and_the_run_goes_on"),
    ),
    row(
        "program:cancelled",
        "design 9",
        "an undo ends a waiting program with ProgramCancelled",
        in_file("e2e/programs/test_programs.py", "test_a_program_ends_when_a_person_takes_back_what_it_did"),
    ),
    row(
        "program:batch-size",
        "design 2",
        "what is too much for one batch is an error that the program can catch",
        in_file("e2e/programs/test_programs.py", "test_what_is_too_much_for_one_batch_is_an_error_that_the_program_can_catch"),
    ),
    row(
        "program:left",
        "issue 3",
        "no jail waits for a run that has ended",
        in_file("e2e/programs/test_programs.py", "test_no_jail_waits_for_a_run_that_has_ended"),
    ),
    row(
        "program:blocked",
        "seed 002 §8",
        "whoever is asked about a program sees which modules and functions it uses that an operator warns of",
        in_file("sandbox/test_check.py", "test_what_an_operator_warns_of_is_found_with_its_line"),
        in_file("e2e/programs/test_programs.py", "test_whoever_is_asked_about_a_program_sees_what_an_operator_warns_of"),
    ),
    row(
        "program:sampled",
        "issue 3",
        "finished programs are run again as a sample, and a difference is an event",
        in_file("e2e/programs/test_programs.py", "test_one_in_so_many_programs_is_run_again_and_a_difference_is_an_event"),
    ),
    row(
        "program:shared-blobs",
        "design 13",
        "a sandbox worker that does not see what the run stored says so",
        in_file("e2e/programs/test_programs.py", "test_a_sandbox_worker_that_does_not_see_what_the_run_stored_says_so"),
    ),
    row(
        "program:wall",
        "issue 3 Done 3",
        "a call of a program through Temporal takes at most 1.3 times as long as on the bare floor",
        in_file("test_benchmarks.py", "test_a_call_of_a_program_took_at_most_1_3_times_as_long_as_on_the_floor"),
    ),
    row(
        "program:history",
        "issue 3 Done 3",
        "history per call is small and does not grow with the rounds, and calls gathered share their rounds",
        in_file(
            "e2e/programs/test_program_history.py",
            "test_history_per_call_is_small_and_does_not_grow_with_the_rounds",
            "test_calls_gathered_share_their_rounds",
        ),
    ),
    row(
        "program:forms",
        "issue 3 Done 9",
        "on three measured tasks both forms act, and the program asks its model no more often",
        in_file("test_benchmarks.py", "test_both_forms_came_to_the_same_answer_and_the_program_asked_its_model_less"),
    ),
    row(
        "program:source",
        "design 5",
        "a program is the body of main or defines main or solve, and binds names, nests functions and classes and"
        " tells lines as a module would",
        in_file(
            "sandbox/test_source.py",
            "test_a_program_is_the_body_of_main_or_defines_main_or_solve",
            "test_what_a_body_binds_it_binds_as_a_module_would",
            "test_nested_functions_may_say_nonlocal_as_in_a_function",
            "test_classes_of_a_program_can_be_pickled_and_their_hints_be_read",
            "test_everything_may_be_imported_from_a_module",
            "test_errors_tell_the_line_of_the_source",
        ),
    ),
    row(
        "program:starts",
        "design 5",
        "however a program starts its main, it runs once and its result is kept",
        in_file(
            "sandbox/test_runner.py",
            "test_every_common_way_to_write_a_program_runs_it_once",
            "test_a_program_that_starts_itself_is_not_started_again",
        ),
        in_file("sandbox/test_source.py", "test_however_a_program_starts_its_main_it_runs_once_and_its_result_is_kept"),
    ),
    row(
        "program:checked",
        "design 5",
        "each fault of a program is one line that names the line and the way out, and costs no run",
        in_file("e2e/programs/test_programs.py", "test_a_faulty_program_is_refused_before_it_runs_and_costs_no_run"),
        in_file(
            "sandbox/test_check.py",
            "test_each_fault_is_one_line_that_names_the_line_and_the_way_out",
            "test_at_most_ten_faults_are_named_in_the_order_of_lines",
        ),
    ),
    row(
        "program:fits",
        "design 5",
        "nothing is said of a program that fits, of ordinary library code, or of what happens around the parsing",
        in_file(
            "sandbox/test_check.py",
            "test_nothing_is_said_of_a_program_that_fits",
            "test_warnings_about_a_program_reach_nobody",
            "test_ordinary_code_of_the_standard_library_is_not_faulted",
            "test_what_the_collector_does_during_the_parsing_is_no_fault_of_the_program",
        ),
    ),
    row(
        "program:check-total",
        "design 5",
        "whatever the source is, the check answers in short lines, also where it breaks the parser",
        in_file(
            "sandbox/test_check.py",
            "test_a_program_that_breaks_the_parser_is_a_clear_fault",
            "test_a_chain_of_branches_as_long_as_a_program_may_be_is_compiled_or_a_clear_fault",
            "test_whatever_the_source_is_the_check_answers_in_short_lines",
        ),
    ),
    row(
        "program:batch",
        "design 5",
        "calls that run together are one batch, numbered in the order they were made, with the arguments they had then",
        in_file(
            "sandbox/test_runner.py",
            "test_calls_that_run_together_are_one_batch_numbered_in_the_order_they_were_made",
            "test_arguments_are_taken_as_they_were_when_the_call_was_made",
        ),
    ),
    row(
        "program:racing",
        "design 5",
        "racing calls follow the order in which their answers are recorded",
        in_file("sandbox/test_runner.py", "test_racing_calls_follow_the_order_in_which_their_answers_are_recorded"),
    ),
    row(
        "program:never-awaited",
        "design 5",
        "a call that would silently not be made is an error by name",
        in_file("sandbox/test_runner.py", "test_a_call_that_would_silently_not_be_made_is_an_error_by_name"),
    ),
    row(
        "program:clock",
        "design 5",
        "time moves with the journal and with sleep, and never stands still",
        in_file("sandbox/test_runner.py", "test_time_moves_with_the_journal_and_with_sleep_and_never_stands_still"),
    ),
    row(
        "program:asyncio",
        "design 5",
        "every construct of asyncio works on coroutines and on calls",
        in_file("sandbox/test_runner.py", "test_every_construct_of_asyncio_works_on_coroutines_and_on_calls"),
    ),
    row(
        "asyncio:waiting",
        "design 5",
        "tasks that only wait are cancelled when the program returns",
        in_file("sandbox/test_runner.py", "test_tasks_that_only_wait_are_cancelled_when_the_program_returns"),
    ),
    row(
        "asyncio:timeout",
        "design 5",
        "a call once made is never abandoned by a timeout, but the next one is not made",
        in_file(
            "sandbox/test_runner.py",
            "test_a_call_once_made_is_never_abandoned_by_a_timeout_but_the_next_one_is_not_made",
        ),
    ),
    row(
        "asyncio:yields",
        "design 5",
        "a program that only yields still gets its calls made and its timers run",
        in_file(
            "sandbox/test_runner.py",
            "test_a_program_that_only_yields_still_gets_its_calls_made_and_its_timers_run",
        ),
    ),
    row(
        "asyncio:closed",
        "design 5",
        "async generators are closed, and context variables kept",
        in_file("sandbox/test_runner.py", "test_async_generators_are_closed_and_context_variables_kept"),
    ),
    row(
        "asyncio:rest",
        "design 5",
        "the rest of asyncio and what it needs come when they are asked for",
        in_file("sandbox/test_runner.py", "test_the_rest_of_asyncio_and_what_it_needs_come_when_they_are_asked_for"),
    ),
    row(
        "program:output",
        "design 5",
        "what main returns is the result, and what is printed in any way is output in order",
        in_file(
            "sandbox/test_runner.py",
            "test_what_main_returns_is_the_result_and_what_it_prints_is_the_output",
            "test_leaving_by_exit_zero_is_an_end_without_a_result",
            "test_what_is_printed_in_any_way_is_output_in_order",
        ),
    ),
    row(
        "program:modules",
        "design 5",
        "bindings are importable by every name, and pickles, dataclasses and tracebacks find the program as their"
        " module",
        in_file(
            "sandbox/test_runner.py",
            "test_bindings_are_importable_by_every_name_and_unknown_functions_name_the_known_ones",
            "test_pickles_dataclasses_and_tracebacks_find_the_program_as_their_module",
        ),
    ),
    row(
        "program:errors",
        "design 5",
        "a tool's error is raised in a program with its type and text, and can be handled",
        in_file("sandbox/test_runner.py", "test_a_tool_error_is_raised_with_its_type_and_text_and_can_be_handled"),
    ),
    row(
        "errors:no-json",
        "design 5",
        "what is no JSON is refused by type and place, in results and arguments",
        in_file("sandbox/test_runner.py", "test_what_is_no_json_is_refused_by_type_and_place_in_results_and_arguments"),
    ),
    row(
        "errors:one-line",
        "design 5",
        "an error is told in one line with its type and the program's own line",
        in_file("sandbox/test_runner.py", "test_an_error_is_told_in_one_line_with_its_type_and_the_programs_own_line"),
    ),
    row(
        "program:pure",
        "design 5",
        "a program that is replayed from its journal says byte for byte what it says live",
        in_file(
            "sandbox/test_program_replay.py",
            "test_a_program_that_is_replayed_in_every_round_says_byte_for_byte_what_it_says_live",
        ),
    ),
    row(
        "program:journal",
        "design 5",
        "a journal holds what was sent and came in each round, numbers its calls on from the start frame, and is "
        "replayed to its end",
        in_file(
            "sandbox/test_program_replay.py",
            "test_the_first_round_holds_no_frame_and_every_later_one_exactly_what_was_sent",
            "test_calls_go_on_from_the_number_in_the_start_frame",
            "test_a_long_journal_with_large_frames_is_replayed_to_its_end",
        ),
    ),
    row(
        "program:generated",
        "design 5; issue 3 Done 4",
        "generated programs of every kind, replayed up to any round on another worker, go on as they did live",
        in_file(
            "sandbox/test_generated.py",
            "test_a_program_replayed_up_to_any_round_on_another_worker_goes_on_as_it_did_live",
            "test_it_does_not_matter_after_which_round_a_program_is_replayed",
            "test_programs_are_of_every_kind_and_follow_from_their_numbers",
            "test_programs_do_depend_on_what_is_held_still",
        ),
        in_file(
            "soak/test_programs.py", "test_programs_say_the_same_live_and_replayed_up_to_any_round_on_another_worker"
        ),
    ),
    row(
        "program:seeded",
        "design 5",
        "chance comes from the program's seed",
        in_file("sandbox/test_program_replay.py", "test_another_seed_gives_other_chances_and_the_same_seed_the_same"),
    ),
    row(
        "program:held-still",
        "design 5",
        "times and chance of databases, files, archives and the processor are those of the program's clock and seed",
        in_file(
            "sandbox/test_held_still.py",
            "test_the_current_time_of_a_database_is_the_programs_in_every_form_in_which_it_is_asked",
            "test_other_times_of_a_database_are_what_they_were",
            "test_the_chance_of_a_database_comes_from_the_seed",
            "test_files_are_as_old_as_the_program_unless_it_dated_them_itself",
            "test_an_archive_has_the_same_bytes_in_every_run",
            "test_processor_times_are_those_of_the_programs_clock",
        ),
    ),
    row(
        "program:diverged",
        "design 5",
        "a journal that the program does not follow is told by call, before anything is done",
        in_file(
            "sandbox/test_program_replay.py",
            "test_a_journal_that_the_program_does_not_follow_is_told_by_call",
            "test_a_program_that_ends_where_it_called_before_diverges_before_anything_is_done",
        ),
    ),
    row(
        "diverged:order",
        "design 5",
        "equal arguments in another order are no divergence",
        in_file("sandbox/test_program_replay.py", "test_equal_arguments_in_another_order_are_no_divergence"),
    ),
    row(
        "diverged:one-byte",
        "design 5",
        "a journal with one byte of a call changed is never followed, and one byte of an answer leads elsewhere",
        in_file(
            "sandbox/test_generated.py",
            "test_a_journal_with_one_byte_of_a_call_changed_is_never_followed",
            "test_an_answer_with_one_byte_changed_leads_elsewhere",
        ),
    ),
    row(
        "diverged:unseeded",
        "design 5",
        "a program that reads what no seed rules is caught, where it reaches a call and where it reaches none",
        in_file(
            "sandbox/test_generated.py",
            "test_a_program_that_reads_what_no_seed_rules_is_caught_where_it_reaches_a_call",
            "test_a_program_that_reads_what_no_seed_rules_is_caught_where_it_reaches_no_call",
        ),
    ),
    row(
        "program:replay-faults",
        "design 5",
        "a limit reached while replaying is a lost jail and not the program's fault",
        in_file(
            "sandbox/test_program_replay.py",
            "test_a_limit_reached_while_replaying_is_a_lost_jail_and_not_the_programs_fault",
        ),
    ),
    row(
        "replay:image-gone",
        "design 5",
        "an image that is gone is named",
        in_file("sandbox/test_program_replay.py", "test_an_image_that_is_gone_is_named"),
    ),
    row(
        "replay:frames",
        "design 5",
        "a frame for a program that has not run, and none for one that has, are refused",
        in_file(
            "sandbox/test_program_replay.py",
            "test_a_frame_for_a_program_that_has_not_run_and_none_for_one_that_has_are_refused",
        ),
    ),
    row(
        "program:fast-path",
        "design 5",
        "a paused program goes on without a replay, once, and only under its own key",
        in_file(
            "sandbox/test_paused.py",
            "test_a_kept_program_goes_on_without_a_replay_and_only_once",
            "test_an_unknown_key_or_none_is_replayed",
            "test_forgetting_a_run_ends_its_programs_and_no_others",
            "test_a_second_program_under_the_same_key_takes_the_place_of_the_first",
            "test_discarding_a_program_that_is_going_on_does_not_end_it",
        ),
    ),
    row(
        "program:kept-bounded",
        "design 5",
        "paused programs are bounded in number, memory and time, and ended when they are discarded, forgotten or "
        "nobody keeps them",
        in_file(
            "sandbox/test_paused.py",
            "test_the_least_recently_kept_makes_room_and_its_process_ends",
            "test_memory_is_bounded_by_what_the_kept_programs_hold_for_themselves",
            "test_a_program_that_nobody_goes_on_with_is_ended_after_a_while",
            "test_a_discarded_program_is_ended_and_nothing_is_kept_by_a_closed_sandbox",
            "test_a_paused_program_that_nobody_keeps_or_discards_is_bounded_like_the_others",
        ),
    ),
    row(
        "program:pool",
        "design 13",
        "jails are started ahead, run one program each, are replaced when they die or grow old, and say why when "
        "they cannot start",
        in_file(
            "sandbox/test_pool.py",
            "test_the_pool_fills_up_and_again_after_each_program",
            "test_no_two_programs_share_a_jail",
            "test_more_programs_than_ready_jails_all_run",
            "test_a_jail_that_died_while_it_was_ready_is_not_given_away",
            "test_ready_jails_that_grow_old_are_replaced",
            "test_a_pool_that_cannot_start_jails_says_why_to_whoever_takes_one_and_tries_again",
        ),
    ),
    row(
        "program:closing",
        "design 13",
        "closing the sandbox ends every jail and leaves no process, file or task behind",
        in_file("sandbox/test_pool.py", "test_closing_ends_every_jail_and_leaves_no_process_file_or_task_behind"),
    ),
    row(
        "door:plan-library",
        "design 22; seed 000 §6; seed 000 §13",
        "a host program runs a program with its own tools",
        in_file("sandbox/test_plan.py", "test_a_host_program_runs_a_program_with_its_own_tools"),
    ),
    row(
        "library:no-caller",
        "design 22; seed 000 §6; seed 000 §13",
        "without a registered caller no tool is reached",
        in_file("sandbox/test_plan.py", "test_without_a_registered_caller_no_tool_is_reached"),
    ),
    row(
        "library:timeout",
        "design 22; seed 000 §6; seed 000 §13",
        "a program of a host program that takes too long says so, and nothing that it says of time is taken for a "
        "timeout",
        in_file(
            "sandbox/test_plan.py",
            "test_a_program_that_takes_too_long_says_so",
            "test_what_a_program_says_of_time_is_not_taken_for_a_timeout",
        ),
    ),
    row(
        "library:no-time",
        "design 22; seed 000 §6; seed 000 §13",
        "a timeout that is no time is refused by name",
        in_file("sandbox/test_plan.py", "test_a_timeout_that_is_no_time_is_refused_by_name"),
    ),
    row(
        "program:bindings",
        "issue 3; seed 000 §6; seed 000 §13",
        "bindings are typed functions that pyright accepts, in memory and on disk, and wrong calls are found",
        in_file("toolbox/test_bindings.py", "test_pyright_accepts_the_package_and_finds_wrong_calls"),
        in_file("toolbox/test_manifest.py", "test_the_bindings_on_disk_are_imported_and_strictly_typed"),
    ),
    row(
        "program:bindings-hostile",
        "issue 3",
        "whatever a server says, each source is one function that makes one call, text stays readable, and names "
        "stay apart",
        in_file(
            "toolbox/test_bindings.py",
            "test_whatever_a_server_says_each_source_is_one_function_that_makes_one_call",
            "test_hostile_text_is_still_readable_where_it_may_be",
            "test_two_tools_that_would_share_a_name_keep_apart_and_a_fine_name_is_kept",
        ),
    ),
    row(
        "program:bindings-text",
        "issue 3",
        "a tool is written as a documented function, in a package of one module per tool, and described to a "
        "model in one line",
        in_file(
            "toolbox/test_bindings.py",
            "test_a_tool_is_written_as_a_typed_documented_function",
            "test_a_tool_without_parameters_and_one_that_takes_anything_are_written_briefly",
            "test_the_package_has_a_client_and_one_module_per_tool",
            "test_a_model_reads_one_line_for_each_function",
        ),
    ),
    row(
        "program:bindings-call",
        "issue 3",
        "only the arguments that were given are sent, under their own names, and signatures say what may be left out",
        in_file(
            "toolbox/test_bindings.py",
            "test_only_the_arguments_that_were_given_are_sent_under_their_own_names",
            "test_signatures_say_what_may_be_left_out",
        ),
    ),
    row(
        "program:bindings-bounded",
        "issue 3",
        "tools with far too much to say are written briefly, and 200 of them fit into one frame",
        in_file(
            "toolbox/test_bindings.py",
            "test_a_tool_with_far_too_much_to_say_is_written_briefly_and_still_works",
            "test_two_hundred_tools_of_any_length_fit_into_one_frame",
            "test_the_lines_for_a_model_are_bounded_and_say_how_many_are_left_out",
        ),
    ),
    row(
        "program:shapes",
        "issue 12 Done 5",
        "scripts in every layout and with every kind of work run in the jail and make each call once, whatever their "
        "helpers are called",
        in_file(
            "sandbox/test_shapes.py",
            "test_scripts_of_every_shape_run_in_the_jail_and_make_each_call_once",
            "test_the_table_has_many_shapes_and_the_sample_all_their_parts",
        ),
        in_file(
            "sandbox/test_runner.py",
            "test_an_entry_that_was_started_and_failed_unseen_is_the_end_of_the_program",
            "test_a_run_amid_a_run_makes_the_calls_of_both_and_gives_the_results_to_each",
        ),
        in_file("soak/test_shapes.py", "test_every_script_of_the_table_runs_in_the_jail"),
    ),
    row(
        "program:settled",
        "issue 12",
        "a call that a person says took place and whose answer is lost raises OutcomeSettled with what is known, "
        "which can be caught",
        in_file(
            "e2e/programs/test_program_outcomes.py",
            "test_a_call_that_a_person_says_happened_raises_what_is_known_and_is_told_as_done",
            "test_the_error_can_be_caught_and_carries_what_is_known",
        ),
    ),
    row(
        "settled:replayed",
        "issue 12",
        "a program that is fed its journal gets the same OutcomeSettled",
        in_file("e2e/programs/test_program_outcomes.py", "test_a_program_that_is_fed_its_journal_gets_the_same_error"),
    ),
    row(
        "settled:found",
        "issue 12",
        "a check that finds the result of a lost call still gives it to the program",
        in_file("e2e/programs/test_program_outcomes.py", "test_a_check_that_finds_the_result_still_gives_it_to_the_program"),
    ),
    row(
        "settled:never",
        "issue 12",
        "a call that a person says did not happen is a tool error and does not stand",
        in_file(
            "e2e/programs/test_program_outcomes.py",
            "test_a_call_that_a_person_says_did_not_happen_is_a_tool_error_and_does_not_stand",
        ),
    ),
    row(
        "program:stands",
        "issue 12; issue 12 Done 5",
        "however a program ends, also after a kill in any round with any verdict, its model is told which effects "
        "stand, and nothing is sent twice",
        in_file(
            "e2e/programs/test_program_outcomes.py",
            "test_however_a_program_ends_its_model_is_told_which_effects_stand",
            "test_a_program_that_ends_with_its_budget_is_told_of_in_the_closing_summary",
            "test_a_program_whose_effects_were_undone_is_told_what_could_not_be",
            "test_a_program_that_diverges_leaves_its_model_told",
            "test_a_program_whose_jail_cannot_be_made_again_ends_and_its_run_goes_on",
        ),
        in_file(
            "backstay/test_undo_stack.py",
            "test_what_stands_is_named_in_order_unless_it_was_undone",
            "test_of_many_effects_that_stand_the_last_are_named",
        ),
        in_file(
            "crash/test_program_verdicts.py",
            "test_after_a_kill_amid_a_call_of_a_program_the_verdict_leaves_the_model_told",
            "test_the_matrix_has_every_round_with_every_verdict_and_the_sample_every_verdict",
        ),
        in_file(
            "soak/test_program_verdicts.py", "test_after_a_kill_in_any_other_round_the_verdict_leaves_the_model_told"
        ),
    ),
)
