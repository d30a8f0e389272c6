"""The Python client, the library and the command line."""

from tests.requirements.requirement import DOORS, REPLACED, in_file, row

ROWS = (
    row(
        "door:client",
        "design 22",
        "a run is started, followed, approved and its result read, and the first example does what the README says",
        in_file(
            "client/test_run.py",
            "test_a_run_is_started_followed_approved_and_its_result_read",
            "test_who_holds_the_key_reads_what_an_open_run_has_stored",
        ),
        in_file("docs/test_python.py", "test_the_first_example_does_what_the_readme_promises"),
    ),
    row(
        "door:starter",
        "design 22",
        "starter.py is the smallest client, and prints the summary",
        in_file("docs/test_python.py", "test_the_smallest_client_runs_and_prints_the_summary"),
    ),
    row(
        "door:library",
        "design 22; seed 000 §2; seed 000 §12",
        "one call carries a task to a Result with success, summary, usage, logs and error, and refuses what is no task",
        in_file(
            "client/test_library.py",
            "test_one_call_carries_a_task_to_its_result",
            "test_one_call_refuses_what_is_no_task",
        ),
    ),
    row(
        "door:library-rooms",
        "design 22",
        "the library finds the folders of its own installation, refuses foreign ones, and offers exactly the "
        "names it exports",
        in_file(
            "client/test_library.py",
            "test_every_exported_name_can_be_imported_and_nothing_else_is_offered",
            "test_the_library_finds_the_rooms_of_its_own_house",
            "test_the_library_refuses_a_foreign_room_that_was_imported_before",
        ),
    ),
    row(
        "door:nouns-light",
        "design 1",
        "a program that uses nouns only loads no Temporal client",
        in_file("client/test_library.py", "test_a_program_that_uses_nouns_only_loads_no_temporal_client"),
    ),
    row(
        "client:refused",
        "design 22",
        "an invalid task is refused before anything is sent, and refusals of a run come back as the engine's own "
        "errors",
        in_file(
            "client/test_run.py",
            "test_an_invalid_task_is_refused_before_anything_is_sent",
            "test_refusals_come_back_as_errors_of_ours",
        ),
    ),
    row(
        "client:verified",
        "design 8",
        "a person whom the rule names is believed with a key and not without",
        in_file("client/test_run.py", "test_a_person_whom_the_rule_names_is_believed_with_a_key_and_not_without"),
    ),
    row(
        "client:decides",
        "design 22",
        "a batch is decided call by call and with other arguments, a question is answered, and a held run goes on"
        " when it is resumed",
        in_file(
            "client/test_run.py",
            "test_a_batch_is_decided_call_by_call_and_with_other_arguments",
            "test_a_question_is_answered_and_a_held_run_goes_on_when_it_is_resumed",
        ),
    ),
    row(
        "client:reading",
        "design 22",
        "what a run has stored is read by its update while it is open and by ReadRun afterwards",
        in_file("client/test_reading.py", "test_a_run_is_read_while_it_is_open_and_after_its_end"),
    ),
    row(
        "reading:refused",
        "design 22",
        "nothing of another run is read, and bad questions are refused by field",
        in_file("client/test_reading.py", "test_nothing_of_another_run_is_read_and_bad_questions_are_refused_by_field"),
        in_file("backstay/test_reading.py", "test_what_cannot_be_read_is_refused_by_field"),
    ),
    row(
        "reading:at-once",
        "design 22",
        "reads that come at once are bounded, and an update without input is refused in words",
        in_file(
            "client/test_reading.py",
            "test_reads_that_come_at_once_are_bounded_and_an_update_without_input_is_refused_in_words",
        ),
    ),
    row(
        "reading:late",
        "design 22",
        "whoever follows a long run late gets every event from the first one",
        in_file("client/test_reading.py", "test_whoever_follows_a_long_run_late_gets_every_event_from_the_first_one"),
    ),
    row(
        "reading:pages",
        "design 22",
        "the pages of a list or of a text together are that list or text",
        in_file(
            "backstay/test_reading.py",
            "test_the_pages_of_a_list_are_the_list",
            "test_the_pages_of_a_text_are_the_text",
        ),
    ),
    row(
        "reading:large",
        "design 22",
        "a large record is read as its JSON, and a large item by its path",
        in_file("backstay/test_reading.py", "test_a_large_record_is_read_as_its_json_and_a_large_item_by_its_path"),
    ),
    row(
        "reading:events-end",
        "design 22",
        "events end with the last one and say where to go on",
        in_file("backstay/test_reading.py", "test_events_end_with_the_last_one_and_say_where_to_go_on"),
    ),
    row(
        "client:messages",
        "design 22",
        "what a model was told and said is read back as messages, every answer whole and with the cost of each step",
        in_file(
            "client/test_messages.py",
            "test_the_messages_are_those_of_the_model_with_every_answer_whole_and_the_cost_of_each_step",
        ),
    ),
    row(
        "messages:long",
        "design 22",
        "a long run that was cut and continued is read back whole",
        in_file("client/test_messages.py", "test_a_long_run_that_was_cut_and_continued_is_read_back_whole"),
    ),
    row(
        "messages:plan",
        "design 22",
        "the calls of a plan stand for what a model says",
        in_file("client/test_messages.py", "test_the_calls_of_a_plan_stand_for_what_a_model_says"),
    ),
    row(
        "messages:large-item",
        "design 22",
        "an answer with an item larger than a page is read whole",
        in_file("client/test_messages.py", "test_an_answer_with_an_item_larger_than_a_page_is_read_whole"),
    ),
    row(
        "messages:nobody",
        "design 22",
        "messages of nobody are not found",
        in_file("client/test_messages.py", "test_messages_of_nobody_are_not_found"),
    ),
    row(
        "cli:told-truly",
        "issue First hour Done 4",
        "an invalid task is shown as invalid, and a call is told with what it was called with and what came back",
        in_file(
            "cli/test_runs.py",
            "test_an_invalid_task_is_shown_as_invalid_with_the_field_and_the_fix",
            "test_a_call_that_fails_is_told_in_one_line_with_what_it_was_called_with_and_why",
        ),
    ),
    row(
        "cli:reading",
        "design 22",
        "the answers of a run are read whole or by step, and a run is named by the beginning of its id or as the last",
        in_file(
            "cli/test_reading.py",
            "test_the_answers_of_a_plan_are_read_whole_or_by_step_and_a_failed_call_says_so",
            "test_outputs_that_look_like_a_stored_answer_are_shown_as_they_are",
            "test_all_that_a_model_was_told_and_said_is_exported_line_by_line",
            "test_a_run_is_named_by_the_beginning_of_its_id_and_a_wrong_name_says_what_to_do",
        ),
    ),
    row(
        "client:undo",
        "design 22",
        "undo takes back an open run and later an ended one, and a cancelled run still tells how it ended",
        in_file(
            "client/test_run.py",
            "test_a_cancelled_run_keeps_what_the_policys_people_must_undo_and_still_tells_how_it_ended",
            "test_undo_takes_back_an_open_run_and_later_an_ended_one",
        ),
    ),
    row(
        "client:outages",
        "design 22",
        "events and result go on over a restart of the worker and of Temporal, and an error says which of them is "
        "silent",
        in_file(
            "client/test_outage.py",
            "test_events_and_result_go_on_over_a_restart_of_temporal",
            "test_a_temporal_that_is_silent_is_told_from_a_worker_that_is",
        ),
        in_file("client/test_run.py", "test_events_go_on_over_a_worker_that_ends_and_another_that_starts"),
    ),
    row(
        "client:terminated",
        "design 22",
        "a terminated run says so",
        in_file("client/test_run.py", "test_a_terminated_run_says_so"),
    ),
    row(
        "client:connect",
        "issue Bad input",
        "connecting fails within seconds, naming the address or the namespace, and an existing client is used as it is",
        in_file(
            "client/test_run.py",
            "test_where_nothing_listens_connecting_fails_at_once_naming_the_address",
            "test_where_something_listens_that_is_no_temporal_connecting_fails_within_seconds",
            "test_a_namespace_that_does_not_exist_is_named",
            "test_an_existing_client_is_used_as_it_is",
        ),
    ),
    row(
        "door:cli-run",
        "issue CLI; seed 003 context",
        "run shows live steps and budget bars, and asks with call, undo and rule",
        in_file(
            "cli/test_prompt.py",
            "test_a_person_sees_what_would_be_called_and_approves_it",
            "test_live_steps_come_with_budget_bars",
        ),
    ),
    row(
        "cli:prompt",
        "issue CLI",
        "at the prompt a person changes arguments, chooses for each call, rejects and stops, answers questions, and is "
        "asked once more about what is not shown",
        in_file(
            "cli/test_prompt.py",
            "test_a_person_changes_the_arguments_in_one_line_after_a_slip",
            "test_a_person_changes_the_arguments_in_an_editor",
            "test_a_person_chooses_for_each_call_of_a_batch",
            "test_whoever_approves_a_plan_with_steps_that_are_not_shown_is_asked_once_more",
            "test_a_person_rejects_and_stops_the_run",
            "test_a_person_answers_a_question",
        ),
    ),
    row(
        "cli:elsewhere",
        "issue CLI",
        "a request that is decided elsewhere leaves the prompt",
        in_file("cli/test_prompt.py", "test_a_request_that_is_decided_elsewhere_leaves_the_prompt"),
    ),
    row(
        "cli:no-terminal",
        "issue CLI",
        "without a terminal the deciding commands are printed, and one of them decides",
        in_file(
            "cli/test_runs.py",
            "test_without_a_terminal_the_commands_that_decide_are_printed_and_one_of_them_decides",
        ),
    ),
    row(
        "door:cli-detach",
        "design 22",
        "letting go leaves the run going and says how to come back, with exit code 130",
        in_file(
            "cli/test_prompt.py",
            "test_letting_go_leaves_the_run_going_and_says_how_to_come_back",
            "test_ctrl_c_lets_go_while_the_run_is_at_work",
        ),
    ),
    row(
        "door:cli-streams",
        "design 22",
        "people read stderr and programs read stdout",
        in_file("cli/test_runs.py", "test_people_read_stderr_and_programs_read_stdout"),
    ),
    row(
        "cli:result-text",
        "design 22",
        "a result as text is the summary and the outputs",
        in_file("cli/test_runs.py", "test_a_result_as_text_is_the_summary_and_the_outputs"),
    ),
    row(
        "end:codes",
        "design 17",
        "the exit code says how the run ended",
        in_file(
            "cli/test_runs.py",
            "test_the_exit_code_says_how_the_run_ended",
            "test_rejecting_with_stop_ends_the_run_and_attach_tells_how",
        ),
    ),
    row(
        "cli:steers",
        "design 22",
        "a run is held, resumed, topped up, previewed, taken back and cancelled, and an ended one is taken back once",
        in_file(
            "cli/test_runs.py",
            "test_a_run_is_held_resumed_topped_up_previewed_taken_back_and_cancelled",
            "test_what_an_ended_run_did_is_taken_back",
        ),
    ),
    row(
        "cli:undo-nothing",
        "design 22",
        "an undo of an ended run that had no effect says so, as text and as JSON, and starts nothing",
        in_file("cli/test_runs.py", "test_an_undo_of_a_run_that_did_nothing_says_so_and_starts_nothing"),
    ),
    row(
        "cli:answers",
        "design 22",
        "a question is answered with JSON, and a clipped batch approved with its digest",
        in_file("cli/test_runs.py", "test_a_question_is_answered_with_json_and_a_clipped_batch_with_its_digest"),
    ),
    row(
        "cli:plan",
        "design 22",
        "a plan from a file runs without a model, and a policy from a file only tightens",
        in_file(
            "cli/test_runs.py",
            "test_a_plan_from_a_file_runs_without_a_model",
            "test_a_policy_of_the_task_only_tightens",
        ),
    ),
    row(
        "cli:list",
        "design 14",
        "runs are listed and shown from Temporal, and without it from the store",
        in_file("cli/test_runs.py", "test_runs_are_listed_from_temporal_and_without_it_from_the_store"),
    ),
    row(
        "cli:tools",
        "design 22",
        "tools are listed and searched",
        in_file("cli/test_runs.py", "test_the_tools_are_listed_and_searched"),
    ),
    row(
        "cli:hostile",
        "design 8",
        "hostile text reaches a terminal only as text",
        in_file("cli/test_runs.py", "test_hostile_text_reaches_a_terminal_only_as_text"),
    ),
    row(
        "fault:exit-2",
        "issue Bad input",
        "what is wrong on the command line, in a file or among the settings is named, with exit code 2",
        in_file(
            "cli/test_bad_input.py",
            "test_what_is_wrong_is_named_in_one_line",
            "test_a_run_that_does_not_exist_is_named",
            "test_a_misspelt_setting_is_named_with_its_likely_name",
        ),
        in_file(
            "e2e/test_bad_input.py",
            "test_a_worker_refuses_files_that_are_not_valid_with_exit_code_2",
            "test_a_worker_refuses_an_unknown_setting_with_exit_code_2",
        ),
    ),
    row(
        "fault:temporal",
        "issue Bad input",
        "Temporal that cannot be reached and a namespace that does not exist are named, with exit code 2",
        in_file(
            "cli/test_bad_input.py",
            "test_without_temporal_the_address_and_the_remedy_are_named",
            "test_an_address_that_answers_something_else_ends_in_the_same_words",
            "test_a_namespace_that_does_not_exist_is_named",
        ),
        in_file(
            "e2e/test_bad_input.py",
            "test_a_worker_says_that_temporal_cannot_be_reached_with_exit_code_2",
            "test_a_worker_names_a_namespace_that_does_not_exist_with_exit_code_2",
        ),
    ),
    row(
        "door:cli-dev",
        "design 22",
        "dev brings Temporal, Web UI and worker and ends all of them, replaces a dead worker, and leaves nothing "
        "when it is killed",
        in_file(
            "cli/test_dev.py",
            "test_dev_brings_temporal_a_web_ui_and_a_worker_and_ctrl_c_ends_all_of_them",
            "test_nothing_is_left_when_dev_itself_is_killed_and_a_dead_worker_is_replaced",
        ),
    ),
    row(
        "cli:dev-faults",
        "design 22",
        "a taken port names its holder, dev starts a Temporal that ends at once a second time, and dev ends with the "
        "worker's reason when it cannot start",
        in_file(
            "cli/test_dev.py",
            "test_a_temporal_that_ends_before_it_answers_is_started_once_more",
            "test_a_taken_port_names_its_holder",
            "test_dev_ends_with_the_workers_reason_when_it_cannot_start_at_all",
        ),
    ),
    row(
        "door:cli-worker",
        "design 22",
        "a worker says that it is ready and ends with exit code 0 on SIGTERM",
        in_file("cli/test_dev.py", "test_the_worker_command_serves_without_a_safe_path_and_drains_on_sigterm"),
    ),
    row(
        "door:cli-doctor",
        "design 22; seed 004 Commands",
        "doctor finds every part well without asking the model, and names cause and fix of every part that is missing",
        in_file(
            "cli/test_runs.py",
            "test_doctor_finds_every_part_well_and_asks_the_model_nothing",
            "test_doctor_names_cause_and_fix_of_every_part_that_is_missing",
        ),
    ),
    row(
        "door:late-updates",
        "design 15",
        "engine as an MCP server, codec server",
        deferred=DOORS,
    ),
    row(
        "s002:multi-agent",
        "seed 002 §10",
        "several agents check each other",
        deferred=DOORS,
    ),
    row(
        "s000:typescript",
        "seed 000 §13",
        "TypeScript output removed",
        deferred=f"{REPLACED}there never was any here",
    ),
    row(
        "s002:response",
        "seed 002 §1",
        "one result shape: success, data, context, error, trace",
        in_file("cli/test_reading.py", "test_every_call_is_told_in_one_shape_also_one_that_was_only_rehearsed"),
    ),
    row(
        "s000:shared",
        "seed 000 §2.0",
        "shared token tracker, logger and client",
        deferred=f"{REPLACED}one process has one client, one ledger and one log pipeline",
    ),
    row(
        "cli:newcomer",
        "issue First hour Done 1",
        "in an empty folder, the README's own commands lead from the wheel to an approved write and a finished run",
        in_file("test_packaging.py", "test_the_readmes_own_commands_lead_a_newcomer_to_an_approved_write"),
        in_file("test_packaging.py", "test_all_is_every_other_extra"),
        in_file("test_benchmarks.py", "test_a_newcomer_came_to_an_approved_write_in_three_minutes_and_six_commands"),
    ),
    row(
        "cli:example-goes-on",
        "issue First hour",
        "the scripted model of the example does the task of each turn and plans first where it must, and a plan's "
        "one step is made or reported as not made",
        in_file(
            "cli/test_newcomer.py",
            "test_the_scripted_model_does_the_present_task_also_in_a_later_turn_and_plans_where_it_must",
        ),
    ),
    row(
        "cli:beside-dev",
        "issue First hour",
        "beside dev with the scripted model, doctor asks the script and chat reads along on the page of dev without "
        "a setting",
        in_file("cli/test_newcomer.py", "test_beside_dev_doctor_asks_the_script_and_a_chat_reads_along_on_its_page"),
    ),
    row(
        "cli:not-believed",
        "issue First hour",
        "what a killed dev, or one of another Temporal, has left is not believed",
        in_file("cli/test_newcomer.py", "test_a_dev_that_was_killed_or_serves_another_temporal_is_not_believed"),
    ),
    row(
        "cli:init",
        "issue First hour; design 22",
        "init writes a working example, keeps what is there, and trusts only a folder that is the user's own",
        in_file(
            "cli/test_init.py",
            "test_init_writes_an_example_that_works_and_keeps_what_is_there",
            "test_init_and_add_refuse_a_folder_that_came_with_files",
            "test_init_names_no_server_that_came_with_the_folder",
            "test_modules_that_lie_in_the_folder_are_not_imported_by_the_example",
            "test_init_trusts_no_folder_in_which_everybody_may_write",
            "test_init_says_that_another_file_would_count",
        ),
    ),
    row(
        "cli:import",
        "issue First hour; design 22",
        "a server is added and started only after a person saw how, secrets go to .env, and hostile names show as such",
        in_file(
            "cli/test_init.py",
            "test_where_nobody_can_be_asked_nothing_is_started",
            "test_yes_takes_over_and_classes_everything_and_no_token_stays_in_toolbox_json",
            "test_a_person_sees_how_a_server_is_started_and_accepts_each_group",
            "test_a_server_that_the_person_does_not_want_started_is_not",
            "test_hostile_names_are_shown_as_what_they_are_and_get_no_class",
            "test_add_takes_a_command_or_an_address_and_refuses_a_name_that_is_taken",
            "test_what_is_added_is_seen_by_everybody_who_sees_the_others",
            "test_classes_are_proposed_for_servers_that_are_there_already",
            "test_import_without_a_file_names_those_that_are_there",
            "test_a_command_that_fails_leaves_toolbox_json_as_it_was",
        ),
    ),
    row(
        "cli:remove",
        "issue First hour",
        "a server is removed from toolbox.json with what is said of it there, and the rest stays as it was",
        in_file("cli/test_init.py", "test_what_was_added_is_removed_again_with_all_that_is_said_of_it"),
    ),
    row(
        "cli:remove-refused",
        "issue First hour",
        "a server that is not in toolbox.json, or that a module needs, is not removed, and nothing is written",
        in_file("cli/test_init.py", "test_a_server_that_is_not_there_or_is_needed_is_not_removed"),
    ),
    row(
        "cli:said",
        "issue First hour Done 4",
        "what a first run lacks is said in a line each: no tools, no key, a wrong key",
        in_file("cli/test_init.py", "test_without_tools_the_list_says_how_to_get_some"),
        in_file(
            "cli/test_dev.py",
            "test_dev_starts_without_any_file_and_says_in_three_lines_what_is_missing",
            "test_dev_asks_the_model_for_one_token_and_a_wrong_key_is_one_line",
            "test_dev_says_that_the_model_answers",
        ),
    ),
    row(
        "cli:end",
        "issue First hour",
        "the end of a run names an undo only where something can be undone",
        in_file("cli/test_drawing.py", "test_the_end_of_a_run_names_an_undo_only_where_something_can_be_undone"),
    ),
    row(
        "cli:light-list",
        "issue First hour Done 4",
        "a list loads no database library, and still says which runs were pruned",
        in_file("cli/test_runs.py", "test_a_list_loads_no_database_library"),
        in_file(
            "store/test_glance.py",
            "test_pruned_runs_are_seen_while_the_store_is_open_and_nothing_is_written",
            "test_what_cannot_be_read_is_left_to_the_open_store",
        ),
    ),
)
