"""Typed output: the value that a task wants."""

from tests.requirements.requirement import in_file, row

E2E = "e2e/loop/test_output.py"
CLIENT = "client/test_output.py"
ROWS = (
    row(
        "output:malformed",
        "issue Typed output",
        "200 malformed answers in 11 kinds end as a valid value or as a failed run that says why, after at most 3 "
        "repairs, each of which is a step",
        in_file(E2E, "test_malformed_answers_of_every_kind_end_as_a_valid_value_or_a_failed_run_that_says_why"),
    ),
    row(
        "output:finish",
        "issue Typed output; design 22",
        "`finish` takes the schema with its references, and the Result holds the validated value",
        in_file(E2E, "test_finish_takes_the_schema_with_its_references_and_the_result_holds_the_value"),
    ),
    row(
        "output:any-type",
        "issue Typed output; design 22",
        "a typed output may be of any type",
        in_file(E2E, "test_the_value_may_be_of_any_type"),
    ),
    row(
        "output:as-json",
        "issue Typed output; design 22",
        "an endpoint without functions gives a typed output as JSON",
        in_file(E2E, "test_an_endpoint_without_functions_gives_the_value_as_json"),
    ),
    row(
        "output:repair",
        "issue Typed output",
        "a wrong answer goes back to the model with what is wrong, and a huge one without what was said",
        in_file(
            E2E,
            "test_a_wrong_answer_goes_back_with_what_is_wrong_and_with_what_was_said",
            "test_a_huge_wrong_answer_does_not_come_back_to_the_model",
        ),
    ),
    row(
        "output:none",
        "issue Typed output",
        "a run without success needs no output and gives none",
        in_file(E2E, "test_a_run_without_success_needs_no_value_and_gives_none"),
    ),
    row(
        "output:budget",
        "issue Typed output",
        "a run that its budget ends has no output and says so",
        in_file(E2E, "test_a_run_that_its_budget_ends_has_no_output_and_says_so"),
    ),
    row(
        "output:dropped",
        "issue Typed output",
        "a finish that is dropped beside a refused call is no repair",
        in_file(E2E, "test_a_finish_beside_a_refused_call_is_dropped_as_ever_and_is_no_repair"),
    ),
    row(
        "output:schema",
        "issue Typed output",
        "a schema that cannot be used is refused when the run begins, and with a plan at once",
        in_file(
            E2E,
            "test_a_schema_that_cannot_be_used_is_refused_when_the_run_begins",
            "test_a_plan_with_an_output_schema_is_refused",
        ),
    ),
    row(
        "output:secrets",
        "design 6",
        "a secret in the value is replaced before the value is checked and kept",
        in_file(E2E, "test_a_secret_in_the_value_is_replaced_before_it_is_checked"),
    ),
    row(
        "output:client",
        "issue Typed output",
        "a class of pydantic, or any type that pydantic knows, goes in with the task, and a value of it comes out",
        in_file(
            CLIENT,
            "test_a_class_of_pydantic_goes_in_and_a_value_of_it_comes_out",
            "test_any_type_that_pydantic_knows_may_be_asked_for",
        ),
    ),
    row(
        "output:large",
        "issue Typed output",
        "a value too large for the Result is read from the store",
        in_file(CLIENT, "test_a_value_too_large_for_the_result_is_read_from_the_store"),
    ),
    row(
        "output:error",
        "issue Typed output",
        "a run that did not complete raises its error instead of giving a value",
        in_file(CLIENT, "test_a_run_that_did_not_complete_raises_its_error_instead"),
    ),
    row(
        "output:other-type",
        "issue Typed output",
        "another type than the run's own is an error that quotes no value",
        in_file(CLIENT, "test_another_type_than_the_runs_own_is_an_error_that_quotes_no_value"),
    ),
    row(
        "output:no-schema",
        "issue Typed output",
        "a schema that is none is refused before anything is sent",
        in_file(CLIENT, "test_a_schema_that_is_none_is_refused_before_anything_is_sent"),
    ),
    row(
        "output:cli",
        "issue Typed output",
        "`run --output-schema FILE` reads the schema, and prints the value",
        in_file("cli/test_runs.py", "test_the_output_fits_the_schema_from_a_file"),
    ),
)
