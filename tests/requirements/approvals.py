"""Requests to people: what they show, who may decide, and what a decision does."""

from tests.requirements.requirement import MEMORY, in_file, row

ROWS = (
    row(
        "approval:facts",
        "design 8",
        "a request says what is called, its safety, and how it is undone or that it cannot be",
        in_file(
            "e2e/approvals/test_approvals_hostile.py",
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
        "arguments are shown as strict JSON within a limit, however deep or huge they are",
        in_file(
            "backstay/test_shown.py",
            "test_arguments_are_shown_as_strict_json_within_the_limit",
            "test_deep_and_huge_values_are_shown_without_failing",
        ),
    ),
    row(
        "approval:alike-names",
        "design 8",
        "names that look alike do not hide each other",
        in_file("backstay/test_shown.py", "test_names_that_look_alike_do_not_hide_each_other"),
    ),
    row(
        "approval:left-out",
        "design 8",
        "what is left out of arguments is counted, and no argument can pass for the count",
        in_file(
            "backstay/test_shown.py",
            "test_what_is_left_out_of_arguments_is_counted",
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
        "letters of another script in a word, and copies of letters, are written out",
        in_file("backstay/test_shown.py", "test_a_letter_of_another_script_is_written_out_in_a_word"),
    ),
    row(
        "lookalikes:marks",
        "issue What people see",
        "marks that strike out or change nothing that can be seen are written out",
        in_file(
            "backstay/test_shown.py",
            "test_marks_that_strike_out_or_change_nothing_that_can_be_seen_are_written_out",
        ),
    ),
    row(
        "lookalikes:honest",
        "issue What people see",
        "honest text in any script stays as it is",
        in_file("backstay/test_shown.py", "test_honest_text_in_any_script_is_not_marked"),
    ),
    row(
        "lookalikes:once",
        "issue What people see",
        "a text that is shown twice is marked once",
        in_file("backstay/test_shown.py", "test_a_text_that_is_shown_twice_is_marked_once"),
    ),
    row(
        "approval:whole",
        "issue What people see",
        "in the Web UI and at a terminal every argument of a call is shown whole or counted as missing",
        in_file(
            "e2e/approvals/test_shown_requests.py",
            "test_every_argument_is_shown_whole_however_long_those_before_it_are",
            "test_what_is_not_shown_of_a_call_is_counted",
            "test_a_long_text_to_which_the_request_only_refers_is_counted",
        ),
    ),
    row(
        "whole:batch",
        "issue What people see",
        "a batch says which calls it does not show",
        in_file("e2e/approvals/test_shown_requests.py", "test_a_batch_says_what_it_does_not_show"),
    ),
    row(
        "whole:query",
        "issue What people see",
        "the answer of the query stays small, however much waits",
        in_file("e2e/approvals/test_shown_requests.py", "test_the_answer_of_the_query_stays_small_however_much_waits"),
    ),
    row(
        "approval:commands",
        "issue What people see",
        "each command that decides a request carries the digest of what is shown, and a hostile id in it is one "
        "harmless word for a shell",
        in_file(
            "e2e/approvals/test_shown_requests.py",
            "test_each_command_carries_the_digest_of_what_is_shown",
            "test_a_hostile_id_is_harmless_in_every_command_that_is_shown",
        ),
        in_file("backstay/test_shown.py", "test_words_for_a_shell_are_one_visible_line_and_mean_the_text"),
    ),
    row(
        "approval:masked",
        "issue What people see",
        "a request with masked values says once what the masks stand for",
        in_file("e2e/approvals/test_shown_requests.py", "test_masked_values_are_explained_once_in_a_request"),
    ),
    row(
        "approval:hostile",
        "issue Done 6",
        "bidi signs, Markdown and fake commands are shown as one harmless line wherever people look, and decided "
        "as they are",
        in_file(
            "e2e/approvals/test_approvals_hostile.py", "test_hostile_text_is_shown_as_one_harmless_line_wherever_people_look"
        ),
    ),
    row(
        "approval:clipped",
        "design 8",
        "a request too long to show is approved only with the digest of all of it",
        in_file(
            "e2e/approvals/test_approvals_hostile.py",
            "test_a_request_too_long_to_show_is_approved_only_with_the_digest_of_all_of_it",
        ),
    ),
    row(
        "approval:verdicts",
        "design 8; issue Done 6",
        "a decision that does not fit the request, a stale digest included, is refused by field, and the request "
        "stays open",
        in_file(
            "e2e/approvals/test_approvals.py", "test_what_does_not_fit_the_request_is_refused_by_field_and_the_request_stays_open"
        ),
        in_file("e2e/loop/test_bad_input.py", "test_decisions_that_are_not_valid_are_refused_and_the_request_stays"),
    ),
    row(
        "approval:repeat",
        "issue Done 6",
        "a decision repeated under its event id gets the stored answer, and any other second decision is refused",
        in_file(
            "e2e/approvals/test_approvals.py",
            "test_a_decision_repeated_under_its_event_id_gets_the_stored_answer_and_no_other_decision_does",
        ),
    ),
    row(
        "approval:twice-at-once",
        "issue Done 6",
        "the same decision arriving twice at once is one decision",
        in_file("e2e/approvals/test_approvals.py", "test_the_same_event_arriving_twice_at_once_is_one_decision"),
    ),
    row(
        "approval:partial",
        "issue Done 6; design 3; seed 002 §6",
        "calls of a batch are asked about in one request, decided one by one and answered in order",
        in_file("e2e/approvals/test_approvals.py", "test_calls_of_a_batch_are_decided_one_by_one_in_one_request"),
    ),
    row(
        "approval:separate",
        "design 8",
        "calls that different people decide about are asked about at the same time, and a rejection with stop "
        "withdraws the others",
        in_file(
            "e2e/approvals/test_approvals_proof.py",
            "test_calls_that_different_people_decide_about_are_asked_about_at_the_same_time",
            "test_a_rejection_with_stop_withdraws_what_else_is_asked",
        ),
    ),
    row(
        "approval:answer",
        "design 9",
        "a rejected call is an answer to the model, which may go on",
        in_file("e2e/approvals/test_approvals.py", "test_a_rejection_is_an_answer_to_the_model_which_may_go_on"),
    ),
    row(
        "approval:stop",
        "design 8",
        "a rejection with stop ends the run as rejected when nothing was done",
        in_file("e2e/approvals/test_approvals.py", "test_a_rejection_with_stop_ends_the_run_as_rejected_when_nothing_was_done"),
    ),
    row(
        "approval:modify",
        "design 8",
        "a changed call is validated and ruled again",
        in_file("e2e/approvals/test_approvals.py", "test_a_changed_call_is_validated_and_ruled_again"),
    ),
    row(
        "approval:modify-redacted",
        "issue Done 6",
        "a changed call keeps what the person could not see, secrets and long texts included",
        in_file("e2e/approvals/test_approvals.py", "test_a_changed_call_keeps_what_the_person_could_not_see"),
    ),
    row(
        "approval:expiry",
        "design 8",
        "an expired request rejects, fails or asks once more, as the rule says, and a decision after it is refused",
        in_file("e2e/approvals/test_approvals.py", "test_expiry_rejects_fails_or_asks_once_more_as_the_rule_says"),
    ),
    row(
        "approval:proof",
        "design 8",
        "a proof holds for exactly what was signed, for a day at most",
        in_file(
            "backstay/test_proof.py",
            "test_a_proof_holds_for_exactly_what_was_signed",
            "test_a_proof_lives_for_a_day_at_most",
        ),
    ),
    row(
        "approval:no-proof",
        "design 8",
        "nothing else is taken for a proof, and what is malformed is refused with the reason",
        in_file(
            "backstay/test_proof.py",
            "test_what_is_no_proof_is_malformed",
            "test_no_text_is_taken_for_a_proof",
        ),
    ),
    row(
        "approval:no-key",
        "design 8",
        "without a key nothing is signed and no proof holds",
        in_file("backstay/test_proof.py", "test_without_a_key_nothing_is_signed_and_nothing_holds"),
    ),
    row(
        "approval:proof-decides",
        "design 8",
        "only a proof for exactly this decision verifies who decided, and one that is not needed must hold all "
        "the same",
        in_file(
            "e2e/approvals/test_approvals_proof.py",
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
        in_file("e2e/approvals/test_approvals_proof.py", "test_a_verified_stranger_and_an_unverified_approver_are_both_refused"),
    ),
    row(
        "approval:signal",
        "design 8",
        "a signal needs its own proof, and a stranger's signal is an event and nothing else",
        in_file(
            "e2e/approvals/test_approvals_proof.py",
            "test_a_signal_needs_its_own_proof_and_a_strangers_signal_is_an_event_and_nothing_else",
        ),
    ),
    row(
        "approval:quorum",
        "design 8",
        "a quorum is so many verified persons, and one verified rejection decides it",
        in_file(
            "e2e/approvals/test_approvals_proof.py",
            "test_a_quorum_is_so_many_verified_persons",
            "test_one_verified_rejection_decides_a_quorum",
        ),
    ),
    row(
        "approval:self",
        "issue Done 6",
        "nobody approves a run of their own where the rule forbids it",
        in_file(
            "e2e/approvals/test_approvals_proof.py",
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
            "e2e/approvals/test_approvals_proof.py",
            "test_where_a_rule_names_persons_topping_up_and_undoing_need_a_proof_too_and_each_proof_works_once",
        ),
    ),
    row(
        "authority:effects",
        "design 8; issue Authority",
        "a lost payment is settled only by those who must approve it, as many as they are",
        in_file(
            "e2e/approvals/test_authority.py",
            "test_a_lost_payment_is_sent_again_only_when_the_two_agree_who_must_approve_it",
        ),
    ),
    row(
        "authority:undo",
        "design 8; issue Authority",
        "an effect is undone only by as many as must approve the payment that it takes back",
        in_file("e2e/approvals/test_authority.py", "test_an_undo_needs_as_many_as_the_payment_that_it_takes_back"),
    ),
    row(
        "authority:undo-run",
        "design 8; issue Authority",
        "an ended run is undone only with a proof for that run and the word of all who must agree",
        in_file(
            "e2e/approvals/test_authority.py",
            "test_undo_run_needs_a_proof_for_the_run_that_it_takes_back_and_the_word_of_all_who_must_agree",
        ),
    ),
    row(
        "authority:cancelled",
        "design 8; issue Authority",
        "a cancelled run keeps what only named people may undo, and says so",
        in_file("e2e/approvals/test_authority.py", "test_a_cancelled_run_keeps_what_only_named_people_may_undo_and_says_so"),
    ),
    row(
        "authority:run",
        "design 8; issue Authority",
        "limits, pauses and resumptions need somebody whom the policy names, whichever way they come in",
        in_file(
            "e2e/approvals/test_authority.py",
            "test_a_strangers_answer_raises_no_limit_that_top_up_would_refuse",
            "test_pausing_and_resuming_need_somebody_whom_the_policy_names",
        ),
    ),
    row(
        "authority:doors",
        "issue Authority Done 1",
        "the page on security names every way into a run, and every proof that does not hold is refused at each",
        in_file(
            "e2e/approvals/test_authority.py",
            "test_the_table_of_doors_names_every_way_into_a_run",
            "test_every_proof_that_does_not_hold_is_refused_at_every_door",
        ),
    ),
    row(
        "authority:proofs",
        "design 8; issue Authority",
        "a proof holds in the run and for the request that it was signed for, and once, also when its answer is "
        "forgotten",
        in_file(
            "e2e/approvals/test_authority.py",
            "test_a_proof_holds_in_the_run_and_for_the_request_that_it_was_signed_for_and_once",
            "test_a_used_proof_stays_used_when_its_answer_is_forgotten",
        ),
    ),
    row(
        "proofs:strangers",
        "design 8; issue Authority",
        "a stranger's event id does not stand in the way of a verified sender's, and strangers push out none of "
        "their answers",
        in_file("e2e/approvals/test_authority.py", "test_a_strangers_event_id_does_not_stand_in_the_way_of_the_gateways"),
        in_file("workflows/test_state.py", "test_strangers_do_not_push_out_the_answers_of_verified_senders"),
    ),
    row(
        "proofs:digest",
        "design 8; issue Authority",
        "the digest of a request is what it was in version 0.1",
        in_file("workflows/test_requests.py", "test_the_digest_of_a_request_is_what_it_was_in_version_0_1"),
    ),
    row(
        "authority:audit",
        "issue Authority",
        "an accepted decision is in the store with the first call that it permits, and junk signals cannot push it out",
        in_file("e2e/approvals/test_authority.py", "test_junk_signals_do_not_push_a_verified_vote_out_of_the_audit"),
    ),
    row(
        "approval:webhooks",
        "design 8, 22",
        "what becomes of requests and runs is POSTed redacted, signed and in order, and receivers that fail or hang "
        "block neither the run nor each other",
        in_file(
            "e2e/approvals/test_webhooks.py",
            "test_a_request_is_told_redacted_and_signed_and_so_is_what_becomes_of_it",
            "test_an_expired_request_and_one_that_a_cancelled_run_leaves_are_told",
            "test_receivers_that_are_down_fail_or_hang_neither_block_the_run_nor_each_other",
        ),
    ),
    row(
        "approval:webhooks-of-no-request",
        "design 8, 22",
        "a call whose answer was lost is POSTed with what it is about, also where a check finds out what became of it",
        in_file(
            "e2e/approvals/test_webhooks.py",
            "test_a_call_whose_answer_was_lost_is_told_also_where_a_check_finds_out_what_became_of_it",
        ),
    ),
    row(
        "webhooks:overshot",
        "design 8, 22",
        "a bill above what was reserved is POSTed with both sums, in a notice that has no field that the published "
        "schema does not name",
        in_file("e2e/approvals/test_webhooks.py", "test_a_bill_above_what_was_reserved_is_told_with_both_sums"),
    ),
    row(
        "approval:told-to-the-end",
        "design 8, 22",
        "what is asked while a run cannot be closed is told before its end",
        in_file("e2e/approvals/test_webhooks.py", "test_what_is_asked_while_a_run_cannot_be_closed_is_told_before_its_end"),
    ),
    row(
        "told:undo-refused",
        "design 8, 22",
        "an undo that people refuse says so",
        in_file("e2e/approvals/test_webhooks.py", "test_an_undo_that_people_refuse_says_so"),
    ),
    row(
        "told:terminated",
        "design 8, 22",
        "of a run that Temporal ended the end is told once with what it left open, also where it had not asked "
        "anything",
        in_file(
            "e2e/approvals/test_webhooks.py",
            "test_a_run_that_temporal_ended_is_told_to_have_ended_once_with_what_it_left_open",
            "test_a_run_that_temporal_ended_before_it_asked_anything_is_told_to_have_ended",
        ),
    ),
    row(
        "told:batch",
        "design 8, 22",
        "no activity is given more notices than the server takes",
        in_file("workflows/test_notices.py", "test_no_activity_is_given_more_notices_than_the_server_takes"),
    ),
    row(
        "approval:hostile-receivers",
        "issue People",
        "no receiver costs a worker memory, its stop, its other receivers or the threads of its runs, and none sends "
        "it elsewhere",
        in_file("e2e/approvals/test_webhooks.py", "test_an_answer_that_never_ends_is_not_read_and_nobody_is_sent_elsewhere"),
        in_file("e2e/approvals/test_mail.py", "test_a_mail_server_that_hangs_takes_no_thread_from_the_runs"),
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
        "requests of runs that Temporal ended, or has forgotten, are closed, also where a later run has the same name",
        in_file("e2e/approvals/test_telling.py", "test_requests_of_runs_that_temporal_ended_are_closed_and_those_of_others_stay"),
    ),
    row(
        "lost:looked-at",
        "issue People",
        "a run that cannot be looked at keeps no other from being told",
        in_file("e2e/approvals/test_telling.py", "test_a_run_that_cannot_be_looked_at_keeps_no_other_from_being_told"),
    ),
    row(
        "lost:speaks-again",
        "issue People",
        "a run that speaks again after its end was told is looked at again",
        in_file("store/test_outbox.py", "test_a_run_that_speaks_again_after_its_end_was_told_is_looked_at_again"),
    ),
    row(
        "lost:undo",
        "issue People",
        "the end of an undo is told once where something of it waits",
        in_file("store/test_outbox.py", "test_the_end_of_an_undo_is_told_once_where_something_of_it_waits"),
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
        in_file("e2e/approvals/test_webhooks.py", "test_people_are_reminded_and_then_others_are_asked_too"),
    ),
    row(
        "approval:mail",
        "issue People",
        "what is decided before the mail server takes it is mailed to nobody",
        in_file("e2e/approvals/test_mail.py", "test_what_was_decided_while_the_mail_server_was_away_is_mailed_to_nobody"),
    ),
    row(
        "mail:link",
        "issue People",
        "whoever may decide is mailed a link once and reminded, and no argument is in the mail",
        in_file("e2e/approvals/test_mail.py", "test_whoever_may_decide_is_mailed_a_link_and_reminded_and_no_argument_is_in_it"),
    ),
    row(
        "mail:escalated",
        "issue People",
        "whom a request is escalated to is mailed when its time is over and not before, and those who were asked "
        "before are not asked again",
        in_file(
            "e2e/approvals/test_mail.py",
            "test_whom_a_request_is_escalated_to_is_mailed_when_its_time_is_over_and_nobody_else_is_again",
        ),
    ),
    row(
        "mail:after-reminders",
        "issue People",
        "an escalation after reminders asks who is new, and the next reminder is for all",
        in_file(
            "e2e/approvals/test_mail.py",
            "test_an_escalation_after_reminders_asks_who_is_new_and_the_next_reminder_is_for_all",
        ),
    ),
    row(
        "mail:again",
        "issue People",
        "who is asked again because a rule names nobody else is told why",
        in_file("e2e/approvals/test_mail.py", "test_who_is_asked_again_because_a_rule_names_nobody_else_is_told_why"),
    ),
    row(
        "mail:settings-people",
        "issue People",
        "where nobody is named those of the settings are mailed, and still are after an escalation",
        in_file(
            "e2e/approvals/test_mail.py",
            "test_where_nobody_is_named_those_of_the_settings_are_mailed_and_still_are_after_an_escalation",
        ),
    ),
    row(
        "mail:bad-address",
        "issue People",
        "a bad address keeps nobody else from being told",
        in_file("e2e/approvals/test_mail.py", "test_an_address_that_does_not_exist_keeps_nobody_else_from_being_told"),
    ),
    row(
        "mail:full",
        "issue People",
        "a mailbox that takes nothing brings nobody else a mail twice and keeps no later one back",
        in_file(
            "e2e/approvals/test_mail.py",
            "test_a_mailbox_that_takes_nothing_brings_nobody_else_a_mail_twice_and_keeps_no_later_one_back",
        ),
    ),
    row(
        "mail:refused",
        "issue People",
        "settings of mail that cannot work are refused by name",
        in_file("e2e/approvals/test_mail.py", "test_settings_of_mail_that_cannot_work_are_refused_by_name"),
    ),
    row(
        "mail:plain",
        "issue People",
        "only plain addresses are mailed",
        in_file("e2e/approvals/test_mail.py", "test_only_plain_addresses_are_mailed"),
    ),
    row(
        "mail:of-task",
        "issue People",
        "nobody is mailed whom only a task names",
        in_file("e2e/approvals/test_mail.py", "test_nobody_is_mailed_whom_only_a_task_names"),
    ),
    row(
        "approval:outbox",
        "design 22; issue People",
        "a receiver that is down for an hour gets every notice in order",
        in_file("store/test_outbox.py", "test_a_receiver_that_is_down_for_an_hour_gets_everything_in_order"),
    ),
    row(
        "outbox:killed",
        "design 22; issue People",
        "what a killed sender had claimed is sent by another one, and a worker that dies amid telling loses no "
        "notice and mixes none up",
        in_file("store/test_outbox.py", "test_what_a_killed_sender_had_claimed_is_sent_by_another_one"),
        in_file("crash/test_told.py", "test_a_worker_that_dies_amid_telling_loses_no_notice_and_mixes_none_up"),
    ),
    row(
        "outbox:lost-answer",
        "design 22; issue People",
        "a lost answer brings the notice again under the same id and before the next",
        in_file(
            "store/test_outbox.py",
            "test_a_lost_answer_brings_the_notice_again_under_the_same_id_and_before_the_next",
        ),
    ),
    row(
        "outbox:given-up",
        "design 22; issue People",
        "a notice that a receiver does not take for 24 hours is given up, and not before, and the next one is tried",
        in_file("store/test_outbox.py", "test_a_notice_is_tried_for_a_day_then_given_up_and_the_next_one_is_tried"),
    ),
    row(
        "outbox:kinds",
        "design 22; issue People",
        "every kind of notice reaches a receiver in order and counts once through every trouble",
        in_file(
            "store/test_outbox.py",
            "test_every_kind_of_notice_reaches_a_webhook_in_order_and_counts_once_through_every_trouble",
        ),
    ),
    row(
        "outbox:senders",
        "design 22; issue People",
        "many senders at once send each notice once",
        in_file("store/test_outbox.py", "test_many_senders_at_once_send_each_notice_once"),
    ),
    row(
        "outbox:written-again",
        "design 22; issue People",
        "a repeated write tells nothing twice, and one after a reset does",
        in_file("store/test_outbox.py", "test_a_repeated_write_tells_nothing_twice_and_one_after_a_reset_does"),
    ),
    row(
        "outbox:forgotten",
        "design 22; issue People",
        "old notices are forgotten unless somebody still waits for them",
        in_file("store/test_outbox.py", "test_old_notices_are_forgotten_unless_somebody_still_waits_for_them"),
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
            "e2e/loop/test_pause.py",
            "test_a_paused_run_makes_no_approved_call_until_it_is_resumed_and_answers_meanwhile",
            "test_a_run_paused_before_a_step_asks_the_model_nothing_until_it_is_resumed",
        ),
    ),
    row(
        "approval:temporal",
        "issue Approvals; issue Done 10",
        "Temporal's own command line decides a request by plain JSON",
        in_file("e2e/approvals/test_approvals.py", "test_the_temporal_command_line_decides"),
    ),
    row(
        "approval:early",
        "design 8",
        "a client's decision that reaches the run just before its request opens is tried again, and refused when the "
        "request does not open",
        in_file("client/test_run.py", "test_a_decision_is_tried_again_while_its_request_is_not_open_yet"),
    ),
    row(
        "approval:early-proof",
        "design 8",
        "a proof that was made just before its request opened is made again",
        in_file("client/test_run.py", "test_a_proof_that_was_made_just_before_its_request_opened_is_made_again"),
    ),
    row(
        "approval:at-the-end",
        "design 8",
        "a decision that comes just as the run ends is told that it has ended",
        in_file("client/test_run.py", "test_a_decision_that_comes_just_as_the_run_ends_is_told_that_it_has_ended"),
    ),
    row(
        "approval:elicitation",
        "design 8",
        "a server's question waits for a person, and the call is made once with the answer, or again where the "
        "server is an older one",
        in_file(
            "e2e/approvals/test_elicitation.py",
            "test_a_servers_question_waits_for_a_person_and_the_call_is_made_once_with_the_answer",
            "test_an_older_servers_call_is_made_again_on_a_persons_word",
        ),
    ),
    row(
        "approval:lines",
        "issue first hour: approvals that people can read; design 8",
        "a text of several lines is shown as lines, at the terminal and in the Web UI, and its own signs stay apart "
        "from them",
        in_file(
            "backstay/test_layout.py",
            "test_a_text_of_several_lines_is_shown_as_lines_and_its_own_signs_stay_apart_from_them",
        ),
        in_file(
            "e2e/approvals/test_shown_requests.py",
            "test_a_text_of_several_lines_is_lines_at_the_terminal_and_in_the_web_ui",
        ),
    ),
    row(
        "approval:tables",
        "issue first hour: approvals that people can read; design 8",
        "objects with the same names are shown as a table, in which no cell can pass for two",
        in_file(
            "backstay/test_layout.py",
            "test_objects_with_the_same_names_are_a_table",
            "test_a_cell_cannot_pass_for_two",
        ),
    ),
    row(
        "approval:long-json",
        "issue first hour: approvals that people can read; design 8",
        "other long JSON is shown value by value, and short JSON stays as it is",
        in_file(
            "backstay/test_layout.py",
            "test_other_long_json_has_a_line_for_each_value_and_short_json_stays_as_it_is",
        ),
    ),
    row(
        "approval:quoted",
        "issue first hour: approvals that people can read; design 8",
        "a text that reads as another value is quoted",
        in_file("backstay/test_layout.py", "test_a_text_that_reads_as_another_value_is_quoted"),
    ),
    row(
        "approval:bar",
        "issue first hour: approvals that people can read; design 8",
        "whatever an argument says stands behind a bar, and its name is one name",
        in_file(
            "backstay/test_layout.py",
            "test_whatever_an_argument_says_its_lines_stand_behind_a_bar_and_names_are_one_name",
        ),
    ),
    row(
        "approval:changes",
        "issue first hour: approvals that people can read",
        "what a person changes is told value by value",
        in_file("backstay/test_layout.py", "test_a_change_is_told_value_by_value"),
    ),
    row(
        "approval:edited-lines",
        "issue first hour: approvals that people can read",
        "lines are edited as lines, with nothing clipped or written out, and the prompt shows what was changed",
        in_file("cli/test_prompt.py", "test_lines_are_edited_as_lines_and_the_prompt_shows_what_was_changed"),
    ),
    row(
        "approval:of-run",
        "design 22; issue first hour: approvals that people can read",
        "a request says its task, user, session, step and where its run is in the Web UI",
        in_file("e2e/approvals/test_shown_requests.py", "test_a_request_says_what_it_is_part_of"),
    ),
    row(
        "approval:rest",
        "issue first hour: approvals that people can read",
        "what a request clips or keeps apart can be read whole",
        in_file("e2e/approvals/test_shown_requests.py", "test_what_a_request_does_not_show_can_be_read_whole"),
    ),
    row(
        "approval:bound",
        "issue first hour: approvals that people can read",
        "the client binds an approval to the arguments that it was given, however long they are, and an approval of "
        "others is refused",
        in_file("client/test_run.py", "test_an_approval_holds_for_the_arguments_that_were_given_however_long_they_are"),
    ),
    row(
        "elicitation:form",
        "issue first hour: approvals that people can read",
        "two kilobytes of schema are a form at the prompt, checked where it is typed",
        in_file("cli/test_forms.py", "test_two_kilobytes_of_schema_are_a_form_that_is_checked_where_it_is_typed"),
    ),
    row(
        "elicitation:fields",
        "issue first hour: approvals that people can read",
        "each field of a form says in one line what fits",
        in_file("backstay/test_fields.py", "test_each_field_says_in_one_line_what_fits"),
    ),
    row(
        "elicitation:typed",
        "issue first hour: approvals that people can read",
        "what is typed becomes the value of its type, and choices that read as numbers are named and never counted",
        in_file(
            "backstay/test_fields.py",
            "test_what_is_typed_becomes_the_value_of_its_type",
            "test_choices_that_read_as_numbers_are_named_and_never_counted",
        ),
    ),
    row(
        "elicitation:unread",
        "issue first hour: approvals that people can read",
        "what cannot be read is refused with what to type",
        in_file("backstay/test_fields.py", "test_what_cannot_be_read_is_refused_with_what_to_type"),
    ),
    row(
        "elicitation:several",
        "issue first hour: approvals that people can read",
        "several questions at once are asked by their names, and one without a form is not asked",
        in_file(
            "backstay/test_fields.py",
            "test_several_questions_at_once_are_asked_by_their_names_and_one_without_a_form_is_not_asked",
        ),
    ),
    row(
        "elicitation:no-form",
        "issue first hour: approvals that people can read",
        "a schema that is no form is one field",
        in_file("backstay/test_fields.py", "test_a_schema_that_is_no_form_is_one_field"),
    ),
    row(
        "elicitation:flags",
        "issue first hour: approvals that people can read",
        "a form is filled in by flags, and what does not fit names its field",
        in_file("cli/test_forms.py", "test_a_form_is_filled_in_by_flags_and_what_does_not_fit_names_its_field"),
    ),
    row(
        "elicitation:stopped",
        "issue first hour: approvals that people can read",
        "a person can stop in the middle of a form and decline",
        in_file("cli/test_forms.py", "test_a_person_can_stop_in_the_middle_of_a_form_and_decline"),
    ),
    row(
        "elicitation:fit",
        "issue MCP",
        "an answer that does not fit the form is refused with the name of its field, as an update and as a signal, "
        "and the question stays open",
        in_file(
            "e2e/approvals/test_elicitation.py",
            "test_an_answer_that_does_not_fit_is_refused_by_its_field_and_the_question_stays_open",
        ),
    ),
    row(
        "elicitation:nothing-sent",
        "issue MCP",
        "what does not fit the form is named before anything is sent to the server",
        in_file("toolbox/test_questions.py", "test_what_does_not_fit_the_form_is_named_before_anything_is_sent"),
    ),
    row(
        "elicitation:declined",
        "issue MCP",
        "a rejected question is declined, and the model is told what the server did then",
        in_file(
            "e2e/approvals/test_elicitation.py",
            "test_a_rejected_question_is_declined_and_the_model_is_told_what_the_server_did_then",
        ),
        in_file("toolbox/test_questions.py", "test_a_declined_question_lets_the_server_do_without"),
    ),
    row(
        "elicitation:older-stands",
        "issue MCP",
        "what an older server did without an answer stands when a person says so",
        in_file(
            "e2e/approvals/test_elicitation.py",
            "test_what_an_older_server_did_without_an_answer_stands_when_a_person_says_so",
        ),
    ),
    row(
        "elicitation:older-failed",
        "issue MCP",
        "an older server that fails without an answer did nothing when a person leaves it at that",
        in_file(
            "e2e/approvals/test_elicitation.py",
            "test_an_older_server_that_fails_without_an_answer_did_nothing_when_a_person_leaves_it_at_that",
        ),
    ),
    row(
        "elicitation:read",
        "issue MCP",
        "a question about a call that only reads makes no effect",
        in_file("e2e/approvals/test_elicitation.py", "test_a_question_about_a_call_that_only_reads_makes_no_effect"),
    ),
    row(
        "approval:previews",
        "design 22; issue plans",
        "a tool may declare a read-only call that shows what a call would change, and its side effects in words",
        in_file(
            "e2e/approvals/test_declared_previews.py",
            "test_people_see_what_a_declared_read_says_of_a_call_and_what_it_changes",
        ),
    ),
    row(
        "previews:failed",
        "design 22; issue plans",
        "a preview that fails says why and stops no request",
        in_file("e2e/approvals/test_declared_previews.py", "test_a_preview_that_fails_says_why_and_stops_nothing"),
    ),
    row(
        "previews:writing",
        "design 22; issue plans",
        "a preview that writes is never called",
        in_file("e2e/approvals/test_declared_previews.py", "test_a_preview_that_writes_is_never_called"),
    ),
    row(
        "previews:plan",
        "design 22; issue plans",
        "the proposal of a plan tells what is declared, and previews no unknown values",
        in_file(
            "e2e/approvals/test_declared_previews.py",
            "test_the_proposal_of_a_plan_tells_what_is_declared_and_previews_no_unknown_values",
        ),
    ),
    row(
        "approval:rehearsal",
        "design 8",
        "the forecast of a rehearsed plan is approved as a set, and the plan then runs without another question",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_rehearsed_plan_is_approved_by_its_forecast_and_then_runs_without_another_question",
        ),
    ),
    row(
        "rehearsal:differs",
        "design 8",
        "a write that is not as foretold asks by itself and says what differs",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_write_that_is_not_as_foretold_is_asked_about_by_itself_and_says_what_differs",
        ),
    ),
    row(
        "rehearsal:other-rule",
        "design 8",
        "a real call that falls under another rule than the foretold one is asked about, and a denied one is denied",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_real_call_that_falls_under_another_rule_is_asked_about_and_a_denied_one_is_denied",
        ),
    ),
    row(
        "rehearsal:long",
        "design 8",
        "a plan of more than a hundred steps is not rehearsed",
        in_file("e2e/plans/test_rehearsal.py", "test_a_plan_of_more_than_a_hundred_steps_is_not_rehearsed"),
    ),
    row(
        "rehearsal:workspace",
        "design 8",
        "a workspace is rehearsed on a copy that is thrown away, also after its run was terminated",
        in_file(
            "e2e/tools/test_workspace.py",
            "test_a_workspace_is_rehearsed_on_a_copy_that_is_thrown_away",
            "test_the_copy_of_a_run_that_was_terminated_goes_with_its_claim",
        ),
    ),
    row(
        "rehearsal:tokens",
        "design 8",
        "each leaf of a simulated answer is a token of its place, and a schema that never ends is simulated in "
        "bounded size",
        in_file(
            "backstay/test_rehearsal_rules.py",
            "test_each_leaf_of_a_simulated_answer_is_a_token_of_its_place",
            "test_a_schema_that_never_ends_is_simulated_in_bounded_size",
        ),
    ),
    row(
        "rehearsal:fits",
        "design 8",
        "a call fits its forecast when each token stands for the real value, of whatever type, and nothing else fits",
        in_file(
            "backstay/test_rehearsal_rules.py",
            "test_a_call_fits_when_each_token_stands_for_the_real_value_of_whatever_type",
            "test_anything_else_than_the_value_that_a_token_stands_for_does_not_fit",
        ),
    ),
    row(
        "rehearsal:references",
        "design 8",
        "a reference into a simulated answer always brings a token, and one into a real answer never",
        in_file(
            "backstay/test_rehearsal_rules.py",
            "test_a_reference_into_a_simulated_answer_always_brings_a_token_and_into_a_real_one_never",
        ),
    ),
    row(
        "rehearsal:drawn",
        "design 8",
        "a forecast is drawn in lines that no argument can break out of",
        in_file(
            "backstay/test_rehearsal_rules.py",
            "test_a_forecast_is_drawn_in_lines_that_no_argument_can_break_out_of",
        ),
    ),
    row(
        "approval:rehearsal-programs",
        "design 8; design 22",
        "a program is rehearsed, its forecast is approved as a set, and it runs as it was foretold without another "
        "question",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_program_is_rehearsed_and_runs_as_it_was_foretold_without_another_question",
        ),
    ),
    row(
        "rehearsal:rejected",
        "design 8; design 22",
        "a forecast that people reject is told to the model, and nothing of it is made",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_forecast_that_people_reject_is_told_to_the_model_and_nothing_of_it_is_made",
        ),
    ),
    row(
        "rehearsal:all-people",
        "design 8; design 22",
        "every set of people that decides about a part of a forecast must approve",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_every_set_of_people_that_decides_about_a_part_of_a_forecast_must_approve",
        ),
    ),
    row(
        "rehearsal:other-people",
        "design 8; design 22",
        "a call of a program that falls under other people once its values are known is asked about by them",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_program_call_that_falls_under_other_people_once_its_values_are_known_is_asked_about_by_them",
        ),
    ),
    row(
        "rehearsal:forged-token",
        "design 8; design 22",
        "a text of a server that looks like a token stands for nothing",
        in_file("e2e/plans/test_rehearsal.py", "test_a_text_of_a_server_that_looks_like_a_token_stands_for_nothing"),
    ),
    row(
        "rehearsal:program-differs",
        "design 8; design 22",
        "a call of a program that is not as foretold is asked about by itself, as is each write that was not foretold",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_program_call_that_is_not_as_foretold_is_asked_about_by_itself",
            "test_a_program_that_goes_elsewhere_than_foretold_asks_about_each_write_that_was_not_foretold",
        ),
    ),
    row(
        "rehearsal:reads",
        "design 8; design 22",
        "a program that only reads runs once, and nobody is asked",
        in_file("e2e/plans/test_rehearsal.py", "test_a_program_that_only_reads_runs_once_and_nobody_is_asked"),
    ),
    row(
        "rehearsal:unknown",
        "design 8; design 22",
        "a program that computes with a simulated value fails in the rehearsal, before anything was changed, and "
        "says so",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_a_program_that_computes_with_a_simulated_value_fails_in_the_rehearsal_and_says_so",
        ),
    ),
    row(
        "rehearsal:bounded",
        "design 8; design 22",
        "no more than a hundred calls of a program are rehearsed",
        in_file("e2e/plans/test_rehearsal.py", "test_no_more_than_a_hundred_calls_of_a_program_are_rehearsed"),
    ),
    row(
        "rehearsal:parts",
        "design 8; design 22",
        "an answer without a schema is one value, of which a program takes parts",
        in_file(
            "e2e/plans/test_rehearsal.py",
            "test_an_answer_without_a_schema_is_one_value_and_a_program_takes_parts_out_of_it",
        ),
    ),
    row(
        "rehearsal:continued",
        "design 8; design 22",
        "what is rehearsed goes on where it stood in a continued run, and is held to its forecast",
        in_file("e2e/sessions/test_continuing.py", "test_what_is_rehearsed_goes_on_where_it_stood_and_is_held_to_its_forecast"),
    ),
    row(
        "rehearsal:cli",
        "design 8; design 22",
        "run rehearses and shows what would be done before anything is",
        in_file("cli/test_plans.py", "test_run_rehearses_and_shows_what_would_be_done_before_anything_is"),
    ),
    row(
        "approval:rehearsal-random",
        "design 8; design 22; issue plans",
        "random plans and programs change nothing while they are rehearsed, do what was foretold but for tokens, "
        "and ask about every write that the changed world changes",
        in_file(
            "e2e/plans/test_rehearsed_cases.py",
            "test_random_plans_and_programs_do_what_was_foretold_and_ask_about_all_else",
        ),
    ),
    row(
        "rehearsal:soak",
        "design 8; design 22; issue plans",
        "every write of many more random plans and programs is as foretold or asked about",
        in_file("soak/test_rehearsals.py", "test_every_write_is_as_foretold_or_asked_about"),
    ),
    row(
        "approval:remember-scopes",
        "design 8; design 22; seed 002 §6; issue first hour",
        "what is remembered for the run is not asked again in it, also when the run continues, and is asked in the "
        "next run",
        in_file(
            "e2e/approvals/test_remember.py",
            "test_what_is_remembered_for_the_run_is_not_asked_again_in_it_and_asked_in_the_next",
        ),
        in_file("e2e/sessions/test_continuing.py", "test_what_is_remembered_for_the_run_holds_in_its_next_execution"),
    ),
    row(
        "remember:always",
        "design 8; design 22; seed 002 §6; issue first hour",
        "always holds in later runs of the same user where the policy lets the person accept, and a run that obeys "
        "it says so",
        in_file(
            "e2e/approvals/test_remember.py",
            "test_always_holds_in_later_runs_of_the_same_user_when_the_policy_lets_the_person_accept",
        ),
    ),
    row(
        "remember:session",
        "design 8; design 22; seed 002 §6; issue first hour",
        "what is remembered for the session holds in runs of that session only",
        in_file("e2e/approvals/test_remember.py", "test_for_the_session_holds_in_runs_of_that_session_only"),
    ),
    row(
        "remember:never",
        "design 8; design 22; seed 002 §6; issue first hour",
        "never denies in the run and in later ones",
        in_file("e2e/approvals/test_remember.py", "test_never_denies_in_the_run_and_in_later_ones"),
    ),
    row(
        "remember:plan",
        "design 8; design 22; seed 002 §6; issue first hour",
        "a plan is remembered as a whole, but not arguments that only refer to results",
        in_file(
            "e2e/approvals/test_remember.py",
            "test_a_plan_is_remembered_as_a_whole_but_not_arguments_that_only_refer_to_results",
        ),
    ),
    row(
        "remember:many",
        "design 8; design 22; seed 002 §6; issue first hour",
        "of 78 tools that all ask none asks again once it is remembered",
        in_file(
            "e2e/approvals/test_remember.py",
            "test_of_seventy_eight_tools_that_all_ask_none_asks_again_once_it_is_remembered",
        ),
    ),
    row(
        "remember:refused",
        "design 8; design 22; seed 002 §6; issue first hour",
        "a decision that cannot be remembered so is refused, and the request stays open",
        in_file(
            "e2e/approvals/test_remember.py",
            "test_a_decision_that_cannot_be_remembered_so_is_refused_and_the_request_stays_open",
        ),
    ),
    row(
        "remember:switch",
        "design 8; design 22; seed 002 §6; issue first hour",
        "a request that waits while its run continues can be remembered",
        in_file("e2e/sessions/test_continuing.py", "test_a_request_that_waits_across_a_switch_can_be_remembered"),
    ),
    row(
        "approval:remember-authority",
        "design 8; design 22",
        "a stranger widens nothing with what is remembered",
        in_file("e2e/approvals/test_remember.py", "test_a_stranger_widens_nothing"),
    ),
    row(
        "remember:waits",
        "design 8; design 22",
        "where the policy names nobody who accepts, a line holds for the run and waits for an operator",
        in_file("e2e/approvals/test_remember.py", "test_without_accepting_a_line_holds_for_the_run_and_waits_for_an_operator"),
    ),
    row(
        "remember:named",
        "design 8; design 22",
        "where rules name people, only they have a decision remembered for the run",
        in_file(
            "e2e/approvals/test_remember.py",
            "test_where_rules_name_people_only_they_have_a_decision_remembered_for_the_run",
        ),
    ),
    row(
        "remember:quorum",
        "design 8; design 22",
        "as many accept a line as the policy says, in two runs or by two workers at once, and it then holds once",
        in_file("e2e/approvals/test_remember.py", "test_two_who_must_accept_say_so_in_two_runs_at_once"),
        in_file("store/test_accepted_lines.py", "test_two_workers_that_count_two_people_at_once_let_a_line_hold_once"),
    ),
    row(
        "remember:today",
        "design 8; design 22",
        "who is no longer named when a line is kept accepts nothing",
        in_file("e2e/approvals/test_remember.py", "test_who_is_no_longer_named_when_the_line_is_kept_accepts_nothing"),
    ),
    row(
        "remember:votes",
        "design 8; design 22",
        "a vote counts once, a stranger's word resets none, and a lost right counts no more",
        in_file(
            "store/test_accepted_lines.py",
            "test_a_vote_counts_once_a_strangers_word_resets_none_and_a_lost_right_counts_no_more",
        ),
    ),
    row(
        "remember:handed-out",
        "design 8; design 22",
        "only the lines of the user and session are handed out, and only in time",
        in_file(
            "store/test_accepted_lines.py",
            "test_only_the_lines_of_the_user_and_session_are_handed_out_and_only_in_time",
        ),
    ),
    row(
        "remember:limit",
        "design 8; design 22",
        "a user has so many lines and no more",
        in_file("store/test_accepted_lines.py", "test_a_user_has_so_many_lines_and_no_more"),
    ),
    row(
        "remember:removed",
        "design 8; design 22",
        "a removed line does not come back with the decision that made it, but with another",
        in_file(
            "store/test_accepted_lines.py",
            "test_a_removed_line_does_not_come_back_with_the_decision_that_made_it_but_with_another",
        ),
    ),
    row(
        "remember:invalid",
        "design 8; design 22",
        "a rule of who accepts that cannot work is refused by field",
        in_file("backstay/test_accepted.py", "test_an_accepting_that_cannot_work_is_refused_by_field"),
    ),
    row(
        "remember:task",
        "design 8; design 22",
        "a task says nothing about who accepts",
        in_file("backstay/test_accepted.py", "test_a_task_says_nothing_about_who_accepts"),
    ),
    row(
        "approval:flood",
        "design 11; issue Endless",
        "amid hundreds of strangers' signals and updates the one approval of a payment counts once, by update or by "
        "signal, the audit holds it and nothing is undone",
        in_file("e2e/loop/test_flood.py", "test_amid_strangers_signals_and_updates_the_one_approval_counts_once"),
    ),
    row(
        "flood:pauses",
        "design 11; issue Endless",
        "three hundred pauses of strangers hold no run and shut out no approval",
        in_file("e2e/loop/test_flood.py", "test_many_pauses_of_strangers_hold_no_run_and_shut_out_no_approval"),
    ),
    row(
        "approval:flood-limits",
        "design 11; issue Endless",
        "more than the server takes in one execution, 10,000 signals, 10,000 updates, 4,200 pauses or 27 signals of "
        "2 MB, neither ends the run nor shuts the real approval out",
        in_file("e2e/loop/test_flood.py", "test_signals_of_two_megabytes_one_after_the_other_end_no_run"),
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
            "e2e/plans/test_rehearsal.py",
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
