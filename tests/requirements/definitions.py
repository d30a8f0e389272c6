"""Definitions: plans that are kept in files."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "s002:definitions",
        "seed 002 §11; design 22; issue Definitions",
        "a plan in a file, in the seed's words too, runs with its input and without a model",
        in_file(
            "cli/test_definitions.py",
            "test_a_definition_runs_with_its_input_and_without_a_model",
            "test_steps_without_a_tool_take_class_and_method_as_its_name",
        ),
    ),
    row(
        "definitions:look",
        "design 22; issue Definitions",
        "definitions are listed, shown and checked, and one bad file hides no other",
        in_file(
            "cli/test_definitions.py",
            "test_definitions_are_listed_and_shown_as_text_and_json",
            "test_one_bad_file_is_told_by_validate_and_hides_no_other",
        ),
    ),
    row(
        "definitions:bad",
        "issue Definitions",
        "a bad definition names file, field and fix, and bad input starts nothing",
        in_file(
            "cli/test_definitions.py",
            "test_a_bad_definition_names_file_field_and_fix",
            "test_bad_input_for_a_definition_starts_nothing",
        ),
    ),
    row(
        "definitions:trust",
        "issue Definitions",
        "definitions of a folder that is not trusted are not obeyed",
        in_file("cli/test_definitions.py", "test_definitions_of_a_folder_that_is_not_trusted_are_not_obeyed"),
    ),
    row(
        "definitions:offered",
        "design 22",
        "a definition that is offered runs as a plan of the same run, and is no longer than the operator allows",
        in_file(
            "e2e/plans/test_proposals.py",
            "test_a_definition_that_is_offered_is_a_function_and_its_call_is_a_plan_like_any_other",
        ),
    ),
)
