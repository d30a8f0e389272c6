"""The ledger of effects: each is sent once, settled once and told about."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "effect:once",
        "design 4",
        "no send goes out twice without proof, whatever workers, crashes and people do in any order",
        in_file("store/test_sends_property.py", "test_no_send_goes_out_twice_without_proof"),
    ),
    row(
        "effect:row",
        "design 4",
        "the first attempt goes, and the row says what, when, for whom and until when",
        in_file("store/test_begin.py", "test_the_first_attempt_goes_and_the_row_says_so"),
    ),
    row(
        "effect:one-wins",
        "design 4",
        "of many attempts on two engines exactly one goes",
        in_file("store/test_begin.py", "test_of_many_attempts_on_two_engines_exactly_one_goes"),
    ),
    row(
        "effect:id",
        "design 4",
        "an effect is named after its workflow, its first run and its number",
        in_file("e2e/faults/test_effects.py", "test_an_effect_is_named_after_the_first_run_of_its_workflow"),
    ),
    row(
        "effect:no-row",
        "design 4.4",
        "a retry whose earlier attempt left no row goes",
        in_file("store/test_begin.py", "test_a_retry_whose_earlier_attempt_left_no_row_goes"),
    ),
    row(
        "effect:no-first-row",
        "design 4.4",
        "a second send without the row of the first is unknown",
        in_file("store/test_begin.py", "test_a_second_send_without_the_row_of_the_first_is_unknown"),
    ),
    row(
        "effect:recorded",
        "design 4.4",
        "an effect that was applied, failed, taken back or kept is recorded and not sent again",
        in_file(
            "store/test_begin.py",
            "test_a_settled_effect_is_recorded_and_not_sent_again",
            "test_an_effect_that_was_taken_back_or_kept_is_not_sent_again",
        ),
    ),
    row(
        "recorded:old-send",
        "design 4.4",
        "an old send finds the record of a newer one",
        in_file("store/test_begin.py", "test_an_old_send_finds_the_record_of_a_newer_one"),
    ),
    row(
        "effect:live-lease",
        "design 4.4",
        "while the lease of an attempt lives, others wait",
        in_file("store/test_begin.py", "test_while_the_lease_lives_others_wait"),
        in_file(
            "activities/test_effects.py",
            "test_a_send_that_may_still_be_under_way_for_long_is_left_to_the_workflow_to_wait_for",
        ),
    ),
    row(
        "effect:lease-clock",
        "issue 11",
        "a process whose own clock is two minutes ahead or behind waits for the lease of another just as long",
        in_file("store/test_skew.py", "test_a_process_with_a_wrong_clock_waits_for_the_lease_of_another_just_as_long"),
    ),
    row(
        "lease:began",
        "issue 11",
        "a lease that a process with a wrong clock began ends when it should",
        in_file("store/test_skew.py", "test_a_lease_that_a_process_with_a_wrong_clock_began_ends_when_it_should"),
    ),
    row(
        "lease:database",
        "issue 11",
        "what is over and what is not, of leases and of the time of idempotency, is said by the database's clock alone",
        in_file("store/test_skew.py", "test_what_is_over_and_what_is_not_is_said_by_the_database_alone"),
    ),
    row(
        "effect:lease-clock-file",
        "issue 11",
        "the clock of a database file counts from the start of its host, which a file beside it tells",
        in_file(
            "store/test_skew.py",
            "test_a_file_that_says_when_the_host_was_started_is_made_again_for_another_start",
        ),
    ),
    row(
        "effect:far-behind",
        "issue 11",
        "time in a database file goes on from its last write on a host that starts with a clock far behind",
        in_file(
            "store/test_skew.py",
            "test_time_in_a_file_goes_on_from_its_last_write_on_a_host_that_starts_with_a_clock_far_behind",
        ),
    ),
    row(
        "effect:dead-lease",
        "design 4.4",
        "after the lease the outcome is unknown, and stays so",
        in_file(
            "store/test_begin.py",
            "test_after_the_lease_the_outcome_is_unknown",
            "test_unknown_stays_unknown_even_when_it_is_idempotent",
        ),
    ),
    row(
        "effect:idempotent",
        "design 4.4",
        "a tool declared idempotent is sent again under the same id within its time, by one attempt at a time, "
        "and asked about afterwards",
        in_file(
            "e2e/faults/test_effects.py",
            "test_a_tool_declared_idempotent_is_sent_again_under_the_same_id_without_a_question",
            "test_a_tool_whose_idempotency_has_run_out_is_asked_about_instead",
        ),
        in_file("e2e/faults/test_faults_tools.py", "test_an_effect_declared_idempotent_is_sent_again_under_the_same_id"),
        in_file(
            "store/test_begin.py",
            "test_an_idempotent_effect_goes_again_with_a_new_token_until_its_time_is_over",
            "test_an_idempotent_effect_still_needs_its_earlier_send_settled_before_a_new_one",
            "test_of_many_attempts_to_repeat_an_idempotent_effect_exactly_one_goes",
        ),
    ),
    row(
        "effect:hint",
        "design 4.4",
        "an idempotentHint of the server alone is no reason to send again",
        in_file("e2e/loop/test_loop.py", "test_an_idempotent_hint_of_the_server_alone_is_no_reason_to_send_again"),
    ),
    row(
        "effect:resend",
        "design 4.5",
        "what was proven not sent goes again under the same send",
        in_file("store/test_begin.py", "test_what_was_proven_not_sent_goes_again_under_the_same_send"),
    ),
    row(
        "effect:new-send",
        "design 4.5",
        "what a person says did not happen goes only under a new send, also where its own attempt found it not sent",
        in_file(
            "store/test_begin.py",
            "test_what_a_person_says_did_not_happen_goes_only_under_a_new_send",
            "test_a_person_also_closes_a_send_that_its_own_attempt_found_not_sent",
        ),
    ),
    row(
        "effect:before-intent",
        "design 4.1",
        "a fault before the intent is committed sends nothing, and a server gone by then is unavailable",
        in_file("toolbox/test_calls.py", "test_a_fault_before_the_intent_is_committed_sends_nothing"),
        in_file(
            "toolbox/test_http.py",
            "test_a_server_gone_before_the_intent_is_unavailable_and_the_intent_is_not_committed",
        ),
    ),
    row(
        "effect:not-sent",
        "design 4.3",
        "401, 403, 407 and 429 without a JSON-RPC body prove that nothing was sent",
        in_file("toolbox/test_http.py", "test_these_statuses_without_a_json_rpc_body_prove_that_nothing_was_sent"),
    ),
    row(
        "effect:else-unknown",
        "design 4.3",
        "any other status without an answer, and an answer that cannot be believed, is unknown",
        in_file(
            "toolbox/test_http.py",
            "test_any_other_status_without_an_answer_is_unknown",
            "test_an_answer_that_cannot_be_believed_is_unknown",
        ),
    ),
    row(
        "effect:settle-once",
        "design 4.3",
        "an effect is settled once, by the attempt that holds its token and may say so again, as an outcome that an "
        "attempt may report",
        in_file(
            "store/test_settle.py",
            "test_an_effect_is_settled_once",
            "test_of_many_that_settle_at_once_one_is_believed",
            "test_a_wrong_token_settles_nothing",
            "test_an_attempt_cannot_settle_as_something_else",
        ),
    ),
    row(
        "effect:token-hidden",
        "design 18",
        "the token of an attempt is not shown",
        in_file("store/test_settle.py", "test_a_token_is_not_shown"),
    ),
    row(
        "effect:repair",
        "design 4.3",
        "an outcome that cannot be written is returned, and the row is repaired later",
        in_file(
            "activities/test_effects.py",
            "test_an_outcome_that_cannot_be_written_is_returned_and_the_row_repaired_later",
        ),
    ),
    row(
        "effect:late",
        "design 4.3",
        "a late outcome counts only while nobody else has spoken",
        in_file("store/test_settle.py", "test_a_late_outcome_counts_while_nobody_else_has_spoken"),
    ),
    row(
        "late:nothing-more",
        "design 4.3",
        "the attempt that lost its turn says nothing more",
        in_file("store/test_settle.py", "test_the_attempt_that_lost_its_turn_says_nothing_more"),
    ),
    row(
        "late:person",
        "design 4.3",
        "a late outcome after a person's word changes nothing and is an event, also of a worker that is continued",
        in_file(
            "activities/test_effects.py",
            "test_an_outcome_that_comes_after_a_persons_word_is_an_event_and_changes_nothing",
        ),
        in_file(
            "crash/test_stops_and_restarts.py",
            "test_a_worker_continued_while_a_person_is_asked_adds_no_second_truth",
        ),
    ),
    row(
        "effect:verify",
        "design 4.5",
        "a declared check that finds the effect settles it without a question",
        in_file("e2e/faults/test_effects.py", "test_a_check_that_finds_the_mail_settles_the_effect_without_a_question"),
        in_file("e2e/faults/test_faults_tools.py", "test_a_declared_check_settles_an_effect_whose_server_died"),
    ),
    row(
        "effect:verify-final",
        "design 4.5",
        "a final check that finds nothing sends again under a new number",
        in_file("e2e/faults/test_effects.py", "test_a_final_check_that_finds_nothing_sends_again_under_a_new_number"),
    ),
    row(
        "verify:not-final",
        "design 4.5",
        "a check that is not final and finds nothing, three times at most, leads to a person",
        in_file("e2e/faults/test_effects.py", "test_a_check_that_is_not_final_and_finds_nothing_leads_to_a_person"),
    ),
    row(
        "effect:person",
        "design 4.5",
        "a person says that it happened, did not happen, or shall be sent again, and the model is told",
        in_file(
            "e2e/faults/test_effects.py",
            "test_a_person_who_says_it_happened_ends_the_matter_without_a_second_send",
            "test_a_person_who_says_it_did_not_happen_is_believed_and_the_model_is_told",
            "test_a_person_who_asks_for_another_send_gets_one_that_names_the_old",
        ),
    ),
    row(
        "effect:resolve",
        "design 4.5",
        "a check or a person resolves what is unknown and silences the attempt",
        in_file("store/test_settle.py", "test_a_check_or_a_person_resolves_what_is_unknown_and_silences_the_attempt"),
    ),
    row(
        "resolve:refused",
        "design 4.5",
        "nothing is resolved while it may still be sent, against the record, or without a row",
        in_file(
            "store/test_settle.py",
            "test_nothing_is_resolved_while_it_may_still_be_sent",
            "test_a_word_that_contradicts_the_record_is_refused",
            "test_an_effect_nobody_recorded_cannot_be_resolved",
        ),
    ),
    row(
        "effect:conflict",
        "design 4.6",
        "another call under the same id is a conflict and changes nothing",
        in_file("store/test_begin.py", "test_another_call_under_the_same_id_is_a_conflict_and_changes_nothing"),
    ),
    row(
        "effect:id-travels",
        "design 4",
        "the effect id travels beside the arguments and in the declared argument, which the model never sees",
        in_file(
            "toolbox/test_calls.py",
            "test_the_effect_id_travels_beside_the_arguments",
            "test_the_declared_argument_carries_the_effect_id_and_the_model_never_sees_it",
        ),
    ),
    row(
        "effect:approval-once",
        "design 4",
        "an approval is used once: an equal call is asked about again",
        in_file("e2e/approvals/test_approvals.py", "test_an_approval_is_used_once"),
    ),
    row(
        "effect:legal",
        "design 4",
        "marking an effect keeps its outcome and follows the legal order of states",
        in_file("store/test_settle.py", "test_marking_keeps_the_outcome_and_follows_the_legal_order"),
    ),
    row(
        "effect:list",
        "design 4; seed 004 Features",
        "a run lists its own effects in order",
        in_file("store/test_settle.py", "test_a_run_lists_its_own_effects_in_order"),
    ),
    row(
        "effect:odd-text",
        "design 4",
        "text that no database can hold is kept as escapes",
        in_file("store/test_settle.py", "test_text_that_no_database_can_hold_is_kept_as_escapes"),
    ),
    row(
        "effect:deadline",
        "design 3",
        "the request to a tool ends before the activity that made it does",
        in_file("e2e/faults/test_faults_deadlines.py", "test_a_request_ends_before_its_activity_does"),
    ),
    row(
        "effect:count-on",
        "design 4",
        "numbers of effects go on counting over continue-as-new, and a lost outcome is asked about once and sent "
        "again only on a person's word",
        in_file(
            "e2e/sessions/test_continuing.py",
            "test_a_lost_outcome_is_asked_about_once_and_sent_again_only_on_a_persons_word",
        ),
    ),
    row(
        "count:under-way",
        "design 4",
        "a call that was begun before a run continues is not made again",
        in_file("e2e/sessions/test_continuing.py", "test_a_run_near_a_limit_of_the_server_continues_while_a_call_is_under_way"),
    ),
    row(
        "count:reset",
        "design 4",
        "a reset to either side of a continue-as-new sends nothing again",
        in_file("e2e/sessions/test_continuing.py", "test_a_reset_to_either_side_of_the_switch_sends_nothing_again"),
    ),
)
