"""Redaction, secret handles and what is sealed."""

from tests.requirements.requirement import PRODUCTION, in_file, row

ROWS = (
    row(
        "redact:arriving",
        "design 22",
        "a text that is shown while it arrives shows no planted secret, wherever it is cut",
        in_file("backstay/test_arriving.py", "test_a_secret_is_never_shown_wherever_it_is_cut"),
    ),
    row(
        "arriving:known",
        "design 22",
        "a known secret is shown neither in another spelling nor when it is short",
        in_file(
            "backstay/test_arriving.py",
            "test_a_known_secret_is_never_shown_in_another_spelling",
            "test_a_short_known_secret_is_not_shown_either",
        ),
    ),
    row(
        "arriving:whole",
        "design 22",
        "what is shown while it arrives is the redacted whole, over however many pieces",
        in_file("backstay/test_arriving.py", "test_what_is_shown_is_the_redacted_text_however_it_is_cut"),
    ),
    row(
        "arriving:words",
        "design 22",
        "ordinary words are not held up, also in a script without spaces",
        in_file(
            "backstay/test_arriving.py",
            "test_ordinary_text_is_shown_word_by_word",
            "test_a_text_without_spaces_in_another_script_is_shown_while_it_arrives",
        ),
    ),
    row(
        "arriving:bound",
        "design 22",
        "a long text is shown up to a bound and says so, and a secret that the bound cuts is not shown",
        in_file(
            "backstay/test_arriving.py",
            "test_a_long_text_is_shown_up_to_a_bound_and_says_so",
            "test_a_secret_that_is_cut_by_the_bound_is_not_shown",
        ),
    ),
    row(
        "secret:total",
        "design 6; seed 000 §5; seed 000 §13",
        "redaction is total and idempotent, keeps the structure, and finds a secret in every planted place",
        in_file(
            "backstay/test_redaction.py",
            "test_redaction_is_total_idempotent_and_keeps_the_structure",
            "test_no_secret_survives",
        ),
    ),
    row(
        "s000:redact-corpus",
        "design 6",
        "of a labelled corpus, half of it held out, most secrets are found in every place, little else is taken "
        "for one, and redacting again changes nothing",
        in_file(
            "redaction/test_corpus.py",
            "test_the_corpus_is_as_large_and_as_mixed_as_it_says",
            "test_most_secrets_are_found_in_every_place_and_little_else_is_taken_for_one",
            "test_redacting_again_changes_nothing",
        ),
    ),
    row(
        "secret:from-afar",
        "design 6",
        "a secret is found where a text or a name beside it speaks of it",
        in_file(
            "backstay/test_redaction.py",
            "test_words_beside_a_name_and_sentences_do_not_hide_a_secret",
            "test_a_secret_is_found_where_a_text_names_it_from_afar",
        ),
    ),
    row(
        "secret:no-secret",
        "design 6",
        "what is no secret, only refers to one, or speaks of one stays as it is",
        in_file(
            "backstay/test_redaction.py",
            "test_what_is_no_secret_stays",
            "test_what_only_refers_to_a_secret_or_speaks_of_one_stays",
            "test_what_only_has_to_do_with_a_secret_stays",
        ),
    ),
    row(
        "s000:redact",
        "seed 000 §5",
        "own names replace the usual names of secrets, and masks say what was there",
        in_file("backstay/test_redaction.py", "test_masks_say_what_was_there", "test_own_names_replace_the_usual_ones"),
    ),
    row(
        "secret:known",
        "design 6",
        "a secret the process knows is found in every place and spelling and among numbers, unless it is too short",
        in_file(
            "backstay/test_redaction.py",
            "test_a_known_secret_is_found_in_every_place_and_spelling",
            "test_a_known_number_is_found_among_numbers",
            "test_short_known_values_are_not_looked_for",
        ),
    ),
    row(
        "secret:odd-payloads",
        "design 6",
        "long hostile texts, values that are no JSON and secrets used as names are redacted, and no entry is lost",
        in_file(
            "backstay/test_redaction.py",
            "test_two_secrets_as_names_keep_both_entries",
            "test_a_long_hostile_text_is_redacted",
            "test_values_that_are_no_json_are_redacted_too",
        ),
    ),
    row(
        "secret:logs",
        "design 18; design 16",
        "a text for logs is redacted like a payload, and no stored secret reaches logs or errors",
        in_file("backstay/test_redaction.py", "test_a_text_for_logs_is_redacted_like_a_payload"),
        in_file("store/test_secret_handles.py", "test_no_secret_reaches_logs_or_errors"),
    ),
    row(
        "secret:handles",
        "design 6",
        "a handle takes a secret's place, is the same for equal secrets in one run only, and redaction leaves it alone",
        in_file(
            "backstay/test_redaction.py",
            "test_handles_are_left_alone_when_they_are_met_again",
            "test_handles_take_the_place_of_secrets_and_tell_their_values",
        ),
        in_file("backstay/test_secret.py", "test_equal_secrets_have_equal_handles_in_one_run_only"),
    ),
    row(
        "secret:grammar",
        "design 6",
        "a handle keeps to its grammar and knows its provider, and what only looks like one is none",
        in_file(
            "backstay/test_secret.py",
            "test_a_handle_is_found_again_and_knows_its_provider",
            "test_providers_that_look_alike_in_a_handle_stay_apart",
            "test_a_handle_keeps_to_its_grammar_whatever_the_label",
            "test_what_only_looks_like_a_handle_is_none",
            "test_a_broken_handle_does_not_hide_the_one_after_it",
        ),
    ),
    row(
        "secret:replaced",
        "design 6",
        "handles become their values whole or inside a text",
        in_file("backstay/test_secret.py", "test_handles_become_their_values_whole_or_inside_a_text"),
    ),
    row(
        "secret:home",
        "design 6",
        "a handle goes back to its own provider as the value, and is revealed in its own run only",
        in_file("e2e/tools/test_secrets.py", "test_a_handle_goes_back_to_its_own_provider_as_the_value"),
        in_file("store/test_secret_handles.py", "test_a_handle_is_revealed_in_its_own_run_only"),
        in_file("activities/test_arguments.py", "test_a_handle_of_another_run_is_unknown_here"),
    ),
    row(
        "secret:elsewhere",
        "design 6",
        "a secret towards another provider is asked about, saying so",
        in_file(
            "e2e/tools/test_secrets.py",
            "test_a_handle_towards_another_provider_is_asked_about",
            "test_a_reference_of_a_plan_brings_a_secret_back_to_its_own_provider_and_to_no_other",
        ),
        in_file("backstay/test_policy.py", "test_a_secret_of_another_provider_is_asked_about"),
        in_file(
            "activities/test_arguments.py",
            "test_whose_secrets_stand_in_a_long_text_is_seen_by_the_policy_that_does_not_see_the_text",
        ),
    ),
    row(
        "secret:forged",
        "design 6",
        "a forged secret handle is never sent",
        in_file("e2e/faults/test_faults_answers.py", "test_a_forged_secret_handle_is_never_sent"),
    ),
    row(
        "secret:ten-places",
        "issue Bad input; design 3",
        "secrets planted in ten places of a tool's answers appear in no history, prompt, log or Result",
        in_file("e2e/tools/test_secrets.py", "test_a_secret_in_a_tools_answer_appears_nowhere_outside"),
    ),
    row(
        "secret:echoes",
        "issue Secrets come back masked Done 3",
        "of 1,000 times that a tool says a secret back, in any spelling of a table, through calls and programs, "
        "none stands in clear in a prompt, history, log or the store's shown side",
        in_file("e2e/faults/test_echoes.py", "test_a_tool_that_says_secrets_back_in_any_spelling_leaves_none_in_clear"),
    ),
    row(
        "echoes:descriptions",
        "issue Secrets come back masked Done 3",
        "a server that says a secret in the descriptions of its tools tells it to nobody",
        in_file(
            "e2e/faults/test_echoes.py",
            "test_a_server_that_says_a_secret_in_the_descriptions_of_its_tools_tells_it_to_nobody",
        ),
    ),
    row(
        "secret:held",
        "issue Secrets come back masked",
        "a provider that repeats a secret of a run gets the same handle in that run",
        in_file("activities/test_run_secrets.py", "test_a_provider_that_repeats_its_secret_gets_the_same_handle"),
    ),
    row(
        "held:beside",
        "issue Secrets come back masked",
        "a secret is masked beside the field that gives it away",
        in_file("activities/test_run_secrets.py", "test_a_secret_is_masked_beside_the_field_that_gives_it_away"),
    ),
    row(
        "held:spelling",
        "issue Secrets come back masked",
        "a secret that is said in another spelling goes back as it was said",
        in_file("activities/test_run_secrets.py", "test_what_is_said_in_another_spelling_goes_back_as_it_was_said"),
    ),
    row(
        "held:workers",
        "issue Secrets come back masked",
        "another worker knows at once what a run holds",
        in_file("activities/test_run_secrets.py", "test_another_worker_knows_what_a_run_holds_at_once"),
    ),
    row(
        "held:errors",
        "issue Secrets come back masked",
        "errors, progress and what a library logs of a tool's answer are masked too",
        in_file(
            "activities/test_run_secrets.py",
            "test_errors_and_progress_are_masked_too",
            "test_what_a_library_logs_of_a_tools_answer_is_masked",
        ),
    ),
    row(
        "secret:carriers",
        "issue Secrets come back masked",
        "what only looks like a handle or a mask carries no secret, real handles stay, masking again changes nothing",
        in_file(
            "activities/test_run_secrets.py",
            "test_a_handle_or_a_mask_that_is_made_up_carries_no_secret",
            "test_a_provider_whose_name_is_a_secret_keeps_its_handles",
            "test_a_handle_of_another_run_says_nothing_here",
            "test_masking_again_changes_nothing_and_a_spelling_is_no_new_secret",
        ),
    ),
    row(
        "secret:reveal",
        "issue Secrets come back masked; design 22",
        "a secret in an answer is shown to whom the policy names, after that is recorded, and stands nowhere in clear",
        in_file(
            "e2e/approvals/test_reveal.py",
            "test_a_link_in_the_final_answer_is_shown_to_its_owner_and_that_is_recorded",
            "test_the_command_prints_the_secret_and_nothing_else",
            "test_what_is_no_secret_of_the_run_is_not_shown",
            "test_only_those_whom_the_policy_names_are_shown_a_secret",
            "test_every_proof_that_does_not_hold_is_refused_where_secrets_are_shown",
        ),
    ),
    row(
        "secret:sealed",
        "design 6",
        "with keys set, raw payloads and secrets are encrypted on disk",
        in_file("e2e/tools/test_secrets.py", "test_with_keys_nothing_sealed_can_be_read_on_disk"),
        in_file("store/test_blobs.py", "test_with_a_key_nothing_sealed_lies_on_disk_in_clear"),
        in_file("store/test_secret_handles.py", "test_with_a_key_no_secret_lies_on_disk_in_clear"),
    ),
    row(
        "secret:rotate",
        "design 18",
        "keys are rotated by putting the new one first",
        in_file("store/test_blobs.py", "test_keys_are_rotated_by_putting_the_new_one_first"),
    ),
    row(
        "secret:unkeyed",
        "design 18",
        "what was sealed without keys stays readable, and is encrypted when it is sealed again",
        in_file(
            "store/test_blobs.py",
            "test_what_was_sealed_without_keys_is_readable_later_and_encrypted_when_it_is_sealed_again",
        ),
    ),
    row(
        "secret:bad-keys",
        "design 18",
        "a missing, wrong or bad key is named by its place and not shown",
        in_file(
            "store/test_blobs.py",
            "test_a_missing_or_wrong_key_is_named_as_the_cause",
            "test_a_bad_key_is_refused_by_its_place_and_not_shown",
        ),
    ),
    row(
        "secret:kept-apart",
        "design 6",
        "a sealed payload cannot be swapped or read under a shown ref, and its ref reveals neither its hash nor a key",
        in_file(
            "store/test_blobs.py",
            "test_a_sealed_payload_cannot_be_swapped_for_another",
            "test_a_shown_ref_cannot_read_what_is_sealed_nor_the_other_way_round",
            "test_the_ref_of_a_sealed_payload_does_not_reveal_its_hash_nor_the_key_of_a_run",
        ),
    ),
    row(
        "secret:remembered",
        "design 6",
        "what a handle stands for never changes, thousands of them fit, and a secret value does not show itself",
        in_file(
            "store/test_secret_handles.py",
            "test_what_a_handle_stands_for_never_changes",
            "test_thousands_of_handles_fit",
            "test_a_secret_value_does_not_show_itself",
        ),
    ),
    row(
        "secret:run-key",
        "design 6",
        "the key of a run is derived from the store's secret, which is never shown",
        in_file(
            "store/test_identity.py", "test_a_run_key_is_the_keyed_hash_of_the_run", "test_the_secret_is_never_shown"
        ),
    ),
    row(
        "secret:variables",
        "design 22",
        "values of ${NAME} are read on the worker, are secrets, and are never part of a message",
        in_file("toolbox/test_configuration.py", "test_values_of_variables_are_secrets_and_never_part_of_a_message"),
    ),
    row(
        "loop:big-leaf",
        "design 3",
        "large leaves and secrets of arguments are stored beside history and come back whole at the tool",
        in_file(
            "activities/test_arguments.py",
            "test_unfolding_gives_back_what_was_folded_and_history_holds_no_big_leaf_and_no_secret",
        ),
        in_file(
            "e2e/approvals/test_approvals_hostile.py",
            "test_a_text_of_ten_kilobytes_is_a_reference_in_history_and_whole_at_the_tool",
        ),
    ),
    row(
        "loop:forged-ref",
        "design 3",
        "a reference that only the engine may write is refused at any depth, and so is one that names no argument",
        in_file(
            "activities/test_arguments.py",
            "test_an_element_that_only_the_engine_may_write_is_refused_at_any_depth",
            "test_a_ref_that_names_no_argument_is_refused",
        ),
        in_file("e2e/faults/test_faults_answers.py", "test_a_forged_reference_to_a_stored_argument_is_refused"),
    ),
    row(
        "loop:argument-limits",
        "design 6",
        "arguments that are too large or nested too deeply are refused",
        in_file("activities/test_arguments.py", "test_what_is_too_large_or_too_deep_is_refused"),
    ),
    row(
        "trust:names",
        "design 18; seed 004 Security",
        "secrets among the settings are known to redaction and never shown",
        in_file("backstay/test_settings.py", "test_secrets_are_known_but_never_shown"),
    ),
    row(
        "secret:codec",
        "design 18",
        "payload encryption of Temporal's history",
        deferred=PRODUCTION,
    ),
)
