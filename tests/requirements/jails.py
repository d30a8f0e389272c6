"""What confines programs and commands: the profile, its proof, the image, the hostile corpus and honest frames."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "jail:hostile",
        "issue 3 Done 1; seed 000 §9",
        "at least 150 hostile programs, six or more of each class, are contained as root and as an unprivileged user",
        in_file(
            "hostile/test_corpus.py",
            "test_there_are_enough_programs_of_every_class_and_each_says_what_must_hold",
            "test_everything_holds_when_the_worker_is_root",
            "test_everything_holds_when_the_worker_is_an_unprivileged_user",
        ),
        by_hand="make soak, which plays every program as both users; make test plays each as one of them",
    ),
    row(
        "hostile:noticed",
        "issue 3 Done 1; seed 000 §9",
        "a careless profile is noticed by the same hostile programs",
        in_file("hostile/test_corpus.py", "test_a_careless_profile_is_noticed_by_the_same_programs"),
    ),
    row(
        "jail:system-calls",
        "issue 3 Done 1",
        "forbidden system calls, tried by machine code, are deadly or not permitted to programs and shells, and "
        "succeed without the filter",
        in_file(
            "sandbox/test_isolation.py",
            "test_calls_by_machine_code_are_deadly_or_not_permitted_to_programs",
            "test_the_same_calls_succeed_without_the_filter_so_that_it_is_what_stops_them",
            "test_shells_may_start_processes_but_no_call_leads_out_of_their_jail",
        ),
    ),
    row(
        "jail:proven",
        "design 13",
        "every property of a jail is proven for any user, and a weaker profile, a writable root or a changed "
        "image is seen",
        in_file(
            "sandbox/test_isolation.py",
            "test_every_property_is_proven_for_any_user",
            "test_a_weaker_profile_is_seen_for_what_it_is",
            "test_a_root_that_can_be_written_is_seen",
            "test_an_image_that_was_changed_is_seen",
        ),
    ),
    row(
        "jail:causes",
        "design 13",
        "what keeps a jail from working on this machine is named with its cause and its fix",
        in_file(
            "sandbox/test_isolation.py",
            "test_an_image_in_a_closed_folder_is_named_with_that_folder",
            "test_an_image_that_is_gone_is_named",
            "test_a_cgroup_folder_that_is_missing_is_named",
            "test_an_nsjail_that_does_not_run_here_is_named",
            "test_a_policy_that_nsjail_does_not_understand_is_named",
            "test_switched_off_user_namespaces_are_named",
            "test_a_containers_filter_that_forbids_namespaces_is_named",
            "test_root_that_may_not_change_users_is_named",
            "test_switches_of_other_kernels_are_named",
        ),
    ),
    row(
        "jail:caps",
        "issue 3",
        "each way a program can end badly has its own name in one line, and the sandbox goes on",
        in_file(
            "sandbox/test_jail.py",
            "test_each_way_to_die_has_its_own_name_in_one_line_and_the_sandbox_goes_on",
            "test_processor_time_is_bounded_apart_from_the_wall_in_python_and_in_c",
        ),
    ),
    row(
        "jail:output",
        "issue 3",
        "what is printed beyond what is kept is counted",
        in_file("sandbox/test_jail.py", "test_what_is_printed_beyond_what_is_kept_is_counted"),
    ),
    row(
        "jail:hostile-programs",
        "issue 3 Done 8",
        "whatever a program does to its own interpreter it comes to a defined end, and nothing of it runs afterwards",
        in_file(
            "sandbox/test_jail.py",
            "test_a_program_that_catches_everything_still_waits_for_its_calls_like_any_other",
            "test_whatever_a_program_does_to_its_own_interpreter_it_comes_to_a_defined_end",
            "test_nothing_of_a_program_runs_after_its_end",
        ),
    ),
    row(
        "program:frames",
        "issue 3 Done 7",
        "any bytes from a jail are calls of the declared tools, an end or a refusal, and honest values come "
        "through as they are",
        in_file(
            "sandbox/test_frames.py",
            "test_calls_are_read_with_their_numbers",
            "test_an_end_is_a_result_or_an_error_in_one_line",
            "test_a_long_error_is_cut",
            "test_numbers_and_nesting_up_to_the_bound_are_taken",
            "test_every_plain_json_value_comes_through_as_it_is",
            "test_any_bytes_are_calls_of_the_declared_set_an_end_or_a_refusal",
            "test_near_misses_are_read_only_when_every_call_is_in_order_and_known",
        ),
    ),
    row(
        "program:frames-refused",
        "issue 3 Done 7",
        "a frame that no honest runner sends, an undeclared tool, and what passes a bound are refused by name",
        in_file(
            "sandbox/test_frames.py",
            "test_a_frame_that_no_honest_runner_sends_is_refused",
            "test_a_whole_number_that_others_could_not_read_is_refused_by_name",
            "test_what_is_nested_too_deeply_is_refused_by_name",
            "test_a_tool_outside_the_declared_set_is_refused_by_name",
            "test_too_many_calls_at_once_are_refused_by_the_name_of_the_cap",
        ),
    ),
    row(
        "program:frames-forged",
        "issue 3 Done 7",
        "forged frames, by the thousand, lead to declared calls, an end or a named refusal",
        in_file(
            "sandbox/test_frames_fuzz.py",
            "test_every_forged_frame_is_calls_of_the_declared_set_an_end_or_a_refusal",
        ),
        in_file(
            "soak/test_programs.py",
            "test_forged_frames_never_lead_to_anything_but_declared_calls_an_end_or_a_refusal",
        ),
    ),
    row(
        "forged:noticed",
        "issue 3 Done 7",
        "what a reader of frames must not let through would be noticed",
        in_file("sandbox/test_frames_fuzz.py", "test_what_a_reader_must_not_let_through_would_be_noticed"),
    ),
    row(
        "forged:peers",
        "issue 3 Done 7",
        "whatever a peer says and however it says it, each exchange ends with a frame or a cause",
        in_file(
            "sandbox/test_frames_fuzz.py",
            "test_whatever_a_peer_says_and_however_it_says_it_each_exchange_ends_with_a_frame_or_a_cause",
        ),
    ),
    row(
        "forged:processes",
        "issue 3 Done 7",
        "whatever a process writes before it dies or stays, also when it ignores the polite signal, the host ends "
        "it and goes on",
        in_file(
            "sandbox/test_frames_fuzz.py",
            "test_whatever_a_process_writes_before_it_dies_or_stays_the_host_ends_it_and_goes_on",
            "test_a_process_that_ignores_the_polite_signal_is_ended_all_the_same",
        ),
    ),
    row(
        "forged:ready",
        "issue 3 Done 7",
        "a process that begins with anything but the ready frame is lost in one line",
        in_file(
            "sandbox/test_frames_fuzz.py",
            "test_a_process_that_begins_with_anything_but_the_ready_frame_is_lost_in_one_line",
        ),
    ),
    row(
        "program:frames-bounded",
        "issue 3 Done 7",
        "promised lengths cost no memory, nothing beyond them is gathered, nothing is heard after an end, and "
        "pieces make no difference",
        in_file(
            "sandbox/test_frames_fuzz.py",
            "test_a_promised_length_costs_no_memory_before_the_bytes_are_there",
            "test_bytes_beyond_the_promised_length_are_never_gathered",
            "test_nothing_is_heard_after_an_end",
            "test_a_frame_is_the_same_in_however_many_pieces_it_comes",
        ),
    ),
    row(
        "jail:forged",
        "issue 3 Done 7",
        "a forged frame gains nothing, and a forged end is no more than the program could have said",
        in_file(
            "sandbox/test_jail.py",
            "test_a_forged_frame_gains_nothing",
            "test_a_forged_end_is_no_more_than_the_program_could_have_said_and_nothing_after_it_counts",
        ),
    ),
    row(
        "forged:out-of-turn",
        "issue 3 Done 7",
        "a paused program that speaks out of turn is not gone on with",
        in_file("sandbox/test_jail.py", "test_a_paused_program_that_speaks_out_of_turn_is_not_gone_on_with"),
    ),
    row(
        "jail:pipes",
        "design 13",
        "a program's input is empty, its control pipes are not where it prints, and large frames do not block the"
        " worker",
        in_file(
            "sandbox/test_jail.py",
            "test_the_programs_input_is_empty_and_its_control_pipes_are_not_where_it_prints",
            "test_a_large_frame_is_written_in_pieces_without_blocking_the_worker",
        ),
    ),
    row(
        "jail:lost",
        "design 13",
        "a round that is cut off by closing, cancelling or a kill from outside is lost without blame, and its "
        "journal brings it back",
        in_file(
            "sandbox/test_jail.py",
            "test_a_round_under_way_when_the_sandbox_closes_is_lost_and_not_the_programs_fault",
            "test_a_round_that_is_cancelled_takes_its_jail_with_it",
            "test_a_jail_killed_from_outside_is_lost_and_its_journal_brings_it_back",
        ),
    ),
    row(
        "jail:start",
        "design 13",
        "a command that is no jail is told with what it printed, and a jail that ignores the polite signal is killed",
        in_file(
            "sandbox/test_jail.py",
            "test_a_command_that_is_no_jail_is_told_with_what_it_printed",
            "test_a_jail_that_ignores_the_polite_signal_is_killed_and_reaped",
        ),
    ),
    row(
        "jail:orphans",
        "issue 3",
        "no jail outlives a worker that is killed",
        in_file(
            "sandbox/test_jail.py", "test_no_jail_outlives_a_worker_that_is_killed_whether_it_computes_pauses_or_waits"
        ),
    ),
    row(
        "jail:users",
        "design 13",
        "each living jail is another user outside, and a user without rights runs, keeps and ends programs like root",
        in_file(
            "sandbox/test_jail.py",
            "test_each_jail_that_lives_is_another_user_outside_and_numbers_are_used_again",
            "test_a_user_without_rights_runs_keeps_and_ends_programs_like_root",
        ),
    ),
    row(
        "jail:role",
        "design 13",
        "the sandbox role is told no secret, and is started again however often it dies, also while it restarts, of "
        "which the log tells",
        in_file(
            "cli/test_roles.py",
            "test_the_sandbox_role_is_told_no_secret_and_is_started_again_however_often_it_dies",
        ),
    ),
    row(
        "role:code",
        "design 13",
        "the sandbox role loads no code that knows a model, a tool or a database",
        in_file("cli/test_roles.py", "test_the_sandbox_role_loads_no_code_that_knows_a_model_a_tool_or_a_database"),
    ),
    row(
        "jail:profile",
        "design 13",
        "the configuration of a jail is the one that was reviewed, on the untested machine no wider than on the "
        "tested, and named by its content",
        in_file(
            "sandbox/test_profile.py",
            "test_the_configuration_is_the_one_that_was_reviewed",
            "test_the_untested_machine_is_allowed_nothing_that_the_tested_one_is_not",
            "test_no_call_is_both_deadly_and_allowed",
            "test_a_machine_without_a_policy_is_refused_by_name",
            "test_the_name_of_the_file_stands_for_its_content",
        ),
    ),
    row(
        "jail:profile-paths",
        "design 13",
        "a path cannot add words to the configuration",
        in_file("sandbox/test_profile.py", "test_a_path_cannot_add_words_to_the_configuration"),
    ),
    row(
        "jail:cgroups",
        "design 13",
        "cgroups bound the memory and the processes of a whole jail",
        in_file("sandbox/test_profile.py", "test_cgroups_bound_the_memory_and_the_processes_of_a_whole_jail"),
    ),
    row(
        "cgroups:allowed",
        "design 13",
        "the caps of a jail are those that the machine allows",
        in_file("sandbox/test_profile.py", "test_cgroup_caps_are_those_that_the_machine_allows"),
    ),
    row(
        "cgroups:divided",
        "design 13",
        "a unit whose worker is in a subgroup is divided by the worker, and a group that holds the worker itself is "
        "not",
        in_file(
            "sandbox/test_profile.py",
            "test_a_unit_whose_worker_is_in_a_subgroup_is_the_workers_to_divide",
            "test_a_group_that_holds_the_worker_itself_is_not_divided",
        ),
    ),
    row(
        "cgroups:left",
        "design 13",
        "what a killed worker left of cgroups is removed by the next, and its own when it gives it back",
        in_file(
            "sandbox/test_profile.py",
            "test_what_a_killed_worker_left_is_removed_by_the_next_and_its_own_when_it_gives_it_back",
        ),
    ),
    row(
        "cgroups:none",
        "design 13",
        "without any cgroup the reason is given",
        in_file("sandbox/test_profile.py", "test_without_any_cgroup_the_reason_is_given"),
    ),
    row(
        "jail:uid",
        "design 13",
        "each slot of root has a user of its own outside, and else the worker's user is taken",
        in_file(
            "sandbox/test_profile.py",
            "test_the_uid_outside_is_one_of_its_own_for_each_slot_of_root_and_else_the_workers",
        ),
    ),
    row(
        "jail:nsjail",
        "design 13",
        "a named nsjail binary comes before the path, the path before the bundled one, and a name that is no "
        "binary is refused",
        in_file(
            "sandbox/test_profile.py",
            "test_a_binary_that_is_named_comes_before_all_others",
            "test_a_binary_on_the_path_comes_before_that_of_the_wheel_but_a_script_does_not",
            "test_a_setting_that_names_no_binary_is_refused_and_not_replaced",
        ),
    ),
    row(
        "jail:shell",
        "design 13",
        "a shell in a jail starts processes and writes only where it may",
        in_file("sandbox/test_profile.py", "test_a_shell_starts_processes_and_writes_only_where_it_may"),
    ),
    row(
        "jail:sines",
        "design 5",
        "sines and sums do not depend on the processor",
        in_file("sandbox/test_profile.py", "test_sines_and_sums_do_not_depend_on_the_processor"),
    ),
    row(
        "jail:image",
        "design 13",
        "images are reproducible, named by their content, and hold nothing of the machine",
        in_file(
            "sandbox/test_image.py",
            "test_builds_in_different_folders_have_the_same_hash_and_bytes",
            "test_every_change_below_the_root_changes_the_content_hash",
            "test_nothing_of_the_machine_is_in_an_image",
            "test_every_file_of_the_jail_is_in_the_image_and_counts_in_its_hash",
        ),
    ),
    row(
        "jail:image-found",
        "design 13",
        "an image is built once and then found and left untouched, also by a user without rights",
        in_file(
            "sandbox/test_image.py",
            "test_a_second_build_finds_the_first_and_leaves_it_untouched",
            "test_a_user_without_rights_builds_an_image_that_is_found_again",
        ),
    ),
    row(
        "image:killed-build",
        "design 13",
        "what a killed build left behind is removed once it is old",
        in_file("sandbox/test_image.py", "test_what_a_killed_build_left_behind_is_removed_once_it_is_old"),
    ),
    row(
        "image:again",
        "design 13",
        "an image that was removed is built again with the same hash",
        in_file("sandbox/test_image.py", "test_an_image_that_was_removed_is_built_again_with_the_same_hash"),
    ),
    row(
        "image:other-hash",
        "design 13",
        "a hash that names no image finds none, nor does an image renamed to another hash",
        in_file(
            "sandbox/test_image.py",
            "test_a_hash_that_names_no_image_finds_none",
            "test_an_image_renamed_to_another_hash_is_not_found",
        ),
    ),
    row(
        "jail:image-modules",
        "design 13",
        "every module said to be importable imports in a jail, and every one said to be missing is not there",
        in_file(
            "sandbox/test_image.py",
            "test_every_module_said_to_be_importable_imports_in_a_jail",
            "test_every_module_said_to_be_missing_is_neither_importable_nor_there",
            "test_the_standard_library_is_either_importable_or_said_to_be_missing",
        ),
    ),
    row(
        "jail:image-libraries",
        "design 13",
        "modules with libraries of their own, numpy and pandas work in a jail",
        in_file(
            "sandbox/test_image.py",
            "test_ordinary_modules_with_libraries_of_their_own_work_in_a_jail",
            "test_numpy_and_pandas_work_in_a_jail_without_a_word_on_the_error_output",
        ),
    ),
    row(
        "image:extra",
        "design 13",
        "an image whose extra is not installed is refused by name",
        in_file("sandbox/test_image.py", "test_an_image_whose_extra_is_not_installed_is_refused_by_name"),
    ),
    row(
        "jail:image-gone",
        "issue 3",
        "a program whose image is gone waits for the operator and goes on in no other",
        in_file(
            "e2e/programs/test_programs.py", "test_a_program_whose_image_is_gone_waits_for_the_operator_and_goes_on_in_no_other"
        ),
    ),
    row(
        "jail:ordinary",
        "issue 3 Done 6",
        "of 60 or more ordinary tasks nearly every one runs unchanged in the images",
        in_file(
            "ordinary/test_tasks.py",
            "test_there_are_enough_tasks_for_both_images",
            "test_nearly_every_task_runs_unchanged_in_the_image",
        ),
    ),
)
