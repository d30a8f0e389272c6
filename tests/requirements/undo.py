"""What a run did is taken back: when, in which order, and what is left."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "undo:failure",
        "issue Done 7; seed 002 §8; design 17",
        "a failure after five effects takes back five, last first, and the Result names outcome, error and every "
        "effect",
        in_file("e2e/undo/test_undo.py", "test_a_failure_after_five_effects_takes_back_five_last_first"),
    ),
    row(
        "undo:stop",
        "issue Done 7; design 9",
        "a rejection with stop takes back a batch in reverse order of its calls, as the preview listed it",
        in_file("e2e/undo/test_undo.py", "test_a_rejection_with_stop_takes_back_a_batch_in_reverse_order_of_its_calls"),
    ),
    row(
        "undo:to-step",
        "issue Done 7; design 9",
        "an undo to a step takes back what came after it, once, and the run goes on",
        in_file("e2e/undo/test_undo.py", "test_an_undo_to_a_step_takes_back_what_came_after_it_and_the_run_goes_on"),
    ),
    row(
        "undo:cancel",
        "issue Done 7; design 4.2",
        "a call under way when the run is cancelled is waited for and taken back",
        in_file("e2e/undo/test_undo.py", "test_a_call_under_way_when_the_run_is_cancelled_is_waited_for_and_taken_back"),
    ),
    row(
        "end:cancelled",
        "design 17; design 9; issue Done 7",
        "a cancelled run takes back what it did, ends as cancelled, and its Result is read all the same",
        in_file("e2e/undo/test_undo.py", "test_a_cancelled_run_ends_as_cancelled_after_taking_back_what_it_did"),
    ),
    row(
        "undo:after-end",
        "issue Done 7",
        "a completed run is undone last effect first, to any step, and only once",
        in_file(
            "e2e/undo/test_undo_after_end.py", "test_a_completed_run_is_undone_last_effect_first_to_any_step_and_only_once"
        ),
    ),
    row(
        "undo:pages",
        "design 9",
        "a long undo continues as new executions, takes back each effect once, and leaves the events of the run",
        in_file("e2e/undo/test_undo_pages.py", "test_a_long_undo_goes_on_in_new_executions_and_takes_back_each_effect_once"),
    ),
    row(
        "pages:bounded",
        "design 9",
        "thousands of effects are read in answers of bounded size",
        in_file("e2e/undo/test_undo_pages.py", "test_thousands_of_effects_are_read_in_answers_of_bounded_size"),
    ),
    row(
        "pages:newest",
        "design 9",
        "effects that could still be undone are read in pages, the newest first, without what was dealt with or "
        "never happened",
        in_file(
            "store/test_open_effects.py",
            "test_effects_that_could_still_be_undone_are_read_in_pages_the_newest_first",
            "test_what_was_dealt_with_or_never_happened_is_left_out",
        ),
    ),
    row(
        "undo:proven-beforehand",
        "design 9; issue Authority",
        "an undo that takes several pages and executions needs, before the first is taken back, those who decide "
        "about all effects, also what only the store holds",
        in_file("e2e/undo/test_undo_pages.py", "test_an_undo_needs_those_who_decide_about_what_only_the_store_holds"),
        in_file("store/test_open_effects.py", "test_who_decides_about_all_of_them_is_read_without_reading_them"),
    ),
    row(
        "beforehand:stranger",
        "design 9; issue Authority",
        "a stranger cannot begin an undo where another one would continue",
        in_file("e2e/undo/test_undo_pages.py", "test_a_stranger_cannot_begin_an_undo_where_another_one_would_continue"),
    ),
    row(
        "beforehand:left",
        "design 9; issue Authority",
        "an effect about which other people decide than were known of is left to them, and the word of others does "
        "not cover it",
        in_file(
            "e2e/undo/test_undo_pages.py",
            "test_an_effect_about_which_other_people_decide_than_were_known_of_is_left_to_them",
        ),
        in_file("backstay/test_undo_stack.py", "test_an_effect_that_other_people_decide_about_is_not_covered"),
    ),
    row(
        "beforehand:trimmed",
        "design 9; issue Authority",
        "whoever may undo a trimmed stack may undo every effect in it",
        in_file("backstay/test_undo_stack.py", "test_whoever_may_undo_a_trimmed_stack_may_undo_every_effect_in_it"),
    ),
    row(
        "undo:trimmed",
        "design 9; design 6",
        "a trimmed stack keeps the newest slots, tells of the others, and takes further ones",
        in_file(
            "backstay/test_undo_stack.py",
            "test_a_trimmed_stack_keeps_the_newest_slots_and_tells_of_the_others",
            "test_a_trimmed_stack_takes_further_slots",
        ),
    ),
    row(
        "trimmed:no-head",
        "design 9; design 6",
        "a stack that was carried before there was a head is read",
        in_file("backstay/test_undo_stack.py", "test_a_stack_that_was_carried_before_there_was_a_head_is_read"),
    ),
    row(
        "trimmed:order",
        "design 9; design 6",
        "an undo takes back the same, in the same order, from a trimmed stack and the store",
        in_file(
            "backstay/test_undo_stack.py",
            "test_what_an_undo_takes_back_is_the_same_for_a_trimmed_stack_and_the_store",
        ),
        in_file("e2e/undo/test_undo_pages.py", "test_a_run_takes_back_what_only_the_store_holds_too"),
    ),
    row(
        "trimmed:once",
        "design 9; design 6",
        "what was dealt with is not reached again by an undo",
        in_file("backstay/test_undo_stack.py", "test_what_was_dealt_with_is_not_reached_again"),
    ),
    row(
        "trimmed:unreadable",
        "design 9; design 6",
        "effects that cannot be read are parked as a whole",
        in_file("e2e/undo/test_undo_pages.py", "test_effects_that_cannot_be_read_are_parked_as_a_whole"),
    ),
    row(
        "trimmed:in-time",
        "design 9; design 6",
        "an undo stops before the server would end the run",
        in_file("e2e/undo/test_undo_pages.py", "test_an_undo_stops_before_the_server_would_end_the_run"),
    ),
    row(
        "undo:outcome",
        "design 9; design 6",
        "of many undone effects all are counted and the last 100 named, parked ones before any others",
        in_file(
            "backstay/test_undo_stack.py",
            "test_of_many_outcomes_all_are_counted_and_the_last_named_with_parked_ones_before_others",
            "test_when_all_are_parked_the_last_are_named",
        ),
        in_file("workflows/test_state.py", "test_only_the_latest_undone_effects_are_carried_and_all_are_counted"),
    ),
    row(
        "undo:again",
        "design 9",
        "a compensation that was parked is tried again when the run is undone again",
        in_file("e2e/undo/test_undo_after_end.py", "test_a_compensation_that_was_parked_is_tried_again_when_undone_again"),
    ),
    row(
        "undo:open-refused",
        "design 9",
        "UndoRun refuses an open run, an unknown one and an incomplete request by type, and undoes a terminated one",
        in_file(
            "e2e/undo/test_undo_after_end.py",
            "test_an_open_run_is_refused_and_a_terminated_one_is_undone",
            "test_an_unknown_run_and_an_incomplete_request_are_refused_by_type",
        ),
    ),
    row(
        "undo:chain",
        "design 9",
        "an earlier run of the same name is undone while a later one is open",
        in_file(
            "e2e/undo/test_undo_after_end.py", "test_an_earlier_run_of_the_same_name_is_undone_while_the_later_one_is_open"
        ),
    ),
    row(
        "undo:unknown",
        "issue Done 7; design 4.5",
        "an effect of unknown outcome is checked before it is taken back",
        in_file("e2e/undo/test_undo.py", "test_an_effect_of_unknown_outcome_is_checked_before_it_is_taken_back"),
    ),
    row(
        "undo:lost",
        "issue Done 4; design 4.5; design 9",
        "a compensation whose answer is lost, by a server or by a killed worker, is settled by its own tool's check",
        in_file(
            "crash/test_lost_undo.py",
            "test_a_compensation_whose_answer_died_with_its_worker_is_settled_by_its_own_check",
        ),
        in_file(
            "e2e/tools/test_one_door.py",
            "test_a_payment_and_its_compensation_whose_answers_are_lost_are_settled_each_by_its_own_check",
        ),
    ),
    row(
        "lost:final",
        "issue Done 4; design 4.5; design 9",
        "a compensation that provably was not made is sent again",
        in_file("crash/test_lost_undo.py", "test_a_compensation_that_provably_was_not_made_is_sent_again"),
    ),
    row(
        "lost:not-found",
        "issue Done 4; design 4.5; design 9",
        "a compensation that a check does not find is parked where that is no proof",
        in_file(
            "crash/test_lost_undo.py",
            "test_a_compensation_that_a_check_does_not_find_is_parked_where_that_is_no_proof",
        ),
    ),
    row(
        "lost:no-check",
        "issue Done 4; design 4.5; design 9",
        "a lost compensation without a check is parked and never sent again",
        in_file("crash/test_lost_undo.py", "test_a_lost_compensation_without_a_check_is_parked_and_never_sent_again"),
    ),
    row(
        "undo:by-id",
        "design 9",
        "an effect that stays unknown is undone by its id, or parked",
        in_file("e2e/undo/test_undo.py", "test_an_effect_that_stays_unknown_is_undone_by_its_id_or_parked"),
    ),
    row(
        "undo:parked",
        "issue Done 7; design 9; seed 002 §8",
        "a compensation that fails is tried again, then parked with what to do by hand, the others go on, and the"
        " run ends as rollback_failed",
        in_file("e2e/undo/test_undo.py", "test_a_compensation_that_fails_is_tried_again_then_parked_and_the_others_go_on"),
    ),
    row(
        "undo:by-hand",
        "seed 002 §8",
        "of an effect whose compensation is parked, amid a run or after its end, the page, the terminal and Slack say "
        "that it must be undone by hand, and by which call",
        in_file("web/test_runs.py", "test_what_a_person_must_take_back_by_hand_is_named_with_its_call"),
        in_file("cli/test_runs.py", "test_what_a_person_must_take_back_by_hand_is_named_with_its_call"),
        in_file("slack/test_commands.py", "test_what_a_person_must_take_back_by_hand_is_named_with_its_call"),
    ),
    row(
        "undo:none",
        "design 9",
        "an effect that cannot be undone is kept and named",
        in_file("e2e/undo/test_undo.py", "test_an_effect_that_cannot_be_undone_is_kept_and_named"),
    ),
    row(
        "undo:keep",
        "design 9",
        "on_failure keep keeps what was done, and a completed run is not rolled back",
        in_file("e2e/undo/test_undo.py", "test_what_the_task_wants_kept_and_what_was_completed_is_kept"),
    ),
    row(
        "undo:policy",
        "design 9; design 3",
        "the policy's undo section rules compensations: it allows them by default, may ask or deny, and a "
        "question may expire",
        in_file("backstay/test_policy.py", "test_compensations_follow_their_own_section_and_are_allowed_by_default"),
        in_file(
            "e2e/undo/test_undo.py",
            "test_a_policy_may_ask_about_compensations",
            "test_a_policy_may_deny_a_compensation_and_let_the_question_expire",
        ),
    ),
    row(
        "undo:bound",
        "design 9",
        "an outcome is recorded with what would take it back",
        in_file("store/test_settle.py", "test_an_outcome_is_recorded_with_what_would_take_it_back"),
    ),
    row(
        "undo:compensated",
        "design 9",
        "an effect is compensated when its compensation is applied or a person confirms it, and else it stays",
        in_file(
            "store/test_settle.py",
            "test_an_applied_compensation_compensates_its_effect",
            "test_a_compensation_that_did_not_work_leaves_its_effect",
            "test_a_compensation_that_a_person_confirms_compensates_its_effect",
        ),
    ),
    row(
        "undo:new-send",
        "design 9",
        "a compensation that failed goes again only under a new send",
        in_file("store/test_begin.py", "test_a_compensation_that_failed_goes_again_only_under_a_new_send"),
    ),
    row(
        "undo:paused",
        "design 9",
        "a paused run can be undone and cancelled",
        in_file("e2e/loop/test_pause.py", "test_a_paused_run_can_still_be_undone_and_cancelled"),
    ),
    row(
        "undo:template",
        "design 9",
        "what a tool answered is never a template, and what cannot be computed is one error that does not quote it",
        in_file(
            "toolbox/test_template.py",
            "test_what_tools_answer_is_never_a_template",
            "test_what_cannot_be_computed_is_one_error",
            "test_an_error_quotes_the_template_and_never_the_value",
        ),
    ),
    row(
        "undo:values",
        "design 9",
        "one expression keeps the type of its value, text stays text, and fields win over methods",
        in_file(
            "toolbox/test_template.py",
            "test_one_expression_keeps_the_value_as_it_is",
            "test_text_that_looks_like_a_number_stays_text",
            "test_fields_win_over_methods_of_the_same_name",
        ),
    ),
    row(
        "undo:conditions",
        "design 9",
        "a condition is true or false, or an error",
        in_file(
            "toolbox/test_template.py",
            "test_a_condition_is_true_or_false",
            "test_a_condition_that_says_neither_is_an_error",
        ),
    ),
)
