"""Snapshots of a workspace: taken, compared, restored and attacked."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "workspace:undo",
        "issue 4 Done 7",
        "an undo of a run that wrote, edited, moved and deleted 200 files restores every byte, mode and link",
        in_file(
            "sandbox/test_snapshots.py",
            "test_an_undo_of_a_run_that_wrote_edited_moved_and_deleted_200_files_restores_every_byte_mode_and_symlink",
        ),
    ),
    row(
        "workspace:speed",
        "issue 4 Done 7",
        "files that did not change are not read again, and snapshots of 2,000 files took no longer than their targets",
        in_file("sandbox/test_snapshots.py", "test_files_that_did_not_change_are_not_read_again"),
        in_file("test_benchmarks.py", "test_snapshots_of_two_thousand_files_kept_their_targets"),
    ),
    row(
        "workspace:same",
        "design 12",
        "the same tree has the same id wherever it lies",
        in_file("sandbox/test_snapshots.py", "test_the_same_tree_has_the_same_id_wherever_it_lies"),
    ),
    row(
        "workspace:sees",
        "design 12",
        "ignored files, nested repositories and empty directories are in a snapshot",
        in_file("sandbox/test_snapshots.py", "test_empty_directories_ignored_files_and_nested_repositories_are_in_it"),
    ),
    row(
        "workspace:racy",
        "facts sandbox 6",
        "a file rewritten or removed in the tick of its snapshot is seen or missed as it is",
        in_file(
            "sandbox/test_snapshots.py",
            "test_a_file_rewritten_in_the_tick_of_its_snapshot_is_seen",
            "test_files_that_go_in_the_tick_of_their_snapshot_are_missed",
        ),
    ),
    row(
        "workspace:others",
        "design 12",
        "a restore leaves alone what others changed since, and reports it",
        in_file("sandbox/test_snapshots.py", "test_what_others_changed_since_is_left_alone_and_reported"),
    ),
    row(
        "workspace:crash",
        "design 12",
        "a snapshot or restore that is killed at any moment harms nothing and can be repeated",
        in_file(
            "sandbox/test_snapshots.py",
            "test_a_restore_that_is_killed_at_any_moment_can_be_repeated",
            "test_a_snapshot_that_is_killed_at_any_moment_leaves_the_earlier_ones_whole",
        ),
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_what_a_killed_restore_left_is_removed_and_what_a_run_planted_there_is_not_followed",
        ),
    ),
    row(
        "workspace:changes",
        "design 12",
        "two snapshots are compared by path, kind and size",
        in_file("sandbox/test_snapshots.py", "test_two_snapshots_are_compared_by_path_kind_and_size"),
    ),
    row(
        "workspace:limits",
        "issue 4 Done 7",
        "what is over a limit is refused by name and limit, and a restore removes it",
        in_file(
            "sandbox/test_snapshots.py",
            "test_what_is_over_a_limit_is_refused_by_name_and_limit_and_removed_all_the_same",
        ),
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_tree_deeper_than_any_path_is_refused_and_removed_by_an_undo",
            "test_a_sparse_file_is_measured_by_its_length",
        ),
    ),
    row(
        "workspace:many",
        "issue 4 Done 7",
        "a tree of 10,000 files is kept and restored",
        in_file("sandbox/test_snapshots.py", "test_a_tree_of_ten_thousand_files_is_kept_and_restored"),
    ),
    row(
        "workspace:forgotten",
        "design 12",
        "forgotten snapshots are gone, and those that are kept are whole",
        in_file("sandbox/test_snapshots.py", "test_forgotten_snapshots_are_gone_and_those_that_are_kept_are_whole"),
    ),
    row(
        "workspace:private",
        "design 18",
        "only this user can read what is kept",
        in_file("sandbox/test_snapshots.py", "test_only_this_user_can_read_what_is_kept"),
    ),
    row(
        "workspace:turns",
        "design 12",
        "threads and processes that use one folder of snapshots take turns",
        in_file("sandbox/test_snapshots.py", "test_threads_and_processes_that_use_one_folder_take_turns"),
    ),
    row(
        "workspace:links",
        "issue 4 Done 7",
        "links to files and directories outside are kept as links and never followed",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_link_to_a_file_outside_is_kept_as_a_link_and_never_followed",
            "test_a_link_to_a_directory_outside_is_neither_walked_nor_written_into",
        ),
    ),
    row(
        "workspace:races",
        "issue 4 Done 7",
        "a directory swapped for a link leads neither a snapshot nor a restore outside",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_directory_swapped_for_a_link_during_the_walk_leads_nowhere",
            "test_a_directory_swapped_for_a_link_during_a_restore_takes_nothing_outside",
        ),
    ),
    row(
        "races:file",
        "issue 4 Done 7",
        "a file that grows and shrinks while it is read is taken whole or not at all",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_file_that_grows_and_shrinks_while_it_is_read_is_taken_whole_or_not_at_all",
        ),
    ),
    row(
        "workspace:names-outside",
        "issue 4 Done 7",
        "a file with another name outside is replaced and not written through, and two names of one file are both"
        " restored",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_file_with_another_name_outside_is_replaced_and_not_written_through",
            "test_the_mode_of_a_file_with_another_name_outside_is_not_changed_there",
            "test_two_names_of_one_file_are_both_restored",
        ),
    ),
    row(
        "workspace:devices",
        "issue 4 Done 7",
        "FIFOs, sockets and devices are noted, never opened or waited for, and removed when they were added",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_fifo_is_noted_and_never_opened",
            "test_a_file_that_becomes_a_fifo_while_it_is_opened_stops_nobody",
            "test_a_socket_is_noted_and_removed_when_it_was_added",
            "test_a_device_is_noted_and_never_opened",
        ),
    ),
    row(
        "workspace:odd-names",
        "issue 4 Done 7",
        "names that look like paths, options or lines are names",
        in_file("sandbox/test_snapshots_attacked.py", "test_names_that_look_like_paths_options_or_lines_are_names"),
    ),
    row(
        "workspace:kinds",
        "design 12",
        "directories that became files and back, setuid bits and owners are restored, and setuid is never given",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_directory_that_became_a_file_and_one_that_came_back_are_restored",
            "test_setuid_is_seen_removed_when_a_run_set_it_and_never_given",
            "test_root_gives_files_back_to_whom_they_belonged",
        ),
    ),
    row(
        "workspace:tampered",
        "design 12",
        "an altered manifest or blob, a path that leads outside and an id that names no snapshot are refused "
        "before anything is changed",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_an_altered_manifest_is_refused_before_anything_is_changed",
            "test_a_manifest_that_leads_outside_is_refused_even_with_the_right_hash",
            "test_an_altered_or_lost_blob_is_refused_before_anything_is_changed",
            "test_an_id_that_names_no_snapshot_is_refused",
        ),
    ),
    row(
        "workspace:index",
        "design 12",
        "a damaged index only costs time",
        in_file("sandbox/test_snapshots_attacked.py", "test_a_damaged_index_only_costs_time"),
    ),
    row(
        "workspace:roots",
        "design 12",
        "a root that is a link or no directory is refused, and snapshots never lie within the workspace",
        in_file(
            "sandbox/test_snapshots_attacked.py",
            "test_a_root_that_is_a_link_or_no_directory_is_refused",
            "test_snapshots_never_lie_within_the_workspace",
        ),
    ),
    row(
        "workspace:ordinary",
        "design 13",
        "an ordinary user gets back what was closed with modes",
        in_file("sandbox/test_snapshots_attacked.py", "test_an_ordinary_user_gets_back_what_was_closed_with_modes"),
    ),
)
