"""Reviews: what is checked after a plan, how the checks are weighed, and what hostile code cannot do to them."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "review:rules",
        "design 22; issue Review",
        "rules of a review are strictly validated, and an error names the field and the fix",
        in_file(
            "backstay/test_review.py",
            "test_bad_rules_are_refused_with_the_field_and_the_fix",
            "test_rules_that_were_written_out_are_read_again_as_they_were",
        ),
    ),
    row(
        "review:confidence",
        "seed 002 §7; design 22",
        "the confidence is the weighted mean of the scores, and a failed critical check makes it 0",
        in_file(
            "backstay/test_review.py",
            "test_a_check_loses_with_every_fault",
            "test_the_confidence_is_the_weighted_mean_and_a_failed_critical_check_leaves_none",
            "test_no_check_lifts_the_confidence_above_the_best_or_below_the_worst",
        ),
        in_file(
            "e2e/plans/test_review.py",
            "test_a_clean_plan_is_reviewed_with_full_confidence",
            "test_what_is_wrong_lowers_the_confidence_and_a_critical_fault_takes_it_all",
        ),
    ),
    row(
        "s002:review",
        "seed 002 §7",
        "lint, types, imports and tests run in a jail, and find what is planted",
        in_file(
            "workspace/test_review.py",
            "test_a_clean_project_has_no_fault",
            "test_a_planted_fault_is_found",
            "test_a_library_that_is_not_here_is_no_error_of_types",
            "test_sources_in_src_and_options_of_absent_plugins_are_understood",
        ),
    ),
    row(
        "review:image",
        "issue Review; design 13",
        "the image of reviews is named by its content, holds ruff, mypy and pytest, and says which extra is missing",
        in_file(
            "sandbox/test_image.py",
            "test_the_image_of_reviews_is_the_same_in_every_folder_and_holds_its_tools",
            "test_without_the_extra_the_image_of_reviews_is_missing_and_says_what_to_install",
        ),
    ),
    row(
        "review:files",
        "seed 002 §7",
        "artifacts have the hash and the size that is expected, and JSON files fit their schema",
        in_file(
            "e2e/plans/test_review.py",
            "test_artifacts_are_compared_with_what_the_check_expects",
            "test_a_schema_that_cannot_be_used_and_a_file_that_is_no_json_are_told",
        ),
    ),
    row(
        "review:custom",
        "issue Review; design 22",
        "a read-only tool's answer is judged by condition, range and schema, and no other tool may be named",
        in_file(
            "backstay/test_review.py",
            "test_a_tool_that_does_more_than_read_is_refused",
            "test_an_answer_counts_only_when_condition_and_range_hold_beyond_doubt",
        ),
        in_file(
            "e2e/plans/test_reviewed_plans.py",
            "test_a_check_that_could_never_be_made_is_refused_before_the_first_step",
        ),
    ),
    row(
        "review:missing",
        "design 22; issue Review",
        "a check that could not be made counts as 0 and says why",
        in_file("workspace/test_review.py", "test_a_check_with_nothing_to_look_at_could_not_be_made"),
        in_file(
            "e2e/plans/test_review.py",
            "test_a_check_that_cannot_be_made_counts_as_0_and_says_why",
            "test_without_jails_every_check_of_code_counts_as_0_and_says_why",
        ),
    ),
    row(
        "review:hostile",
        "issue Review; seed 001 Security",
        "code that is reviewed is bounded, changes nothing in the workspace, and leaks no secret into the report",
        in_file(
            "workspace/test_review.py",
            "test_a_hostile_workspace_is_bounded_and_changes_nothing",
            "test_links_pipes_and_huge_files_harm_no_check",
            "test_tests_may_write_and_the_workspace_stays_as_it_is",
        ),
        in_file("e2e/plans/test_review.py", "test_no_secret_that_code_prints_reaches_the_report"),
    ),
)
