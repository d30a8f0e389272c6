"""Plans: steps that run without a model."""

from tests.requirements.requirement import PLANS, PROFILES, in_file, row

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
        "plan:lifecycle",
        "design 10",
        "states, impact, amendments, review, confidence",
        deferred=PLANS,
    ),
    row(
        "loop:plan-first",
        "design 10",
        "mode plan_first makes a plan before it acts",
        deferred=PLANS,
    ),
    row(
        "s001:planner-tools",
        "seed 001 Tools",
        "planning sees read-only files, execution all tools",
        deferred=PLANS,
    ),
    row(
        "s001:create-plan",
        "seed 001 Tools",
        "create_plan, update_plan, mark_step",
        deferred=PLANS,
    ),
    row(
        "s002:states",
        "seed 002 §3",
        "the plan's state machine",
        deferred=PLANS,
    ),
    row(
        "s002:preview",
        "seed 002 §6",
        "a proposal shows steps, diffs, side effects and options",
        deferred=PLANS,
    ),
    row(
        "s002:review",
        "seed 002 §7",
        "review: lint, types, smoke, tests, artifacts, confidence",
        deferred=PLANS,
    ),
    row(
        "s002:immutable",
        "seed 002 App. B",
        "an approved plan is immutable; amendments are new plans",
        deferred=PLANS,
    ),
    row(
        "s002:retention",
        "seed 002 App. B",
        "plans and diffs are kept for three months",
        deferred=PLANS,
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
