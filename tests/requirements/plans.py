"""Plans: steps that run without a model."""

from tests.requirements.requirement import PLANS, PROFILES, in_file, row


def proposals(test):
    """Return where a test of proposals stands."""
    return in_file("e2e/test_proposals.py", test)


def cli(test):
    """Return where a test of plans at the terminal stands."""
    return in_file("cli/test_plans.py", test)


ROWS = (
    row(
        "plan:order",
        "issue Plans; seed 002 §1; design 3",
        "a plan asks once for all its writes and performs its steps in order",
        in_file("e2e/test_plans.py", "test_a_plan_asks_once_for_all_its_writes_and_performs_its_steps_in_order"),
    ),
    row(
        "plan:nothing-asked",
        "issue Plans",
        "a plan that only reads or is allowed asks nothing",
        in_file("e2e/test_plans.py", "test_a_plan_that_only_reads_or_is_allowed_asks_nothing"),
    ),
    row(
        "plan:references",
        "design 22; seed 002 §11",
        "a lone reference to input or an earlier result keeps the type of its value",
        in_file("e2e/test_plans.py", "test_a_lone_reference_keeps_the_type_of_its_value"),
    ),
    row(
        "plan:bad-reference",
        "design 22",
        "a reference that can lead nowhere ends the plan before anything is done",
        in_file("e2e/test_plans.py", "test_a_reference_that_can_lead_nowhere_ends_the_plan_before_anything_is_done"),
    ),
    row(
        "plan:abort",
        "design 10; seed 002 §3",
        "a step that may fail does not end the plan, and what needs its result is not sent",
        in_file("e2e/test_plans.py", "test_a_step_that_may_fail_does_not_end_the_plan_and_what_needs_it_is_not_sent"),
    ),
    row(
        "plan:rejected",
        "design 10; seed 002 §3",
        "a denied step, and a rejected one that may not fail, ends the plan before its first step",
        in_file(
            "e2e/test_plans.py",
            "test_a_rejected_step_ends_the_plan_before_its_first_step_unless_it_may_fail",
            "test_a_denied_step_ends_the_plan_before_its_first_step",
        ),
    ),
    row(
        "plan:changed",
        "issue Plans",
        "a person may change a step that still refers to another",
        in_file("e2e/test_plans.py", "test_a_person_may_change_a_step_that_still_refers_to_another"),
    ),
    row(
        "plan:undo",
        "issue Plans",
        "any other failing step ends the plan and takes back the earlier ones",
        in_file(
            "e2e/test_plans.py",
            "test_a_reference_to_what_a_step_did_not_return_fails_that_step_and_takes_back_the_earlier_ones",
        ),
    ),
    row(
        "plan:transactional",
        "design 22; seed 002 §4",
        "a transactional step that cannot be undone is an invalid task",
        in_file("e2e/test_plans.py", "test_a_transactional_step_that_cannot_be_undone_is_an_invalid_task"),
    ),
    row(
        "plan:safety",
        "design 22",
        "the safety of a step may only be raised",
        in_file("e2e/test_plans.py", "test_the_safety_of_a_step_may_only_be_raised"),
    ),
    row(
        "plan:timeout",
        "design 22; seed 002 §5",
        "a step waits no longer than its timeout",
        in_file("e2e/test_plans.py", "test_a_step_waits_no_longer_than_its_timeout"),
    ),
    row(
        "plan:invalid",
        "design 22; seed 002 §8",
        "a malformed plan, or one of more than 20 steps, is an invalid task that names the field",
        in_file("e2e/test_plans.py", "test_a_malformed_plan_is_an_invalid_task_that_names_the_field"),
    ),
    row(
        "plan:catalog",
        "design 22",
        "a step that does not fit the catalog ends the plan before anything is done",
        in_file("e2e/test_plans.py", "test_a_step_that_does_not_fit_the_catalog_ends_the_plan_before_anything_is_done"),
    ),
    row(
        "plan:proposed",
        "design 22; seed 002 §6",
        "a model's plan is shown whole and runs after approval",
        proposals("test_a_model_proposes_a_plan_that_people_see_whole_and_then_it_runs_step_by_step"),
    ),
    row(
        "plan:alternatives",
        "design 22",
        "of two alternatives the approved one runs",
        proposals("test_of_two_alternatives_the_one_that_is_approved_runs_and_the_other_is_not_chosen"),
    ),
    row(
        "plan:parts",
        "design 22",
        "each part of a plan is decided by its own people",
        proposals("test_each_part_of_a_plan_is_decided_by_its_own_people_and_the_plan_waits_for_all"),
    ),
    row(
        "s001:create-plan",
        "seed 001 Tools; design 22",
        "a rejected plan is an answer, and update_plan makes its child",
        proposals("test_a_rejected_plan_is_an_answer_and_the_next_version_is_its_child"),
    ),
    row(
        "s002:immutable",
        "seed 002 App. B; design 10",
        "a changed step makes a child plan that needs approval of its own hash",
        proposals("test_a_step_that_a_person_changes_makes_a_child_plan_that_needs_approval_of_its_own_hash"),
    ),
    row(
        "plan:per-step",
        "seed 002 §6",
        "a plan approved per step goes on without the rejected ones",
        proposals("test_a_plan_that_is_approved_per_step_goes_on_without_the_steps_that_were_rejected"),
    ),
    row(
        "plan:groups",
        "design 22; seed 002 §8",
        "a group of which a step fails is taken back",
        proposals("test_a_group_of_which_a_step_fails_is_taken_back_and_the_rest_of_the_plan_goes_on"),
    ),
    row(
        "s002:transactions",
        "seed 002 §8",
        "a failed plan takes back its transactional steps",
        proposals("test_a_plan_that_fails_takes_back_its_transactional_steps_and_the_model_goes_on"),
    ),
    row(
        "s002:states",
        "seed 002 §3; design 22",
        "undoing a run takes its plan back, and every state is told",
        proposals("test_undoing_a_run_takes_its_plan_back"),
    ),
    row(
        "loop:plan-first",
        "design 10; seed 001 Tools",
        "mode plan_first does nothing before a plan is approved",
        proposals("test_a_run_that_plans_first_does_nothing_before_a_plan_is_approved"),
    ),
    row(
        "plan:malformed",
        "design 22",
        "a malformed proposal is refused by name",
        proposals("test_a_malformed_proposal_is_refused_by_name_and_nobody_is_asked"),
    ),
    row(
        "s002:review",
        "seed 002 §7",
        "review: lint, types, smoke, tests, artifacts, confidence",
        deferred=PLANS,
    ),
    row(
        "s002:retention",
        "seed 002 App. B",
        "plans and diffs are kept for three months, longer than what a run can be undone with",
        in_file(
            "cli/test_prune.py",
            "test_the_plans_and_decisions_of_a_pruned_run_stay_until_they_are_old_enough_themselves",
        ),
    ),
    row(
        "plan:edges",
        "design 22",
        "plans and steps follow exactly the edges of the tables, and an undo after the end is told",
        in_file(
            "backstay/test_plan_run.py",
            "test_a_plan_and_a_step_follow_exactly_the_edges",
            "test_an_undo_after_the_end_leaves_a_plan_in_the_state_that_its_effects_show",
        ),
    ),
    row(
        "plan:drawn",
        "seed 002 §6; design 22",
        "a proposal is drawn whole, with marks at each step and the command that chooses each alternative",
        cli("test_a_proposal_is_drawn_whole_with_the_command_that_chooses_each_alternative"),
    ),
    row(
        "plan:flags",
        "seed 002 §6, App. B",
        "flags approve a plan in part, and its story says who said what of which hash",
        cli("test_flags_approve_a_plan_in_part_and_the_story_says_who_said_what"),
    ),
    row(
        "s002:plan-export",
        "seed 002 App. B",
        "plan diff tells what a child changes, and plan export tells all, also after an undo",
        cli("test_diff_tells_what_a_child_plan_changes_and_export_tells_all_until_after_the_undo"),
    ),
    row(
        "plan:asked",
        "seed 002 §6",
        "a person at the terminal chooses another plan, edits a step, and leaves a step out",
        cli("test_a_person_chooses_another_plan_edits_a_step_and_leaves_a_step_out"),
    ),
    row(
        "plan:mode",
        "design 22",
        "run takes a mode, and a run without a plan says so",
        cli("test_run_takes_a_mode_and_a_run_without_a_plan_says_so"),
    ),
    row(
        "plan:answers",
        "design 22",
        "raw_outputs of a plan, failed or not, hold the short answers of its steps",
        cli("test_the_result_of_a_plan_holds_the_short_answers_of_its_steps"),
    ),
    row(
        "s003:perception",
        "seed 003 perception",
        "intent, entities, tool_hint, tags, selected_servers",
        deferred=PROFILES,
    ),
    row(
        "s003:strategies",
        "seed 003 context",
        "conservative and exploratory strategies",
        deferred=PROFILES,
    ),
    row(
        "s003:lifelines",
        "seed 003 loop",
        "lifelines per step",
        deferred=PROFILES,
    ),
    row(
        "s003:config",
        "seed 003 agent",
        "models and profiles from files",
        deferred=PROFILES,
    ),
)
