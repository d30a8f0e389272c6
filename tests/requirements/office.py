"""Workflows over servers of the shapes of Gmail and Slack."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "office:answer",
        "issue First hour Done 5; seed 000 §13",
        "a mail is answered and a channel told after one approval, and what can be taken back is",
        in_file(
            "examples/test_office.py",
            "test_a_mail_is_answered_and_a_channel_told_after_one_approval_and_both_are_taken_back",
        ),
    ),
    row(
        "office:rejected",
        "issue First hour Done 5; seed 000 §13",
        "what a person rejects is not sent, and the draft is taken back",
        in_file("examples/test_office.py", "test_what_a_person_rejects_is_not_sent_and_the_draft_is_taken_back"),
    ),
    row(
        "office:once",
        "issue First hour Done 5; seed 000 §13",
        "a service that dies after it has sent something sends it once, and nobody is asked",
        in_file(
            "examples/test_office.py",
            "test_a_service_that_dies_after_it_has_sent_sends_once_and_nobody_is_asked",
        ),
    ),
    row(
        "office:program",
        "issue First hour Done 5; seed 000 §13",
        "unread mails are counted in a program that reads page after page, and no mail reaches the model",
        in_file("examples/test_office.py", "test_unread_mails_are_counted_in_a_program_that_reads_page_after_page"),
    ),
    row(
        "office:budget",
        "issue First hour Done 5; seed 000 §13",
        "a budget ends the work with what was found, a summary and the events of both",
        in_file("examples/test_office.py", "test_a_budget_ends_the_work_with_what_was_found_and_a_summary"),
    ),
    row(
        "office:failed-read",
        "issue First hour Done 4",
        "a read whose answer says that it failed counts as failed, with the reason, and is shown in red",
        in_file("examples/test_office.py", "test_a_failed_read_is_told_as_failed_with_the_reason_of_the_service"),
        in_file("toolbox/test_meaning.py", "test_a_read_failed_where_it_says_so_itself_or_where_that_is_declared"),
        in_file("cli/test_drawing.py", "test_what_failed_is_red_and_what_succeeded_is_not"),
    ),
    row(
        "office:page",
        "issue First hour Done 5; seed 000 §13",
        "the page's own commands do what it says, and its toolbox names tools and bindings that the services have",
        in_file(
            "examples/test_office.py",
            "test_the_commands_of_the_page_do_what_it_says",
            "test_the_declarations_name_only_tools_and_arguments_that_the_services_have",
        ),
    ),
)
