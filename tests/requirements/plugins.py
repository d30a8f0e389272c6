"""Command-line programs as tools, and the processes that run them."""

from tests.requirements.requirement import PLUGINS, in_file, row

ROWS = (
    row(
        "process:result",
        "issue External; seed 002 §5",
        "a command tells its exit code, what it printed on either stream, and how long it took",
        in_file("toolbox/test_runner.py", "test_a_command_tells_its_exit_code_and_what_it_printed_on_either_stream"),
    ),
    row(
        "process:clean",
        "issue External",
        "a command sees its own folder, its own variables and no others but harmless ones",
        in_file("toolbox/test_runner.py", "test_a_command_sees_its_own_folder_its_own_variables_and_no_others"),
    ),
    row(
        "process:limits",
        "issue External; seed 002 §5",
        "limits stand before the command runs, the kernel ends what passes them, and ignored signals are not inherited",
        in_file(
            "toolbox/test_runner.py",
            "test_limits_stand_before_the_command_runs_and_no_memory_is_dumped",
            "test_a_command_that_passes_a_limit_is_ended_by_the_kernel",
            "test_signals_that_the_worker_ignores_are_not_ignored_by_a_command",
        ),
    ),
    row(
        "process:timeout",
        "issue External",
        "at its deadline, its end or a cancelled call, a command and all it started are killed",
        in_file(
            "toolbox/test_runner.py",
            "test_at_its_deadline_a_command_and_all_it_started_are_killed",
            "test_what_a_command_leaves_in_the_background_ends_with_it",
            "test_a_cancelled_call_leaves_no_process",
        ),
    ),
    row(
        "process:orphans",
        "issue External",
        "a command ends when the process that runs it is killed",
        in_file("toolbox/test_runner.py", "test_a_command_ends_when_the_process_that_runs_it_is_killed"),
    ),
    row(
        "process:bounded",
        "issue External",
        "output is streamed, and only its beginning and the end of the errors are kept",
        in_file("toolbox/test_runner.py", "test_only_the_beginning_of_the_output_and_the_end_of_the_errors_are_kept"),
    ),
    row(
        "process:lists",
        "issue External",
        "a command that the lists do not allow never runs",
        in_file("toolbox/test_runner.py", "test_a_command_that_the_lists_do_not_allow_never_runs"),
    ),
    row(
        "process:exists",
        "issue External",
        "a command that cannot be started is named, and is no result",
        in_file("toolbox/test_runner.py", "test_a_command_that_cannot_be_started_is_named_and_is_no_result"),
    ),
    row(
        "plugin:schema",
        "issue Plugins; seed 004 Features",
        "a plugin's schema is what its own parser takes, and nothing behind the parsing runs",
        in_file(
            "toolbox/test_plugins.py",
            "test_a_plugins_schema_is_what_its_own_parser_takes",
            "test_arguments_that_the_parser_would_refuse_do_not_fit_the_schema",
        ),
    ),
    row(
        "plugin:call",
        "issue Plugins",
        "every kind of argument reaches the program as it was meant",
        in_file("toolbox/test_plugins.py", "test_every_kind_of_argument_reaches_the_program_as_it_was_meant"),
    ),
    row(
        "plugin:values",
        "issue Plugins",
        "no value becomes an option or a file, and what no command line can say is refused before anything runs",
        in_file(
            "toolbox/test_plugins.py",
            "test_no_value_becomes_an_option_or_a_file",
            "test_what_no_command_line_can_say_is_refused_before_anything_runs",
        ),
    ),
    row(
        "plugin:subcommands",
        "issue Plugins",
        "each last subcommand is a tool that takes what stands before it too",
        in_file("toolbox/test_plugins.py", "test_each_last_subcommand_is_a_tool_that_takes_what_stands_before_it_too"),
    ),
    row(
        "plugin:help",
        "issue Plugins; seed 004 Features",
        "a program without a parser is known by its --help and takes words",
        in_file("toolbox/test_plugins.py", "test_a_program_without_a_parser_is_known_by_its_help_and_takes_words"),
    ),
    row(
        "plugin:broken",
        "issue Plugins",
        "a plugin that cannot be loaded is a reason and leaves the others alone, also on the command line",
        in_file(
            "toolbox/test_plugins.py",
            "test_a_plugin_that_cannot_be_loaded_is_a_reason_and_leaves_the_others_alone",
            "test_the_command_line_lists_what_plugins_can_do_and_says_which_cannot_be_used",
        ),
    ),
    row(
        "plugin:outcome",
        "issue Plugins",
        "JSON or text on stdout is the answer, and another exit code than 0 the tool's own error",
        in_file("toolbox/test_plugins.py", "test_json_or_text_is_the_answer_and_another_exit_code_the_tools_own_error"),
    ),
    row(
        "plugin:unknown",
        "issue Plugins",
        "a call of a program that is ended in the middle has an unknown outcome",
        in_file("toolbox/test_plugins.py", "test_a_program_that_is_ended_in_the_middle_is_unknown"),
    ),
    row(
        "plugin:unavailable",
        "issue Plugins",
        "a program that cannot start is unavailable, and the intent of its call is not committed",
        in_file(
            "toolbox/test_plugins.py",
            "test_a_plugin_that_cannot_start_is_unavailable_and_the_intent_is_not_committed",
        ),
    ),
    row(
        "plugin:changed",
        "issue Plugins",
        "a plugin that changed after the ruling is looked at again",
        in_file("toolbox/test_plugins.py", "test_a_plugin_that_changed_after_the_ruling_is_looked_at_again"),
    ),
    row(
        "plugin:serial",
        "issue Plugins; seed 004 Queue",
        "calls of one plugin run one after another",
        in_file("toolbox/test_plugins.py", "test_calls_of_one_plugin_run_one_after_another"),
    ),
    row(
        "plugin:environment",
        "issue Plugins",
        "a plugin sees its own variables and the effect id, and no default in its schema shows them",
        in_file(
            "toolbox/test_plugins.py", "test_a_plugin_sees_its_own_variables_and_the_effect_and_no_default_tells_them"
        ),
    ),
    row(
        "plugin:configuration",
        "issue Plugins",
        "settings of plugins are checked with field and fix",
        in_file("toolbox/test_plugins.py", "test_settings_of_plugins_are_checked_with_field_and_fix"),
    ),
    row(
        "plugin:jail",
        "issue Plugins",
        "a plugin that must be jailed reaches nothing but its folder and its variables, and never runs without a jail",
        in_file(
            "sandbox/test_command_jail.py",
            "test_a_jailed_plugin_sees_its_folder_and_its_variables_and_reaches_nothing_else",
            "test_a_jailed_plugin_that_is_ended_in_the_middle_is_unknown_and_gone",
            "test_a_folder_that_a_jail_may_not_read_is_a_reason_and_is_not_run_without_one",
        ),
        in_file("toolbox/test_plugins.py", "test_a_plugin_that_must_be_jailed_is_never_run_without_a_jail"),
    ),
    row(
        "plugin:users",
        "issue Plugins",
        "plugins are granted to users like servers",
        in_file("toolbox/test_plugins.py", "test_plugins_are_granted_to_users_like_servers"),
    ),
    row(
        "plugin:page",
        "issue Done 8",
        "the command-line tool of the page is wrapped, called and undone",
        in_file("docs/test_tools.py", "test_the_command_line_tool_of_the_page_is_wrapped_called_and_undone"),
    ),
    row(
        "s004:protocol",
        "seed 004 Protocol",
        "newline-JSON requests and status events",
        deferred=PLUGINS,
    ),
    row(
        "s004:commands",
        "seed 004 Commands",
        "run, help, reload-help, health",
        deferred=PLUGINS,
    ),
    row(
        "s004:timeouts",
        "seed 004 Features",
        "a timeout per job, with a default",
        deferred=PLUGINS,
    ),
    row(
        "s004:errors",
        "seed 004 Errors",
        "non-zero exit, timeout, bad_json, not_found",
        deferred=PLUGINS,
    ),
    row(
        "s004:ready",
        "seed 004 §3",
        "ready at start, shutdown at end",
        deferred=PLUGINS,
    ),
    row(
        "s004:mcp",
        "seed 004 top",
        "plugins as MCP tools",
        deferred=PLUGINS,
    ),
    row(
        "s004:no-port",
        "seed 004 §9",
        "the daemon opens no port",
        deferred=PLUGINS,
    ),
)
