"""The store: its identity, its files, its records of runs and events, its blobs."""

from tests.requirements.requirement import AUDIT, CONNECTIONS, MEMORY, PRODUCTION, in_file, row

ROWS = (
    row(
        "store:identity",
        "design 14",
        "another store is refused and both are named, and two databases are two stores, on SQLite and on Postgres",
        in_file("store/test_identity.py", "test_another_store_is_refused_and_both_are_named"),
        in_file("store/test_opening.py", "test_two_databases_are_two_stores"),
    ),
    row(
        "store:epoch",
        "design 14",
        "a restored store has a new, later epoch and is otherwise the same store",
        in_file(
            "store/test_identity.py",
            "test_a_new_epoch_is_the_same_store_and_is_noticed",
            "test_every_new_epoch_is_later",
            "test_two_restores_of_one_backup_lead_to_different_epochs",
        ),
    ),
    row(
        "store:restored",
        "design 14",
        "after a restore only a first attempt without a row goes",
        in_file("store/test_begin.py", "test_after_a_restore_only_a_first_attempt_without_a_row_goes"),
    ),
    row(
        "restored:settled",
        "design 14",
        "what was lost in a restore can be settled and sent anew",
        in_file("store/test_begin.py", "test_what_was_lost_in_a_restore_can_be_settled_and_sent_anew"),
    ),
    row(
        "store:deltas",
        "design 22",
        "what a model is saying is written for nobody while nobody watches, and who no longer looks no longer watches",
        in_file(
            "store/test_deltas.py",
            "test_nothing_is_written_while_nobody_watches",
            "test_who_no_longer_looks_no_longer_watches",
        ),
    ),
    row(
        "deltas:order",
        "design 22",
        "a reader gets what is said and then what is said next, however many watch",
        in_file(
            "store/test_deltas.py",
            "test_a_reader_gets_what_is_said_and_then_what_is_said_next",
            "test_many_readers_watch_one_run",
        ),
    ),
    row(
        "deltas:overtaken",
        "design 22",
        "another answer takes the place of the one before, which adds nothing more",
        in_file(
            "store/test_deltas.py",
            "test_another_answer_takes_the_place_of_the_one_before_which_adds_nothing_more",
        ),
    ),
    row(
        "deltas:moment",
        "design 22",
        "the end of an answer can be read for a moment when the next one has begun",
        in_file(
            "store/test_deltas.py",
            "test_the_end_of_an_answer_can_be_read_for_a_moment_when_the_next_one_has_begun",
        ),
    ),
    row(
        "deltas:swept",
        "design 22",
        "no text of what a model says outlives its run, or an hour after a run that died",
        in_file("store/test_deltas.py", "test_a_run_that_ends_leaves_nothing_and_one_that_died_is_swept"),
    ),
    row(
        "store:sqlite",
        "design 14",
        "the file is in WAL mode, every commit is synced, and a network filesystem is refused",
        in_file(
            "store/test_opening.py",
            "test_the_file_is_in_wal_mode_and_every_commit_is_synced",
            "test_the_nearest_and_latest_mount_decides_what_is_a_network_filesystem",
            "test_a_database_on_a_network_filesystem_is_refused",
        ),
    ),
    row(
        "store:schema",
        "design 14",
        "a first opening makes the schema that the code expects, and a later one finds the same store",
        in_file(
            "store/test_opening.py",
            "test_a_first_opening_makes_the_schema_that_the_code_expects",
            "test_a_store_stays_the_same_store_when_it_is_opened_again",
        ),
    ),
    row(
        "store:migrate",
        "design 14",
        "processes that open an empty home at once find one store, and a migration that is cut off leaves nothing"
        " behind",
        in_file(
            "store/test_opening.py",
            "test_processes_that_open_an_empty_database_at_once_find_one_store",
            "test_openings_in_one_process_do_not_disturb_each_other",
            "test_a_migration_that_is_cut_off_leaves_nothing_behind",
        ),
    ),
    row(
        "store:migration-place",
        "design 14",
        "the store migrates from wherever it is installed, and the lock of a migration that hangs is named",
        in_file("store/test_opening.py", "test_the_store_migrates_from_wherever_it_is_installed"),
        in_file("store/test_unavailable.py", "test_the_lock_of_a_migration_that_hangs_is_named"),
    ),
    row(
        "store:first-migration",
        "design 14",
        "the one migration is what is written from the schema, and a later one keeps what is there while a process of"
        " before goes on",
        in_file(
            "store/test_migrating.py",
            "test_the_first_migration_is_what_is_written_from_the_schema",
            "test_a_second_migration_keeps_what_is_there_under_a_process_of_before_and_none_opens_it_then",
        ),
    ),
    row(
        "store:unreleased",
        "design 14",
        "a store of before the first release is refused by the worker, by commands, by the page and by Slack, with code"
        " 2, its place without a password, its revision and the way on, and it is left as it is",
        in_file(
            "store/test_migrating.py",
            "test_a_store_of_before_the_first_release_is_refused_and_left_as_it_is",
            "test_an_address_is_shown_without_its_password_wherever_that_stands",
        ),
        in_file(
            "cli/test_unreleased_store.py",
            "test_a_store_of_before_the_first_release_is_refused_at_every_way_in",
        ),
    ),
    row(
        "store:transactions",
        "design 14",
        "several operations in one transaction are kept together or not at all, those that have nothing to do open"
        " none, and a dry run waits for no writer",
        in_file(
            "store/test_transactions.py",
            "test_several_operations_in_one_transaction_are_kept_together_or_not_at_all",
            "test_who_waits_for_news_is_told_once_they_are_committed",
            "test_what_has_nothing_to_do_opens_no_transaction",
            "test_a_dry_run_waits_for_no_writer",
            "test_an_operation_is_found_on_its_class_and_can_be_replaced_there",
        ),
    ),
    row(
        "store:newer",
        "design 14",
        "a database of a newer version is refused untouched",
        in_file("store/test_opening.py", "test_a_database_of_a_newer_version_is_refused_untouched"),
    ),
    row(
        "store:place",
        "design 14",
        "a database and a folder of blobs may be named, in homes with odd characters too",
        in_file(
            "store/test_opening.py",
            "test_a_database_and_a_blob_directory_may_be_named",
            "test_a_home_with_odd_characters_works",
        ),
    ),
    row(
        "store:refused",
        "design 14",
        "a database that cannot hold what is promised, a home that cannot be made and a file that is no database "
        "are refused in one line",
        in_file(
            "store/test_opening.py",
            "test_a_database_that_cannot_hold_the_promises_is_refused",
            "test_a_home_that_cannot_be_made_is_refused",
            "test_a_file_that_is_no_database_is_reported_in_one_line",
        ),
    ),
    row(
        "store:private",
        "design 18",
        "files and directories are for this user only",
        in_file("store/test_opening.py", "test_files_and_directories_are_for_this_user_only"),
    ),
    row(
        "store:blobs",
        "design 14",
        "a blob is found under its hash, equal ones are one file, and damage is noticed and healed when it is "
        "written again",
        in_file(
            "store/test_blobs.py",
            "test_bytes_come_back_under_their_hash",
            "test_a_payload_changed_on_disk_is_noticed_and_healed_when_it_is_written_again",
            "test_the_same_bytes_written_at_once_are_one_file",
        ),
    ),
    row(
        "store:blob-json",
        "design 14",
        "JSON comes back equal, and equal values share a ref",
        in_file("store/test_blobs.py", "test_json_comes_back_equal_and_equal_values_share_a_ref"),
    ),
    row(
        "blob:no-json",
        "design 14",
        "what is no JSON is refused, as a value or as bytes",
        in_file(
            "store/test_blobs.py",
            "test_a_value_that_is_not_json_is_refused",
            "test_bytes_that_are_not_json_are_refused_as_json",
        ),
    ),
    row(
        "blob:deep-json",
        "design 14",
        "JSON that is nested too deep is refused",
        in_file("store/test_blobs.py", "test_json_nested_too_deep_is_refused"),
    ),
    row(
        "store:blob-refs",
        "design 14",
        "what is no ref is refused before any file is touched, and an unknown one is named",
        in_file(
            "store/test_blobs.py",
            "test_what_is_no_ref_is_refused_before_any_file_is_touched",
            "test_an_unknown_ref_is_named",
        ),
    ),
    row(
        "store:blob-writes",
        "design 14",
        "a write that fails leaves no file and says why",
        in_file("store/test_blobs.py", "test_a_write_that_fails_leaves_no_file_and_says_why"),
    ),
    row(
        "store:recent",
        "design 14",
        "a recent blob is read from memory, within its limit",
        in_file(
            "store/test_blobs.py",
            "test_a_recent_payload_is_read_from_memory",
            "test_what_is_kept_in_memory_never_exceeds_its_limit",
        ),
    ),
    row(
        "s002:safenet",
        "seed 002 §2; design 14",
        "the events of a run come back in their order, from any number on, whatever text they hold",
        in_file("store/test_events.py", "test_events_come_back_in_order_and_by_run", "test_hostile_text_is_kept"),
    ),
    row(
        "store:events",
        "design 14",
        "a repeated event changes nothing, of two with one number the newer stays, and many writers lose nothing",
        in_file(
            "store/test_events.py",
            "test_a_repeat_changes_nothing",
            "test_of_two_events_with_one_number_the_newer_stays",
            "test_many_writers_lose_nothing",
            "test_a_draft_joins_the_timeline_once_it_has_a_number",
        ),
    ),
    row(
        "store:runs",
        "design 14",
        "a run is recorded from beginning to end, and opening it again changes nothing",
        in_file(
            "store/test_runs.py",
            "test_a_run_is_recorded_from_beginning_to_end",
            "test_opening_again_changes_nothing",
        ),
    ),
    row(
        "runs:ended",
        "design 14",
        "the last word on how a run ended counts, and the end of a run whose beginning is lost is kept",
        in_file(
            "store/test_runs.py",
            "test_the_last_word_on_how_a_run_ended_counts",
            "test_the_end_of_a_run_whose_beginning_is_lost_is_kept",
        ),
    ),
    row(
        "runs:long-text",
        "design 14",
        "a long text of a run is cut",
        in_file("store/test_runs.py", "test_long_text_is_cut"),
    ),
    row(
        "store:runs-found",
        "design 14",
        "a workflow id names its latest run, a run id its own, and the newest runs come first",
        in_file(
            "store/test_runs.py",
            "test_a_workflow_id_names_its_latest_run_and_any_run_id_its_own",
            "test_the_newest_runs_come_first",
        ),
    ),
    row(
        "store:locked",
        "issue Bad input",
        "a store locked for too long is unavailable to all who wait, and works again afterwards",
        in_file(
            "store/test_unavailable.py",
            "test_a_store_locked_for_too_long_is_unavailable_and_works_again_afterwards",
            "test_many_who_wait_for_a_locked_store_are_all_told",
        ),
    ),
    row(
        "locked:short",
        "issue Bad input",
        "a short lock is waited for",
        in_file("store/test_unavailable.py", "test_a_short_lock_is_waited_for"),
    ),
    row(
        "locked:cancelled",
        "issue Bad input",
        "a writer that is cancelled while it waits does not block the next",
        in_file("store/test_unavailable.py", "test_a_writer_that_is_cancelled_while_it_waits_does_not_block_the_next"),
    ),
    row(
        "store:replaced",
        "issue Bad input",
        "a database that was replaced under a worker is unavailable",
        in_file("store/test_unavailable.py", "test_a_database_that_was_replaced_under_a_worker_is_unavailable"),
    ),
    row(
        "store:postgres-away",
        "issue 11",
        "a Postgres that was killed is unavailable to all who wait and works again when it is back, with what was "
        "committed",
        in_file(
            "store/test_unavailable.py",
            "test_a_postgres_that_was_killed_is_unavailable_and_works_again_when_it_is_back",
        ),
    ),
    row(
        "postgres:locked",
        "issue 11",
        "a row that others lock for too long in Postgres is unavailable and works again afterwards",
        in_file(
            "store/test_unavailable.py",
            "test_a_row_locked_for_too_long_in_postgres_is_unavailable_and_works_again_afterwards",
        ),
    ),
    row(
        "store:postgres-silent",
        "issue 11",
        "a worker that falls silent during a transaction, and a Postgres that hangs, hold nobody up for long",
        in_file(
            "store/test_unavailable.py",
            "test_a_process_that_falls_silent_amid_a_transaction_on_postgres_does_not_keep_the_others_waiting",
            "test_a_postgres_that_hangs_is_unavailable_and_works_again_when_it_goes_on",
        ),
    ),
    row(
        "store:postgres-none",
        "issue 11",
        "a Postgres that cannot be reached, does not let this user in or has no such database is named in one line",
        in_file("store/test_unavailable.py", "test_a_postgres_that_cannot_be_used_is_named_in_one_line"),
    ),
    row(
        "store:s3-blobs",
        "design 14",
        "S3-compatible blobs for several hosts",
        deferred=PRODUCTION,
    ),
    row(
        "store:ledger",
        "design 14",
        "HMAC chain per run, verify, export",
        deferred=AUDIT,
    ),
    row(
        "s004:audit",
        "seed 004 Features",
        "a ledger holds every request and every result, redacted",
        deferred=AUDIT,
    ),
    row(
        "store:memory",
        "design 14",
        "memory with full-text recall, and learning",
        deferred=MEMORY,
    ),
    row(
        "s003:memory",
        "seed 003 memory",
        "run metadata, tool calls, outputs and answers, by session",
        deferred=MEMORY,
    ),
    row(
        "s003:history",
        "seed 003 memory",
        "an index of history, offered as tools",
        deferred=MEMORY,
    ),
    row(
        "store:gc",
        "design 14",
        "gc of runs closed longer than the undo window",
        deferred=PRODUCTION,
    ),
    row(
        "store:connections",
        "design 14",
        "tokens encrypted and refreshed under a row lock",
        deferred=CONNECTIONS,
    ),
)
