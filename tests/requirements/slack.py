"""People who decide in Slack: the gateway, over HTTP and over socket mode."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "slack:life",
        "design 15; issue People Done 1",
        "over HTTP and over socket mode alike, a request is shown in Slack, approved there and recorded as verified",
        in_file("slack/test_life.py", "test_a_request_is_shown_approved_and_recorded_as_verified"),
    ),
    row(
        "slack:arguments",
        "design 15; issue People Done 1",
        "arguments are changed in a form in Slack, also those of one call that is chosen of several",
        in_file("slack/test_life.py", "test_arguments_are_changed_in_a_form"),
        in_file("slack/test_plans_and_outcomes.py", "test_one_call_of_several_is_chosen_and_changed"),
    ),
    row(
        "slack:rejection",
        "design 15; issue People Done 1",
        "a rejection in Slack tells the model why, and can stop the run",
        in_file("slack/test_life.py", "test_a_rejection_tells_the_model_why"),
        in_file("slack/test_plans_and_outcomes.py", "test_a_rejection_can_stop_the_run"),
    ),
    row(
        "slack:remembered",
        "design 15; issue People Done 1",
        "a decision in Slack is remembered for the rest of the run, or for as long and for the calls that are chosen",
        in_file(
            "slack/test_life.py",
            "test_a_decision_is_remembered_for_the_rest_of_the_run",
            "test_a_decision_is_remembered_for_as_long_and_for_the_calls_that_are_chosen",
        ),
    ),
    row(
        "slack:two-people",
        "design 15; issue People Done 1",
        "in Slack two people must agree, one counts once, and two clicks at once decide once",
        in_file(
            "slack/test_life.py",
            "test_two_clicks_at_once_decide_once",
            "test_two_people_must_agree_and_one_counts_once",
        ),
    ),
    row(
        "slack:renewed",
        "design 15; issue People Done 1",
        "people go on deciding when Slack renews the connection",
        in_file("slack/test_life.py", "test_people_go_on_deciding_when_slack_renews_the_connection"),
    ),
    row(
        "slack:partly",
        "design 15; issue People Done 1",
        "of several calls some are left out in Slack",
        in_file("slack/test_life.py", "test_of_several_calls_some_are_left_out"),
    ),
    row(
        "slack:plan-parts",
        "design 15; issue People Done 1",
        "parts of a plan are decided in Slack by their own people",
        in_file("slack/test_life.py", "test_parts_of_a_plan_are_decided_by_their_own_people"),
    ),
    row(
        "slack:outcome",
        "design 15; issue People Done 1",
        "a call whose outcome nobody knows is settled by a button in Slack",
        in_file("slack/test_plans_and_outcomes.py", "test_a_call_whose_outcome_nobody_knows_is_settled_by_a_button"),
    ),
    row(
        "slack:dry-run",
        "design 15; issue People Done 1",
        "a plan is gone through from Slack without being carried out",
        in_file("slack/test_plans_and_outcomes.py", "test_a_plan_is_gone_through_without_being_carried_out"),
    ),
    row(
        "slack:two-plans",
        "design 15; issue People Done 1",
        "of two plans the one that is approved in Slack is carried out, and the message of the other says so",
        in_file(
            "slack/test_plans_and_outcomes.py",
            "test_of_two_plans_the_one_that_is_approved_is_carried_out_and_the_other_message_says_so",
        ),
    ),
    row(
        "slack:narrowed",
        "design 15; issue People Done 1",
        "an approver in Slack gives each step of a plan less time and leaves a step out",
        in_file("slack/test_plans_and_outcomes.py", "test_an_approver_gives_each_step_less_time_and_leaves_a_step_out"),
    ),
    row(
        "slack:whole",
        "design 15; issue People Done 1",
        "everything is shown to who asks for it in Slack, which says what it does not show and where that stands",
        in_file("slack/test_plans_and_outcomes.py", "test_everything_is_shown_to_who_asks_for_it"),
        in_file("slack/test_forms.py", "test_everything_says_what_it_does_not_show_and_where_that_stands"),
    ),
    row(
        "slack:asks",
        "design 22",
        "a question is answered in a modal",
        in_file("slack/test_life.py", "test_a_question_is_answered"),
    ),
    row(
        "slack:limits",
        "design 22",
        "limits are raised in a modal, in which what does not fit is said at its field, or to the person alone "
        "where the form is closed by then",
        in_file("slack/test_life.py", "test_limits_are_raised_in_a_form"),
    ),
    row(
        "slack:silent",
        "design 22",
        "whoever presses a button while Slack does not answer is told so, alone",
        in_file("slack/test_once.py", "test_whoever_presses_a_button_while_slack_does_not_answer_is_told_so"),
    ),
    row(
        "slack:server-forms",
        "design 22",
        "the form of a tool's server is filled in in a modal with every kind of field, and the call goes on",
        in_file(
            "slack/test_forms.py",
            "test_a_form_of_a_tools_server_is_filled_in_and_the_call_goes_on",
            "test_every_kind_of_field_is_offered_and_read",
        ),
    ),
    row(
        "slack:misfit",
        "design 22",
        "what does not fit a form is said at its field",
        in_file("slack/test_forms.py", "test_what_does_not_fit_is_said_at_its_field"),
    ),
    row(
        "slack:edited",
        "design 22",
        "arguments of every kind are edited in a modal, and what is not touched stays",
        in_file("slack/test_forms.py", "test_arguments_of_every_kind_are_edited_and_what_is_not_touched_stays"),
    ),
    row(
        "slack:changed",
        "issue People",
        "the message of a request says who voted elsewhere",
        in_file("slack/test_life.py", "test_a_vote_that_came_from_elsewhere_is_shown_too"),
    ),
    row(
        "slack:reminded",
        "issue People",
        "people are reminded in the thread of a request while it waits, and its message says that it expired",
        in_file("slack/test_life.py", "test_nobody_decides_in_time_and_people_are_reminded_before"),
    ),
    row(
        "slack:others-asked",
        "issue People",
        "the message of a request says that others were asked when nobody had decided",
        in_file("slack/test_life.py", "test_others_are_asked_when_nobody_decided"),
    ),
    row(
        "slack:withdrawn",
        "issue People",
        "the message of a request says that it was withdrawn, or left by a run that ended",
        in_file(
            "slack/test_life.py",
            "test_a_request_that_is_no_longer_needed_is_shown_so",
            "test_a_request_of_a_run_that_ended_without_withdrawing_it_is_shown_so",
        ),
    ),
    row(
        "slack:changed-word",
        "issue People",
        "who changes what they said of an outcome is shown with what they say now",
        in_file(
            "slack/test_plans_and_outcomes.py",
            "test_who_changes_what_they_said_of_an_outcome_is_shown_with_what_they_say_now",
        ),
    ),
    row(
        "slack:elsewhere",
        "issue People",
        "the message of a request says that it was decided elsewhere and by whom",
        in_file("slack/test_strangers.py", "test_a_request_that_was_decided_elsewhere_is_shown_so_and_says_by_whom"),
    ),
    row(
        "slack:late-reminder",
        "issue People",
        "people are not reminded of what was decided while Slack took nothing",
        in_file("slack/test_once.py", "test_people_are_not_reminded_of_what_was_decided_while_slack_took_nothing"),
    ),
    row(
        "slack:strangers",
        "issue People Done 1",
        "over HTTP, what is forged, old, too long or too slow is refused",
        in_file(
            "slack/test_strangers.py",
            "test_what_is_forged_or_old_is_refused",
            "test_too_long_and_broken_requests_are_refused_before_they_are_read",
        ),
    ),
    row(
        "slack:again",
        "issue People Done 1",
        "what is delivered again counts once, over HTTP and over socket mode alike",
        in_file("slack/test_strangers.py", "test_what_is_delivered_again_counts_once"),
    ),
    row(
        "slack:people",
        "issue People Done 1",
        "only people whom Slack or the operator's file vouches for decide, and who is struck from the file decides "
        "nothing from then on",
        in_file(
            "slack/test_strangers.py",
            "test_only_people_whom_slack_or_the_operator_vouches_for_decide",
            "test_who_is_struck_from_the_file_decides_nothing_from_then_on",
        ),
    ),
    row(
        "slack:not-named",
        "issue People Done 1",
        "somebody whom the rule does not name decides nothing and is told so",
        in_file("slack/test_strangers.py", "test_somebody_whom_the_rule_does_not_name_is_told_so"),
    ),
    row(
        "slack:tampered",
        "issue People Done 1",
        "a message of an earlier run or of another request decides nothing, nor does a tampered button or form",
        in_file(
            "slack/test_strangers.py",
            "test_a_message_of_an_earlier_run_or_of_another_request_decides_nothing",
            "test_a_tampered_button_or_form_decides_nothing",
        ),
    ),
    row(
        "slack:facts",
        "issue People Done 1",
        "a request in Slack shows where the values of its calls first appeared",
        in_file("slack/test_facts.py", "test_a_request_shows_where_a_value_comes_from"),
    ),
    row(
        "facts:workspace",
        "issue People Done 1",
        "a request in Slack shows what would change in a workspace",
        in_file("slack/test_facts.py", "test_a_request_shows_what_would_change_in_a_workspace"),
    ),
    row(
        "facts:long-plan",
        "issue People Done 1",
        "a request in Slack says how many steps of a long plan are not shown",
        in_file("slack/test_facts.py", "test_a_request_says_how_many_steps_of_a_long_plan_are_not_shown"),
    ),
    row(
        "facts:processes",
        "issue People Done 1",
        "an approver in Slack lets a plan start no processes",
        in_file("slack/test_facts.py", "test_an_approver_lets_a_plan_start_no_processes"),
    ),
    row(
        "facts:rehearsal",
        "issue People Done 1",
        "a request in Slack shows what a rehearsal foretells",
        in_file("slack/test_facts.py", "test_a_request_shows_what_a_rehearsal_foretells"),
    ),
    row(
        "slack:drawing",
        "design 8",
        "text of others makes no mention, link, broadcast or format in Slack",
        in_file("slack/test_drawing.py", "test_text_of_others_makes_no_mention_no_link_no_broadcast_and_no_format"),
    ),
    row(
        "drawing:counted",
        "design 8",
        "what does not fit into a message is counted, and approving it asks once more",
        in_file("slack/test_drawing.py", "test_what_does_not_fit_is_counted_and_approving_it_asks_once_more"),
    ),
    row(
        "drawing:lines",
        "design 8",
        "any lines make blocks that Slack takes, every character is shown or counted, and no clipped text ends "
        "within an escape",
        in_file(
            "slack/test_drawing.py",
            "test_any_lines_make_blocks_that_slack_takes_and_every_character_is_shown_or_counted",
            "test_a_clipped_text_never_ends_within_an_escape",
        ),
    ),
    row(
        "drawing:buttons",
        "design 8",
        "an id that no button can carry leaves the request without buttons",
        in_file("slack/test_drawing.py", "test_an_id_that_no_button_can_carry_leaves_the_request_without_buttons"),
    ),
    row(
        "drawing:limits",
        "design 8",
        "a run and its steps are drawn within the limits of Slack",
        in_file("slack/test_drawing.py", "test_a_run_and_its_steps_are_drawn_within_the_limits"),
    ),
    row(
        "slack:once",
        "issue People",
        "a process that is killed between posting a request and recording it does not post it again",
        in_file("slack/test_once.py", "test_a_process_that_is_killed_after_it_posted_does_not_post_again"),
    ),
    row(
        "slack:refusing",
        "issue People",
        "what Slack did not take, also when connections break, is sent later and once",
        in_file("slack/test_once.py", "test_what_slack_did_not_take_is_sent_later_and_once"),
    ),
    row(
        "slack:racing",
        "issue People",
        "two processes post a request once, and what waited before is posted at the start, though a request among "
        "it cannot be read",
        in_file(
            "slack/test_once.py",
            "test_two_processes_post_a_request_once_and_one_that_comes_late_shows_what_waits",
        ),
        in_file(
            "store/test_posts.py",
            "test_one_process_at_a_time_may_write_a_post_and_the_next_knows_that_another_tried",
        ),
    ),
    row(
        "slack:flood",
        "issue People",
        "many steps make few messages",
        in_file("slack/test_once.py", "test_a_flood_of_steps_makes_few_messages"),
    ),
    row(
        "slack:behind",
        "issue People",
        "a chat learns which requests it shows wrongly or not at all",
        in_file("store/test_posts.py", "test_a_chat_learns_which_requests_it_shows_wrongly_and_which_not_at_all"),
    ),
    row(
        "slack:steps",
        "issue People",
        "a chat learns which runs have steps that it does not show",
        in_file("store/test_posts.py", "test_a_chat_learns_which_runs_have_steps_that_it_does_not_show"),
    ),
    row(
        "slack:commands",
        "issue People",
        "over HTTP and over socket mode alike, /backstay starts a run for the person, lists that person's runs and "
        "undoes them, each once however often the command is delivered",
        in_file("slack/test_commands.py", "test_a_run_is_started_for_the_person_listed_and_undone"),
    ),
    row(
        "slack:undo-open",
        "issue People",
        "/backstay undoes what an open run did too",
        in_file("slack/test_commands.py", "test_what_an_open_run_did_is_undone_too"),
    ),
    row(
        "slack:own-run",
        "issue People",
        "who started a run in Slack may not approve it where the rule forbids that",
        in_file("slack/test_commands.py", "test_who_started_a_run_here_may_not_approve_it_where_the_rule_forbids_that"),
    ),
    row(
        "slack:misused",
        "issue People",
        "a command that says nothing of use is answered with what is wrong with it",
        in_file("slack/test_commands.py", "test_a_command_that_says_nothing_of_use_is_answered"),
    ),
    row(
        "slack:starting",
        "design 22",
        "`backstay slack` names what is missing or wrong with the fix, also in the file of people, and ends with "
        "exit code 2",
        in_file(
            "slack/test_starting.py",
            "test_what_is_missing_or_wrong_is_named_with_the_fix",
            "test_a_file_of_people_that_cannot_be_used_is_named",
        ),
    ),
    row(
        "slack:extra",
        "design 22",
        "without the extra `backstay slack` says how to install it",
        in_file("slack/test_starting.py", "test_without_the_extra_the_command_says_how_to_install_it"),
    ),
    row(
        "slack:serving",
        "design 22",
        "`backstay slack` serves over HTTP or over socket mode until it is told to stop, and says over HTTP that it "
        "lives",
        in_file("slack/test_starting.py", "test_the_command_serves_slack_until_it_is_told_to_stop"),
    ),
    row(
        "slack:within-page",
        "design 22",
        "the page serves Slack too where its token is set, in both modes",
        in_file("slack/test_within_page.py", "test_the_page_answers_slack_too_when_a_token_is_set"),
    ),
    row(
        "slack:manifest",
        "design 22",
        "the manifest of Slack asks for all that the gateway needs and names where it listens",
        in_file(
            "slack/test_within_page.py",
            "test_the_manifest_asks_for_all_that_the_gateway_needs_and_names_where_it_listens",
        ),
    ),
)
