"""What the answer to a write means, writes that are repeated, and the order of writes."""

from tests.requirements.requirement import in_file, row

E2E = "e2e/faults/test_answers_meaning.py"
UNIT = "toolbox/test_meaning.py"
ROWS = (
    row(
        "answer:doubtful",
        "design 4.4a",
        "an answer that only reports an error is doubtful, never undone by itself, and parked with what to check",
        in_file(
            E2E,
            "test_an_error_that_came_as_a_result_is_doubtful_and_never_undone",
            "test_no_undo_runs_for_an_answer_that_reports_an_error_in_any_shape",
        ),
    ),
    row(
        "doubtful:noticed",
        "design 4.4a",
        "an answer that only reports an error is noticed in all collected shapes, and an honest one is taken as it is",
        in_file(
            UNIT,
            "test_an_answer_that_only_reports_an_error_is_noticed",
            "test_an_answer_that_is_none_is_taken_as_it_is",
        ),
    ),
    row(
        "doubtful:hostile",
        "design 4.4a",
        "a hostile answer costs little and raises nothing",
        in_file(UNIT, "test_a_hostile_answer_costs_little_and_raises_nothing"),
    ),
    row(
        "answer:declared",
        "design 4.4a",
        "`succeeded_if` and `failed_if` decide what an answer means, for calls and for undos",
        in_file(
            E2E,
            "test_a_declared_failure_is_one_and_leaves_nothing_to_undo",
            "test_a_declared_success_is_one_whatever_the_answer_looks_like",
        ),
        in_file(UNIT, "test_a_declaration_decides_before_the_looks_of_an_answer"),
    ),
    row(
        "answer:verified",
        "design 4.4a",
        "where an answer reports an error, a check decides whether the act took place",
        in_file(E2E, "test_a_check_decides_about_an_answer_that_reports_an_error"),
    ),
    row(
        "verified:write",
        "design 4.4a",
        "an error of a tool with a check is verified before it counts as failed",
        in_file(E2E, "test_an_error_of_a_tool_with_a_check_is_verified_before_it_counts"),
    ),
    row(
        "verified:protocol",
        "design 4.4a",
        "an internal error of the protocol may have come after the act, and is verified before it counts",
        in_file(E2E, "test_an_internal_error_of_the_protocol_may_have_come_after_the_act"),
    ),
    row(
        "answer:undo",
        "design 4.4a",
        "an undo whose answer reports an error is never called compensated",
        in_file(
            E2E,
            "test_an_undo_whose_answer_reports_an_error_is_never_called_compensated",
            "test_no_undo_that_answers_with_an_error_in_any_shape_is_called_compensated",
        ),
    ),
    row(
        "answer:repeated",
        "design 8; issue Answers",
        "a write that a run has made before with the same arguments asks, and says when that was and what came of it",
        in_file(E2E, "test_a_call_that_repeats_a_write_is_asked_about_and_says_what_came_of_the_first"),
    ),
    row(
        "repeated:at-once",
        "design 8; issue Answers",
        "two equal calls of one message are asked about",
        in_file(E2E, "test_two_equal_calls_of_one_message_are_asked_about"),
    ),
    row(
        "repeated:failed",
        "design 8; issue Answers",
        "a call that failed may be made again",
        in_file(E2E, "test_a_call_that_failed_may_be_made_again"),
    ),
    row(
        "repeated:policy",
        "design 8; issue Answers",
        "a policy may allow repeats, and a task may forbid them",
        in_file(E2E, "test_a_policy_may_allow_repeats_and_a_task_may_forbid_them"),
    ),
    row(
        "answer:order",
        "design 4.4a",
        "writes of one message to one provider keep their order unless the provider is declared parallel",
        in_file(E2E, "test_writes_of_one_message_keep_their_order_unless_the_provider_is_parallel"),
    ),
)
