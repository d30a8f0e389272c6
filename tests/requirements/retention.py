"""What is removed of ended runs, what stays, and a store that was restored from a backup."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "retention:pruned",
        "issue 10 Done 5",
        "prune says what it would free with --dry-run, then removes a run that ended before the window, while an "
        "open run with equal payloads stays, completes and is undone",
        in_file("cli/test_prune.py", "test_an_ended_run_goes_and_an_open_one_with_the_same_payloads_stays"),
    ),
    row(
        "pruned:row",
        "issue 10 Done 5",
        "a pruned run leaves one row and no effect, event, secret or payload, and the others keep all of theirs",
        in_file(
            "store/test_pruning.py",
            "test_a_pruned_run_leaves_one_row_and_no_payload_and_the_others_all_of_theirs",
        ),
    ),
    row(
        "retention:tombstone",
        "issue 10 Done 5",
        "every later intent of a pruned run is refused as pruned",
        in_file("store/test_pruning.py", "test_every_later_intent_of_a_pruned_run_is_refused"),
    ),
    row(
        "tombstone:reset",
        "issue 10 Done 5",
        "a reset of a pruned run sends nothing",
        in_file("cli/test_prune.py", "test_a_reset_of_a_pruned_run_sends_nothing"),
    ),
    row(
        "tombstone:said",
        "issue 10 Done 5",
        "show, list, undo, its preview, UndoRun and the run itself say that it was pruned",
        in_file(
            "cli/test_prune.py",
            "test_a_pruned_run_that_finds_nothing_of_its_own_says_that_it_was_pruned",
            "test_every_command_and_undorun_say_that_a_run_was_pruned",
        ),
    ),
    row(
        "retention:ended",
        "issue 10 Done 5",
        "a run that was terminated counts from when Temporal closed it, and one of which anything was recorded within"
        " the window stays",
        in_file("cli/test_prune.py", "test_a_terminated_run_counts_from_when_it_was_closed"),
        in_file("store/test_pruning.py", "test_a_run_of_which_anything_was_recorded_lately_is_not_idle"),
    ),
    row(
        "retention:undoing",
        "issue 10 Done 5",
        "an open UndoRun keeps its run, whatever its own name is, and can still take it back",
        in_file("cli/test_prune.py", "test_an_open_undo_keeps_its_run"),
    ),
    row(
        "retention:unanswered",
        "issue 10 Done 5",
        "nothing is removed without Temporal",
        in_file("cli/test_prune.py", "test_without_temporal_nothing_is_removed"),
    ),
    row(
        "unanswered:kept",
        "issue 10 Done 5",
        "a run about which Temporal gives no answer is kept",
        in_file("cli/test_prune.py", "test_a_run_about_which_temporal_gives_no_answer_is_kept"),
    ),
    row(
        "unanswered:unseen",
        "issue 10 Done 5",
        "a run that nobody saw end goes only where Temporal knows a run of the store",
        in_file("cli/test_prune.py", "test_a_run_that_nobody_saw_end_goes_only_where_temporal_is_the_right_one"),
    ),
    row(
        "retention:usage",
        "issue 10 Done 5",
        "a window that is no duration is refused by its flag, and a home without a store is named and gets none",
        in_file(
            "cli/test_prune.py",
            "test_a_window_that_is_no_duration_is_refused_by_its_flag",
            "test_a_home_without_a_store_is_named_and_gets_none",
        ),
    ),
    row(
        "retention:races",
        "issue 10 Done 5",
        "a run that moves after Temporal was asked is not pruned, and of an intent and a pruning at once only one comes"
        " through",
        in_file(
            "store/test_pruning.py",
            "test_a_run_that_moves_after_temporal_was_asked_is_not_pruned",
            "test_of_an_intent_and_a_pruning_at_once_only_one_comes_through",
        ),
    ),
    row(
        "retention:kills",
        "issue 10 Done 5",
        "prunings that are killed beside killed workers take nothing that an open run refers to, and the next pruning"
        " finishes what a killed one began",
        in_file(
            "store/test_pruning.py",
            "test_a_pruning_that_was_killed_between_rows_and_files_is_finished_by_the_next",
        ),
        in_file(
            "crash/test_pruning_under_kills.py",
            "test_prunings_beside_killed_workers_take_nothing_from_an_open_run",
        ),
        in_file("soak/test_pruning.py", "test_many_prunings_beside_killed_workers_take_nothing_from_an_open_run"),
    ),
    row(
        "retention:snapshots",
        "issue 10 Done 5",
        "rewrites of a file under retention take less than three times the live bytes and what the window keeps",
        in_file("workspace/test_retention.py", "test_rewrites_of_a_file_take_no_more_than_the_window_keeps"),
    ),
    row(
        "snapshots:soak",
        "issue 10 Done 5",
        "a thousand rewrites stay below that too, and the last one can still be taken back",
        in_file(
            "soak/test_retention.py",
            "test_a_thousand_rewrites_stay_below_three_times_the_live_bytes_and_the_window",
        ),
    ),
    row(
        "retention:folders",
        "issue 10 Done 5",
        "runs share no file of payloads",
        in_file(
            "store/test_blobs.py",
            "test_runs_share_no_file_and_find_only_what_they_wrote",
        ),
    ),
    row(
        "retention:epoch",
        "issue 10 Done 5",
        "a new epoch begins only when a person or a flag confirms it, and tells both epochs",
        in_file(
            "cli/test_new_epoch.py",
            "test_a_new_epoch_begins_only_when_it_is_confirmed",
            "test_a_script_confirms_by_a_flag_and_reads_both_epochs",
        ),
    ),
    row(
        "epoch:earlier",
        "issue 10 Done 5",
        "a worker that still runs in an earlier epoch begins nothing new",
        in_file("store/test_pruning.py", "test_a_worker_of_an_earlier_epoch_may_begin_nothing_new"),
    ),
    row(
        "retention:restored",
        "issue 10 Done 5",
        "after a restore and a new epoch, a send that the store forgot is asked about and not sent again",
        in_file("crash/test_restored_store.py", "test_after_a_restore_a_send_that_the_store_forgot_is_asked_about"),
    ),
    row(
        "retention:locks",
        "design 14",
        "a process that opens its store twice keeps its locks against other processes",
        in_file("store/test_opening.py", "test_a_process_that_opens_its_store_twice_keeps_its_locks"),
    ),
)
