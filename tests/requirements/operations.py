"""What operators see and set: the Web UI, search attributes, settings, Compose, telemetry."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "view:details",
        "issue Done 9",
        "the Web UI's details tell state, limits, the literal deciding command and what undo would do",
        in_file("e2e/loop/test_view.py", "test_details_tell_state_limits_the_deciding_command_and_what_undo_would_do"),
    ),
    row(
        "view:release",
        "design 16",
        "a run's history says which release its workers were",
        in_file("e2e/loop/test_view.py", "test_a_history_says_which_release_its_workers_were"),
    ),
    row(
        "view:summaries",
        "design 16",
        "every activity and timer says in history what it is for",
        in_file("e2e/loop/test_view.py", "test_every_activity_and_timer_says_in_history_what_it_is_for"),
    ),
    row(
        "view:attributes",
        "design 16",
        "search attributes are typed and find a run by user, state, open requests and cost",
        in_file("e2e/loop/test_view.py", "test_search_attributes_are_typed_and_find_the_run"),
    ),
    row(
        "view:task",
        "design 16; design 22",
        "the list of the Web UI says what each run is, without secrets, and not where payloads are encrypted",
        in_file(
            "e2e/loop/test_view.py",
            "test_the_list_says_what_each_run_is_without_its_secrets",
            "test_a_task_stays_out_of_search_attributes_where_payloads_are_encrypted",
        ),
    ),
    row(
        "view:descriptions",
        "design 16",
        "every query, update and signal of a run says what it is for, in code and through the API",
        in_file("docs/test_reference.py", "test_every_door_says_what_it_is_for"),
        in_file("e2e/loop/test_view.py", "test_every_door_of_a_run_says_what_it_is_for"),
    ),
    row(
        "trust:settings",
        "design 18",
        "settings given in code come before the environment, the environment before the file",
        in_file(
            "backstay/test_settings.py",
            "test_the_environment_comes_before_the_file",
            "test_values_given_in_code_come_first",
        ),
    ),
    row(
        "trust:settings-refused",
        "design 18",
        "an unknown or faulty setting is refused by name, without telling secrets",
        in_file(
            "backstay/test_settings.py",
            "test_a_faulty_setting_is_refused_by_name_without_telling_secrets",
            "test_an_unknown_setting_in_the_file_is_refused",
        ),
    ),
    row(
        "trust:folder",
        "issue On the machine",
        "what a folder's files say counts only once the folder is trusted, which is remembered outside of it, or when "
        "the process itself names them",
        in_file(
            "cli/test_trust.py",
            "test_a_strange_folder_starts_nothing_until_it_is_trusted_once",
            "test_each_command_refuses_each_file_of_a_strange_folder",
            "test_what_the_process_names_itself_is_the_operators_word",
            "test_trust_holds_for_the_real_folder_and_not_for_those_inside_it",
            "test_a_home_that_this_user_made_is_obeyed_and_one_that_came_with_the_folder_is_not",
        ),
    ),
    row(
        "trust:key",
        "issue On the machine",
        "the address of a model that a file names gets no key from the environment",
        in_file(
            "cli/test_trust.py",
            "test_an_address_from_a_file_gets_no_key_from_the_environment",
            "test_no_request_to_an_address_from_a_file_carries_the_key_of_the_environment",
        ),
    ),
    row(
        "dev:front",
        "issue On the machine",
        "a web page whose name leads to this machine neither reads nor starts a run through the embedded Temporal",
        in_file(
            "cli/test_front.py",
            "test_the_web_ui_answers_to_its_own_page",
            "test_a_page_whose_name_leads_here_reads_nothing_and_starts_nothing",
            "test_nothing_follows_a_request_on_its_connection_that_was_not_looked_at",
            "test_no_port_of_temporal_obeys_plain_http",
            "test_the_web_ui_itself_listens_where_no_page_can_guess",
        ),
    ),
    row(
        "dev:private",
        "issue On the machine",
        "the files of the embedded Temporal are its user's only, and it is told no key",
        in_file("cli/test_front.py", "test_its_files_are_private_and_it_is_told_no_key"),
    ),
    row(
        "s000:model",
        "seed 000 §10",
        "without anything set, one default model and the other defaults hold",
        in_file("backstay/test_settings.py", "test_without_anything_set_the_defaults_hold"),
    ),
    row(
        "s002:limits",
        "seed 002 §8; seed 002 App. B; design 22",
        "without anything set a plan has at most 20 steps of 30 seconds, a call writes at most 200 MB, plans are "
        "kept for 90 days, and four ways of starting programs are warned of",
        in_file("backstay/test_settings.py", "test_without_anything_set_plans_and_artifacts_have_their_limits"),
    ),
    row(
        "view:otel",
        "design 16; issue People Done 6",
        "a run is one trace over client, run, steps, model calls with cost, tools, MCP servers and programs, and a "
        "model call says in OpenTelemetry's names its model and its tokens",
        in_file(
            "telemetry/test_traces.py",
            "test_the_demo_is_one_trace_from_its_client_to_models_tools_servers_and_programs_with_cost",
        ),
    ),
    row(
        "view:otel-killed",
        "design 16; issue People Done 6",
        "a run whose worker was killed is one span, with each step once",
        in_file("telemetry/test_traces.py", "test_a_run_whose_worker_was_killed_is_one_span_with_each_step_once"),
    ),
    row(
        "view:otel-programs",
        "design 16; issue People Done 6",
        "the trace of a program that traces by itself has its runs in it",
        in_file("telemetry/test_traces.py", "test_a_program_that_traces_by_itself_has_its_runs_in_its_own_trace"),
    ),
    row(
        "view:otel-off",
        "issue People, operators",
        "the standard variables alone ask for traces",
        in_file("telemetry/test_traces.py", "test_traces_are_sent_where_the_standard_variables_say_so"),
    ),
    row(
        "view:otel-replay",
        "issue People, operators",
        "a trace changes no command of a run, and a replay sends and counts nothing, of an older history either",
        in_file(
            "telemetry/test_traces.py",
            "test_a_trace_changes_no_command_of_a_run_and_a_replay_sends_and_counts_nothing",
            "test_an_older_history_replays_under_what_watches_it_and_nothing_is_sent_or_counted",
        ),
    ),
    row(
        "view:otel-unreachable",
        "issue People, operators",
        "a run starts and ends while no collector can be reached",
        in_file("telemetry/test_traces.py", "test_a_run_starts_and_ends_while_no_collector_can_be_reached"),
    ),
    row(
        "view:otel-extra",
        "issue People, operators",
        "a missing extra is named with the variable that asks for it",
        in_file("telemetry/test_traces.py", "test_a_missing_extra_is_named_with_the_variable_that_asks_for_it"),
    ),
    row(
        "view:otel-nothing",
        "issue People, operators",
        "where no traces and metrics are asked for, nothing of them is loaded or put between",
        in_file("telemetry/test_metrics.py", "test_where_nothing_is_asked_for_nothing_is_loaded_or_put_between"),
    ),
    row(
        "s000:telemetry",
        "seed 000 §7",
        "events that name task and user go to a collector of telemetry, and neither a secret nor an argument does",
        in_file("telemetry/test_traces.py", "test_no_secret_and_no_argument_is_sent_and_events_name_task_and_user"),
    ),
    row(
        "s004:metrics",
        "seed 004 Monitoring; design 22",
        "runs, steps, tool calls and cost are counted once, with the labels outcome, provider and model only and no "
        "name of a model that only a task names",
        in_file("telemetry/test_metrics.py", "test_runs_steps_calls_and_cost_are_counted_once_with_no_other_labels"),
    ),
    row(
        "metrics:outcomes",
        "seed 004 Monitoring; design 22",
        "a refused task and a cancelled run are counted as what they are",
        in_file("telemetry/test_metrics.py", "test_a_refused_task_and_a_cancelled_run_are_counted_as_what_they_are"),
    ),
    row(
        "metrics:waiting",
        "seed 004 Monitoring; design 22",
        "what waits for people is shown with its age, and goes when it is decided",
        in_file(
            "telemetry/test_metrics.py",
            "test_what_waits_for_people_is_shown_with_its_age_and_goes_when_it_is_decided",
        ),
    ),
    row(
        "metrics:overshot",
        "seed 004 Monitoring; design 22",
        "a bill above its reservation is shown apart",
        in_file("telemetry/test_metrics.py", "test_a_bill_above_its_reservation_is_shown_apart"),
    ),
    row(
        "metrics:parked",
        "seed 004 Monitoring; design 22",
        "an undo that fails is shown until it succeeds, and pruning a run forgets its parked undos",
        in_file(
            "telemetry/test_metrics.py",
            "test_an_undo_that_fails_is_shown_until_it_succeeds",
            "test_pruning_forgets_parked_undos",
        ),
    ),
    row(
        "metrics:unknown",
        "seed 004 Monitoring; design 22",
        "an effect of unknown outcome is shown",
        in_file("telemetry/test_metrics.py", "test_an_effect_of_unknown_outcome_is_shown"),
    ),
    row(
        "metrics:jails",
        "seed 004 Monitoring; design 22",
        "the sandbox role shows how many jails are ready",
        in_file("telemetry/test_metrics.py", "test_the_sandbox_role_shows_how_many_jails_are_ready"),
    ),
    row(
        "view:metrics-address",
        "design 22",
        "a worker that cannot listen at BACKSTAY_METRICS_ADDRESS says why and exits with code 2",
        in_file("telemetry/test_metrics.py", "test_a_worker_says_so_when_it_cannot_listen_where_it_is_told_to"),
    ),
    row(
        "view:monitoring",
        "issue People Done 6",
        "after the demo-crash a real Prometheus finds no query of dashboard or alerts empty, and the dashboard "
        "draws a line or a number for each of its own",
        in_file(
            "telemetry/test_monitoring.py",
            "test_no_query_of_the_dashboard_or_the_alerts_is_empty_after_the_demo_crash",
        ),
    ),
    row(
        "view:typed",
        "issue People, operators",
        "the commands of the page for operators back a store up while it is used and restore it, with SQLite and "
        "Postgres, as it was at the last of several backups",
        in_file(
            "docs/test_operations.py",
            "test_a_store_is_backed_up_while_it_is_used_and_restored_by_the_commands_of_the_page",
        ),
    ),
    row(
        "typed:workspaces",
        "issue People, operators",
        "the commands of the page for operators back up workspaces and restore those of a lost host",
        in_file(
            "docs/test_operations.py",
            "test_workspaces_are_backed_up_and_their_lost_host_restored_by_the_commands_of_the_page",
        ),
    ),
    row(
        "typed:temporal",
        "issue People, operators",
        "the commands of the page for operators back up the file of Temporal while it is used, and restore it",
        in_file(
            "docs/test_operations.py",
            "test_the_file_of_temporal_is_backed_up_while_it_is_used_and_restored_by_the_commands_of_the_page",
        ),
    ),
    row(
        "typed:temporal-postgres",
        "issue People, operators",
        "the commands of the page for operators back up and restore Temporal's databases in Postgres",
        in_file(
            "docs/test_operations.py",
            "test_the_databases_of_temporal_are_backed_up_and_restored_by_the_commands_of_the_page",
        ),
    ),
    row(
        "typed:keys",
        "issue People, operators",
        "the commands of the page for operators rotate encryption keys and adopt settings",
        in_file("docs/test_operations.py", "test_keys_are_rotated_and_settings_adopted_by_the_commands_of_the_page"),
    ),
    row(
        "typed:space",
        "issue People, operators",
        "the commands of the page for operators upgrade and free space",
        in_file(
            "docs/test_operations.py",
            "test_an_upgrade_and_the_space_that_is_freed_go_by_the_commands_of_the_page",
        ),
    ),
    row(
        "typed:monitoring",
        "issue People, operators",
        "what the page for operators says of monitoring starts a worker",
        in_file("docs/test_operations.py", "test_what_the_page_says_of_monitoring_starts_a_worker"),
    ),
    row(
        "typed:upgrade",
        "issue People, operators",
        "by the commands of the page for operators, an open run goes on over an upgrade and to its end",
        in_file("docs/test_operations.py", "test_an_open_run_goes_on_over_an_upgrade_by_the_commands_of_the_page"),
    ),
    row(
        "typed:approver-key",
        "issue People, operators",
        "once the approver key is rotated by the commands of the page, a proof that the old one signed is refused, "
        "and one of the new key decides",
        in_file(
            "docs/test_operations.py",
            "test_what_the_old_approver_key_signed_is_refused_once_it_is_rotated_by_the_commands_of_the_page",
        ),
    ),
    row(
        "system:locks",
        "design 1",
        "a lock between processes ends with the process that holds it and not with a child of it, and its private "
        "file stays",
        in_file(
            "system/test_system.py",
            "test_a_lock_ends_with_its_process_and_its_private_file_stays",
            "test_a_child_that_starts_while_a_lock_is_held_does_not_keep_it",
        ),
    ),
    row(
        "locks:cancelled",
        "design 1",
        "waiting for a lock can be cancelled and takes nothing",
        in_file("system/test_system.py", "test_waiting_for_a_lock_can_be_cancelled_and_takes_nothing"),
    ),
    row(
        "locks:tasks",
        "design 1",
        "tasks of one process hold a lock one after another",
        in_file("system/test_system.py", "test_tasks_of_one_process_hold_a_lock_one_after_another"),
    ),
    row(
        "system:files",
        "design 1",
        "a file is replaced as a whole or not at all, and nothing unfinished stays",
        in_file("system/test_system.py", "test_a_file_is_replaced_whole_and_nothing_unfinished_stays"),
    ),
    row(
        "system:output",
        "design 1",
        "output that is kept within a bound says how much of it is left out, and where",
        in_file("system/test_system.py", "test_output_keeps_its_ends_and_says_how_much_is_left_out_between_them"),
    ),
)
