"""How people and programs reach runs without our command line: chats, pages, services, other languages."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "doors:local-slack",
        "issue People Done 1",
        "the local server that our tests take for Slack speaks its Web API, signs what it sends over HTTP, keeps"
        " connections of socket mode, shows messages and modals to people, and refuses what Slack refuses",
        in_file(
            "test_slack_server.py",
            "test_commands_buttons_modals_and_events_reach_an_app_and_its_answers_change_what_people_see",
            "test_what_is_forged_or_old_is_refused_over_http",
            "test_an_app_that_is_told_to_connect_anew_does",
            "test_what_slack_refuses_is_refused",
            "test_files_and_threads_are_kept",
        ),
    ),
)
