"""Tools in Python: functions of one's own, alone or over servers, and checks of calls."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "python:shapes",
        "issue Actions; seed 000 §2.2",
        "one function fits servers that name things differently, by configuration",
        in_file("toolbox/test_python_tools.py", "test_one_function_fits_servers_that_name_things_differently"),
    ),
    row(
        "python:safety",
        "issue Actions",
        "functions say their own danger and how they are undone",
        in_file("toolbox/test_python_tools.py", "test_functions_say_their_own_danger_and_how_they_are_undone"),
    ),
    row(
        "python:missing",
        "issue Actions",
        "a function is offered only where the tools that it calls are",
        in_file("toolbox/test_python_tools.py", "test_a_function_is_offered_only_where_the_tools_that_it_calls_are"),
    ),
    row(
        "python:behind",
        "issue Answers that inform",
        "a hit names the tool behind a function",
        in_file("toolbox/test_python_tools.py", "test_a_hit_names_the_tool_behind_a_function"),
    ),
    row(
        "python:normalised",
        "issue Actions",
        "arguments that mean nothing are refused before the server sees them",
        in_file(
            "toolbox/test_python_tools.py", "test_arguments_that_mean_nothing_are_refused_before_the_server_sees_them"
        ),
    ),
    row(
        "python:refused",
        "issue Actions",
        "what the server refuses the function refuses",
        in_file("toolbox/test_python_tools.py", "test_what_the_server_refuses_the_function_refuses"),
    ),
    row(
        "python:unknown",
        "issue Actions",
        "a write without an answer is unknown, whatever the function makes of it",
        in_file(
            "toolbox/test_python_tools.py",
            "test_a_write_without_an_answer_is_unknown_whatever_the_function_makes_of_it",
            "test_an_effect_of_a_function_alone_is_unknown_when_the_function_breaks",
        ),
    ),
    row(
        "python:once",
        "issue Actions",
        "a function writes once, and what was written stands when it fails after it",
        in_file(
            "toolbox/test_python_tools.py",
            "test_a_function_writes_once_and_what_was_written_stands_when_it_fails_after_it",
        ),
    ),
    row(
        "python:own",
        "issue Actions",
        "a function is a tool with the schema of its signature",
        in_file("toolbox/test_python_tools.py", "test_a_function_is_a_tool_with_the_schema_of_its_signature"),
    ),
    row(
        "python:held",
        "issue Actions",
        "what the intent raises comes out as it is",
        in_file("toolbox/test_python_tools.py", "test_what_the_intent_raises_comes_out_as_it_is"),
    ),
    row(
        "python:changed",
        "issue Actions",
        "a tool that changes behind a function changes the function",
        in_file("toolbox/test_python_tools.py", "test_a_tool_that_changes_behind_a_function_changes_the_function"),
    ),
    row(
        "python:gone",
        "issue Actions",
        "a function over a server that is gone is unavailable for its reason",
        in_file(
            "toolbox/test_python_tools.py", "test_a_function_over_a_server_that_is_gone_is_unavailable_for_its_reason"
        ),
    ),
    row(
        "python:configuration",
        "issue Actions",
        "what is wrong with `python` in toolbox.json is named with field and fix",
        in_file("toolbox/test_python_tools.py", "test_what_is_wrong_with_python_is_named_with_field_and_fix"),
    ),
    row(
        "python:page",
        "issue Done 8",
        "the shapes on the page fit the servers they name, and its functions are tools",
        in_file(
            "docs/test_tools.py",
            "test_the_shapes_of_the_page_fit_the_servers_they_name",
            "test_the_functions_of_the_page_are_tools",
            "test_the_first_tool_of_the_page_is_a_tool",
            "test_what_the_page_charges_is_found_and_taken_back",
            "test_the_test_of_the_page_passes",
        ),
    ),
    row(
        "python:anywhere",
        "issue Tools in Python",
        "a tool is written, called and tested where only the wheel is installed, and an editor knows its types",
        in_file(
            "test_packaging.py",
            "test_a_tool_is_written_called_and_tested_where_only_the_wheel_is_installed",
            "test_a_type_checker_sees_a_tool_as_the_function_that_it_is",
        ),
        in_file(
            "testing/test_run_tool.py",
            "test_a_function_that_is_a_tool_is_called_as_before",
        ),
    ),
    row(
        "python:run-tool",
        "issue Tools in Python",
        "run_tool makes of a tool what the engine would, without an engine",
        in_file(
            "testing/test_run_tool.py",
            "test_a_blocking_function_runs_in_another_thread_and_an_async_one_in_this_one",
            "test_what_a_tool_raises_says_how_the_call_ended",
            "test_succeeded_if_judges_what_the_function_returns",
            "test_a_read_that_breaks_is_made_again_as_often_as_it_says",
            "test_a_tool_calls_only_the_tools_that_it_names_and_writes_once",
            "test_answers_are_given_in_the_type_that_was_asked_for",
            "test_an_async_function_behind_a_plain_wrapper_is_awaited",
        ),
    ),
    row(
        "python:options",
        "design 22",
        "options of a tool that do not fit together are refused at load, with the fix",
        in_file(
            "testing/test_run_tool.py",
            "test_options_that_do_not_fit_are_refused_where_they_stand",
            "test_only_functions_that_return_are_tools",
        ),
    ),
    row(
        "python:example",
        "issue Tools in Python",
        "the example is made, verified, asked about and taken back, in a test and in a run",
        in_file(
            "examples/test_billing.py",
            "test_a_charge_is_made_found_and_taken_back",
            "test_a_large_charge_asks_a_person_first",
            "test_what_the_example_refuses_the_model_reads",
            "test_a_secret_that_nobody_gave_is_named",
        ),
        in_file(
            "e2e/tools/test_python_tools.py",
            "test_the_example_charges_and_takes_back_when_the_run_fails",
            "test_what_a_function_raises_reaches_the_model_as_it_was_meant",
        ),
    ),
    row(
        "python:lost",
        "design 22",
        "a write that breaks is unknown: it is verified, or a person is asked",
        in_file(
            "e2e/tools/test_python_tools.py",
            "test_a_write_that_breaks_is_verified_and_can_still_be_taken_back",
            "test_a_write_that_breaks_and_cannot_be_verified_is_left_to_a_person",
        ),
    ),
    row(
        "python:threads",
        "issue Tools in Python",
        "a function that blocks holds up nobody, and one that never comes back is refused in time",
        in_file(
            "toolbox/test_python_tools.py",
            "test_a_function_that_blocks_holds_up_nobody_and_is_unknown_when_it_takes_too_long",
            "test_too_many_calls_that_never_come_back_are_refused_before_the_intent",
        ),
    ),
    row(
        "python:ask",
        "design 22",
        "a function asks a person before it acts, and runs again with the answers",
        in_file(
            "toolbox/test_python_tools.py",
            "test_a_function_asks_a_person_and_runs_again_with_the_answers",
            "test_nobody_is_asked_after_a_write",
        ),
    ),
    row(
        "python:context",
        "design 22",
        "a function knows its caller, its session, its effect and its secrets, and no secret is shown",
        in_file(
            "toolbox/test_python_tools.py",
            "test_a_function_knows_its_caller_its_effect_and_the_secrets_of_its_entry",
        ),
        in_file(
            "e2e/tools/test_python_tools.py",
            "test_a_function_knows_the_session_and_its_secret_is_never_shown",
        ),
    ),
    row(
        "python:cache",
        "design 22; seed 002 §4",
        "answers of a read are kept by user, tool and arguments",
        in_file(
            "toolbox/test_python_tools.py",
            "test_answers_of_a_read_are_kept_by_user_and_arguments",
        ),
    ),
    row(
        "python:where",
        "design 22",
        "tools come from files, packages, modules and entry points",
        in_file("toolbox/test_python_tools.py", "test_tools_come_from_files_packages_modules_and_entry_points"),
    ),
    row(
        "python:actions",
        "design 22",
        "`actions` is another name of `python`, and both at once are refused",
        in_file("toolbox/test_python_tools.py", "test_both_names_of_the_section_at_once_are_refused"),
    ),
    row(
        "python:one-path",
        "design 3",
        "a ruling on a function is one on the tools that it calls",
        in_file(
            "toolbox/test_python_tools.py",
            "test_what_a_function_calls_is_named_to_the_policy",
        ),
        in_file(
            "backstay/test_policy.py",
            "test_a_ruling_on_a_tool_is_one_on_the_tools_that_it_calls",
            "test_a_task_can_deny_a_tool_for_what_it_calls_and_every_reader_sees_it",
        ),
        in_file(
            "e2e/tools/test_python_tools.py",
            "test_a_rule_about_a_tool_holds_for_the_function_that_calls_it",
            "test_an_undo_that_calls_a_tool_about_which_a_rule_asks_is_left_to_a_person",
        ),
    ),
    row(
        "safety:checks",
        "issue Tools in Python; seed 002 §4",
        "checks of the operator deny a call or have a person asked, right before it is sent",
        in_file(
            "toolbox/test_safety.py",
            "test_the_strictest_word_of_all_checks_of_a_domain_counts",
            "test_a_check_is_a_function_that_can_be_called_and_tested",
        ),
        in_file(
            "e2e/tools/test_python_tools.py",
            "test_checks_of_the_operator_deny_and_ask_before_anything_is_sent",
            "test_a_call_that_a_check_and_the_tool_ask_about_is_made_once_with_both_answers",
        ),
        in_file(
            "docs/test_tools.py",
            "test_the_checks_of_the_security_page_deny_and_ask",
        ),
    ),
    row(
        "safety:types-and-targets",
        "seed 002 §4",
        "a check says which arguments a call may have, and sees where it goes",
        in_file(
            "toolbox/test_safety.py",
            "test_arguments_that_do_not_fit_the_model_of_a_check_are_denied_without_their_value",
            "test_targets_are_the_arguments_that_say_where_a_call_goes",
        ),
    ),
    row(
        "safety:closed",
        "seed 002 §4",
        "a check that breaks denies, and one that cannot be loaded keeps the toolbox closed",
        in_file(
            "toolbox/test_safety.py",
            "test_a_check_that_breaks_denies",
            "test_a_check_that_does_not_come_back_denies",
            "test_checks_that_cannot_be_used_keep_the_toolbox_closed",
        ),
    ),
)
