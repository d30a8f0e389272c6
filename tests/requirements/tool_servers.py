"""MCP servers: how they are reached, what they answer, and how they fail."""

from tests.requirements.requirement import PRODUCTION, in_file, row

ROWS = (
    row(
        "tool:stdio",
        "issue Tools; design 11; seed 001 Usage; seed 003 session",
        "tools of servers over stdio, streamable HTTP and SSE are called by name, and structured content is the "
        "data with its types",
        in_file("toolbox/test_calls.py", "test_structured_content_is_the_data_and_keeps_its_types"),
    ),
    row(
        "tool:http",
        "issue Tools; seed 001 Usage",
        "headers of an HTTP server are filled from the environment and never shown, and the mailbox answers the "
        "same over HTTP",
        in_file("examples/test_mailbox.py", "test_the_same_tools_answer_over_http"),
        in_file("toolbox/test_http.py", "test_headers_are_filled_from_the_environment_and_never_shown"),
    ),
    row(
        "tool:text",
        "design 5",
        "text is read as JSON when it is JSON, and else stays text",
        in_file("toolbox/test_calls.py", "test_text_is_read_as_json_when_it_is_json_and_else_stays_text"),
    ),
    row(
        "tool:files",
        "issue MCP",
        "pictures and other bytes are kept apart, and links keep what they say",
        in_file("toolbox/test_calls.py", "test_pictures_and_other_bytes_are_kept_apart_and_links_keep_what_they_say"),
    ),
    row(
        "loop:tool-error",
        "design 3",
        "an error of a tool, or of its protocol, is an answer with one line",
        in_file("toolbox/test_calls.py", "test_an_error_of_the_tool_is_an_answer_with_one_line"),
        in_file("toolbox/test_http.py", "test_a_json_rpc_error_is_the_servers_own_answer"),
        in_file("toolbox/test_processes.py", "test_a_protocol_error_is_the_servers_own_answer"),
    ),
    row(
        "tool:cap",
        "facts sdk C2",
        "an answer over the cap is named, and the connection goes on",
        in_file("toolbox/test_calls.py", "test_an_answer_over_the_cap_is_named_and_the_connection_goes_on"),
    ),
    row(
        "tool:hangs",
        "issue Bad input; design 4.3",
        "a call that hangs is unknown at its deadline, a cancelled one leaves the connection usable, and others go on",
        in_file(
            "toolbox/test_calls.py",
            "test_a_call_that_hangs_is_unknown_at_its_deadline_and_others_go_on",
            "test_a_cancelled_call_leaves_the_connection_usable",
        ),
    ),
    row(
        "tool:serial",
        "design 3; seed 004 Best",
        "calls of one provider run side by side, and one after another where it is declared serial",
        in_file("toolbox/test_calls.py", "test_calls_run_side_by_side_unless_the_provider_is_serial"),
    ),
    row(
        "tool:died",
        "issue Bad input",
        "a server that dies in mid-call is unknown and opened again",
        in_file("toolbox/test_calls.py", "test_a_server_that_dies_in_mid_call_is_unknown_and_opened_again"),
    ),
    row(
        "tool:missing",
        "issue Bad input",
        "a missing command, a server that ends at its start and a refused connection are reasons why tools are "
        "unavailable, and a server's stderr is kept",
        in_file("toolbox/test_http.py", "test_a_refused_connection_is_a_reason_and_not_an_error"),
        in_file(
            "toolbox/test_processes.py",
            "test_a_missing_command_is_a_reason_that_names_it",
            "test_a_server_that_ends_at_its_start_is_a_reason_and_its_stderr_is_kept",
        ),
    ),
    row(
        "tool:late",
        "issue Answers that inform",
        "a server that starts late is waited for as its `initTimeout` says, and found when it comes back",
        in_file(
            "e2e/approvals/test_informing.py",
            "test_a_server_that_starts_late_is_waited_for_as_its_init_timeout_says",
            "test_a_server_that_comes_back_is_found_and_named",
        ),
        in_file("toolbox/test_configuration.py", "test_an_init_timeout_is_read_in_seconds_or_milliseconds"),
    ),
    row(
        "tool:named-missing",
        "issue Answers that inform",
        "a server that is missing is named in the run's events and to the model",
        in_file("e2e/approvals/test_informing.py", "test_a_server_that_is_missing_is_named_to_people_and_to_the_model_once"),
    ),
    row(
        "tool:silent",
        "issue Bad input",
        "a silent server costs bounded time once and never hides the others",
        in_file("toolbox/test_processes.py", "test_a_silent_server_costs_bounded_time_once_and_never_hides_the_others"),
    ),
    row(
        "tool:garbage",
        "issue Bad input",
        "garbage on stdout is passed over and kept for people",
        in_file("toolbox/test_processes.py", "test_garbage_on_stdout_is_passed_over_and_kept_for_people"),
    ),
    row(
        "s004:bad-output",
        "seed 004 Extending",
        "an answer that is none, or that breaks the tool's own output schema, is unknown and not quoted",
        in_file(
            "toolbox/test_processes.py",
            "test_an_answer_that_is_none_is_unknown",
            "test_an_answer_against_the_tools_own_output_schema_is_unknown_and_not_quoted",
        ),
    ),
    row(
        "tool:sent-once",
        "design 4.3",
        "every refused request was sent once, and the client stays usable",
        in_file("toolbox/test_http.py", "test_every_refusal_was_sent_once_and_leaves_the_client_usable"),
    ),
    row(
        "tool:retry-after",
        "facts sdk C2",
        "a server that asks to wait is heard",
        in_file("toolbox/test_http.py", "test_a_server_that_asks_to_wait_is_heard"),
    ),
    row(
        "tool:login",
        "issue Done 5; design 8",
        "a server that wants a login is unavailable and says so, also in mid-run, and its tools stay listed",
        in_file(
            "toolbox/test_http.py",
            "test_a_server_that_wants_credentials_is_unavailable_and_says_so",
            "test_a_server_that_wants_credentials_in_mid_run_becomes_unavailable_and_its_tools_stay_listed",
        ),
    ),
    row(
        "tool:clean-env",
        "design 18",
        "a server sees only the harmless variables and its own",
        in_file("toolbox/test_processes.py", "test_a_server_sees_only_the_harmless_variables_and_its_own"),
    ),
    row(
        "s001:outside",
        "seed 001 Usage",
        "a local server runs in the directory of the toolbox file and ends with the toolbox",
        in_file(
            "toolbox/test_processes.py", "test_a_server_runs_in_the_directory_of_the_file_and_dies_with_the_toolbox"
        ),
    ),
    row(
        "s001:cleanup",
        "seed 001 Lifecycle",
        "a server that will not end is killed",
        in_file("toolbox/test_processes.py", "test_a_server_that_will_not_end_is_killed"),
    ),
    row(
        "tool:no-orphans",
        "design 11",
        "servers end when the process that opened them is killed",
        in_file("toolbox/test_processes.py", "test_servers_end_when_the_process_that_opened_them_is_killed"),
    ),
    row(
        "s001:reconnect",
        "seed 001 Errors",
        "a server that comes back is used again",
        in_file("toolbox/test_processes.py", "test_a_server_that_comes_back_is_used_again"),
    ),
    row(
        "tool:broke",
        "issue Bad input",
        "a server that broke keeps its tools in the list with a reason",
        in_file("toolbox/test_processes.py", "test_a_server_that_broke_keeps_its_tools_in_the_list_with_a_reason"),
    ),
    row(
        "tool:revisions",
        "issue MCP",
        "servers of every revision are called, and what an older one asks in mid-call is told that nobody answered",
        in_file(
            "toolbox/test_questions.py",
            "test_a_server_from_before_there_were_questions_is_called_as_ever",
            "test_an_older_server_that_asks_in_mid_call_is_told_that_nobody_answered",
        ),
    ),
    row(
        "revisions:reply",
        "issue MCP",
        "a question comes back instead of an answer, and the reply makes the call go on",
        in_file(
            "toolbox/test_questions.py",
            "test_a_question_comes_back_instead_of_an_answer_and_the_reply_makes_the_call_go_on",
        ),
    ),
    row(
        "tool:questions",
        "issue MCP",
        "an answer to a question that the server has forgotten is given to the same question anew",
        in_file(
            "toolbox/test_questions.py",
            "test_an_answer_to_a_question_that_the_server_has_forgotten_is_given_to_the_same_question_anew",
        ),
    ),
    row(
        "questions:older",
        "issue MCP",
        "an older server that fails without an answer is asked about all the same",
        in_file(
            "toolbox/test_questions.py",
            "test_an_older_server_that_fails_without_an_answer_is_asked_about_all_the_same",
        ),
    ),
    row(
        "questions:overlapping",
        "issue MCP",
        "questions of calls that overlap belong to nobody, while one belongs to the call that is left when others "
        "have ended",
        in_file(
            "toolbox/test_questions.py",
            "test_questions_of_calls_that_overlap_belong_to_nobody_and_the_calls_go_one_by_one_afterwards",
            "test_a_question_belongs_to_the_call_that_is_left_when_others_have_ended",
        ),
    ),
    row(
        "tool:pages",
        "issue MCP",
        "every page of a list is read",
        in_file("toolbox/test_questions.py", "test_every_page_of_a_list_is_read"),
    ),
    row(
        "tool:progress",
        "issue MCP",
        "progress is told, and a call that takes too long is cancelled",
        in_file(
            "toolbox/test_questions.py", "test_progress_is_told_in_one_line_and_a_call_that_takes_too_long_is_cancelled"
        ),
    ),
    row(
        "tool:concurrency",
        "issue MCP",
        "no more calls of a provider run at once than its operator allows",
        in_file("toolbox/test_questions.py", "test_no_more_calls_run_at_once_than_the_operator_allows"),
    ),
    row(
        "tool:conformance",
        "issue Done 2",
        "every conformance scenario of what is offered passes, and every other has a reason",
        in_file(
            "conformance/test_scenarios.py",
            "test_every_scenario_of_what_is_offered_passes",
            "test_every_other_scenario_has_a_reason",
        ),
    ),
    row(
        "tool:foreign",
        "issue Done 1",
        "servers that others wrote work end to end: ruled, recorded, denied and undone",
        in_file(
            "e2e/tools/test_foreign_servers.py",
            "test_calls_that_their_trusted_server_calls_harmless_are_made_without_a_question",
            "test_a_page_on_loopback_is_fetched",
            "test_what_was_staged_with_git_is_asked_about_recorded_and_taken_back",
            "test_a_file_that_was_written_is_moved_away_again",
            "test_a_model_finds_a_tool_of_memory_and_what_it_remembered_is_forgotten_on_undo",
            "test_what_the_policy_denies_is_not_called",
        ),
    ),
    row(
        "tool:uid",
        "design 11",
        "a stdio server runs under its own uid",
        deferred=PRODUCTION,
    ),
)
