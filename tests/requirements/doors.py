"""How people and programs reach runs without our command line: chats, pages, services, other languages."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "doors:local-slack",
        "issue People Done 1",
        "commands, buttons, modals and events of the local server that our tests take for Slack reach an app, whose "
        "answers change what people see",
        in_file(
            "test_slack_server.py",
            "test_commands_buttons_modals_and_events_reach_an_app_and_its_answers_change_what_people_see",
        ),
    ),
    row(
        "slack:local-forged",
        "issue People Done 1",
        "what is forged or old is refused over HTTP by the local server",
        in_file("test_slack_server.py", "test_what_is_forged_or_old_is_refused_over_http"),
    ),
    row(
        "slack:local-sockets",
        "issue People Done 1",
        "an app that the local server tells to connect anew does",
        in_file("test_slack_server.py", "test_an_app_that_is_told_to_connect_anew_does"),
    ),
    row(
        "slack:local-refused",
        "issue People Done 1",
        "the local server refuses what Slack refuses",
        in_file("test_slack_server.py", "test_what_slack_refuses_is_refused"),
    ),
    row(
        "slack:local-kept",
        "issue People Done 1",
        "the local server keeps files and threads",
        in_file("test_slack_server.py", "test_files_and_threads_are_kept"),
    ),
    row(
        "doors:bot-of-ones-own",
        "issue People, examples that people copy",
        "a Slack bot of at most 60 lines needs none of our gateway",
        in_file("examples/test_slack_bot.py", "test_the_bot_has_at_most_60_lines"),
    ),
    row(
        "bot:proven",
        "issue People, examples that people copy",
        "what a person presses in Slack reaches the run by the bot, proven",
        in_file("examples/test_slack_bot.py", "test_what_a_person_presses_in_slack_reaches_the_run_proven"),
    ),
    row(
        "bot:expired",
        "issue People, examples that people copy",
        "what nobody decides in time is said by the bot where it was asked",
        in_file("examples/test_slack_bot.py", "test_what_nobody_decides_in_time_is_said_where_it_was_asked"),
    ),
    row(
        "bot:forged",
        "issue People, examples that people copy",
        "forged and old notices to the bot, and people without a confirmed address, change nothing",
        in_file(
            "examples/test_slack_bot.py",
            "test_forged_and_old_notices_and_people_without_a_confirmed_address_change_nothing",
        ),
    ),
    row(
        "bot:too-long",
        "issue People, examples that people copy",
        "what is too long for a message or a request of the bot has no buttons",
        in_file("examples/test_slack_bot.py", "test_what_is_too_long_for_a_message_or_a_request_has_no_buttons"),
    ),
    row(
        "doors:service-of-ones-own",
        "issue People, examples that people copy",
        "a service of one's own has at most 60 lines",
        in_file("examples/test_service.py", "test_the_service_has_at_most_60_lines"),
    ),
    row(
        "service:runs",
        "issue People, examples that people copy",
        "people start, decide and read a run over HTTP with a service of one's own, in the name of its users",
        in_file("examples/test_service.py", "test_people_start_decide_and_read_a_run_over_http"),
    ),
    row(
        "service:wrong",
        "issue People, examples that people copy",
        "a service of one's own answers what is wrong with the field and the fix",
        in_file("examples/test_service.py", "test_what_is_wrong_is_said_with_the_field_and_the_fix"),
    ),
    row(
        "doors:browser",
        "issue People Done 1",
        "our pages are looked at in a real browser as people see them, with and without scripts, in the dark and on "
        "a phone",
        in_file(
            "test_browser.py",
            "test_a_tab_shows_a_page_as_people_see_it_with_and_without_scripts_in_the_dark_and_on_a_phone",
        ),
    ),
    row(
        "browser:strict",
        "issue People Done 1",
        "a page that reaches beyond this machine, whose scripts fail or are blocked, or that has a serious barrier "
        "fails its test",
        in_file("test_browser.py", "test_a_page_that_reaches_out_or_whose_scripts_fail_or_are_blocked_fails_its_test"),
    ),
    row(
        "browser:missing",
        "issue People Done 1",
        "a missing browser is said with what to do",
        in_file("test_browser.py", "test_a_missing_browser_is_said_with_what_to_do"),
    ),
    row(
        "browser:installed",
        "issue People Done 1",
        "make installs a browser only where none is, and says what is missing",
        in_file("test_browser.py", "test_make_installs_a_browser_only_where_none_is_and_says_what_is_missing"),
    ),
    row(
        "doors:typescript",
        "issue People, examples that people copy",
        "a client in TypeScript starts a run, decides what it asks and prints its result, by names and JSON alone",
        in_file(
            "examples/test_typescript.py",
            "test_a_client_in_typescript_starts_a_run_decides_what_it_asks_and_prints_its_result",
        ),
    ),
    row(
        "typescript:whole",
        "issue People, examples that people copy",
        "the client in TypeScript decides nothing that it could not show whole",
        in_file("examples/test_typescript.py", "test_what_is_too_long_to_be_told_whole_is_not_decided_there"),
    ),
    row(
        "typescript:said",
        "issue People, examples that people copy",
        "the client in TypeScript says what a person rejected and what is wrong",
        in_file("examples/test_typescript.py", "test_it_says_what_a_person_rejected_and_what_is_wrong"),
    ),
    row(
        "typescript:types",
        "issue People, examples that people copy",
        "the types of the client in TypeScript are right",
        in_file("examples/test_typescript.py", "test_its_types_are_right"),
    ),
)
