"""Requests to people: what they show, who may decide, and what a decision does."""

from tests.requirements.requirement import MEMORY, in_file, row

ROWS = (
    row(
        "approval:facts",
        "design 8",
        "a request says what is called, its safety, and how it is undone or that it cannot be",
        in_file(
            "e2e/test_approvals_hostile.py",
            "test_a_request_shows_what_is_called_how_it_is_undone_and_what_cannot_be_undone",
        ),
    ),
    row(
        "approval:one-line",
        "design 8",
        "text is shown as one line of visible signs, letters of all scripts stay, and a clipped line says how "
        "much it hides",
        in_file(
            "backstay/test_shown.py",
            "test_what_cannot_be_seen_is_written_out",
            "test_letters_of_all_scripts_stay_as_they_are",
            "test_a_line_is_visible_short_and_counts_what_it_hides",
            "test_a_clipped_line_says_how_much_is_hidden",
        ),
    ),
    row(
        "approval:arguments",
        "design 8",
        "arguments are shown as strict JSON within a limit; names that look alike stay apart, and what is left "
        "out is counted",
        in_file(
            "backstay/test_shown.py",
            "test_arguments_are_shown_as_strict_json_within_the_limit",
            "test_names_that_look_alike_do_not_hide_each_other",
            "test_what_is_left_out_of_arguments_is_counted",
            "test_deep_and_huge_values_are_shown_without_failing",
            "test_an_argument_that_is_named_like_the_count_is_not_hidden_by_it",
        ),
    ),
    row(
        "approval:markdown",
        "design 8",
        "no sign acts in what is shown as Markdown",
        in_file(
            "backstay/test_shown.py",
            "test_markdown_shows_hostile_text_literally",
            "test_no_acting_sign_stands_unescaped_in_markdown",
            "test_code_in_markdown_cannot_be_left",
            "test_markdown_says_how_much_of_a_line_is_left_out",
        ),
    ),
    row(
        "approval:lookalikes",
        "issue What people see",
        "letters of another script in a word, copies of letters and marks that strike out are written out, once "
        "however often a text is shown, and honest text in any script stays as it is",
        in_file(
            "backstay/test_shown.py",
            "test_a_letter_of_another_script_is_written_out_in_a_word",
            "test_marks_that_strike_out_or_change_nothing_that_can_be_seen_are_written_out",
            "test_honest_text_in_any_script_is_not_marked",
            "test_a_text_that_is_shown_twice_is_marked_once",
        ),
    ),
    row(
        "approval:whole",
        "issue What people see",
        "in the Web UI and at a terminal every argument of a call is shown whole or counted as missing, and a batch "
        "says which calls it does not show",
        in_file(
            "e2e/test_shown_requests.py",
            "test_every_argument_is_shown_whole_however_long_those_before_it_are",
            "test_what_is_not_shown_of_a_call_is_counted",
            "test_a_long_text_to_which_the_request_only_refers_is_counted",
            "test_a_batch_says_what_it_does_not_show",
            "test_the_answer_of_the_query_stays_small_however_much_waits",
        ),
    ),
    row(
        "approval:commands",
        "issue What people see",
        "each command that decides a request carries the digest of what is shown, and a hostile id in it is one "
        "harmless word for a shell",
        in_file(
            "e2e/test_shown_requests.py",
            "test_each_command_carries_the_digest_of_what_is_shown",
            "test_a_hostile_id_is_harmless_in_every_command_that_is_shown",
        ),
        in_file("backstay/test_shown.py", "test_words_for_a_shell_are_one_visible_line_and_mean_the_text"),
    ),
    row(
        "approval:masked",
        "issue What people see",
        "a request with masked values says once what the masks stand for",
        in_file("e2e/test_shown_requests.py", "test_masked_values_are_explained_once_in_a_request"),
    ),
    row(
        "approval:hostile",
        "issue Done 6",
        "bidi signs, Markdown and fake commands are shown as one harmless line wherever people look, and decided "
        "as they are",
        in_file(
            "e2e/test_approvals_hostile.py", "test_hostile_text_is_shown_as_one_harmless_line_wherever_people_look"
        ),
    ),
    row(
        "approval:clipped",
        "design 8",
        "a request too long to show is approved only with the digest of all of it",
        in_file(
            "e2e/test_approvals_hostile.py",
            "test_a_request_too_long_to_show_is_approved_only_with_the_digest_of_all_of_it",
        ),
    ),
    row(
        "approval:verdicts",
        "design 8; issue Done 6",
        "a decision that does not fit the request, a stale digest included, is refused by field, and the request "
        "stays open",
        in_file(
            "e2e/test_approvals.py", "test_what_does_not_fit_the_request_is_refused_by_field_and_the_request_stays_open"
        ),
        in_file("e2e/test_bad_input.py", "test_decisions_that_are_not_valid_are_refused_and_the_request_stays"),
    ),
    row(
        "approval:repeat",
        "issue Done 6",
        "a decision repeated under its event id gets the stored answer, also when both come at once; any other "
        "second decision is refused",
        in_file(
            "e2e/test_approvals.py",
            "test_a_decision_repeated_under_its_event_id_gets_the_stored_answer_and_no_other_decision_does",
            "test_the_same_event_arriving_twice_at_once_is_one_decision",
        ),
    ),
    row(
        "approval:partial",
        "issue Done 6; design 3; seed 002 §6",
        "calls of a batch are asked about in one request, decided one by one and answered in order",
        in_file("e2e/test_approvals.py", "test_calls_of_a_batch_are_decided_one_by_one_in_one_request"),
    ),
    row(
        "approval:separate",
        "design 8",
        "calls that different people decide about are asked about at the same time, and a rejection with stop "
        "withdraws the others",
        in_file(
            "e2e/test_approvals_proof.py",
            "test_calls_that_different_people_decide_about_are_asked_about_at_the_same_time",
            "test_a_rejection_with_stop_withdraws_what_else_is_asked",
        ),
    ),
    row(
        "approval:answer",
        "design 9",
        "a rejected call is an answer to the model, which may go on",
        in_file("e2e/test_approvals.py", "test_a_rejection_is_an_answer_to_the_model_which_may_go_on"),
    ),
    row(
        "approval:stop",
        "design 8",
        "a rejection with stop ends the run as rejected when nothing was done",
        in_file("e2e/test_approvals.py", "test_a_rejection_with_stop_ends_the_run_as_rejected_when_nothing_was_done"),
    ),
    row(
        "approval:modify",
        "design 8",
        "a changed call is validated and ruled again",
        in_file("e2e/test_approvals.py", "test_a_changed_call_is_validated_and_ruled_again"),
    ),
    row(
        "approval:modify-redacted",
        "issue Done 6",
        "a changed call keeps what the person could not see, secrets and long texts included",
        in_file("e2e/test_approvals.py", "test_a_changed_call_keeps_what_the_person_could_not_see"),
    ),
    row(
        "approval:expiry",
        "design 8",
        "an expired request rejects, fails or asks once more, as the rule says, and a decision after it is refused",
        in_file("e2e/test_approvals.py", "test_expiry_rejects_fails_or_asks_once_more_as_the_rule_says"),
    ),
    row(
        "approval:proof",
        "design 8",
        "a proof holds for exactly what was signed, for a day at most and only with a key; nothing else is taken "
        "for one",
        in_file(
            "backstay/test_proof.py",
            "test_a_proof_holds_for_exactly_what_was_signed",
            "test_a_proof_lives_for_a_day_at_most",
            "test_a_proof_of_format_1_is_refused_with_the_reason",
            "test_what_is_no_proof_is_malformed",
            "test_no_text_is_taken_for_a_proof",
            "test_without_a_key_nothing_is_signed_and_nothing_holds",
        ),
    ),
    row(
        "approval:proof-decides",
        "design 8",
        "only a proof for exactly this decision verifies who decided, and one that is not needed must hold all "
        "the same",
        in_file(
            "e2e/test_approvals_proof.py",
            "test_only_a_proof_for_exactly_this_decision_verifies_who_decided",
            "test_a_proof_that_is_not_needed_must_hold_all_the_same",
        ),
    ),
    row(
        "approval:proof-foreign",
        "design 8",
        "a program without this package can sign",
        in_file("backstay/test_proof.py", "test_a_program_without_this_package_can_sign"),
    ),
    row(
        "approval:forged",
        "issue Done 6",
        "where a rule names people, a verified stranger and an unverified approver are both refused",
        in_file("e2e/test_approvals_proof.py", "test_a_verified_stranger_and_an_unverified_approver_are_both_refused"),
    ),
    row(
        "approval:signal",
        "design 8",
        "a signal needs its own proof, and a stranger's signal is an event and nothing else",
        in_file(
            "e2e/test_approvals_proof.py",
            "test_a_signal_needs_its_own_proof_and_a_strangers_signal_is_an_event_and_nothing_else",
        ),
    ),
    row(
        "approval:quorum",
        "design 8",
        "a quorum is so many verified persons, and one verified rejection decides it",
        in_file(
            "e2e/test_approvals_proof.py",
            "test_a_quorum_is_so_many_verified_persons",
            "test_one_verified_rejection_decides_a_quorum",
        ),
    ),
    row(
        "approval:self",
        "issue Done 6",
        "nobody approves a run of their own where the rule forbids it",
        in_file(
            "e2e/test_approvals_proof.py",
            "test_nobody_approves_a_run_of_their_own_where_the_rule_forbids_it",
            "test_without_a_proven_starter_a_rule_against_self_approval_lets_nobody_approve",
            "test_a_start_is_proven_for_one_run_and_one_task",
        ),
    ),
    row(
        "approval:top-up-proof",
        "design 8",
        "where a rule names persons, topping up and undoing need a proof too, and each proof works once",
        in_file(
            "e2e/test_approvals_proof.py",
            "test_where_a_rule_names_persons_topping_up_and_undoing_need_a_proof_too_and_each_proof_works_once",
        ),
    ),
    row(
        "authority:effects",
        "design 8; issue Authority",
        "a lost payment is settled, an effect undone, and an ended run undone only by those who decide about the"
        " payment, as many as must approve it; a cancelled run keeps such effects and says so",
        in_file(
            "e2e/test_authority.py",
            "test_a_lost_payment_is_sent_again_only_when_the_two_agree_who_must_approve_it",
            "test_an_undo_needs_as_many_as_the_payment_that_it_takes_back",
            "test_undo_run_needs_a_proof_for_the_run_that_it_takes_back_and_the_word_of_all_who_must_agree",
            "test_a_cancelled_run_keeps_what_only_named_people_may_undo_and_says_so",
        ),
    ),
    row(
        "authority:run",
        "design 8; issue Authority",
        "limits, pauses and resumptions need somebody whom the policy names, whichever way they come in",
        in_file(
            "e2e/test_authority.py",
            "test_a_strangers_answer_raises_no_limit_that_top_up_would_refuse",
            "test_pausing_and_resuming_need_somebody_whom_the_policy_names",
        ),
    ),
    row(
        "authority:doors",
        "issue Authority Done 1",
        "the page on security names every way into a run, and every proof that does not hold is refused at each",
        in_file(
            "e2e/test_authority.py",
            "test_the_table_of_doors_names_every_way_into_a_run",
            "test_every_proof_that_does_not_hold_is_refused_at_every_door",
        ),
    ),
    row(
        "authority:proofs",
        "design 8; issue Authority",
        "a proof holds in the run and for the request that it was signed for, once, also when its answer is forgotten,"
        " and a stranger's event id does not stand in the way of a verified sender's",
        in_file(
            "e2e/test_authority.py",
            "test_a_proof_holds_in_the_run_and_for_the_request_that_it_was_signed_for_and_once",
            "test_a_used_proof_stays_used_when_its_answer_is_forgotten",
            "test_a_strangers_event_id_does_not_stand_in_the_way_of_the_gateways",
        ),
        in_file("workflows/test_state.py", "test_strangers_do_not_push_out_the_answers_of_verified_senders"),
        in_file("workflows/test_requests.py", "test_the_digest_of_a_request_is_what_it_was_in_version_0_1"),
    ),
    row(
        "authority:audit",
        "issue Authority",
        "an accepted decision is in the store with the first call that it permits, and junk signals cannot push it out",
        in_file("e2e/test_authority.py", "test_junk_signals_do_not_push_a_verified_vote_out_of_the_audit"),
    ),
    row(
        "approval:webhooks",
        "design 8, 22",
        "what becomes of requests and runs is POSTed redacted, signed and in order, and receivers that fail or hang "
        "block neither the run nor each other",
        in_file(
            "e2e/test_webhooks.py",
            "test_a_request_is_told_redacted_and_signed_and_so_is_what_becomes_of_it",
            "test_an_expired_request_and_one_that_a_cancelled_run_leaves_are_told",
            "test_receivers_that_are_down_fail_or_hang_neither_block_the_run_nor_each_other",
        ),
    ),
    row(
        "approval:webhooks-of-no-request",
        "design 8, 22",
        "a call whose answer was lost and a bill above what was reserved are POSTed, with what they are about; what "
        "is POSTed fits the published schema and has no field that it does not name",
        in_file(
            "e2e/test_webhooks.py",
            "test_a_call_whose_answer_was_lost_is_told_also_where_a_check_finds_out_what_became_of_it",
            "test_a_bill_above_what_was_reserved_is_told_with_both_sums",
        ),
    ),
    row(
        "approval:told-to-the-end",
        "design 8, 22",
        "what is asked while a run cannot be closed is told before its end, an undo that people refuse says so, no "
        "activity is given more notices than the server takes, and of a run that Temporal ended the end is told once",
        in_file(
            "e2e/test_webhooks.py",
            "test_what_is_asked_while_a_run_cannot_be_closed_is_told_before_its_end",
            "test_an_undo_that_people_refuse_says_so",
            "test_a_run_that_temporal_ended_is_told_to_have_ended_once_with_what_it_left_open",
            "test_a_run_that_temporal_ended_before_it_asked_anything_is_told_to_have_ended",
        ),
        in_file("workflows/test_notices.py", "test_no_activity_is_given_more_notices_than_the_server_takes"),
    ),
    row(
        "approval:hostile-receivers",
        "issue People",
        "no receiver costs a worker memory, its stop, its other receivers or the threads of its runs, and none sends "
        "it elsewhere",
        in_file("e2e/test_webhooks.py", "test_an_answer_that_never_ends_is_not_read_and_nobody_is_sent_elsewhere"),
        in_file("e2e/test_mail.py", "test_a_mail_server_that_hangs_takes_no_thread_from_the_runs"),
        in_file(
            "store/test_outbox.py",
            "test_a_receiver_that_is_gone_keeps_no_notice_for_ever",
            "test_a_notice_that_only_a_newer_version_can_read_holds_up_nobody_else_and_is_given_up_after_a_day",
            "test_a_receiver_that_hangs_does_not_hold_up_a_worker_that_stops",
        ),
    ),
    row(
        "approval:lost-runs",
        "issue People",
        "requests of runs that Temporal ended, or has forgotten, are closed, also where a later run has the same name; "
        "a run that speaks again is looked at again, and of an undo the end is told where something of it waits",
        in_file(
            "e2e/test_telling.py",
            "test_requests_of_runs_that_temporal_ended_are_closed_and_those_of_others_stay",
            "test_a_run_that_cannot_be_looked_at_keeps_no_other_from_being_told",
        ),
        in_file(
            "store/test_outbox.py",
            "test_a_run_that_speaks_again_after_its_end_was_told_is_looked_at_again",
            "test_the_end_of_an_undo_is_told_once_where_something_of_it_waits",
        ),
    ),
    row(
        "approval:told-apart",
        "issue People",
        "a decision just after people were told of a request breaks no run of a worker that lost its cache",
        in_file(
            "replay/test_replay.py",
            "test_the_commands_are_the_same_where_the_worker_gets_at_once_that_people_were_told_and_a_decision",
        ),
    ),
    row(
        "approval:reminders",
        "issue People",
        "people are reminded while nobody decides, and others may decide once it is asked again",
        in_file("e2e/test_webhooks.py", "test_people_are_reminded_and_then_others_are_asked_too"),
    ),
    row(
        "approval:mail",
        "issue People",
        "whoever may decide is mailed a link, once and without arguments, and a bad address keeps nobody else from it; "
        "whom a request is escalated to is mailed when its time is over and not before, and those who were asked "
        "before are not asked again; what is decided before the mail server takes it is mailed to nobody",
        in_file(
            "e2e/test_mail.py",
            "test_what_was_decided_while_the_mail_server_was_away_is_mailed_to_nobody",
            "test_whoever_may_decide_is_mailed_a_link_and_reminded_and_no_argument_is_in_it",
            "test_whom_a_request_is_escalated_to_is_mailed_when_its_time_is_over_and_nobody_else_is_again",
            "test_an_escalation_after_reminders_asks_who_is_new_and_the_next_reminder_is_for_all",
            "test_who_is_asked_again_because_a_rule_names_nobody_else_is_told_why",
            "test_where_nobody_is_named_those_of_the_settings_are_mailed_and_still_are_after_an_escalation",
            "test_an_address_that_does_not_exist_keeps_nobody_else_from_being_told",
            "test_a_mailbox_that_takes_nothing_brings_nobody_else_a_mail_twice_and_keeps_no_later_one_back",
            "test_settings_of_mail_that_cannot_work_are_refused_by_name",
            "test_only_plain_addresses_are_mailed",
            "test_nobody_is_mailed_whom_only_a_task_names",
        ),
    ),
    row(
        "approval:outbox",
        "design 22; issue People",
        "every notice, of each kind, reaches every receiver at least once and in order, through an hour of silence, "
        "killed senders and lost answers; one that a receiver does not take for 24 hours is given up, and not before",
        in_file(
            "store/test_outbox.py",
            "test_a_receiver_that_is_down_for_an_hour_gets_everything_in_order",
            "test_what_a_killed_sender_had_claimed_is_sent_by_another_one",
            "test_a_lost_answer_brings_the_notice_again_under_the_same_id_and_before_the_next",
            "test_a_notice_is_tried_for_a_day_then_given_up_and_the_next_one_is_tried",
            "test_every_kind_of_notice_reaches_a_webhook_in_order_and_counts_once_through_every_trouble",
            "test_many_senders_at_once_send_each_notice_once",
            "test_a_repeated_write_tells_nothing_twice_and_one_after_a_reset_does",
            "test_old_notices_are_forgotten_unless_somebody_still_waits_for_them",
        ),
        in_file(
            "crash/test_told.py",
            "test_a_worker_that_dies_amid_telling_loses_no_notice_and_mixes_none_up",
        ),
    ),
    row(
        "approval:found",
        "design 22; issue People",
        "the requests of all runs are found by their state and by words, page by page",
        in_file("store/test_outbox.py", "test_requests_are_found_by_state_words_and_page"),
    ),
    row(
        "approval:pause",
        "design 16",
        "a paused run makes no approved call and asks the model nothing until it is resumed, and answers queries "
        "meanwhile",
        in_file(
            "e2e/test_pause.py",
            "test_a_paused_run_makes_no_approved_call_until_it_is_resumed_and_answers_meanwhile",
            "test_a_run_paused_before_a_step_asks_the_model_nothing_until_it_is_resumed",
        ),
    ),
    row(
        "approval:temporal",
        "issue Approvals; issue Done 10",
        "Temporal's own command line decides a request by plain JSON",
        in_file("e2e/test_approvals.py", "test_the_temporal_command_line_decides"),
    ),
    row(
        "approval:early",
        "design 8",
        "a client's decision that reaches the run just before its request opens is tried again, and refused when the"
        " request does not open; a decision that comes just as the run ends is told that it has ended",
        in_file(
            "client/test_run.py",
            "test_a_decision_is_tried_again_while_its_request_is_not_open_yet",
            "test_a_proof_that_was_made_just_before_its_request_opened_is_made_again",
            "test_a_decision_that_comes_just_as_the_run_ends_is_told_that_it_has_ended",
        ),
    ),
    row(
        "approval:elicitation",
        "design 8",
        "a server's question waits for a person, and the call is made once with the answer, or again where the "
        "server is an older one",
        in_file(
            "e2e/test_elicitation.py",
            "test_a_servers_question_waits_for_a_person_and_the_call_is_made_once_with_the_answer",
            "test_an_older_servers_call_is_made_again_on_a_persons_word",
        ),
    ),
    row(
        "approval:lines",
        "issue first hour: approvals that people can read; design 8",
        "a text of several lines is shown as lines, objects with the same names as a table, other long JSON value by "
        "value; whatever an argument says stands behind a bar, and nothing passes for another value",
        in_file(
            "backstay/test_layout.py",
            "test_a_text_of_several_lines_is_shown_as_lines_and_its_own_signs_stay_apart_from_them",
            "test_objects_with_the_same_names_are_a_table",
            "test_other_long_json_has_a_line_for_each_value_and_short_json_stays_as_it_is",
            "test_a_cell_cannot_pass_for_two",
            "test_a_text_that_reads_as_another_value_is_quoted",
            "test_whatever_an_argument_says_its_lines_stand_behind_a_bar_and_names_are_one_name",
        ),
        in_file(
            "e2e/test_shown_requests.py",
            "test_a_text_of_several_lines_is_lines_at_the_terminal_and_in_the_web_ui",
        ),
    ),
    row(
        "approval:changes",
        "issue first hour: approvals that people can read",
        "what a person changes is told value by value and line by line; they edit the arguments as they are, with "
        "nothing clipped or written out",
        in_file("backstay/test_layout.py", "test_a_change_is_told_value_by_value"),
        in_file("cli/test_prompt.py", "test_lines_are_edited_as_lines_and_the_prompt_shows_what_was_changed"),
    ),
    row(
        "approval:of-run",
        "design 22; issue first hour: approvals that people can read",
        "a request says its task, user, session, step and where its run is in the Web UI",
        in_file("e2e/test_shown_requests.py", "test_a_request_says_what_it_is_part_of"),
    ),
    row(
        "approval:rest",
        "issue first hour: approvals that people can read",
        "what a request clips or keeps apart can be read whole",
        in_file("e2e/test_shown_requests.py", "test_what_a_request_does_not_show_can_be_read_whole"),
    ),
    row(
        "approval:bound",
        "issue first hour: approvals that people can read",
        "the client binds an approval to the arguments it was given, of any length; of others it is refused",
        in_file(
            "client/test_run.py",
            "test_an_approval_holds_for_the_arguments_that_were_given_however_long_they_are",
        ),
    ),
    row(
        "elicitation:form",
        "issue first hour: approvals that people can read",
        "two kilobytes of schema are a form at the prompt and for flags; what does not fit is said where it is typed, "
        "and where the answer is accepted",
        in_file(
            "backstay/test_fields.py",
            "test_each_field_says_in_one_line_what_fits",
            "test_what_is_typed_becomes_the_value_of_its_type",
            "test_choices_that_read_as_numbers_are_named_and_never_counted",
            "test_what_cannot_be_read_is_refused_with_what_to_type",
            "test_several_questions_at_once_are_asked_by_their_names_and_one_without_a_form_is_not_asked",
            "test_a_schema_that_is_no_form_is_one_field",
        ),
        in_file(
            "cli/test_forms.py",
            "test_two_kilobytes_of_schema_are_a_form_that_is_checked_where_it_is_typed",
            "test_a_form_is_filled_in_by_flags_and_what_does_not_fit_names_its_field",
            "test_a_person_can_stop_in_the_middle_of_a_form_and_decline",
        ),
    ),
    row(
        "elicitation:fit",
        "issue MCP",
        "an answer that does not fit the form is refused with the name of its field, as an update and as a signal; the "
        "question stays open, and nothing is sent",
        in_file(
            "e2e/test_elicitation.py",
            "test_an_answer_that_does_not_fit_is_refused_by_its_field_and_the_question_stays_open",
        ),
        in_file("toolbox/test_questions.py", "test_what_does_not_fit_the_form_is_named_before_anything_is_sent"),
    ),
    row(
        "elicitation:declined",
        "issue MCP",
        "a rejected question is declined and the model told; what an older server did without an answer stands, "
        "or never happened when it failed",
        in_file(
            "e2e/test_elicitation.py",
            "test_a_rejected_question_is_declined_and_the_model_is_told_what_the_server_did_then",
            "test_what_an_older_server_did_without_an_answer_stands_when_a_person_says_so",
            "test_an_older_server_that_fails_without_an_answer_did_nothing_when_a_person_leaves_it_at_that",
        ),
        in_file("toolbox/test_questions.py", "test_a_declined_question_lets_the_server_do_without"),
    ),
    row(
        "elicitation:read",
        "issue MCP",
        "a question about a call that only reads makes no effect",
        in_file("e2e/test_elicitation.py", "test_a_question_about_a_call_that_only_reads_makes_no_effect"),
    ),
    row(
        "approval:previews",
        "design 22; issue plans",
        "a tool may declare a read-only call that shows what a call would change, and its side effects in words; a "
        "preview gets no secret, never writes, and never stops a request",
        in_file(
            "e2e/test_declared_previews.py",
            "test_people_see_what_a_declared_read_says_of_a_call_and_what_it_changes",
            "test_a_preview_that_fails_says_why_and_stops_nothing",
            "test_a_preview_that_writes_is_never_called",
            "test_the_proposal_of_a_plan_tells_what_is_declared_and_previews_no_unknown_values",
        ),
    ),
    row(
        "approval:rehearsal",
        "design 8",
        "rehearse: the forecast of a plan is approved as a set, and a write that is not as foretold asks; the "
        "workspace is rehearsed on a copy that is thrown away, also after its run was killed",
        in_file(
            "e2e/test_rehearsal.py",
            "test_a_rehearsed_plan_is_approved_by_its_forecast_and_then_runs_without_another_question",
            "test_a_write_that_is_not_as_foretold_is_asked_about_by_itself_and_says_what_differs",
            "test_a_real_call_that_falls_under_another_rule_is_asked_about_and_a_denied_one_is_denied",
            "test_a_plan_of_more_than_a_hundred_steps_is_not_rehearsed",
        ),
        in_file(
            "e2e/test_workspace.py",
            "test_a_workspace_is_rehearsed_on_a_copy_that_is_thrown_away",
            "test_the_copy_of_a_run_that_was_terminated_goes_with_its_claim",
        ),
        in_file(
            "backstay/test_rehearsal_rules.py",
            "test_each_leaf_of_a_simulated_answer_is_a_token_of_its_place",
            "test_a_schema_that_never_ends_is_simulated_in_bounded_size",
            "test_a_call_fits_when_each_token_stands_for_the_real_value_of_whatever_type",
            "test_anything_else_than_the_value_that_a_token_stands_for_does_not_fit",
            "test_a_reference_into_a_simulated_answer_always_brings_a_token_and_into_a_real_one_never",
            "test_a_forecast_is_drawn_in_lines_that_no_argument_can_break_out_of",
        ),
    ),
    row(
        "approval:rehearsal-programs",
        "design 8; design 22",
        "a program is rehearsed and its forecast approved as a set; a call that does not fit asks; a program that "
        "computes with what nobody knows fails before anything was changed",
        in_file(
            "e2e/test_rehearsal.py",
            "test_a_program_is_rehearsed_and_runs_as_it_was_foretold_without_another_question",
            "test_a_forecast_that_people_reject_is_told_to_the_model_and_nothing_of_it_is_made",
            "test_every_set_of_people_that_decides_about_a_part_of_a_forecast_must_approve",
            "test_a_program_call_that_falls_under_other_people_once_its_values_are_known_is_asked_about_by_them",
            "test_a_text_of_a_server_that_looks_like_a_token_stands_for_nothing",
            "test_a_program_call_that_is_not_as_foretold_is_asked_about_by_itself",
            "test_a_program_that_goes_elsewhere_than_foretold_asks_about_each_write_that_was_not_foretold",
            "test_a_program_that_only_reads_runs_once_and_nobody_is_asked",
            "test_a_program_that_computes_with_a_simulated_value_fails_in_the_rehearsal_and_says_so",
            "test_no_more_than_a_hundred_calls_of_a_program_are_rehearsed",
            "test_an_answer_without_a_schema_is_one_value_and_a_program_takes_parts_out_of_it",
        ),
        in_file(
            "e2e/test_continuing.py",
            "test_what_is_rehearsed_goes_on_where_it_stood_and_is_held_to_its_forecast",
        ),
        in_file("cli/test_plans.py", "test_run_rehearses_and_shows_what_would_be_done_before_anything_is"),
    ),
    row(
        "approval:rehearsal-random",
        "design 8; design 22; issue plans",
        "random plans and programs over a mailbox and a workspace: no write while they are rehearsed, the real run "
        "equals the forecast but for tokens, and every write that the changed world changes is asked about",
        in_file(
            "e2e/test_rehearsed_cases.py",
            "test_random_plans_and_programs_do_what_was_foretold_and_ask_about_all_else",
        ),
        in_file("soak/test_rehearsals.py", "test_every_write_is_as_foretold_or_asked_about"),
    ),
    row(
        "approval:remember-scopes",
        "design 8; design 22; seed 002 §6; issue first hour",
        "a decision is remembered for the run, its session, always or never, also across a continued run; a later run "
        "that obeys it says so, and with 78 tools that all ask there is a way out",
        in_file(
            "e2e/test_remember.py",
            "test_what_is_remembered_for_the_run_is_not_asked_again_in_it_and_asked_in_the_next",
            "test_always_holds_in_later_runs_of_the_same_user_when_the_policy_lets_the_person_accept",
            "test_for_the_session_holds_in_runs_of_that_session_only",
            "test_never_denies_in_the_run_and_in_later_ones",
            "test_a_plan_is_remembered_as_a_whole_but_not_arguments_that_only_refer_to_results",
            "test_of_seventy_eight_tools_that_all_ask_none_asks_again_once_it_is_remembered",
            "test_a_decision_that_cannot_be_remembered_so_is_refused_and_the_request_stays_open",
        ),
        in_file(
            "e2e/test_continuing.py",
            "test_what_is_remembered_for_the_run_holds_in_its_next_execution",
            "test_a_request_that_waits_across_a_switch_can_be_remembered",
        ),
    ),
    row(
        "approval:remember-authority",
        "design 8; design 22",
        "who may accept lines is the policy's word, today's included, as many as it says; what others say waits for "
        "whoever can write the policy, and a stranger widens nothing",
        in_file(
            "e2e/test_remember.py",
            "test_a_stranger_widens_nothing",
            "test_without_accepting_a_line_holds_for_the_run_and_waits_for_an_operator",
            "test_where_rules_name_people_only_they_have_a_decision_remembered_for_the_run",
            "test_two_who_must_accept_say_so_in_two_runs_at_once",
            "test_who_is_no_longer_named_when_the_line_is_kept_accepts_nothing",
        ),
        in_file(
            "store/test_accepted_lines.py",
            "test_two_workers_that_count_two_people_at_once_let_a_line_hold_once",
            "test_a_vote_counts_once_a_strangers_word_resets_none_and_a_lost_right_counts_no_more",
            "test_only_the_lines_of_the_user_and_session_are_handed_out_and_only_in_time",
            "test_a_user_has_so_many_lines_and_no_more",
            "test_a_removed_line_does_not_come_back_with_the_decision_that_made_it_but_with_another",
        ),
        in_file(
            "backstay/test_accepted.py",
            "test_an_accepting_that_cannot_work_is_refused_by_field",
            "test_a_task_says_nothing_about_who_accepts",
        ),
    ),
    row(
        "approval:flood",
        "design 11; issue Endless",
        "strangers' signals, updates and pauses, hundreds of them, leave the one real approval of a payment standing: "
        "it counts once, by update or by signal, the audit holds it, the run ends and nothing is undone",
        in_file(
            "e2e/test_flood.py",
            "test_amid_strangers_signals_and_updates_the_one_approval_counts_once",
            "test_three_hundred_pauses_of_strangers_hold_no_run_and_shut_out_no_approval",
        ),
    ),
    row(
        "approval:flood-limits",
        "design 11; issue Endless",
        "more than the server takes in one execution, 10,000 signals, 10,000 updates, 4,200 pauses or 27 signals of "
        "2 MB, neither ends the run nor shuts the real approval out",
        in_file("e2e/test_flood.py", "test_twenty_seven_signals_of_two_megabytes_one_after_the_other_end_no_run"),
        in_file(
            "soak/test_flood.py",
            "test_amid_ten_thousand_signals_and_updates_of_strangers_the_one_approval_counts_once",
            "test_thousands_of_pauses_of_strangers_shut_out_no_approval",
        ),
    ),
    row(
        "s002:dry-run",
        "seed 002 §1",
        "dry_run shows what a plan would do",
        in_file(
            "e2e/test_rehearsal.py",
            "test_a_dry_run_ends_without_writes_and_says_what_would_have_happened",
            "test_a_person_approves_nothing_but_a_dry_run_of_a_models_plan",
        ),
    ),
    row(
        "s002:learning",
        "seed 002 §2",
        "the engine learns from approvals",
        deferred=MEMORY,
    ),
)
