"""Runs that follow each other, and what people tell a run while it works."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "chat:ten-turns",
        "issue People Done 4",
        "ten turns of a chat at a terminal go through a kill of the worker, an approval, an undo and a steer in "
        "mid-run, and a secret that is split over deltas never shows",
        in_file("crash/test_chat.py", "test_ten_turns_with_a_kill_an_approval_an_undo_and_a_steer"),
    ),
    row(
        "chat:turns",
        "design 22",
        "in a chat at a terminal turn follows turn, and requests are met in line",
        in_file("cli/test_chat.py", "test_each_turn_goes_on_from_the_one_before_and_approvals_are_met_in_line"),
    ),
    row(
        "chat:words",
        "design 22",
        "words are read along while they are said, without secrets, and cannot act on the terminal",
        in_file(
            "cli/test_chat.py",
            "test_words_are_shown_while_they_are_said_without_secrets_and_nothing_acts_on_the_terminal",
        ),
    ),
    row(
        "chat:esc",
        "design 22",
        "Esc tells a working run something",
        in_file("cli/test_chat.py", "test_esc_tells_a_working_run_something"),
    ),
    row(
        "chat:early",
        "design 22",
        "what is typed before a request is shown does not decide it",
        in_file("cli/test_chat.py", "test_what_is_typed_before_a_request_is_shown_does_not_decide_it"),
    ),
    row(
        "chat:pasted",
        "design 22",
        "a long text may be pasted, and a longer one is refused",
        in_file("cli/test_chat.py", "test_a_long_text_may_be_pasted_and_a_longer_one_is_refused"),
    ),
    row(
        "chat:back",
        "design 22",
        "who leaves a chat comes back to a run that went on",
        in_file("cli/test_chat.py", "test_who_leaves_comes_back_to_a_run_that_went_on"),
    ),
    row(
        "chat:looks",
        "design 22",
        "commands of a chat look at tools and budget, and take back what the last turn did",
        in_file("cli/test_chat.py", "test_commands_look_and_take_back"),
    ),
    row(
        "chat:left-out",
        "design 22",
        "a turn that cannot be followed, such as one that failed, is left out",
        in_file("cli/test_chat.py", "test_a_turn_that_cannot_be_followed_is_left_out"),
    ),
    row(
        "chat:no-page",
        "design 22",
        "without a page the chat goes on and says so once",
        in_file("cli/test_chat.py", "test_without_a_page_the_chat_goes_on_and_says_so_once"),
    ),
    row(
        "chat:no-terminal",
        "design 22",
        "without a terminal the chat says what to use instead",
        in_file("cli/test_chat.py", "test_without_a_terminal_it_says_what_to_use_instead"),
    ),
    row(
        "chat:session-name",
        "design 22",
        "a session that cannot be named so is refused",
        in_file("cli/test_chat.py", "test_a_session_that_cannot_be_named_so_is_refused"),
    ),
    row(
        "chat:commands",
        "design 22",
        "/plan shows title, state and steps of the last turn's plan",
        in_file("cli/test_chat.py", "test_the_plan_of_the_last_turn_is_shown_with_its_steps"),
    ),
    row(
        "chat:model",
        "design 22",
        "/model has the next turn ask another model, and then the usual one again",
        in_file("cli/test_chat.py", "test_a_chosen_model_is_asked_from_the_next_turn_on_until_the_usual_one_is"),
    ),
    row(
        "chat:session",
        "design 22",
        "after /session ID a turn goes on from that session's last one and knows nothing of the other session",
        in_file(
            "cli/test_chat.py",
            "test_a_turn_goes_on_in_the_session_that_was_chosen_and_knows_nothing_of_the_other",
        ),
    ),
    row(
        "chat:unread",
        "design 22",
        "a chat that the page does not show its run goes on asking, says so once, and reads along as soon as the "
        "run asks that person",
        in_file(
            "web/test_read_along.py",
            "test_who_may_not_see_the_run_is_told_so_once_and_reads_along_as_soon_as_it_asks_them",
        ),
    ),
    row(
        "chat:of-user",
        "design 22",
        "the user of a run reads along, also where the policy names others",
        in_file("web/test_read_along.py", "test_the_user_of_the_run_reads_along_where_the_policy_names_others"),
    ),
    row(
        "chat:not-let-in",
        "design 22",
        "a chat that the page does not let in says why once and asks once in a turn",
        in_file(
            "web/test_read_along.py",
            "test_a_chat_that_the_page_does_not_know_says_why_once_and_asks_once_in_a_turn",
        ),
    ),
    row(
        "follow:survives",
        "design 22; design 9",
        "ten follow-ups survive the death of the worker before each, know what turn 1 was answered, use a handle of "
        "turn 2, and the undo of turn 3 names what touched the same",
        in_file("crash/test_follow_ups.py", "test_ten_follow_ups_survive_the_death_of_the_worker_before_each"),
    ),
    row(
        "follow:context",
        "design 22; design 6",
        "a run that follows another is shown what was said before and then its own task, and has its own budget",
        in_file("e2e/sessions/test_follow_ups.py", "test_a_follow_up_is_shown_what_was_said_before_and_then_its_own_task"),
    ),
    row(
        "follow:rules",
        "design 22; design 6",
        "what the task of an earlier run ruled goes on to rule",
        in_file("e2e/sessions/test_follow_ups.py", "test_what_the_task_of_an_earlier_run_ruled_goes_on_to_rule"),
    ),
    row(
        "follow:nothing",
        "design 22; design 6",
        "a follow-up that is refused takes nothing over",
        in_file("e2e/sessions/test_follow_ups.py", "test_a_follow_up_that_is_refused_takes_nothing_over"),
    ),
    row(
        "follow:messages",
        "design 22; design 6",
        "the messages of a follow-up begin with its prompt and name the run before",
        in_file(
            "e2e/sessions/test_follow_ups.py",
            "test_the_messages_of_a_follow_up_begin_with_its_prompt_and_name_the_run_before",
        ),
    ),
    row(
        "follow:tools",
        "design 22; design 6",
        "a follow-up continues as its own run with the tools it has seen, also behind a run of many pieces",
        in_file("e2e/sessions/test_follow_ups.py", "test_a_follow_up_continues_as_its_own_run_with_the_tools_it_has_seen"),
        in_file(
            "activities/test_transcript.py",
            "test_a_run_of_many_pieces_is_followed_from_one_piece_with_the_same_tools_and_sources",
        ),
    ),
    row(
        "follow:ended",
        "design 22; design 6",
        "a run is followed however it ended, and the next one is told how",
        in_file("e2e/sessions/test_follow_ups.py", "test_a_run_is_followed_however_it_ended_and_the_next_one_is_told_how"),
    ),
    row(
        "follow:bound",
        "design 22; design 6",
        "the context of many follow-ups does not grow without bound, since earlier tasks are dropped and the own "
        "one stays",
        in_file("e2e/sessions/test_follow_ups.py", "test_the_context_of_many_follow_ups_does_not_grow_without_bound"),
        in_file("backstay/test_trimming.py", "test_earlier_tasks_can_be_dropped_and_the_own_one_stays"),
    ),
    row(
        "follow:undone",
        "design 22; design 6",
        "what was undone after the end is told to the next run",
        in_file("e2e/sessions/test_follow_ups.py", "test_what_was_undone_after_the_end_is_told_to_the_next_run"),
    ),
    row(
        "follow:refs",
        "design 22",
        "a ref opens in the run that wrote it and in runs that follow it, and nowhere else",
        in_file("e2e/sessions/test_follow_ups.py", "test_an_earlier_answer_is_read_again_by_its_ref_and_by_nobody_else"),
        in_file("store/test_blobs.py", "test_a_run_reads_what_the_runs_before_it_have_stored_and_no_other_does"),
    ),
    row(
        "follow:handles",
        "design 22; design 6",
        "handles of the followed run are carried over and keep their provider, and what they stand for stays masked",
        in_file(
            "e2e/sessions/test_follow_ups.py",
            "test_a_handle_of_an_earlier_run_goes_back_to_its_provider_as_the_secret",
            "test_a_secret_of_an_earlier_run_is_masked_when_the_next_task_names_it",
        ),
        in_file("store/test_runs.py", "test_a_run_takes_the_handles_of_the_run_that_it_follows_once"),
    ),
    row(
        "follow:sources",
        "design 22; design 8",
        "what a tool answered in a followed run keeps its source",
        in_file("e2e/sessions/test_follow_ups.py", "test_what_a_tool_said_in_an_earlier_run_keeps_its_source"),
    ),
    row(
        "follow:unproven",
        "design 22; design 8",
        "an unproven person of an earlier run vouches for nothing once the policy is strict",
        in_file(
            "e2e/sessions/test_follow_ups.py",
            "test_an_unproven_person_of_an_earlier_run_vouches_for_nothing_once_the_policy_is_strict",
        ),
    ),
    row(
        "follow:refused",
        "design 22; design 18",
        "a run of another user or session is not followed",
        in_file("e2e/sessions/test_follow_ups.py", "test_a_run_of_another_user_or_session_is_not_followed"),
    ),
    row(
        "follow:open",
        "design 22; design 18",
        "an open run is not followed, and the refusal says what to do",
        in_file("e2e/sessions/test_follow_ups.py", "test_an_open_run_is_not_followed_and_the_refusal_says_what_to_do"),
    ),
    row(
        "follow:pruned",
        "design 22; design 18",
        "a pruned run is not followed, and a followed one is not pruned before its follower",
        in_file(
            "e2e/sessions/test_follow_ups.py",
            "test_a_pruned_run_is_not_followed_and_a_followed_one_is_not_pruned_before_its_follower",
        ),
    ),
    row(
        "follow:proven",
        "design 22; design 18",
        "where the policy names approvers, only who is proven to have started a run goes on from it",
        in_file(
            "e2e/sessions/test_follow_ups.py",
            "test_where_the_policy_names_approvers_only_who_started_a_run_goes_on_from_it",
        ),
    ),
    row(
        "follow:undo",
        "design 9; design 22",
        "an undo names the effects of later runs that touched the same thing, and is not held up by them",
        in_file(
            "e2e/sessions/test_follow_ups.py",
            "test_an_undo_names_what_later_runs_did_to_the_same_thing_and_stops_for_nothing",
        ),
        in_file("store/test_touching.py", "test_what_identifies_a_thing_and_what_does_not"),
    ),
    row(
        "message:read",
        "design 22",
        "the model reads a message at its next step, and a run that waits for a decision goes on waiting",
        in_file("e2e/sessions/test_messages.py", "test_a_message_is_read_at_the_next_step_and_closes_no_request"),
    ),
    row(
        "message:calls",
        "design 22",
        "a message that comes while calls are under way stands behind their answers",
        in_file(
            "e2e/sessions/test_messages.py",
            "test_a_message_that_comes_while_calls_are_under_way_stands_behind_their_answers",
        ),
    ),
    row(
        "message:once",
        "design 22",
        "a repeated message is read once",
        in_file("e2e/sessions/test_messages.py", "test_a_repeated_message_is_read_once"),
    ),
    row(
        "message:finish",
        "design 22",
        "a run that would finish reads a message first if a step is left, and else says that it was not read",
        in_file(
            "e2e/sessions/test_messages.py",
            "test_a_run_that_would_finish_reads_the_message_first",
            "test_a_run_without_a_step_left_finishes_and_says_that_a_message_was_not_read",
        ),
    ),
    row(
        "message:secret",
        "design 22",
        "a secret in a message does not reach the model",
        in_file("e2e/sessions/test_messages.py", "test_a_secret_in_a_message_does_not_reach_the_model"),
    ),
    row(
        "message:refused",
        "design 22; design 8",
        "a message without a text, too long, forged, or to a run that asks no model, is refused with a typed error",
        in_file(
            "e2e/sessions/test_messages.py",
            "test_a_message_with_a_proof_that_does_not_hold_is_refused",
            "test_a_plan_and_an_ended_run_take_no_message",
            "test_all_messages_of_a_run_are_bounded_together",
            "test_what_is_no_message_is_refused_with_a_typed_error_and_nothing_of_it_is_read",
        ),
    ),
    row(
        "message:sources",
        "design 22; design 8",
        "only a message with a proof vouches for what it says where the policy needs to know who speaks",
        in_file("e2e/sessions/test_messages.py", "test_only_a_proven_message_vouches_for_what_it_says"),
    ),
    row(
        "session:commands",
        "design 22",
        "`run --continue RUN|last` goes on from a run, and `message RUN TEXT` tells an open one something",
        in_file(
            "cli/test_sessions.py",
            "test_a_message_to_a_run_that_has_ended_names_the_command_that_goes_on",
            "test_a_run_goes_on_from_the_last_one_and_from_one_by_its_beginning",
            "test_an_open_run_is_told_something",
        ),
    ),
    row(
        "session:last",
        "design 22",
        "`last` is the newest run and never an undo, and an answer to it goes to the newest run that waits, whose "
        "id is printed",
        in_file(
            "cli/test_sessions.py",
            "test_last_is_never_an_undo_and_where_it_is_to_decide_the_newest_run_that_waits",
        ),
    ),
)
