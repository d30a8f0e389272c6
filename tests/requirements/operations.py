"""What operators see and set: the Web UI, search attributes, settings, Compose, telemetry."""

from tests.requirements.requirement import TELEMETRY, in_file, row

ROWS = (
    row(
        "view:details",
        "issue Done 9",
        "the Web UI's details tell state, limits, the literal deciding command and what undo would do",
        in_file("e2e/test_view.py", "test_details_tell_state_limits_the_deciding_command_and_what_undo_would_do"),
    ),
    row(
        "view:release",
        "design 16",
        "a run's history says which release its workers were",
        in_file("e2e/test_view.py", "test_a_history_says_which_release_its_workers_were"),
    ),
    row(
        "view:summaries",
        "design 16",
        "every activity and timer says in history what it is for",
        in_file("e2e/test_view.py", "test_every_activity_and_timer_says_in_history_what_it_is_for"),
    ),
    row(
        "view:attributes",
        "design 16",
        "search attributes are typed and find a run by user, state, open requests and cost",
        in_file("e2e/test_view.py", "test_search_attributes_are_typed_and_find_the_run"),
    ),
    row(
        "view:task",
        "design 16; design 22",
        "the list of the Web UI says what each run is, without secrets, and not where payloads are encrypted",
        in_file(
            "e2e/test_view.py",
            "test_the_list_says_what_each_run_is_without_its_secrets",
            "test_a_task_stays_out_of_search_attributes_where_payloads_are_encrypted",
        ),
    ),
    row(
        "view:descriptions",
        "design 16",
        "every query, update and signal of a run says what it is for, in code and through the API",
        in_file("docs/test_reference.py", "test_every_door_says_what_it_is_for"),
        in_file("e2e/test_view.py", "test_every_door_of_a_run_says_what_it_is_for"),
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
        "view:otel",
        "design 16",
        "OpenTelemetry and metrics",
        deferred=TELEMETRY,
    ),
    row(
        "s000:telemetry",
        "seed 000 §7",
        "events that name task and user, with a redacted payload, go to a collector of telemetry",
        deferred=TELEMETRY,
    ),
    row(
        "s004:metrics",
        "seed 004 Monitoring",
        "job counts, times, queue length",
        deferred=TELEMETRY,
    ),
    row(
        "system:locks",
        "design 1",
        "a lock between processes ends with the process that holds it and not with a child of it, waiting for it can "
        "be cancelled, and its file is private and stays",
        in_file(
            "system/test_system.py",
            "test_a_lock_ends_with_its_process_and_its_private_file_stays",
            "test_a_child_that_starts_while_a_lock_is_held_does_not_keep_it",
            "test_waiting_for_a_lock_can_be_cancelled_and_takes_nothing",
            "test_tasks_of_one_process_hold_a_lock_one_after_another",
        ),
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
