"""What goes to a model endpoint, what comes back, and what is done when it does not."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "model:streamed",
        "design 22; design 7",
        "a streamed answer is the same as a whole one, in words, calls, usage and finish reason",
        in_file("activities/test_streaming.py", "test_a_streamed_answer_is_the_same_as_a_whole_one"),
    ),
    row(
        "streamed:words",
        "design 22; design 7",
        "what the model says, and the summary of `finish`, is told while it arrives, and arguments of other calls "
        "are not",
        in_file(
            "activities/test_streaming.py",
            "test_what_the_model_says_is_told_while_it_arrives",
            "test_the_summary_of_finish_is_told_like_words",
            "test_arguments_of_other_calls_are_not_told",
        ),
    ),
    row(
        "streamed:not",
        "design 22; design 7",
        "an endpoint is told that a stream is accepted, and one that does not stream is read all the same",
        in_file(
            "activities/test_streaming.py",
            "test_an_endpoint_that_does_not_stream_is_read_all_the_same",
            "test_the_endpoint_is_told_that_a_stream_is_accepted",
        ),
    ),
    row(
        "streamed:usage",
        "design 22; design 7",
        "usage may come with any chunk and the last one counts, and a stream that does not say what it used counts "
        "as not reported",
        in_file(
            "activities/test_streaming.py",
            "test_a_stream_that_does_not_say_what_it_used_counts_as_not_reported",
            "test_usage_may_come_with_any_chunk_and_the_last_one_counts",
        ),
    ),
    row(
        "streamed:fragments",
        "design 22; design 7",
        "calls are put together from fragments, whatever comments, other fields and line ends stand between",
        in_file(
            "activities/test_streaming.py",
            "test_calls_are_put_together_from_fragments",
            "test_comments_other_fields_and_windows_line_ends_are_passed_over",
        ),
    ),
    row(
        "streamed:done",
        "design 22; design 7",
        "an answer counts when it is done, though the connection stays open",
        in_file(
            "activities/test_streaming.py",
            "test_an_answer_counts_when_it_is_done_though_the_connection_stays_open",
        ),
    ),
    row(
        "model:hostile-streams",
        "design 22; design 7",
        "a stream without an end, of any shape, is not read to its end, even if it never falls silent",
        in_file(
            "activities/test_streaming.py",
            "test_a_stream_without_end_is_not_read_to_its_end",
            "test_a_stream_that_drips_is_given_up_although_it_never_falls_silent",
        ),
    ),
    row(
        "streams:none",
        "design 22; design 7",
        "a stream that is no completion is taken for no answer",
        in_file("activities/test_streaming.py", "test_a_stream_that_is_no_completion_is_taken_for_none"),
    ),
    row(
        "streams:broken",
        "design 22; design 7",
        "a stream that breaks off, or whose connection is cut, is no answer and may have been billed",
        in_file(
            "activities/test_streaming.py",
            "test_a_stream_that_breaks_off_is_no_answer_and_may_have_been_billed",
            "test_a_connection_that_is_cut_amid_the_stream_is_no_answer_either",
        ),
    ),
    row(
        "streams:refusal",
        "design 22; design 7",
        "a refusal is the same with a stream as without",
        in_file("activities/test_streaming.py", "test_a_refusal_is_the_same_with_a_stream_as_without"),
    ),
    row(
        "streams:unsent",
        "design 22; design 7",
        "a connection that nobody takes is proven unsent",
        in_file("activities/test_streaming.py", "test_a_connection_that_nobody_takes_is_proven_unsent"),
    ),
    row(
        "model:deltas",
        "design 22",
        "what a model says is read along without a secret, even one that is split over several pieces, and is kept "
        "nowhere after",
        in_file("e2e/loop/test_deltas.py", "test_what_a_model_says_is_read_along_without_secrets_and_is_kept_nowhere"),
    ),
    row(
        "deltas:unread",
        "design 22",
        "nobody's run asks for a stream that nobody reads",
        in_file("e2e/loop/test_deltas.py", "test_nobody_pays_for_streams_that_nobody_reads"),
    ),
    row(
        "deltas:billed",
        "design 22",
        "an endpoint that takes no stream is asked without and billed as always",
        in_file("e2e/loop/test_deltas.py", "test_an_endpoint_that_takes_no_stream_is_asked_without_and_billed_as_always"),
    ),
    row(
        "deltas:charged",
        "design 22",
        "a stream that does not say what it used is charged the most and then no longer asked for",
        in_file(
            "e2e/loop/test_deltas.py",
            "test_a_stream_that_does_not_say_what_it_used_is_charged_the_most_and_then_no_longer_asked_for",
        ),
    ),
    row(
        "deltas:store",
        "design 22",
        "a store that cannot pass on what is said stops no run",
        in_file("e2e/loop/test_deltas.py", "test_a_store_that_cannot_pass_on_what_is_said_stops_no_run"),
    ),
    row(
        "deltas:end",
        "design 22",
        "an answer that ends while a piece of it is passed on loses none of it",
        in_file(
            "activities/test_telling.py",
            "test_an_answer_that_ends_while_a_piece_of_it_is_passed_on_loses_none_of_it",
        ),
    ),
    row(
        "budget:usage",
        "design 7",
        "usage is read with its cached and reasoning parts, of which no more is cached than there is",
        in_file(
            "activities/test_completion.py",
            "test_usage_is_read_with_its_cached_and_reasoning_parts",
            "test_more_cached_than_there_is_is_cut_to_what_there_is",
        ),
    ),
    row(
        "usage:unbelieved",
        "design 7",
        "a usage that cannot be believed counts as not reported",
        in_file("activities/test_completion.py", "test_a_usage_that_cannot_be_believed_counts_as_not_reported"),
    ),
    row(
        "model:no-completion",
        "design 7",
        "an answer that is no completion, a dropped and a silent connection may have been billed and are tried again",
        in_file(
            "activities/test_completion.py",
            "test_what_is_no_completion_may_have_been_billed_and_is_tried_again",
            "test_a_dropped_or_silent_connection_may_have_been_billed",
        ),
    ),
    row(
        "model:refusals",
        "design 7",
        "a refusal of the endpoint says by its status and code whether it may be tried again and whether it was billed",
        in_file(
            "activities/test_completion.py",
            "test_a_refusal_says_whether_it_may_be_tried_again_and_whether_it_was_billed",
        ),
    ),
    row(
        "model:retry-after",
        "design 7",
        "Retry-After is read in seconds or as a date, and a wait lasts at most a day",
        in_file(
            "activities/test_completion.py", "test_retry_after_is_read_in_seconds", "test_retry_after_is_read_as_a_date"
        ),
        in_file("activities/test_failures.py", "test_a_wait_is_a_number_of_seconds_of_at_most_a_day"),
    ),
    row(
        "model:errors",
        "design 17",
        "an error of an activity reaches the workflow under the name it knows, final or transient until it has "
        "lasted, and free of secrets",
        in_file(
            "activities/test_failures.py",
            "test_an_error_of_a_bodys_own_goes_by_the_name_that_workflows_know",
            "test_a_final_error_is_not_tried_again_and_a_transient_one_is_until_it_has_lasted",
            "test_a_message_is_free_of_secrets_and_the_facts_of_what_cannot_be_kept",
        ),
    ),
    row(
        "fault:model-html",
        "issue Bad input; design 7",
        "a page of HTML instead of a completion is tried three times, then a person is asked",
        in_file("e2e/faults/test_faults_model.py", "test_a_page_of_html_is_tried_thrice_and_then_asked_about"),
    ),
    row(
        "fault:model-401",
        "issue Bad input",
        "a refused key is asked about at once and never shown",
        in_file("e2e/faults/test_faults_model.py", "test_a_refused_key_is_asked_about_at_once_and_never_shown"),
    ),
    row(
        "fault:model-quota",
        "issue Bad input",
        "an exhausted quota is asked about at once",
        in_file("e2e/faults/test_faults_model.py", "test_an_exhausted_quota_is_asked_about_at_once"),
    ),
    row(
        "fault:model-429",
        "issue Bad input",
        "429 with Retry-After is a timer that says so and costs nothing, and a wait without end is bounded",
        in_file(
            "e2e/faults/test_faults_model.py",
            "test_retry_after_is_a_timer_that_says_so_and_costs_nothing",
            "test_a_long_retry_after_shows_as_waiting",
            "test_a_retry_after_without_end_or_with_a_date_is_bounded",
        ),
    ),
    row(
        "fault:model-long",
        "issue Bad input",
        "a context that is too long is sent again shorter and unbilled",
        in_file("e2e/faults/test_faults_model.py", "test_a_context_that_is_too_long_is_sent_again_shorter_and_unbilled"),
    ),
    row(
        "model:never-short",
        "issue Bad input",
        "a context that nothing makes short enough is asked about",
        in_file("e2e/faults/test_faults_model.py", "test_a_context_that_nothing_makes_short_enough_is_asked_about"),
    ),
    row(
        "fault:model-gone",
        "issue Bad input; design 7; design 17",
        "an endpoint that cannot be reached costs nothing and is asked about",
        in_file("e2e/faults/test_faults_model.py", "test_an_unreachable_endpoint_costs_nothing_and_is_asked_about"),
    ),
    row(
        "end:lasting",
        "design 17",
        "rejecting the question about a lasting fault ends the run as failed with that error",
        in_file("e2e/faults/test_faults_model.py", "test_whoever_stops_after_a_fault_ends_the_run"),
    ),
    row(
        "budget:charged",
        "design 7",
        "lost answers are charged as reserved and asked for again",
        in_file("e2e/faults/test_faults_model.py", "test_errors_and_dropped_connections_are_charged_and_tried_again"),
    ),
    row(
        "budget:worst-case",
        "design 7",
        "a missing or unbelievable usage is charged at the worst case",
        in_file("e2e/faults/test_faults_answers.py", "test_a_missing_or_unbelievable_usage_is_charged_at_the_worst_case"),
    ),
    row(
        "fault:model-empty",
        "issue Bad input",
        "an empty answer costs a step, and the model is asked again",
        in_file("e2e/faults/test_faults_answers.py", "test_an_empty_answer_costs_a_step_and_is_asked_about_again"),
    ),
    row(
        "fault:model-1000",
        "issue Bad input",
        "a thousand calls in one message are refused as a whole, and calls that are large together beyond what "
        "history bears",
        in_file(
            "e2e/faults/test_faults_answers.py",
            "test_a_thousand_calls_in_one_message_are_refused_as_a_whole",
            "test_calls_that_are_large_together_are_refused_beyond_what_history_bears",
        ),
    ),
    row(
        "fault:model-nested",
        "design 6; issue Bad input",
        "a megabyte in one argument is refused, and less is stored beside history",
        in_file(
            "e2e/faults/test_faults_answers.py",
            "test_a_megabyte_in_one_argument_is_refused_and_less_is_stored_beside_history",
        ),
    ),
    row(
        "model:deep-arguments",
        "design 6; issue Bad input",
        "arguments that are nested too deeply are refused and not cut",
        in_file("e2e/faults/test_faults_answers.py", "test_arguments_nested_too_deeply_are_refused_and_not_cut"),
    ),
    row(
        "model:surrogates",
        "design 6; issue Bad input",
        "lone surrogates in names and ids harm nothing",
        in_file("e2e/faults/test_faults_answers.py", "test_lone_surrogates_in_names_and_ids_harm_nothing"),
    ),
    row(
        "model:wire",
        "issue 12",
        "whether a model is offered functions or asked for JSON follows from evidence that no single answer turns, and "
        "is found out anew",
        in_file(
            "e2e/loop/test_wire.py",
            "test_one_chatty_first_answer_changes_the_wire_of_no_other_run",
            "test_a_model_known_to_call_functions_is_asked_for_them_again_after_chatting",
            "test_an_endpoint_that_ignored_functions_in_two_runs_is_asked_for_json_from_the_start",
            "test_an_endpoint_that_takes_no_json_schema_is_asked_for_functions_again_and_nobody_is_asked",
        ),
        in_file(
            "activities/test_observations.py",
            "test_a_run_whose_model_wrote_text_tries_json_and_no_other_run_does",
            "test_where_json_worked_in_several_runs_others_begin_with_it_until_a_function_is_called",
            "test_a_model_that_has_called_functions_must_chat_several_times_in_a_row_to_be_doubted",
            "test_an_endpoint_that_refused_json_is_asked_for_it_again_when_its_model_only_chats",
        ),
    ),
    row(
        "model:bounded",
        "issue 12",
        "an answer of the endpoint is bounded in bytes and in time, whatever its status, and is never unpacked",
        in_file(
            "activities/test_completion.py",
            "test_an_answer_without_end_is_not_read_to_its_end_whatever_its_status",
            "test_an_answer_that_drips_is_given_up_although_it_never_falls_silent",
            "test_an_answer_that_is_compressed_though_nobody_asked_for_that_is_not_unpacked",
        ),
        in_file("e2e/loop/test_wire.py", "test_an_endpoint_whose_answer_never_ends_is_a_fault_that_is_asked_about"),
    ),
    row(
        "models:file",
        "design 22; seed 003 agent; seed 003 config",
        "entries of models.yaml lead to their endpoints and other names to the default one, which is the only one "
        "without a file",
        in_file(
            "activities/test_models_file.py",
            "test_without_a_file_there_is_the_default_endpoint_only",
            "test_entries_lead_to_their_endpoints_and_other_names_to_the_default_one",
        ),
    ),
    row(
        "models:setting",
        "design 22; seed 003 agent; seed 003 config",
        "the setting of a model comes before what models.yaml uses, and a file that a setting names must be there",
        in_file(
            "activities/test_models_file.py",
            "test_the_setting_comes_before_what_the_file_uses",
            "test_a_file_that_a_setting_names_must_be_there",
        ),
    ),
    row(
        "models:strict",
        "design 22; seed 003 agent; seed 003 config",
        "what is wrong in models.yaml is named with its field and its fix, and the worker does not start",
        in_file(
            "activities/test_models_file.py",
            "test_what_is_wrong_is_named_with_its_field_and_its_fix",
            "test_what_is_no_such_file_is_refused",
        ),
        in_file("cli/test_models.py", "test_a_worker_names_what_is_wrong_in_models_yaml_and_does_not_start"),
    ),
    row(
        "models:untrusted",
        "design 22; seed 003 agent; seed 003 config",
        "a models.yaml of a folder that nobody trusts is not obeyed",
        in_file("cli/test_models.py", "test_a_models_yaml_of_a_folder_that_nobody_trusts_is_not_obeyed"),
    ),
    row(
        "models:doctor",
        "design 22; seed 003 agent; seed 003 config",
        "doctor checks every endpoint that runs may use, and every price",
        in_file("cli/test_models.py", "test_doctor_checks_every_endpoint_that_runs_may_use_and_every_price"),
    ),
    row(
        "models:keys",
        "design 22; seed 003 agent; seed 003 config",
        "each endpoint gets its own key and its own name of the model, and no key is kept",
        in_file(
            "e2e/faults/test_fallbacks.py",
            "test_each_endpoint_gets_its_own_key_and_its_own_name_of_the_model_and_no_key_is_kept",
        ),
    ),
    row(
        "models:closing",
        "design 22; seed 003 agent; seed 003 config",
        "a closing summary is written by the model that is named for it",
        in_file("e2e/faults/test_fallbacks.py", "test_a_closing_summary_is_written_by_the_model_that_is_named_for_it"),
    ),
    row(
        "models:fallback-kill",
        "issue Done 4",
        "a worker that dies amid a fallback is replaced, and of the request that was lost one worst case is charged",
        in_file(
            "crash/test_fallback.py",
            "test_a_worker_that_dies_amid_a_fallback_is_replaced_and_each_request_is_charged_once",
        ),
    ),
    row(
        "models:fallback",
        "design 7; seed 003 models",
        "a model whose endpoint fails is replaced by its fallback: visible, billed by name, and the run completes",
        in_file(
            "e2e/faults/test_fallbacks.py",
            "test_what_a_failing_endpoint_leaves_undone_the_next_one_does_and_the_bill_names_both",
            "test_an_endpoint_that_refuses_connections_costs_nothing_and_the_next_one_is_asked",
            "test_where_all_models_fail_a_person_is_asked_and_a_retry_begins_with_the_first",
            "test_a_fallback_is_shown_no_more_than_it_takes",
        ),
    ),
    row(
        "models:ceiling",
        "design 7",
        "a dearer fallback that does not fit the ceiling is not asked, and one that fits is reserved at its own "
        "worst case",
        in_file(
            "e2e/faults/test_fallbacks.py",
            "test_a_dearer_fallback_that_does_not_fit_the_ceiling_is_not_asked",
            "test_a_dearer_fallback_that_fits_is_reserved_at_its_own_worst_case",
        ),
    ),
    row(
        "models:lost-answers",
        "design 7",
        "lost answers of a dearer fallback are charged and stay under the ceiling",
        in_file(
            "e2e/faults/test_fallbacks.py",
            "test_lost_answers_of_a_dearer_fallback_are_charged_and_stay_under_the_ceiling",
        ),
    ),
    row(
        "models:no-price",
        "design 7",
        "a model without a price is refused at the start, whatever it is asked for",
        in_file(
            "e2e/faults/test_fallbacks.py",
            "test_a_model_without_a_price_is_refused_at_the_start_whatever_it_is_asked_for",
        ),
    ),
    row(
        "models:capabilities",
        "design 22",
        "endpoints without function calling or strict schemas are driven by what they take, also after a crash",
        in_file(
            "e2e/tools/test_capabilities.py",
            "test_an_endpoint_is_driven_by_what_it_takes_and_nobody_is_asked",
            "test_what_a_run_has_found_out_of_its_endpoint_outlives_the_worker",
            "test_a_model_that_is_listed_no_more_is_asked_nowhere_else",
        ),
        in_file(
            "activities/test_observations.py",
            "test_what_an_endpoint_refuses_is_not_sent_again_for_an_hour",
            "test_what_a_run_found_out_holds_where_the_worker_knows_nothing",
            "test_what_the_operator_says_of_a_model_is_not_tried_out",
        ),
    ),
)
