"""The loop of a run: from a task through its steps to its end, and how it replays."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "loop:task",
        "design 3; seed 000 §1; seed 003 §1; issue Demo",
        "one sentence becomes a run that reads, asks once, sends and finishes, with the recipients and the total of "
        "a SQL query over random invoices",
        in_file("e2e/approvals/test_reminders.py", "test_recipients_and_total_are_those_of_an_sql_query_over_random_invoices"),
    ),
    row(
        "loop:one-door",
        "design 3; issue Done 4",
        "one function makes the request for a call and orders the activity that calls a tool, and nothing else "
        "leads to it",
        in_file(
            "workflows/test_one_door.py",
            "test_one_function_makes_the_request_for_a_call",
            "test_one_function_orders_the_activity_that_calls_a_tool",
            "test_nothing_else_than_perform_leads_to_that_function",
        ),
    ),
    row(
        "door:stages",
        "design 3; issue Done 4",
        "a table gives the stages of each purpose of a call and a reason for each stage that is left out",
        in_file(
            "workflows/test_one_door.py",
            "test_the_table_speaks_of_every_purpose_and_every_stage_and_gives_a_reason_for_each_that_is_left_out",
            "test_what_is_ruled_on_may_be_asked_about_and_everything_is_called",
        ),
    ),
    row(
        "door:traces",
        "design 3; issue Done 4",
        "calls of the model, of programs and plans, checks and undos leave the traces of the stages that the table "
        "names for them",
        in_file(
            "e2e/tools/test_one_door.py",
            "test_a_call_passes_the_stages_that_the_table_names_for_its_purpose",
            "test_a_read_passes_the_stages_that_the_table_leaves_it",
        ),
    ),
    row(
        "loop:open-once",
        "design 3; design 6",
        "store, model, policy, prompt and catalog of a run are resolved once and recorded, and a run keeps the "
        "policy it was opened with",
        in_file("e2e/loop/test_loop.py", "test_what_a_run_must_not_read_again_is_resolved_once_and_recorded"),
        in_file("e2e/faults/test_faults_store.py", "test_a_run_keeps_the_policy_it_was_opened_with"),
    ),
    row(
        "loop:first-search",
        "design 3",
        "one search of the task text, limit 40, comes before the first step",
        in_file("e2e/loop/test_loop.py", "test_one_search_of_the_task_text_comes_before_the_first_step"),
    ),
    row(
        "loop:new-search",
        "design 3",
        "a changed catalog leads to a new search at the next step, and an unchanged one is searched once",
        in_file(
            "e2e/tools/test_catalog_changes.py",
            "test_a_changed_catalog_leads_to_a_new_search_at_the_next_step",
            "test_an_unchanged_catalog_is_searched_once",
        ),
    ),
    row(
        "search:gone",
        "design 3",
        "a tool that is gone from the catalog is an error to the model",
        in_file("e2e/tools/test_catalog_changes.py", "test_a_tool_that_is_gone_is_an_error_to_the_model"),
    ),
    row(
        "loop:visible",
        "design 22",
        "the list of functions keeps its beginning from step to step",
        in_file("e2e/loop/test_loop.py", "test_the_list_of_functions_keeps_its_beginning_from_step_to_step"),
    ),
    row(
        "visible:full",
        "design 22",
        "when the list of functions is full, the oldest tool that was never called leaves",
        in_file(
            "activities/test_transcript.py",
            "test_when_the_list_is_full_the_oldest_tool_that_was_never_called_leaves",
        ),
    ),
    row(
        "loop:unknown-tool",
        "design 3; issue Bad input",
        "an unknown tool is an error to the model",
        in_file("e2e/faults/test_faults_answers.py", "test_an_unknown_tool_is_an_error_to_the_model"),
    ),
    row(
        "loop:schema",
        "design 3; issue Bad input",
        "arguments that do not fit the tool's schema are an error to the model, and nothing is called",
        in_file("e2e/faults/test_faults_answers.py", "test_arguments_that_do_not_fit_the_schema_are_an_error_to_the_model"),
    ),
    row(
        "loop:malformed",
        "design 22; issue Bad input",
        "malformed arguments are an error to the model and cost a step",
        in_file("e2e/faults/test_faults_answers.py", "test_malformed_arguments_cost_a_step_and_are_an_error_to_the_model"),
    ),
    row(
        "loop:beside-finish",
        "design 22; seed 000 §7",
        "calls beside finish are made first",
        in_file("e2e/faults/test_faults_answers.py", "test_calls_beside_finish_are_made_first"),
    ),
    row(
        "loop:finish-dropped",
        "design 22",
        "finish beside a failed or refused call is dropped and the model told, and of two finishes none counts",
        in_file(
            "e2e/faults/test_faults_answers.py",
            "test_finish_beside_a_failed_or_refused_call_is_dropped",
            "test_of_two_finishes_none_counts_and_the_model_is_told",
        ),
    ),
    row(
        "loop:text-finish",
        "design 22; seed 003 §1",
        "text without calls is asked about once and then taken for the end",
        in_file("e2e/faults/test_faults_answers.py", "test_text_alone_is_asked_about_once_and_then_taken_for_the_end"),
    ),
    row(
        "loop:call-ids",
        "design 22",
        "calls that share one id are answered apart",
        in_file("e2e/faults/test_faults_answers.py", "test_calls_with_one_id_are_answered_apart"),
    ),
    row(
        "loop:odd-calls",
        "issue Bad input",
        "calls that are no calls are passed over",
        in_file("e2e/faults/test_faults_answers.py", "test_calls_that_are_no_calls_are_passed_over"),
    ),
    row(
        "loop:mixed",
        "design 22",
        "one message is worked off as searches and reads, then one batch, then one question, then finish",
        in_file("e2e/loop/test_loop.py", "test_searches_and_reads_then_one_batch_then_one_question_then_finish"),
    ),
    row(
        "loop:no-functions",
        "design 22",
        "an endpoint that ignores functions is driven by a JSON Schema",
        in_file("e2e/faults/test_faults_answers.py", "test_an_endpoint_that_ignores_functions_is_driven_by_a_json_schema"),
    ),
    row(
        "loop:developer-role",
        "design 22",
        "the prompt's role is system, or developer by setting",
        in_file("e2e/loop/test_loop.py", "test_the_prompt_has_the_role_that_is_set"),
    ),
    row(
        "loop:ask-person",
        "design 22",
        "a question of the model is answered with any JSON and can end the run",
        in_file("e2e/approvals/test_approvals.py", "test_a_question_is_answered_with_any_json_and_can_end_the_run"),
    ),
    row(
        "loop:read-result",
        "design 6",
        "a stored result is read further by ref, path, offset and limit, and a path is no ref",
        in_file("e2e/loop/test_loop.py", "test_a_stored_result_is_read_further_by_path_offset_and_limit"),
        in_file("e2e/faults/test_faults_answers.py", "test_a_path_is_no_reference_to_a_result"),
    ),
    row(
        "loop:own-bug",
        "design 3",
        "a bug of a release in driving a run or in its ending waits for the release that mends it, and the run goes on",
        in_file("e2e/faults/test_bugs.py", "test_a_bug_in_the_workflow_waits_and_the_next_release_goes_on"),
    ),
    row(
        "bug:handler",
        "design 3",
        "a bug in a handler refuses and is counted, and the run goes on",
        in_file("e2e/faults/test_bugs.py", "test_a_bug_in_a_handler_refuses_and_is_counted_and_the_run_goes_on"),
    ),
    row(
        "bug:activity",
        "design 3",
        "a bug in an activity is tried again, the next release goes on, and one that lasts is asked about",
        in_file(
            "e2e/faults/test_bugs.py",
            "test_a_bug_in_an_activity_is_tried_again_and_the_next_release_goes_on",
            "test_a_bug_in_an_activity_that_lasts_is_asked_about",
        ),
    ),
    row(
        "loop:recoverable",
        "design 3",
        "code that no longer fits a history fails a workflow task and never the run",
        in_file(
            "e2e/loop/test_loop.py",
            "test_code_that_no_longer_fits_a_history_fails_a_workflow_task_and_never_the_run",
            "test_a_run_of_a_test_that_would_do_something_else_in_a_replay_fails_the_test",
        ),
    ),
    row(
        "loop:plain-json",
        "design 3; issue Bad input",
        "malformed signals become events, malformed updates are refused by field, and the run goes on",
        in_file(
            "e2e/approvals/test_approvals_hostile.py", "test_malformed_signals_become_events_and_malformed_updates_are_refused"
        ),
    ),
    row(
        "fault:no-task-failure",
        "issue Bad input",
        "a task that is no JSON or comes with a second argument is refused, and no workflow task fails",
        in_file(
            "e2e/loop/test_bad_input.py",
            "test_a_task_that_is_no_json_is_refused_and_fails_no_workflow_task",
            "test_more_than_one_argument_is_refused",
        ),
    ),
    row(
        "end:invalid",
        "design 17; design 3",
        "a run started with nothing or with nonsense fails as TaskInvalid",
        in_file(
            "e2e/approvals/test_approvals_hostile.py", "test_a_run_started_with_nothing_or_nonsense_fails_as_an_invalid_task"
        ),
    ),
    row(
        "fault:task",
        "issue Bad input",
        "a task that is not valid is refused by field, value and fix",
        in_file("e2e/loop/test_bad_input.py", "test_a_task_that_is_not_valid_is_refused_naming_field_value_and_fix"),
    ),
    row(
        "door:task-fields",
        "design 22; issue Done 10",
        "a field of a task is accepted at its default",
        in_file("e2e/loop/test_bad_input.py", "test_a_field_is_accepted_at_its_default"),
    ),
    row(
        "door:attach",
        "issue Bad input",
        "a workflow id that is started again while it is open attaches, or is refused where a caller asks for that",
        in_file("client/test_run.py", "test_the_same_id_while_open_attaches_instead_of_starting_twice"),
        in_file("e2e/faults/test_faults_store.py", "test_a_second_start_of_an_open_workflow_id_is_refused_or_attached"),
    ),
    row(
        "effect:refused-retry",
        "design 4",
        "retry, cron and timeouts of a whole run are refused, and so is a task that the server could not carry",
        in_file(
            "e2e/loop/test_loop.py",
            "test_what_temporal_would_do_with_a_whole_run_is_refused",
            "test_a_task_that_the_server_could_not_carry_is_refused",
        ),
    ),
    row(
        "loop:endless",
        "design 6; issue Authority",
        "a run whose history grows long continues as a new execution with state, budget, events, answers, proofs "
        "and undo, and every execution replays",
        in_file(
            "e2e/loop/test_endless.py",
            "test_a_long_run_continues_as_new_executions_and_keeps_all_it_had",
            "test_an_event_id_and_a_request_of_an_earlier_execution_are_known_in_a_later_one",
        ),
    ),
    row(
        "endless:strangers",
        "design 6; issue Authority",
        "a state that a stranger brings, or that this store did not write for this execution, is refused",
        in_file(
            "e2e/loop/test_endless.py",
            "test_a_state_that_a_stranger_brings_is_refused",
            "test_a_state_that_this_store_did_not_write_for_this_execution_is_refused",
        ),
    ),
    row(
        "loop:long",
        "design 6; issue Endless",
        "the last of 400 steps of a run need at most a tenth more history than the first, all is recorded once, and "
        "the last effects are taken back",
        in_file("e2e/loop/test_endless_long.py", "test_the_last_steps_of_a_long_run_cost_as_little_as_the_first"),
    ),
    row(
        "long:soak",
        "design 6; issue Endless",
        "the last of 10,000 steps of a run need at most a tenth more history and memory than the first",
        in_file("soak/test_endless.py", "test_the_last_steps_of_ten_thousand_cost_as_little_as_the_first"),
    ),
    row(
        "loop:carried",
        "issue Done 10",
        "the state of a run comes back whole from its JSON, no field left out, and only the latest answers are carried",
        in_file(
            "workflows/test_state.py",
            "test_a_state_comes_back_whole_from_its_json",
            "test_the_writes_that_are_remembered_are_the_last_ones_also_after_the_state_was_carried_over",
            "test_a_repeated_write_that_failed_does_not_make_the_run_forget_the_first_one",
            "test_no_part_of_the_work_is_left_out_of_the_round_trip",
            "test_what_is_held_back_has_a_bound_and_comes_out_in_order",
            "test_no_field_is_left_out_of_the_round_trip",
            "test_only_the_latest_answers_are_carried",
        ),
    ),
    row(
        "loop:old-history",
        "design 3",
        "what is read from history may hold unknown fields at any depth",
        in_file(
            "backstay/test_frozen.py",
            "test_no_noun_forbids_what_an_older_or_newer_history_holds_besides",
            "test_what_is_read_from_history_may_hold_unknown_fields_at_any_depth",
        ),
    ),
    row(
        "history:kinds",
        "design 3",
        "an action is known by its kind, whatever else it holds",
        in_file("backstay/test_frozen.py", "test_an_action_is_known_by_its_kind_whatever_else_it_holds"),
    ),
    row(
        "history:door",
        "design 3",
        "what comes in from outside is refused by the name of the unknown field",
        in_file(
            "backstay/test_frozen.py",
            "test_what_comes_in_at_the_door_is_refused_by_the_name_of_the_unknown_field",
        ),
    ),
    row(
        "history:state",
        "design 3",
        "a state of a newer version is read without what is unknown",
        in_file("workflows/test_state.py", "test_a_state_of_a_newer_version_is_read_without_what_is_unknown"),
    ),
    row(
        "loop:small-history",
        "issue 29",
        "what equals its default in a message between workflow and activity does not reach history; what somebody gave "
        "of a task in it does",
        in_file(
            "backstay/test_frozen.py",
            "test_history_holds_of_a_message_what_says_something_and_of_a_noun_in_it_what_somebody_gave",
        ),
    ),
    row(
        "loop:replay",
        "issue Done 8",
        "histories of every shape of run are kept and replay, and so do runs of the present code",
        in_file(
            "replay/test_replay.py",
            "test_a_history_of_every_shape_is_kept",
            "test_a_kept_history_replays",
            "test_a_kept_history_holds_what_it_is_kept_for",
            "test_runs_of_today_replay_too",
        ),
    ),
    row(
        "loop:gate",
        "issue 29",
        "after a release a gate lets runs go on that began before a change, and a comparison tells which commands of a "
        "shape have changed",
        in_file(
            "replay/test_gate.py",
            "test_gated_code_replays_runs_that_began_before_the_change_and_after_it",
            "test_without_the_gate_a_run_that_began_before_the_change_cannot_go_on",
            "test_a_worker_of_the_release_before_notices_a_run_that_began_after_the_change",
        ),
        in_file("replay/test_compare.py", "test_what_changed_of_a_shape_is_told_and_shapes_that_came_or_went"),
    ),
    row(
        "loop:mutants",
        "issue Done 8",
        "three deliberate changes of the workflow code make the replay fail",
        in_file("replay/test_replay.py", "test_a_changed_workflow_is_noticed"),
    ),
    row(
        "context:constant",
        "issue Done 8",
        "history per step between steps 20 and 60 is at most 4 kB and constant within 10 %",
        in_file("e2e/loop/test_history.py", "test_history_per_step_is_small_and_constant_whatever_the_results_weigh"),
    ),
    row(
        "context:answers-small",
        "design 6",
        "Result and every query answer stay under 128 KiB, however much is asked",
        in_file(
            "e2e/faults/test_answers_small.py",
            "test_every_query_answer_and_the_result_stay_under_128_kib_however_much_is_asked",
        ),
    ),
    row(
        "loop:stuck",
        "design 6; issue Endless",
        "a run that cannot continue pauses, says why, and goes on each time that a person says so",
        in_file("e2e/faults/test_stuck.py", "test_it_says_why_and_goes_on_each_time_a_person_says_so"),
    ),
    row(
        "stuck:rollback",
        "design 6; issue Endless",
        "where a person ends a run that cannot continue, its rollback asks too and goes on",
        in_file("e2e/faults/test_stuck.py", "test_when_a_person_ends_it_the_rollback_asks_too_and_goes_on"),
    ),
    row(
        "stuck:left",
        "design 6; issue Endless",
        "where a person stops the rollback of a run that cannot continue, the effects that are left stay and are named",
        in_file("e2e/faults/test_stuck.py", "test_effects_stay_and_are_named_when_a_person_stops_the_rollback"),
    ),
    row(
        "loop:without-end",
        "design 6; issue Endless",
        "requests with votes and proofs, and what was agreed, go on in the next execution of a run, and an approval "
        "that comes meanwhile counts once",
        in_file(
            "e2e/sessions/test_continuing.py",
            "test_votes_proofs_and_what_was_agreed_go_on_in_the_next_execution",
            "test_an_approval_that_comes_while_the_run_continues_counts_once",
        ),
    ),
    row(
        "execution:asked",
        "design 6; issue Endless",
        "a question, a limit and a pause go on in the next execution",
        in_file("e2e/sessions/test_continuing.py", "test_a_question_a_limit_and_a_pause_go_on_in_the_next_execution"),
    ),
    row(
        "execution:plan",
        "design 6; issue Endless",
        "a plan goes on where it stood in the next execution",
        in_file("e2e/sessions/test_continuing.py", "test_a_plan_goes_on_where_it_stood"),
    ),
    row(
        "execution:program",
        "design 6; issue Endless",
        "a program goes on where it waits in the next execution",
        in_file("e2e/sessions/test_continuing.py", "test_a_program_goes_on_where_it_waits"),
    ),
    row(
        "execution:server",
        "design 6; issue Endless",
        "a server's question goes on in the next execution, and its call is made once",
        in_file("e2e/sessions/test_continuing.py", "test_a_servers_question_goes_on_and_its_call_is_made_once"),
    ),
    row(
        "execution:expiry",
        "design 6; issue Endless",
        "a request expires when it would have without a new execution",
        in_file("e2e/sessions/test_continuing.py", "test_a_request_expires_when_it_would_have_without_a_new_execution"),
    ),
    row(
        "execution:undo",
        "design 6; issue Endless",
        "an undo that is asked about at the end, or that waits for people, goes on in the next execution",
        in_file(
            "e2e/sessions/test_continuing.py",
            "test_an_undo_at_the_end_that_is_asked_about_goes_on",
            "test_an_undo_that_waits_for_people_gives_way_and_is_sent_again",
        ),
    ),
)
