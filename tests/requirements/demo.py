"""The demo, its mailbox server and its script."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "demo:first-step",
        "issue Done 1",
        "the demo's first step shows within 20 s of the end of the installation, and at a terminal it asks once and "
        "stays up until its mails were taken back as it says",
        in_file("cli/test_demo.py", "test_at_a_terminal_the_demo_asks_once_and_stays_up_until_it_was_taken_back"),
        by_hand="make demo with a clock, from the end of the installation to the first step",
    ),
    row(
        "demo:no-terminal",
        "issue Demo",
        "without a terminal the demo approves by itself and says so, and ends by saying that its Temporal stops, "
        "without a command that would need it",
        in_file("cli/test_demo.py", "test_without_a_terminal_the_demo_approves_by_itself_says_so_and_ends"),
    ),
    row(
        "demo:crash",
        "issue Demo",
        "the crash demo kills its worker during the sending, and every mail is sent once",
        in_file("cli/test_demo.py", "test_a_worker_that_is_killed_during_the_sending_sends_nothing_twice"),
    ),
    row(
        "demo:ctrl-c",
        "issue Demo",
        "however the demo is ended, no process is left behind",
        in_file("cli/test_demo.py", "test_however_the_demo_is_ended_no_process_is_left"),
    ),
    row(
        "demo:real-model",
        "issue Demo",
        "with OPENAI_BASE_URL set the demo uses that model and does not call it scripted",
        in_file("cli/test_demo.py", "test_with_a_model_of_ones_own_the_demo_uses_that_and_does_not_call_it_scripted"),
    ),
    row(
        "demo:alone",
        "issue Demo",
        "two demos do not share a folder",
        in_file("cli/test_demo.py", "test_two_demos_do_not_share_a_folder"),
    ),
    row(
        "demo:computed",
        "issue Done 2; issue Demo",
        "recipients and total of the demo equal a SQL query for any mailbox, so none of them is written in the script",
        in_file("examples/test_reminders.py", "test_recipients_and_total_equal_the_sql_query_for_any_mailbox"),
    ),
    row(
        "demo:script",
        "issue Demo",
        "the script takes the number of days from the task",
        in_file("examples/test_reminders.py", "test_the_number_of_days_comes_from_the_task"),
    ),
    row(
        "demo:asks-once",
        "issue Demo",
        "the demo takes four decisions of the model, answers with the total and names each invoice in its mail",
        in_file("examples/test_reminders.py", "test_the_demo_takes_four_decisions_and_names_each_invoice_in_its_mail"),
    ),
    row(
        "s000:refined",
        "seed 000 §4",
        "the script searches when the tools it needs are not visible yet",
        in_file("examples/test_reminders.py", "test_the_script_searches_when_the_tools_are_not_visible_yet"),
    ),
    row(
        "demo:refused",
        "issue Demo",
        "the script tells what a person rejected, and a tool that keeps failing ends it in a plain failure",
        in_file(
            "examples/test_reminders.py",
            "test_what_a_person_rejected_is_told_and_stays_in_the_total",
            "test_a_tool_that_keeps_failing_ends_in_a_plain_failure",
        ),
    ),
    row(
        "demo:configured",
        "issue Demo",
        "the demo's toolbox declares only tools and arguments that the mailbox has, and its policy lets reads "
        "pass and asks before every send",
        in_file(
            "examples/test_configuration.py",
            "test_the_toolbox_declares_only_tools_and_arguments_that_the_mailbox_has",
            "test_the_policy_lets_reads_pass_and_asks_before_every_send",
        ),
    ),
    row(
        "demo:mailbox",
        "issue Demo",
        "the mailbox never deduplicates, and counts requests itself",
        in_file("examples/test_mailbox.py", "test_the_same_mail_twice_is_sent_twice_and_both_requests_are_counted"),
    ),
    row(
        "mailbox:dies",
        "issue Demo",
        "when the mailbox dies on a send, its switch says whether the mail is out",
        in_file(
            "examples/test_mailbox.py",
            "test_dying_after_a_send_leaves_the_mail_sent_and_does_not_happen_again",
            "test_dying_before_a_send_counts_the_request_and_sends_nothing",
        ),
    ),
    row(
        "mailbox:hangs",
        "issue Demo",
        "a mailbox that hangs on a send sends the mail and stays usable",
        in_file("examples/test_mailbox.py", "test_hanging_on_a_send_sends_the_mail_and_leaves_the_server_usable"),
    ),
    row(
        "demo:mailbox-tools",
        "issue Demo",
        "the mailbox lists pages without gaps, computes overdue days, recalls a mail once, deletes for good and "
        "says which tools change something",
        in_file(
            "examples/test_mailbox.py",
            "test_pages_join_to_the_whole_list_without_gap_or_repetition",
            "test_overdue_by_more_than_sixty_days_leaves_out_sixty_and_whatever_is_paid",
            "test_a_mail_is_recalled_once",
            "test_received_messages_are_found_and_deleted_for_good",
            "test_every_tool_says_whether_it_changes_the_world_and_what_it_answers",
        ),
    ),
    row(
        "demo:mailbox-seed",
        "issue Demo",
        "an empty mailbox fills itself once, the same for the same seed, also when four processes open it at once",
        in_file(
            "examples/test_mailbox.py",
            "test_an_empty_mailbox_creates_and_fills_itself_where_it_is_told_to",
            "test_four_processes_open_a_new_mailbox_at_once_and_fill_it_once",
            "test_the_same_seed_fills_two_mailboxes_alike",
        ),
    ),
    row(
        "demo:mailbox-settings",
        "issue Demo",
        "a switch of the mailbox that cannot be read is named, and SQL statements are found by their headings",
        in_file(
            "examples/test_mailbox.py",
            "test_a_switch_that_cannot_be_read_is_named",
            "test_statements_are_found_by_their_headings",
        ),
    ),
)
