"""Transcripts, trimming and digests: what a model is shown of what happened."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "context:addressed",
        "design 6",
        "a transcript reads the same from the store as from memory, and extending it by nothing writes nothing",
        in_file(
            "activities/test_transcript.py",
            "test_a_chain_reads_the_same_from_disk_as_from_memory",
            "test_extending_by_nothing_writes_nothing",
        ),
    ),
    row(
        "context:bounded",
        "design 6",
        "a transcript far longer than what a model can be shown forgets its oldest exchanges, everywhere",
        in_file(
            "activities/test_transcript.py",
            "test_a_very_long_chain_is_cut_at_its_beginning_and_shows_the_model_the_same_tools",
        ),
    ),
    row(
        "context:shown",
        "design 6",
        "the model is shown the digest of a result with its ref, and never the sealed form",
        in_file(
            "activities/test_transcript.py", "test_the_model_is_shown_the_digest_of_a_result_and_never_the_sealed_form"
        ),
    ),
    row(
        "context:trim",
        "design 6; seed 000 §3; seed 000 §13",
        "trimming is deterministic: what is pinned stays in order, the oldest answers go first, calls keep their "
        "answers, and what was dropped is named",
        in_file(
            "backstay/test_trimming.py",
            "test_what_is_pinned_stays_in_order_and_every_answer_keeps_its_call",
            "test_it_fits_or_only_the_last_exchange_and_what_is_pinned_are_left",
            "test_the_oldest_answers_go_first_and_the_newest_two_stay",
            "test_what_was_dropped_whole_is_named",
            "test_to_shorten_what_was_shortened_to_a_larger_cap_leads_to_the_same",
        ),
    ),
    row(
        "context:digest-keys",
        "design 6; seed 000 §5; seed 000 §13",
        "a digest has eight keys and fits its limit, whatever the payload",
        in_file("backstay/test_digest.py", "test_a_digest_has_eight_keys_and_fits_whatever_the_payload"),
    ),
    row(
        "context:purposes",
        "design 6; seed 000 §5",
        "the three purposes of a digest tell different things",
        in_file("backstay/test_digest.py", "test_the_purposes_tell_different_things"),
    ),
    row(
        "context:whole",
        "design 6; seed 000 §5",
        "a small payload passes whole, a large one as a digest that refers to the stored whole",
        in_file(
            "backstay/test_digest.py",
            "test_a_payload_that_fits_is_shown_whole_in_its_digest",
            "test_a_small_result_passes_whole_and_a_large_one_by_its_digest",
        ),
    ),
    row(
        "context:tables",
        "design 6",
        "a table is told in columns with sums, ranges and gaps",
        in_file("backstay/test_digest.py", "test_a_table_is_told_in_columns"),
    ),
    row(
        "context:oddities",
        "design 6",
        "odd values and what lies far out are noted in a digest",
        in_file("backstay/test_digest.py", "test_oddities_are_noted", "test_what_lies_far_out_is_noted"),
    ),
    row(
        "context:entries",
        "issue Answers that inform",
        "a digest always shows an entry, and a whole one where it has room",
        in_file("backstay/test_digest.py", "test_a_digest_always_shows_an_entry_and_a_whole_one_where_it_has_room"),
    ),
    row(
        "entries:by-id",
        "issue Answers that inform",
        "an object keyed by ids is told as a table with whole entries, and unlike parts of a record are no entries",
        in_file(
            "backstay/test_digest.py",
            "test_an_object_keyed_by_ids_is_told_as_a_table_with_whole_entries",
            "test_unlike_parts_of_a_record_are_no_entries",
        ),
    ),
    row(
        "entries:task",
        "issue Answers that inform",
        "a digest prefers fields that the task names where there is no room for all",
        in_file("backstay/test_digest.py", "test_fields_that_the_task_names_are_shown_where_there_is_no_room_for_all"),
        in_file(
            "e2e/approvals/test_informing.py",
            "test_a_cut_object_keyed_by_ids_shows_entries_with_the_field_that_the_task_names",
        ),
    ),
    row(
        "entries:size",
        "issue Answers that inform",
        "a digest is as long as its setting lets it be",
        in_file("backstay/test_digest.py", "test_a_digest_is_as_long_as_it_may_be"),
    ),
    row(
        "s000:summarize-lines",
        "seed 000 §5",
        "texts are told by head and tail, logs by levels and times, threads of mail by who wrote about what",
        in_file(
            "backstay/test_digest.py",
            "test_a_text_is_told_by_its_head_and_tail",
            "test_a_log_is_told_by_levels_times_and_what_its_lines_have_in_common",
            "test_a_level_is_read_as_loggers_write_it",
            "test_words_that_only_look_like_levels_make_no_log",
            "test_a_thread_of_mails_is_told_by_who_wrote_about_what",
        ),
    ),
    row(
        "context:other-payloads",
        "design 6",
        "a text that holds JSON is told like JSON, bytes by size and hash",
        in_file(
            "backstay/test_digest.py",
            "test_a_text_that_holds_json_is_told_like_json",
            "test_bytes_are_told_by_size_and_hash",
        ),
    ),
    row(
        "context:refused",
        "design 6",
        "a limit or purpose that does not exist is refused by name",
        in_file("backstay/test_digest.py", "test_what_cannot_be_done_is_refused"),
    ),
    row(
        "context:clean",
        "design 6",
        "any value of Python becomes strict JSON, what is JSON already stays as it is, and deep nesting is cut",
        in_file(
            "backstay/test_digest.py",
            "test_cleaning_is_total_strict_and_idempotent",
            "test_what_is_json_already_is_not_built_anew",
            "test_what_is_no_json_is_found_at_any_depth",
            "test_values_of_python_become_json",
            "test_deep_nesting_is_cut",
        ),
    ),
    row(
        "context:20mb",
        "issue Bad input",
        "a result of 20 MB comes through from its server and is digested",
        in_file("backstay/test_digest.py", "test_twenty_megabytes_are_digested"),
        in_file("toolbox/test_calls.py", "test_twenty_megabytes_come_through"),
    ),
    row(
        "fault:tool-20mb",
        "issue Bad input; design 3",
        "a 20 MB answer leaves a few kilobytes of history and of prompt, and the run goes on",
        in_file("e2e/faults/test_faults_tools.py", "test_twenty_megabytes_leave_a_few_kilobytes_of_history"),
    ),
    row(
        "context:speed",
        "issue 4 Digest",
        "20 MB of the measured shapes are digested in under two seconds, and a megabyte is redacted in half a second",
        in_file(
            "test_benchmarks.py",
            "test_twenty_megabytes_of_the_measured_shapes_were_digested_in_less_than_two_seconds",
            "test_a_megabyte_was_redacted_in_half_a_second",
        ),
    ),
)
