"""Files and shell of a run: what a model can call, in whose folder, behind which walls."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "jails:attacks",
        "issue 4 Done 7; seed 001 Security",
        "what 40 or more hostile commands reach for stays out of reach",
        in_file(
            "workspace/test_attacks.py",
            "test_what_a_hostile_command_reaches_for_stays_out_of_reach",
            "test_there_are_enough_attacks",
        ),
    ),
    row(
        "jails:paths",
        "issue 4 Workspace",
        "links, pipes, sockets, devices and other names lead no file tool out of the workspace",
        in_file(
            "workspace/test_files.py",
            "test_a_file_with_a_name_outside_keeps_there_what_it_holds",
            "test_no_path_leads_a_file_tool_out_of_the_workspace",
            "test_links_are_moved_and_deleted_themselves_and_never_what_they_name",
            "test_a_search_and_a_listing_enter_no_link_and_wait_for_nothing",
            "test_a_device_is_not_opened",
        ),
    ),
    row(
        "jails:races",
        "issue 4 Workspace",
        "a parent that is swapped for a link while files are written leads nowhere",
        in_file(
            "workspace/test_files.py", "test_a_parent_that_is_swapped_for_a_link_while_files_are_written_leads_nowhere"
        ),
    ),
    row(
        "jails:answers",
        "issue 4 Workspace",
        "an honest answer of a jail is returned, and a forged or broken one is not believed",
        in_file(
            "workspace/test_answers.py",
            "test_an_honest_answer_is_returned_and_a_refusal_is_one_line",
            "test_a_forged_answer_is_not_believed",
        ),
    ),
    row(
        "jails:tools",
        "issue 4 Workspace",
        "files are read, listed, searched, written, edited, moved and deleted, and text is read in its encoding",
        in_file(
            "workspace/test_files.py",
            "test_a_file_is_written_edited_read_moved_and_deleted",
            "test_text_and_bytes_are_read_as_what_they_are",
            "test_a_search_finds_lines_by_expression_or_literally_in_files_of_a_name",
        ),
    ),
    row(
        "jails:exact",
        "issue 4 Workspace",
        "an edit that does not occur as often as said changes nothing, and parts of a file fit together",
        in_file(
            "workspace/test_files.py",
            "test_an_edit_that_does_not_occur_as_often_as_said_changes_nothing",
            "test_parts_of_a_file_fit_together_and_never_cut_a_character",
        ),
    ),
    row(
        "jails:owner",
        "issue 4 Workspace",
        "a write keeps the mode of the file and belongs to the owner of the workspace",
        in_file(
            "workspace/test_files.py",
            "test_a_write_keeps_the_mode_of_the_file_and_no_other_name_of_it",
            "test_what_is_written_belongs_to_the_owner_of_the_workspace_and_never_to_root",
        ),
    ),
    row(
        "jails:search-ends",
        "issue 4 Workspace",
        "a search that never ends is ended",
        in_file("workspace/test_files.py", "test_a_search_that_never_ends_is_ended"),
    ),
    row(
        "jails:many",
        "issue 4 Workspace",
        "10,000 files are listed in order and in parts",
        in_file("workspace/test_files.py", "test_ten_thousand_files_are_listed_in_order_and_in_parts"),
    ),
    row(
        "jails:itself",
        "issue 4 Workspace",
        "the workspace itself is neither moved nor deleted, and names that are no text harm nothing",
        in_file(
            "workspace/test_files.py",
            "test_the_workspace_itself_is_neither_moved_nor_deleted_nor_moved_into_itself",
            "test_names_that_are_no_text_are_shown_and_harm_nothing",
        ),
    ),
    row(
        "jails:plan",
        "design 12; seed 001 Tools",
        "while a model plans first it is offered the tools that read files, reads them as they are, and is refused "
        "every write and command",
        in_file(
            "e2e/tools/test_workspace.py",
            "test_a_model_that_plans_first_reads_files_and_neither_writes_nor_starts_a_command",
        ),
    ),
    row(
        "jails:read-only",
        "design 12; seed 001 Tools",
        "a tool that reads has the workspace mounted read-only, also in a run that may write",
        in_file(
            "workspace/test_files.py",
            "test_a_tool_that_reads_has_the_workspace_mounted_read_only_in_a_run_that_may_write",
        ),
    ),
    row(
        "jails:diff",
        "design 12",
        "what would change is shown as a unified diff, and nothing is changed by it",
        in_file("workspace/test_files.py", "test_what_would_change_is_shown_and_nothing_is_changed"),
    ),
    row(
        "jails:diff-asked",
        "design 12; design 9; seed 001 Usage",
        "people see what a change of files would do before they decide, and an undo brings every byte back",
        in_file("e2e/tools/test_workspace.py", "test_people_see_what_would_change_and_an_undo_brings_every_byte_back"),
    ),
    row(
        "jails:opt-in",
        "design 12; seed 001 Usage",
        "files and shell are seen only by runs that ask for them",
        in_file("e2e/tools/test_workspace.py", "test_a_run_without_a_workspace_has_no_files"),
        in_file("workspace/test_toolbox.py", "test_a_run_that_did_not_ask_for_files_or_shell_sees_none"),
    ),
    row(
        "jails:undo",
        "issue 4 Done 7",
        "undoing writing calls restores every byte, mode and link, and leaves and names what others changed since",
        in_file(
            "workspace/test_undo.py",
            "test_a_run_that_wrote_edited_moved_and_deleted_two_hundred_files_is_taken_back_to_the_last_byte",
            "test_taking_back_an_effect_by_its_id_leaves_what_others_did_since",
            "test_what_a_person_changed_since_is_not_overwritten_and_is_named",
        ),
    ),
    row(
        "jails:lost-for-good",
        "design 12",
        "a command that failed names what it destroyed for good",
        in_file("workspace/test_undo.py", "test_a_command_that_failed_names_what_it_destroyed_for_good"),
    ),
    row(
        "jails:once",
        "design 4",
        "a writing call under one effect id happens once, its outcome is known, and one that was cut off is taken"
        " back first",
        in_file(
            "workspace/test_undo.py",
            "test_what_was_done_under_an_effect_is_not_done_again",
            "test_an_effect_that_was_cut_off_is_taken_back_before_anything_else_happens",
            "test_the_outcome_of_an_effect_is_known_with_its_answer",
        ),
    ),
    row(
        "jails:result",
        "issue 4 External processes",
        "a command tells exit code, outputs, and the files it wrote with hash and size",
        in_file("workspace/test_undo.py", "test_a_command_tells_what_it_wrote_and_how_it_ended"),
    ),
    row(
        "jails:shell",
        "issue Workspace",
        "a model runs a command in its workspace and reads what it said",
        in_file("e2e/tools/test_workspace.py", "test_a_model_runs_a_command_in_its_workspace_and_reads_what_it_said"),
    ),
    row(
        "jails:lists",
        "issue 4 Workspace",
        "an operator's lists of commands are looked at before a jail starts, wherever in a line a command stands",
        in_file("workspace/test_host.py", "test_a_provider_calls_shows_and_refuses"),
        in_file(
            "workspace/test_toolbox.py",
            "test_a_denied_command_is_found_wherever_it_stands",
            "test_what_is_not_denied_passes",
            "test_with_a_list_of_allowed_commands_all_others_are_refused",
        ),
    ),
    row(
        "jails:denied-before",
        "seed 002 §8",
        "some commands are denied where an operator says nothing, and nobody is asked about a denied one",
        in_file(
            "workspace/test_toolbox.py",
            "test_without_a_list_a_few_commands_are_denied_and_an_empty_one_denies_none",
        ),
        in_file(
            "e2e/tools/test_workspace.py",
            "test_nobody_is_asked_about_a_command_that_the_operator_denies",
            "test_a_plan_with_a_denied_command_ends_before_anybody_is_asked",
            "test_a_program_is_told_of_a_denied_command_and_nobody_is_asked",
        ),
    ),
    row(
        "jails:narrowed",
        "seed 001 Container and issue 14",
        "a step of a plan gets no more of its jail than its own limits say, which people see, nor ever more than usual",
        in_file("e2e/tools/test_workspace.py", "test_a_step_gets_no_more_of_its_jail_than_its_limits_say"),
        in_file("workspace/test_files.py", "test_limits_of_a_call_only_ever_lower_those_of_the_worker"),
        in_file("workspace/test_watch.py", "test_processes_that_end_while_they_are_looked_at_stop_no_command"),
    ),
    row(
        "jails:claims",
        "issue 4 Workspace",
        "a workspace belongs to one run until it is released or that run is known to be over",
        in_file(
            "workspace/test_host.py",
            "test_two_runs_on_one_workspace_are_told_apart_by_name_and_a_closed_one_makes_room",
        ),
        in_file(
            "workspace/test_undo.py",
            "test_a_workspace_belongs_to_one_run_until_it_is_released",
            "test_a_claim_passes_from_a_run_that_is_known_to_be_over",
        ),
    ),
    row(
        "jails:one-run",
        "issue Workspace",
        "a second run is refused with the name of the first until the first has ended",
        in_file("e2e/tools/test_workspace.py", "test_a_second_run_is_kept_out_until_the_first_has_ended"),
    ),
    row(
        "s001:lifecycle",
        "seed 001 Lifecycle",
        "a workspace whose run was terminated is free again",
        in_file("e2e/tools/test_workspace.py", "test_a_workspace_whose_run_was_terminated_is_free_again"),
    ),
    row(
        "jails:host",
        "design 13",
        "jails are started by a process without secrets that ends with its worker and is started again, and "
        "nothing half done is left",
        in_file(
            "workspace/test_host.py",
            "test_the_host_holds_no_secret_of_its_worker",
            "test_a_host_that_dies_in_mid_command_is_started_again_and_nothing_half_done_is_left",
            "test_a_command_that_nobody_waits_for_any_more_is_ended_and_taken_back",
            "test_a_worker_that_is_killed_takes_host_and_jails_with_it",
            "test_where_an_operator_named_a_folder_the_host_starts_with_its_worker",
        ),
    ),
    row(
        "jails:streamed",
        "issue 4 Workspace",
        "what a command says is heard while it runs",
        in_file("workspace/test_host.py", "test_what_a_command_says_is_heard_while_it_runs"),
    ),
    row(
        "jails:isolation",
        "issue 4 Workspace; seed 001 Errors",
        "without isolation there is no workspace, and the reason is given",
        in_file("workspace/test_host.py", "test_without_isolation_there_is_no_host_and_the_reason_is_given"),
        in_file("workspace/test_undo.py", "test_the_errors_of_isolation_are_those_that_callers_expect"),
    ),
    row(
        "jails:names",
        "design 12",
        "only a plain folder beneath the operator's, apart from what the engine keeps and open to jails, is a "
        "workspace",
        in_file(
            "workspace/test_undo.py",
            "test_a_workspace_that_jails_cannot_reach_is_refused_with_the_folder_that_is_closed",
            "test_only_a_plain_folder_beneath_the_operators_is_a_workspace",
            "test_what_the_engine_keeps_is_no_workspace",
        ),
    ),
    row(
        "jails:outside",
        "issue Workspace",
        "a name that leads out of the operator's folder is refused",
        in_file("e2e/tools/test_workspace.py", "test_a_name_that_leads_out_is_refused"),
    ),
    row(
        "jails:declared",
        "design 9",
        "every writing tool of a workspace declares its undo and its check, and the tools behind them are found "
        "by nobody",
        in_file(
            "workspace/test_toolbox.py",
            "test_every_writing_tool_is_known_to_be_undone_and_checked",
            "test_the_tools_behind_the_undo_are_found_by_nobody",
        ),
    ),
    row(
        "jails:engine-only",
        "design 12",
        "what only the engine calls is no tool for a plan",
        in_file("e2e/tools/test_workspace.py", "test_what_only_the_engine_calls_is_no_tool_for_a_plan"),
    ),
    row(
        "jails:granted",
        "design 12",
        "users get only what they are granted, operators may raise a class, and a file that is wrong about "
        "workspaces is refused",
        in_file(
            "workspace/test_toolbox.py",
            "test_users_get_only_what_they_are_granted_and_operators_may_raise_a_class",
            "test_a_toolbox_file_that_is_wrong_about_workspaces_is_refused",
        ),
    ),
    row(
        "jails:page",
        "issue 4 Done 8",
        "the page about workspaces names every tool and its class",
        in_file("workspace/test_toolbox.py", "test_the_page_names_every_tool_and_its_class"),
    ),
)
