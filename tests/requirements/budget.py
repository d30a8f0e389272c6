"""Limits of a run: steps, calls, tokens, time and money."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "budget:ceiling",
        "issue Done 5",
        "spent and reserved never exceed the ceiling, whatever ends how",
        in_file("backstay/test_budget.py", "test_spent_and_reserved_never_exceed_the_ceiling_whatever_ends_how"),
    ),
    row(
        "budget:billed",
        "issue Done 5; design 7",
        "what the endpoint billed, errors and dropped answers included, stays under the ceiling",
        in_file("e2e/budget/test_budget.py", "test_what_the_endpoint_billed_stays_under_the_ceiling"),
    ),
    row(
        "budget:accounted",
        "design 7",
        "a reservation is accounted for once, and a bill above it is kept whole",
        in_file(
            "backstay/test_budget.py",
            "test_a_reservation_is_accounted_for_once",
            "test_a_bill_above_its_reservation_is_kept_whole",
        ),
    ),
    row(
        "budget:reserve",
        "design 7",
        "a call that may cost more than is left is not sent",
        in_file("e2e/budget/test_budget.py", "test_a_call_that_may_cost_more_than_is_left_is_not_sent"),
    ),
    row(
        "budget:steps",
        "design 7; seed 000 §7; seed 003 loop; seed 000 §13",
        "a run stops at its steps with a message and a summary",
        in_file("e2e/budget/test_budget.py", "test_a_run_stops_at_its_steps_with_a_summary_and_keeps_its_effects"),
    ),
    row(
        "budget:calls",
        "design 7",
        "calls and quotas are refused before anything is sent",
        in_file("e2e/budget/test_budget.py", "test_calls_and_quotas_are_refused_before_anything_is_sent"),
    ),
    row(
        "budget:batch",
        "design 7",
        "a batch fits whole or not at all",
        in_file("backstay/test_budget.py", "test_a_batch_fits_whole_or_not_at_all"),
    ),
    row(
        "budget:free",
        "design 7; design 16",
        "searches, undos and the closing summary are counted apart and never refused, and the summary is an event",
        in_file(
            "e2e/budget/test_budget.py",
            "test_searches_reads_and_undos_are_counted_apart_and_never_refused",
            "test_a_closing_summary_is_written_recorded_and_counted_apart",
        ),
    ),
    row(
        "budget:wall",
        "design 7",
        "wall time stands still while only a person is awaited",
        in_file("e2e/approvals/test_approvals.py", "test_wall_time_stands_still_while_only_a_person_is_awaited"),
    ),
    row(
        "budget:tokens",
        "design 7",
        "a run ends when its tokens are used up, and asks for no more than are left",
        in_file("e2e/budget/test_budget.py", "test_a_run_ends_when_its_tokens_are_used_up_and_asks_for_no_more_than_are_left"),
    ),
    row(
        "budget:finalize",
        "design 7",
        "a closing summary may use what was kept back for it",
        in_file("backstay/test_budget.py", "test_a_closing_summary_may_use_what_was_kept_back_for_it"),
    ),
    row(
        "budget:ask",
        "design 7",
        "a topped-up run goes on where it stopped, also by an answer to the request",
        in_file(
            "e2e/budget/test_budget.py",
            "test_a_topped_up_run_goes_on_where_it_stopped",
            "test_an_answer_to_the_request_tops_up_as_well",
        ),
    ),
    row(
        "budget:ask-no",
        "design 7",
        "a rejected top-up ends the run",
        in_file("e2e/budget/test_budget.py", "test_a_rejected_top_up_ends_the_run"),
    ),
    row(
        "budget:fail",
        "design 7",
        "an exhausted budget keeps effects, and takes them back when it shall fail",
        in_file("e2e/undo/test_undo.py", "test_an_exhausted_budget_keeps_effects_unless_it_shall_fail"),
    ),
    row(
        "budget:top-up",
        "design 7",
        "a top-up adds to limits and refuses the rest",
        in_file("backstay/test_budget.py", "test_top_up_adds_to_limits_and_refuses_the_rest"),
    ),
    row(
        "budget:unpriced",
        "design 7",
        "an unpriced model fails a task with a limit in USD, and may be used without",
        in_file("e2e/loop/test_bad_input.py", "test_an_unpriced_model_may_be_used_without_a_limit_in_usd"),
        in_file("client/test_run.py", "test_a_run_whose_task_only_the_engine_can_judge_fails_with_the_same_error"),
    ),
    row(
        "budget:cost",
        "design 7; seed 000 §10; seed 000 §13",
        "tokens, cached ones apart, and cost are told per call and in sum per model",
        in_file("e2e/budget/test_budget.py", "test_tokens_and_cost_are_told_per_call_and_in_sum_per_model"),
    ),
    row(
        "budget:prices",
        "design 7",
        "prices are read from the settings by model",
        in_file("backstay/test_settings.py", "test_prices_are_read_by_model"),
    ),
    row(
        "budget:named",
        "design 7",
        "the first limit that is hit is named",
        in_file("backstay/test_budget.py", "test_the_first_bound_that_is_hit_is_named"),
    ),
    row(
        "budget:plan-steps",
        "design 7",
        "a plan is not bounded by max_steps",
        in_file("backstay/test_budget.py", "test_a_plan_is_not_bounded_by_decisions"),
        in_file("e2e/plans/test_plans.py", "test_a_plan_of_more_steps_than_max_steps_runs_to_its_end"),
    ),
    row(
        "plan:budget",
        "design 7",
        "a plan that does not fit its budget of calls or a quota is not begun",
        in_file("e2e/plans/test_plans.py", "test_a_plan_that_does_not_fit_its_budget_of_calls_or_a_quota_is_not_begun"),
    ),
    row(
        "plan:top-up",
        "design 7",
        "a plan that is out of budget may ask, and goes on after a top-up where it stopped",
        in_file("e2e/plans/test_plans.py", "test_a_plan_out_of_budget_may_ask_and_goes_on_where_it_stopped"),
    ),
    row(
        "budget:code-runs",
        "design 7; seed 003 action",
        "a program makes no more calls than max_calls_per_program",
        in_file("e2e/programs/test_programs.py", "test_programs_count_against_their_limits"),
    ),
    row(
        "program:time",
        "design 7",
        "time also runs out between the calls of a program",
        in_file("e2e/programs/test_programs.py", "test_time_runs_out_between_the_calls_of_a_program_too"),
    ),
    row(
        "budget:overshot",
        "issue 12",
        "a bill above its reservation is counted in full and stops the run before it acts",
        in_file(
            "e2e/budget/test_overshot.py",
            "test_a_bill_above_its_reservation_is_counted_in_full_and_stops_the_run_before_it_acts",
        ),
    ),
    row(
        "overshot:ask",
        "issue 12",
        "with on_exhausted ask a person may pay a bill above its reservation, and the answer is acted on",
        in_file("e2e/budget/test_overshot.py", "test_with_on_exhausted_ask_a_person_may_pay_and_the_answer_is_acted_on"),
    ),
    row(
        "overshot:no-ceiling",
        "issue 12",
        "without a ceiling a bill above its reservation is an event, and the run goes on",
        in_file("e2e/budget/test_overshot.py", "test_without_a_ceiling_the_run_goes_on_and_the_event_is_there"),
    ),
    row(
        "overshot:end",
        "issue 12",
        "an answer that ends the run ends it, however dear it was",
        in_file("e2e/budget/test_overshot.py", "test_an_answer_that_ends_the_run_ends_it_however_dear_it_was"),
    ),
    row(
        "budget:marked",
        "issue 12",
        "what a model has billed beyond what was asked is assumed from then on, and forgotten as it bills honestly",
        in_file(
            "e2e/budget/test_overshot.py",
            "test_later_runs_reserve_what_the_endpoint_has_billed_until_it_is_honest_again",
        ),
        in_file(
            "activities/test_observations.py",
            "test_what_a_model_billed_beyond_what_was_asked_is_assumed_from_then_on",
            "test_honest_bills_bring_the_trust_back_step_by_step",
            "test_a_model_that_nobody_can_afford_any_more_is_believed_again_after_a_while",
            "test_only_so_many_models_are_remembered",
        ),
    ),
)
