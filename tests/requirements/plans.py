"""Plans: steps that run without a model."""

from tests.requirements.requirement import in_file, row


def proposals(test):
    """Return where a test of proposals stands."""
    return in_file("e2e/plans/test_proposals.py", test)


def cli(test):
    """Return where a test of plans at the terminal stands."""
    return in_file("cli/test_plans.py", test)


ROWS = (
    row(
        "plan:order",
        "issue Plans; seed 002 §1; design 3",
        "a plan asks once for all its writes and performs its steps in order",
        in_file("e2e/plans/test_plans.py", "test_a_plan_asks_once_for_all_its_writes_and_performs_its_steps_in_order"),
    ),
    row(
        "plan:nothing-asked",
        "issue Plans",
        "a plan that only reads or is allowed asks nothing",
        in_file("e2e/plans/test_plans.py", "test_a_plan_that_only_reads_or_is_allowed_asks_nothing"),
    ),
    row(
        "plan:references",
        "design 22; seed 002 §11",
        "a lone reference to input or an earlier result keeps the type of its value",
        in_file("e2e/plans/test_plans.py", "test_a_lone_reference_keeps_the_type_of_its_value"),
    ),
    row(
        "plan:bad-reference",
        "design 22",
        "a reference that can lead nowhere ends the plan before anything is done",
        in_file("e2e/plans/test_plans.py", "test_a_reference_that_can_lead_nowhere_ends_the_plan_before_anything_is_done"),
    ),
    row(
        "plan:abort",
        "design 10; seed 002 §3",
        "a step that may fail does not end the plan, and what needs its result is not sent",
        in_file("e2e/plans/test_plans.py", "test_a_step_that_may_fail_does_not_end_the_plan_and_what_needs_it_is_not_sent"),
    ),
    row(
        "plan:rejected",
        "design 10; seed 002 §3",
        "a denied step, and a rejected one that may not fail, ends the plan before its first step",
        in_file(
            "e2e/plans/test_plans.py",
            "test_a_rejected_step_ends_the_plan_before_its_first_step_unless_it_may_fail",
            "test_a_denied_step_ends_the_plan_before_its_first_step",
        ),
    ),
    row(
        "plan:changed",
        "issue Plans",
        "a person may change a step that still refers to another",
        in_file("e2e/plans/test_plans.py", "test_a_person_may_change_a_step_that_still_refers_to_another"),
    ),
    row(
        "plan:undo",
        "issue Plans",
        "any other failing step ends the plan and takes back the earlier ones",
        in_file(
            "e2e/plans/test_plans.py",
            "test_a_reference_to_what_a_step_did_not_return_fails_that_step_and_takes_back_the_earlier_ones",
        ),
    ),
    row(
        "plan:transactional",
        "design 22; seed 002 §4",
        "a transactional step that cannot be undone is an invalid task",
        in_file("e2e/plans/test_plans.py", "test_a_transactional_step_that_cannot_be_undone_is_an_invalid_task"),
    ),
    row(
        "plan:safety",
        "design 22",
        "the safety of a step may only be raised",
        in_file("e2e/plans/test_plans.py", "test_the_safety_of_a_step_may_only_be_raised"),
    ),
    row(
        "plan:timeout",
        "design 22; seed 002 §5",
        "a step waits no longer than its timeout, or than the operator says",
        in_file(
            "e2e/plans/test_plans.py",
            "test_a_step_waits_no_longer_than_its_timeout",
            "test_the_operator_says_how_long_a_step_waits_whose_plan_does_not_say",
        ),
    ),
    row(
        "plan:invalid",
        "design 22; seed 002 §8",
        "a malformed plan, or one of more than 20 steps, is an invalid task that names the field",
        in_file("e2e/plans/test_plans.py", "test_a_malformed_plan_is_an_invalid_task_that_names_the_field"),
    ),
    row(
        "plan:catalog",
        "design 22",
        "a step that does not fit the catalog ends the plan before anything is done",
        in_file("e2e/plans/test_plans.py", "test_a_step_that_does_not_fit_the_catalog_ends_the_plan_before_anything_is_done"),
    ),
    row(
        "catalog:user",
        "design 22",
        "of what the user may not use, a plan and a task are told so, and where that is set",
        in_file(
            "e2e/plans/test_plans.py",
            "test_a_step_of_a_server_that_the_user_may_not_use_says_so_and_where_it_is_set",
            "test_a_task_that_wants_what_its_user_may_not_use_is_refused_and_told_where_it_is_set",
        ),
    ),
    row(
        "plan:proposed",
        "design 22; seed 002 §6",
        "a model's plan is shown whole and runs after approval",
        proposals("test_a_model_proposes_a_plan_that_people_see_whole_and_then_it_runs_step_by_step"),
    ),
    row(
        "plan:files",
        "design 22; seed 002 §3, §6 and App. B",
        "a proposal names the files that a plan makes, changes, moves and deletes, whatever is written into them, and "
        "its diffs are kept and exported",
        in_file(
            "e2e/tools/test_workspace.py",
            "test_a_proposal_names_the_files_that_it_changes_and_its_diffs_are_kept",
        ),
    ),
    row(
        "plan:alternatives",
        "design 22",
        "of two alternatives the approved one runs",
        proposals("test_of_two_alternatives_the_one_that_is_approved_runs_and_the_other_is_not_chosen"),
    ),
    row(
        "plan:stopped",
        "design 9, 22",
        "who stops the run does so though another alternative is approved in the same moment",
        proposals("test_who_stops_the_run_does_so_though_another_alternative_is_approved_in_the_same_moment"),
    ),
    row(
        "plan:long",
        "design 6, 22",
        "of a long plan, and of alternatives, every answer stays small and says where the rest is",
        in_file(
            "e2e/faults/test_answers_small.py",
            "test_of_a_long_plan_every_answer_is_small_and_each_says_where_the_rest_is",
            "test_alternatives_share_the_room_of_one_answer",
        ),
    ),
    row(
        "plan:processes",
        "seed 002 §6; design 22",
        "an approver lets a plan start no processes, and it goes on without its commands",
        in_file("e2e/tools/test_workspace.py", "test_a_plan_that_may_start_no_processes_goes_on_without_its_commands"),
    ),
    row(
        "plan:less-time",
        "seed 002 §6; design 22",
        "an approver gives every step of a plan less time than it asked for, and a step that needs more is ended then",
        in_file(
            "e2e/plans/test_plans.py",
            "test_an_approver_gives_every_step_less_time_and_a_step_that_needs_more_is_ended",
        ),
    ),
    row(
        "plan:parts",
        "design 22",
        "each part of a plan is decided by its own people",
        proposals("test_each_part_of_a_plan_is_decided_by_its_own_people_and_the_plan_waits_for_all"),
    ),
    row(
        "s001:create-plan",
        "seed 001 Tools; design 22",
        "a rejected plan is an answer, and update_plan makes its child",
        proposals("test_a_rejected_plan_is_an_answer_and_the_next_version_is_its_child"),
    ),
    row(
        "s001:mark-step",
        "seed 001 Tools; design 22",
        "mark_step notes what the model says of a step, changes no state of plan or step, and refuses an unknown step",
        proposals("test_a_model_notes_how_a_step_went_which_changes_nothing_and_unknown_steps_are_refused"),
    ),
    row(
        "s002:immutable",
        "seed 002 App. B; design 10",
        "a changed step makes a child plan that needs approval of its own hash",
        proposals("test_a_step_that_a_person_changes_makes_a_child_plan_that_needs_approval_of_its_own_hash"),
    ),
    row(
        "plan:per-step",
        "seed 002 §6",
        "a plan approved per step goes on without the rejected ones",
        proposals("test_a_plan_that_is_approved_per_step_goes_on_without_the_steps_that_were_rejected"),
    ),
    row(
        "plan:groups",
        "design 22; seed 002 §8",
        "a group of which a step fails is taken back",
        proposals("test_a_group_of_which_a_step_fails_is_taken_back_and_the_rest_of_the_plan_goes_on"),
    ),
    row(
        "s002:transactions",
        "seed 002 §8",
        "a failed plan takes back its transactional steps",
        proposals("test_a_plan_that_fails_takes_back_its_transactional_steps_and_the_model_goes_on"),
    ),
    row(
        "s002:states",
        "seed 002 §3; design 22",
        "undoing a run takes its plan back, and every state is told",
        proposals("test_undoing_a_run_takes_its_plan_back"),
    ),
    row(
        "loop:plan-first",
        "design 10; seed 001 Tools",
        "mode plan_first offers no tool of a server and makes no call of one before a plan is approved",
        proposals("test_a_run_that_plans_first_does_nothing_before_a_plan_is_approved"),
    ),
    row(
        "plan:malformed",
        "design 22",
        "a malformed proposal is refused by name",
        proposals("test_a_malformed_proposal_is_refused_by_name_and_nobody_is_asked"),
    ),
    row(
        "plan:corrected",
        "design 10, 22; seed 002 §7",
        "a review that finds too much leads to a corrective child plan",
        in_file(
            "e2e/plans/test_reviewed_plans.py",
            "test_a_review_that_finds_a_type_error_leads_to_a_corrective_plan_and_both_are_completed",
        ),
    ),
    row(
        "plan:not-corrected",
        "seed 002 §7",
        "a plan that is not corrected is decided about by a person",
        in_file("e2e/plans/test_reviewed_plans.py", "test_a_plan_that_is_not_corrected_is_decided_about_by_a_person"),
    ),
    row(
        "plan:corrections",
        "issue Review",
        "corrections are bounded",
        in_file(
            "e2e/plans/test_reviewed_plans.py",
            "test_after_as_many_corrections_as_the_profile_allows_a_person_decides_about_all_of_them",
        ),
    ),
    row(
        "plan:review-of-task",
        "seed 002 §3, §7",
        "a task's own plan is taken back only when a person says so",
        in_file(
            "e2e/plans/test_reviewed_plans.py",
            "test_a_plan_of_a_task_that_its_review_finds_bad_is_taken_back_only_when_a_person_says_so",
        ),
    ),
    row(
        "plan:survives",
        "issue Plans; design 10, 22",
        "a plan, made by a model that has looked into its workspace, with alternatives, parts, an edit and a "
        "correction survives a death in each state, and is undone whole",
        in_file("crash/test_plan_life.py", "test_a_plan_survives_the_death_of_the_worker_in_each_of_its_states"),
    ),
    row(
        "plan:model",
        "issue Plans; design 22",
        "random plans, a hundred in soak, come to what a simple model says",
        in_file("e2e/plans/test_plan_model.py", "test_random_plans_come_to_what_a_simple_model_says"),
    ),
    row(
        "s002:retention",
        "seed 002 App. B",
        "plans and diffs are kept for three months, longer than what a run can be undone with",
        in_file(
            "cli/test_prune.py",
            "test_the_plans_and_decisions_of_a_pruned_run_stay_until_they_are_old_enough_themselves",
        ),
    ),
    row(
        "plan:edges",
        "design 22",
        "plans and steps follow exactly the edges of the tables, and an undo after the end is told",
        in_file(
            "backstay/test_plan_run.py",
            "test_a_plan_and_a_step_follow_exactly_the_edges",
            "test_an_undo_after_the_end_leaves_a_plan_in_the_state_that_its_effects_show",
        ),
    ),
    row(
        "plan:walk",
        "design 10, 22",
        "a random walk through Temporal, with decisions, failures and workers that come and go, takes every edge of "
        "both tables and no other",
        in_file(
            "e2e/plans/test_plan_walk.py",
            "test_every_edge_of_plans_and_steps_is_walked_through_temporal_and_no_other",
        ),
        in_file("soak/test_plan_walk.py", "test_plans_follow_the_tables_of_edges_for_as_long_as_they_walk"),
    ),
    row(
        "plan:killed-walk",
        "design 10, 22",
        "a random walk whose worker is killed, amid steps too, keeps to the edges of the tables and makes no call "
        "twice that is not idempotent unless a person said so",
        in_file(
            "crash/test_plan_walk.py",
            "test_plans_keep_to_their_edges_and_send_nothing_twice_without_a_word_while_their_worker_is_killed",
        ),
    ),
    row(
        "walk:soak",
        "design 10, 22",
        "plans send nothing twice without a word, however often their worker is killed",
        in_file(
            "soak/test_plan_walk.py",
            "test_plans_send_nothing_twice_without_a_word_however_often_their_worker_is_killed",
        ),
    ),
    row(
        "plan:stale",
        "design 10, 22",
        "an approved plan whose tool has changed so that the call no longer fits it is stale, and nothing is sent",
        in_file(
            "e2e/plans/test_stale_plans.py",
            "test_a_plan_is_stale_when_its_tool_changed_after_the_approval_so_that_the_call_no_longer_fits",
        ),
    ),
    row(
        "plan:drawn",
        "seed 002 §6; design 22",
        "a proposal is drawn whole, with marks at each step and the command that chooses each alternative",
        cli("test_a_proposal_is_drawn_whole_with_the_command_that_chooses_each_alternative"),
    ),
    row(
        "plan:flags",
        "seed 002 §6, App. B",
        "flags approve a plan in part, and its story says who said what of which hash",
        cli("test_flags_approve_a_plan_in_part_and_the_story_says_who_said_what"),
    ),
    row(
        "s002:plan-export",
        "seed 002 App. B",
        "plan diff tells what a child changes, and plan export tells all as JSON and Markdown, also after an undo: "
        "decisions, states, hashes, and what each step would have changed",
        cli("test_diff_tells_what_a_child_plan_changes_and_export_tells_all_until_after_the_undo"),
    ),
    row(
        "plan:asked",
        "seed 002 §6",
        "a person at the terminal chooses another plan, edits a step, and leaves a step out",
        cli("test_a_person_chooses_another_plan_edits_a_step_and_leaves_a_step_out"),
    ),
    row(
        "plan:mode",
        "design 22",
        "run takes a mode, and a run without a plan says so",
        cli("test_run_takes_a_mode_and_a_run_without_a_plan_says_so"),
    ),
    row(
        "plan:answers",
        "design 22",
        "raw_outputs of a plan, failed or not, hold the short answers of its steps",
        cli("test_the_result_of_a_plan_holds_the_short_answers_of_its_steps"),
    ),
    row(
        "s003:perception",
        "seed 003 perception",
        "the first search finds tools of the servers that a model selects only, and no step is counted for it",
        in_file(
            "e2e/loop/test_perception.py",
            "test_the_first_search_finds_tools_of_the_selected_servers_only_and_no_step_is_counted",
        ),
    ),
    row(
        "perception:hint",
        "seed 003 perception",
        "the first search looks for what the hint of the model names, though the task does not",
        in_file(
            "e2e/loop/test_perception.py",
            "test_the_first_search_looks_for_what_the_hint_names_though_the_task_does_not",
        ),
    ),
    row(
        "perception:off",
        "seed 003 perception",
        "no model is asked for a hint where the profile does not say so",
        in_file("e2e/loop/test_perception.py", "test_no_model_is_asked_where_the_profile_does_not_say_so"),
    ),
    row(
        "perception:unknown",
        "seed 003 perception",
        "servers that a hint names and that do not exist are dropped, and without any all are searched",
        in_file(
            "e2e/loop/test_perception.py",
            "test_servers_that_do_not_exist_are_dropped_and_without_any_all_are_searched",
        ),
    ),
    row(
        "perception:hostile",
        "seed 003 perception",
        "a hint that cannot be read or does not come leaves the search as it is and is told",
        in_file(
            "e2e/loop/test_perception.py",
            "test_what_cannot_be_read_or_does_not_come_leaves_the_search_as_it_is_and_is_told",
        ),
    ),
    row(
        "perception:secret",
        "seed 003 perception",
        "a secret that a hint repeats is not kept",
        in_file("e2e/loop/test_perception.py", "test_a_secret_that_it_repeats_is_not_kept"),
    ),
    row(
        "perception:ceiling",
        "seed 003 perception",
        "a model is not asked for a hint where that does not fit the ceiling",
        in_file("e2e/loop/test_perception.py", "test_it_is_not_asked_where_it_does_not_fit_the_ceiling"),
    ),
    row(
        "s003:strategies",
        "seed 003 context; design 10",
        "a profile's strategy and persona stand in the one prompt, and its hash covers them",
        in_file("e2e/plans/test_profiles.py", "test_a_strategy_and_a_persona_stand_in_the_prompt_and_its_hash_covers_them"),
    ),
    row(
        "strategies:default",
        "seed 003 context; design 10",
        "the default profile adds nothing to prompt or history",
        in_file("e2e/plans/test_profiles.py", "test_the_default_profile_adds_nothing_to_prompt_or_history"),
    ),
    row(
        "strategies:secret",
        "seed 003 context; design 10",
        "a secret in a persona reaches no model and no history",
        in_file("e2e/plans/test_profiles.py", "test_a_secret_in_a_persona_reaches_no_model_and_no_history"),
    ),
    row(
        "profile:defaults",
        "design 10; design 22",
        "a profile gives limits and model where the task says nothing",
        in_file("e2e/plans/test_profiles.py", "test_a_profile_gives_limits_and_model_where_the_task_says_nothing"),
    ),
    row(
        "profile:task",
        "design 10; design 22",
        "what the task sets wins over its profile, field by field, and a profile is no ceiling",
        in_file("e2e/plans/test_profiles.py", "test_what_the_task_sets_wins_field_by_field_and_a_profile_is_no_ceiling"),
    ),
    row(
        "profile:top-up",
        "design 10; design 22",
        "a top-up that comes while the run is opened is added to the limits of the profile",
        in_file(
            "e2e/plans/test_profiles.py",
            "test_a_top_up_that_comes_while_the_run_is_opened_is_added_to_the_limits_of_the_profile",
        ),
    ),
    row(
        "profile:image",
        "design 10; design 22",
        "a profile chooses what programs may import",
        in_file("e2e/plans/test_profiles.py", "test_a_profile_chooses_what_programs_may_import"),
    ),
    row(
        "profile:cli",
        "design 10; design 22",
        "run takes the name of a profile, and names those that there are",
        in_file("cli/test_run_profile.py", "test_run_takes_the_name_of_a_profile_and_names_those_there_are"),
    ),
    row(
        "s003:lifelines",
        "seed 003 loop; issue 14 Done 5",
        "a step whose program or arguments failed is repeated, each time billed, and the failure after the last "
        "lifeline ends the run",
        in_file(
            "e2e/faults/test_lifelines.py",
            "test_a_broken_program_is_repaired_from_a_message_that_names_line_and_cause",
            "test_the_fourth_failure_ends_the_run_and_every_lifeline_is_billed",
            "test_a_step_that_succeeds_gives_the_next_one_all_its_lifelines_and_repeats_fill_no_limit",
            "test_a_call_beside_the_failure_that_succeeds_makes_it_no_failed_step",
            "test_a_profile_says_how_many_lifelines_there_are_and_none_ends_the_run_at_the_first_failure",
            "test_a_repeat_still_needs_its_money_and_its_time",
            "test_what_a_person_or_the_engine_ended_is_no_failure_of_a_program",
        ),
    ),
    row(
        "s003:repeats-shown",
        "seed 003 loop; issue Plans",
        "a repeat of a failed step is not shown as one that the limit counts",
        in_file(
            "cli/test_run_profile.py",
            "test_a_repeat_of_a_failed_step_is_not_shown_as_one_that_the_limit_counts",
        ),
    ),
    row(
        "s003:progress",
        "seed 003 context",
        "the model and the query `status` are told what each step called and how it ended",
        in_file(
            "e2e/plans/test_profiles.py",
            "test_the_model_and_the_status_are_told_what_each_step_called_and_how_it_ended",
        ),
    ),
    row(
        "s003:markers",
        "seed 003 loop; design 22",
        "markers count at the start of the model's words and of a program's own text, where the profile says so, and "
        "never in a tool's answer",
        in_file(
            "e2e/programs/test_program_contract.py",
            "test_a_marker_at_the_start_of_the_models_words_ends_the_run_only_where_the_profile_says_so",
            "test_further_processing_goes_on_with_the_text_as_the_next_instruction",
            "test_a_marker_at_the_start_of_a_programs_own_text_ends_the_run",
            "test_a_marker_in_a_tools_answer_never_counts_though_a_program_passes_it_on",
            "test_steps_and_lifelines_that_are_used_up_are_told_with_the_marker",
        ),
    ),
    row(
        "s003:sandbox",
        "seed 003 action; design 22",
        "a program may be `solve`, with and without async, and finds `json` and `re`",
        in_file(
            "e2e/programs/test_program_contract.py",
            "test_solve_is_the_entry_with_and_without_async_and_json_and_re_are_there",
        ),
    ),
    row(
        "program:fence",
        "seed 003 action; design 22",
        "a program in a fence runs without it, and people see what runs",
        in_file("e2e/programs/test_program_contract.py", "test_a_program_in_a_fence_runs_without_it_and_people_see_what_runs"),
    ),
    row(
        "program:by-name",
        "seed 003 action; design 22",
        "a tool called by its name, also one of a host program, tells how it ended as keys and as attributes",
        in_file(
            "e2e/programs/test_program_contract.py",
            "test_a_tool_called_by_its_name_tells_how_it_ended_as_keys_and_as_attributes",
        ),
        in_file("sandbox/test_plan.py", "test_a_host_programs_tools_can_be_called_by_their_names_too"),
    ),
    row(
        "program:by-name-door",
        "seed 003 action; design 22",
        "a call by name is asked about, charged, undone and played again like any other, and checked where the name "
        "is written",
        in_file(
            "e2e/programs/test_program_contract.py",
            "test_a_call_by_name_is_asked_about_charged_undone_and_played_again_like_any_other",
        ),
        in_file("sandbox/test_check.py", "test_calls_by_name_are_checked_where_the_name_is_written"),
    ),
    row(
        "program:broken",
        "seed 003 action; design 22",
        "what breaks a program is told as a sandbox error beside its type",
        in_file(
            "e2e/programs/test_program_contract.py",
            "test_what_breaks_a_program_is_told_as_a_sandbox_error_beside_its_type",
        ),
    ),
    row(
        "program:nothing-runs",
        "seed 003 action; design 22",
        "a program of which nothing would run is refused with its line, as is a loop that cannot end",
        in_file(
            "sandbox/test_check.py",
            "test_a_program_of_which_nothing_would_run_is_refused_with_its_line",
            "test_a_loop_that_cannot_end_is_refused_and_one_that_may_is_not",
        ),
    ),
    row(
        "s003:profiles",
        "seed 003 agent; design 22",
        "profiles come from a file that is validated strictly, and three are built in",
        in_file(
            "e2e/plans/test_profiles.py",
            "test_what_is_wrong_with_the_file_is_said_with_file_field_value_and_fix",
            "test_without_a_file_there_are_the_built_in_profiles_and_one_in_it_says_what_differs",
            "test_an_unknown_profile_is_refused_with_the_names_of_those_there_are",
        ),
    ),
    row(
        "s003:config",
        "seed 003 agent",
        "models from a file",
        in_file("activities/test_models_file.py", "test_it_may_be_json_too_but_not_both"),
    ),
)
