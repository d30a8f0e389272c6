"""Which calls are allowed, asked about or denied."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "policy:order",
        "design 8; seed 002 §1",
        "deny comes before ask and ask before allow",
        in_file("backstay/test_policy.py", "test_deny_comes_before_ask_and_ask_before_allow"),
    ),
    row(
        "policy:default",
        "design 8; seed 002 §1",
        "where no rule applies, the safety of the tool decides",
        in_file("backstay/test_policy.py", "test_where_no_rule_applies_the_safety_of_the_tool_decides"),
    ),
    row(
        "policy:published",
        "design 22",
        "the published example policy is read and ruled by",
        in_file("backstay/test_policy.py", "test_the_published_policy_is_read_and_ruled_by"),
    ),
    row(
        "policy:total",
        "design 8; seed 003 title",
        "ruling is total, and tightening never loosens",
        in_file("backstay/test_policy.py", "test_ruling_is_total_and_tightening_never_loosens"),
    ),
    row(
        "policy:conditions",
        "design 8",
        "a rule applies when all its conditions hold, and else it is left aside",
        in_file(
            "backstay/test_policy.py",
            "test_a_condition_that_holds_makes_the_rule_apply",
            "test_a_condition_that_fails_leaves_the_rule_aside",
            "test_all_conditions_of_a_rule_must_hold",
        ),
    ),
    row(
        "conditions:against",
        "design 8",
        "a missing argument or a value of another type counts against the call",
        in_file(
            "backstay/test_policy.py",
            "test_a_value_of_another_type_counts_against_the_call",
            "test_a_missing_argument_counts_against_the_call",
        ),
    ),
    row(
        "conditions:unless",
        "design 8",
        "an exception that cannot be judged exempts nothing",
        in_file("backstay/test_policy.py", "test_an_exception_that_cannot_be_judged_exempts_nothing"),
    ),
    row(
        "policy:lists",
        "design 8",
        "a list must fit whole to be allowed and in part to be stopped",
        in_file(
            "backstay/test_policy.py",
            "test_a_list_must_fit_whole_to_be_allowed_and_in_part_to_be_stopped",
            "test_a_forbidden_word_is_found_inside_a_list_but_permits_nothing_there",
        ),
    ),
    row(
        "policy:paths",
        "design 8",
        "a path that climbs is never inside an allowed place, and a forbidden place is not reached by a detour",
        in_file(
            "backstay/test_policy.py",
            "test_a_path_that_climbs_is_never_inside_an_allowed_place",
            "test_a_forbidden_place_is_not_reached_by_a_detour",
        ),
    ),
    row(
        "loop:opaque",
        "design 3",
        "a condition on what cannot be looked into asks and says so, and saves no call that another rule denies",
        in_file(
            "backstay/test_policy.py",
            "test_a_condition_on_what_cannot_be_looked_into_asks_and_says_so",
            "test_what_cannot_be_looked_into_does_not_save_a_call_that_another_rule_denies",
            "test_what_is_hidden_but_no_secret_still_asks_where_a_rule_denies",
        ),
    ),
    row(
        "policy:masked",
        "issue Secrets come back masked",
        "a condition on a secret denies where the rule denies and never allows",
        in_file("backstay/test_policy.py", "test_a_condition_on_a_secret_decides_the_strict_way"),
    ),
    row(
        "policy:secret-arguments",
        "issue Secrets come back masked",
        "a secret in an argument that is no declared credential is asked about, except in a read of its own provider",
        in_file("backstay/test_policy.py", "test_a_secret_in_an_argument_that_is_no_credential_is_asked_about"),
        in_file(
            "e2e/faults/test_echoes.py",
            "test_a_secret_in_an_argument_that_is_no_credential_is_asked_about",
            "test_a_credential_and_a_read_of_its_own_provider_take_a_secret_unasked",
            "test_another_provider_is_asked_about_even_where_it_takes_credentials",
        ),
    ),
    row(
        "policy:strictest",
        "design 8",
        "a rule that only may apply does not stand before a stricter one",
        in_file("backstay/test_policy.py", "test_a_rule_that_only_may_apply_does_not_stand_before_a_stricter_one"),
    ),
    row(
        "strictest:both",
        "design 8",
        "of two asking rules both must be satisfied, and two that nobody can satisfy deny",
        in_file(
            "backstay/test_policy.py",
            "test_of_two_asking_rules_both_must_be_satisfied",
            "test_two_rulings_that_nobody_can_satisfy_are_a_denial",
        ),
    ),
    row(
        "policy:escalation",
        "issue People",
        "those who may decide once nobody did in time may do so when the time of their own rule is over, not before",
        in_file(
            "backstay/test_policy.py",
            "test_a_task_cannot_let_anybody_decide_before_the_operator_would",
            "test_a_rule_about_secrets_cannot_remind_anybody_of_a_request_that_there_is_not",
        ),
        in_file(
            "e2e/approvals/test_escalation.py",
            "test_a_request_that_is_asked_again_says_so_where_nobody_else_is_named",
            "test_who_was_asked_before_is_not_among_those_who_are_asked_in_addition",
            "test_of_a_plan_each_part_is_decided_by_others_only_when_its_own_time_is_over",
            "test_of_a_batch_the_calls_that_others_may_decide_later_are_asked_about_apart",
        ),
    ),
    row(
        "policy:floor",
        "design 8; design 18",
        "a task can only tighten the policy, as often as it likes",
        in_file(
            "backstay/test_policy.py", "test_a_task_can_only_tighten", "test_a_tightened_policy_can_be_tightened_again"
        ),
        in_file("e2e/approvals/test_approvals.py", "test_a_task_may_only_tighten_the_policy"),
    ),
    row(
        "policy:task-rules",
        "design 8",
        "a task may use but not redefine the operator's groups, and is refused when it leaves too few approvers",
        in_file(
            "backstay/test_policy.py",
            "test_a_task_that_leaves_too_few_approvers_is_refused",
            "test_a_task_may_use_but_not_redefine_the_operators_groups",
        ),
    ),
    row(
        "policy:hostile",
        "design 8",
        "a hostile policy of a task is shown as plain ASCII",
        in_file("backstay/test_policy.py", "test_a_hostile_policy_of_a_task_is_shown_as_plain_ascii"),
    ),
    row(
        "policy:history",
        "design 6",
        "a policy comes back from history with the same hash",
        in_file("backstay/test_policy.py", "test_a_policy_survives_history_with_the_same_hash"),
    ),
    row(
        "policy:read",
        "design 22",
        "durations are read in seconds, and sections that are commented out are empty",
        in_file(
            "backstay/test_policy.py",
            "test_durations_are_read_in_seconds",
            "test_sections_whose_lines_are_commented_out_are_empty",
        ),
    ),
    row(
        "fault:policy",
        "issue Bad input",
        "a faulty policy is refused by field and fix",
        in_file("backstay/test_policy.py", "test_a_faulty_policy_is_refused_naming_field_and_fix"),
    ),
    row(
        "loop:glob",
        "design 3",
        "a glob fits exactly what fnmatch says, case included, and a hostile one does not blow up",
        in_file(
            "backstay/test_glob.py",
            "test_a_pattern_fits_exactly_what_the_standard_library_says",
            "test_case_counts",
            "test_a_hostile_pattern_does_not_blow_up",
        ),
    ),
    row(
        "policy:overlap",
        "design 8",
        "two globs overlap when one text fits both, and not when none can",
        in_file(
            "backstay/test_glob.py",
            "test_two_patterns_that_fit_one_text_overlap",
            "test_patterns_without_a_common_text_do_not_overlap",
        ),
    ),
    row(
        "policy:raise",
        "design 8; seed 002 §4",
        "a server lowers the safety of its tools only when it is trusted, and the operator's declaration counts",
        in_file("toolbox/test_catalog.py", "test_a_server_lowers_its_danger_only_when_it_is_trusted"),
    ),
    row(
        "policy:accepted-lines",
        "design 8; design 22",
        "an accepted line stands in for the default only, and the ruling names it",
        in_file(
            "backstay/test_accepted.py",
            "test_a_line_stands_in_for_the_default_and_the_ruling_names_it",
            "test_lines_change_a_ruling_only_where_the_default_asks_or_allows",
        ),
    ),
    row(
        "accepted:deny",
        "design 8; design 22",
        "of two accepted lines the one that denies wins",
        in_file("backstay/test_accepted.py", "test_of_two_lines_the_one_that_denies_wins"),
    ),
    row(
        "accepted:exact",
        "design 8; design 22",
        "accepted lines tell exact arguments, other tools and other definitions apart",
        in_file("backstay/test_accepted.py", "test_exact_arguments_another_tool_and_another_definition_are_told_apart"),
    ),
    row(
        "accepted:rules",
        "design 8; design 22",
        "where a rule decides, an accepted line says nothing",
        in_file("backstay/test_accepted.py", "test_where_a_rule_decides_a_line_says_nothing"),
    ),
    row(
        "accepted:asks-anyway",
        "design 8; design 22",
        "a secret, strict provenance, a repeated write and a changed tool ask in spite of an accepted line",
        in_file(
            "backstay/test_accepted.py",
            "test_a_secret_strict_provenance_a_repeat_and_a_change_ask_in_spite_of_a_line",
        ),
        in_file(
            "e2e/approvals/test_remember.py",
            "test_of_the_same_arguments_others_are_asked_about_and_a_repeated_write_is_asked_about_anyway",
        ),
    ),
    row(
        "accepted:egress",
        "design 8; design 22",
        "a read that reaches out is accepted with its very arguments only",
        in_file("backstay/test_accepted.py", "test_a_read_that_reaches_out_is_accepted_with_its_very_arguments_only"),
    ),
    row(
        "accepted:task",
        "design 8; design 22",
        "no accepted line permits what a task's own policy asks, and compensations have none",
        in_file(
            "backstay/test_accepted.py",
            "test_what_a_tasks_own_policy_asks_no_line_permits_and_compensations_have_no_lines",
        ),
    ),
    row(
        "accepted:stale",
        "design 8; design 22",
        "an accepted line is stale once the server describes the tool otherwise",
        in_file("e2e/approvals/test_remember.py", "test_a_line_is_stale_once_the_server_describes_the_tool_otherwise"),
    ),
    row(
        "accepted:unreadable",
        "design 8; design 22",
        "accepted lines that cannot be read or have expired permit nothing",
        in_file("e2e/approvals/test_remember.py", "test_lines_in_the_store_that_cannot_be_read_or_have_expired_permit_nothing"),
    ),
    row(
        "policy:preferences",
        "seed 002 §10; design 8",
        "what a user had remembered under a policy that asks by default permits nothing under one with a rule that "
        "asks or denies, or whose default denies, and holds again under the first",
        in_file("e2e/approvals/test_remember.py", "test_under_a_strict_policy_what_a_user_had_remembered_permits_nothing"),
    ),
    row(
        "policy:commands",
        "design 22",
        "remembered decisions are offered at the prompt, and listed, explained, accepted and removed at the command "
        "line, by whoever can write the policy",
        in_file(
            "cli/test_policy.py",
            "test_always_at_the_prompt_of_somebody_who_can_write_the_policy_holds_at_once",
            "test_for_this_run_at_the_prompt_and_never_and_a_slip_decides_nothing",
            "test_a_line_waits_until_an_operator_accepts_it_and_is_explained_and_removed",
            "test_what_cannot_be_done_is_said_in_one_line",
            "test_who_cannot_write_the_policy_accepts_nothing",
            "test_the_prompt_accepts_only_a_line_that_says_what_the_person_said",
        ),
    ),
)
