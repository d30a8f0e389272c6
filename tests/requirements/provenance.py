"""Where the text of a call's arguments first appeared."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "provenance:spelling",
        "design 8; issue Provenance",
        "a value is found in what others wrote however it is spelled or coded there, and numbers as values",
        in_file(
            "provenance/test_lookup.py",
            "test_a_target_is_found_in_the_words_of_others_however_it_is_spelled_there",
            "test_numbers_are_found_as_values",
            "test_a_whole_number_is_found_as_a_value_too",
            "test_words_on_both_sides_of_a_border_between_two_values_are_no_value_together",
        ),
    ),
    row(
        "provenance:places",
        "design 8; issue Provenance",
        "a value from two places names both, and one that was put together names all that it was put together from",
        in_file(
            "provenance/test_lookup.py",
            "test_a_target_that_was_split_over_two_answers_names_both",
            "test_a_value_that_stands_in_two_places_names_both_and_the_one_that_is_trusted_vouches_for_it",
            "test_nobody_vouches_for_an_address_that_is_put_together_from_pieces_which_others_hold",
            "test_what_only_the_model_says_comes_from_the_model",
            "test_what_a_program_computed_counts_as_what_it_had_read",
        ),
    ),
    row(
        "provenance:targets",
        "design 8",
        "texts may quote others, and a word that others use too makes no path theirs",
        in_file(
            "provenance/test_lookup.py",
            "test_a_word_that_others_use_too_does_not_make_a_path_theirs",
            "test_a_body_may_quote_others_and_is_no_target",
        ),
    ),
    row(
        "provenance:bounds",
        "design 8; design 21",
        "large answers are read to their end, and what travels with a call is bounded and has one meaning",
        in_file(
            "provenance/test_lookup.py",
            "test_a_large_answer_is_searched_to_its_last_word_and_takes_little_more_than_its_own_size",
            "test_many_arguments_are_told_of_within_bounds_and_those_that_others_direct_first",
            "test_a_code_stands_for_exactly_one_source",
        ),
    ),
    row(
        "provenance:from",
        "design 8; design 22",
        "conditions rule on where a value came from, cautiously where that is not known",
        in_file(
            "provenance/test_policy.py",
            "test_all_of_a_value_must_come_from_there_to_permit_and_a_part_is_enough_to_stop",
            "test_not_knowing_where_a_value_came_from_counts_against_the_call",
            "test_every_element_of_a_list_must_come_from_there",
            "test_an_operand_that_is_no_list_of_places_is_refused",
        ),
    ),
    row(
        "provenance:strict",
        "design 8; design 22",
        "the strict preset asks when only others say where a write goes, and names them",
        in_file(
            "provenance/test_policy.py",
            "test_the_strict_preset_asks_when_only_others_say_where_a_write_goes_and_names_them",
        ),
    ),
    row(
        "strict:task",
        "design 8; design 22",
        "a task can make provenance strict and never loosen it",
        in_file("provenance/test_policy.py", "test_a_task_can_make_provenance_strict_and_never_loosen_it"),
    ),
    row(
        "strict:person",
        "design 8; design 22",
        "what a person changed comes from that person",
        in_file("provenance/test_policy.py", "test_what_a_person_changed_comes_from_that_person"),
    ),
    row(
        "provenance:egress",
        "design 22; issue Provenance",
        "reads that reach out are ruled by their own class, unless what leaves comes from the task or a person",
        in_file(
            "provenance/test_policy.py",
            "test_reads_that_reach_out_have_a_class_of_their_own",
            "test_a_task_without_an_opinion_on_reads_that_reach_out_changes_nothing",
        ),
        in_file(
            "provenance/test_runs.py",
            "test_a_page_whose_address_carries_what_was_read_is_not_fetched_unasked",
            "test_a_page_that_the_task_names_is_fetched_unasked_and_one_that_the_model_makes_up_is_not",
            "test_a_search_with_words_of_an_answer_is_asked_about_and_one_with_the_models_own_is_not",
        ),
    ),
    row(
        "provenance:shown",
        "design 8; design 22",
        "requests, the terminal, the Web UI and the event of the call say where each argument first appeared",
        in_file(
            "provenance/test_runs.py",
            "test_a_request_says_where_each_argument_first_appeared_and_the_event_of_the_call_keeps_it",
            "test_own_records_and_the_task_direct_writes_unasked",
            "test_the_words_of_an_error_are_words_of_others",
            "test_a_person_may_give_a_call_another_target_and_that_comes_from_the_person",
            "test_an_answer_of_nobody_verified_vouches_for_nothing",
        ),
    ),
    row(
        "provenance:kept",
        "design 6; issue Provenance",
        "trimmed history and large answers count, also for a worker that never saw them",
        in_file(
            "provenance/test_runs.py",
            "test_the_last_words_of_a_large_answer_count",
            "test_a_value_is_known_again_after_its_answer_was_trimmed_and_by_a_worker_that_never_saw_it",
        ),
    ),
    row(
        "provenance:programs",
        "design 5; design 8; issue Provenance",
        "calls of programs and references of plans say where their arguments came from, and are asked about by it",
        in_file(
            "provenance/test_runs.py",
            "test_a_program_is_asked_about_a_target_that_comes_from_others",
            "test_what_a_program_returned_counts_as_computed_from_what_it_read",
            "test_a_plan_is_asked_about_again_when_what_a_step_returned_says_where_a_write_goes",
        ),
    ),
    row(
        "provenance:cost",
        "design 21; issue Provenance",
        "a call is looked up in 5 ms, a megabyte is indexed in 50 ms, and history pays only where somebody looks",
        in_file(
            "provenance/test_runs.py",
            "test_where_no_rule_and_no_person_looks_at_it_history_holds_nothing_of_it",
        ),
        in_file(
            "test_benchmarks.py",
            "test_a_call_is_looked_up_in_5_ms_and_a_megabyte_of_new_answer_indexed_in_50_ms",
        ),
    ),
    row(
        "provenance:material",
        "issue Provenance",
        "no injection that provenance can see directs a write unasked, and the request names the answer that it "
        "came from",
        in_file(
            "provenance/test_material.py",
            "test_what_others_wrote_directs_no_write_unasked_and_the_request_names_the_answer_it_came_from",
        ),
    ),
    row(
        "material:honest",
        "issue Provenance",
        "honest writes go on unasked",
        in_file("provenance/test_material.py", "test_honest_writes_go_on_unasked"),
    ),
    row(
        "material:soak",
        "issue Provenance",
        "of forty tasks and six injections, none that brings its target directs a write unasked, and honest ones go on",
        in_file(
            "soak/test_provenance.py",
            "test_no_injection_that_brings_its_target_directs_a_write_unasked_and_honest_ones_go_on",
        ),
    ),
)
