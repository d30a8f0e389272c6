"""The page: who is let in, what people see and decide there, and what attackers do not."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "page:strangers",
        "design 22; issue People",
        "whom the page does not know reads nothing there; a link is for one person on this machine, and a header is"
        " believed only from the proxy that says its secret, by the name that is set for it",
        in_file(
            "web/test_page.py",
            "test_a_stranger_reads_nothing_and_health_says_nothing_of_runs",
            "test_a_link_lets_one_person_in_and_an_altered_one_nobody",
            "test_a_header_counts_only_from_the_proxy_that_says_its_secret",
            "test_the_header_that_names_people_is_the_one_that_is_set",
            "test_links_are_for_this_machine_only",
        ),
    ),
    row(
        "page:whole-life",
        "issue People Done 1; design 8, 15, 22",
        "in a real browser people look at what runs ask, approve, change arguments, reject with a comment, have a"
        " decision remembered, agree in twos, decide their part of a plan, choose among plans, fill in the form of a"
        " tool's server, see how often they were reminded, and see what expires or is withdrawn; the run's Result says"
        " that each was verified",
        in_file(
            "web/test_life.py",
            "test_a_request_is_looked_at_and_approved_with_keys_alone",
            "test_arguments_are_changed_without_scripts_and_the_changed_call_is_made",
            "test_a_rejection_reaches_the_model_with_its_comment",
            "test_what_is_remembered_is_not_asked_again_in_this_run",
            "test_two_people_must_agree_and_each_sees_what_the_other_did",
            "test_each_decides_a_part_of_a_plan_and_leaves_a_step_out",
            "test_of_two_plans_the_other_is_chosen_from_the_page_of_the_first",
            "test_the_form_of_a_tools_server_is_filled_in_without_scripts",
            "test_a_page_that_is_open_says_how_often_and_when_people_were_reminded",
            "test_what_expires_says_so_while_it_is_looked_at",
            "test_a_request_that_a_cancelled_run_leaves_behind_says_that_it_was_withdrawn",
        ),
    ),
    row(
        "page:form-of-a-server",
        "issue People Done 1",
        "each field of a server's form says what fits; in a browser a number beyond its bound is refused by the name of"
        " its field, all that was typed stays, and once it fits, the server gets text, number, choice and yes or no"
        " in their own types, from a person who is verified",
        in_file("backstay/test_fields.py", "test_what_fits_is_hinted_where_a_field_does_not_show_it_by_itself"),
        in_file(
            "web/test_life.py",
            "test_what_a_tools_server_asks_in_a_form_comes_back_to_it_as_typed_once_every_field_fits",
        ),
    ),
    row(
        "page:once",
        "issue People Done 1",
        "a double click and a replay decide once and say the same, a page that is stale is refused and says what has"
        " changed, and whom a request does not concern neither sees nor decides it",
        in_file(
            "web/test_life.py",
            "test_a_double_click_and_a_replay_decide_once_and_say_the_same",
            "test_a_page_that_is_stale_is_refused_and_says_what_has_changed",
            "test_whom_a_request_does_not_concern_neither_sees_nor_decides_it",
        ),
    ),
    row(
        "page:inbox",
        "issue People",
        "the inbox counts what waits, tells of what is new by itself, and lets equal calls of several runs be decided"
        " at once, each with a proof of its own; it fits a phone and is accessible in the dark",
        in_file(
            "web/test_life.py",
            "test_equal_calls_of_several_runs_are_decided_at_once_each_with_its_own_proof",
            "test_the_inbox_tells_of_what_is_new_by_itself_and_counts_it_in_its_title",
            "test_the_page_fits_a_phone_and_is_accessible_in_the_dark",
        ),
    ),
    row(
        "page:found",
        "design 22",
        "the inbox shows what fits words of a task, a tool, an argument, a person or a run, and a kind: while a search"
        " is typed, when news come, and without scripts by a button; what was decided is searched in the same way",
        in_file(
            "web/test_inbox.py",
            "test_the_inbox_shows_the_requests_that_fit_a_search_and_a_kind",
            "test_while_a_search_is_typed_the_inbox_shows_what_fits_and_keeps_to_it_when_news_come",
            "test_without_scripts_a_search_and_a_kind_are_sent_with_a_button",
        ),
    ),
    row(
        "page:decided",
        "design 22",
        "each row of what was decided says how, by whom, whether that was proven, and the comment, or that the request"
        " expired, was withdrawn or that its run ended first; a row of the inbox says which others are looking",
        in_file(
            "web/test_inbox.py",
            "test_each_row_of_what_was_decided_says_what_became_of_it_and_by_whom",
            "test_a_row_of_the_inbox_says_which_others_are_looking_at_the_request",
        ),
    ),
    row(
        "page:forms",
        "issue People; design 22",
        "budgets are topped up, questions answered and lost outcomes settled; a wrong field is named with what was"
        " typed kept, only what was changed of arguments is sent, and programs decide with the objects of the wire",
        in_file(
            "web/test_forms.py",
            "test_a_budget_is_topped_up_and_what_is_no_number_is_said_with_what_was_typed",
            "test_a_question_of_the_model_is_answered",
            "test_an_outcome_that_nobody_knows_is_settled_by_what_a_person_says",
            "test_a_program_reads_and_decides_with_the_objects_of_the_wire",
            "test_every_field_of_a_servers_form_becomes_the_value_that_its_schema_asks_for",
            "test_what_a_form_lacks_is_said_by_the_field",
            "test_only_what_was_changed_of_arguments_is_sent_and_hidden_signs_are_seen",
            "test_leaving_out_every_call_is_no_approval",
        ),
    ),
    row(
        "page:attacks",
        "issue People Done 7; design 22",
        "forged and stale forms, foreign origins, rebinding, frames, spoofed headers, forged links and tokens, markup"
        " in every field of a request, ids, paths and news of others, oversize, slow and endless requests gain"
        " nothing, and the request that they attack stays undecided; docs/security.md lists each with its test",
        in_file(
            "web/test_attacks.py",
            "test_an_attack_gains_nothing_and_decides_nothing",
            "test_a_workflow_id_of_any_signs_has_a_page_of_its_own",
            "test_the_table_of_attacks_is_complete",
        ),
        in_file("web/test_hostile.py", "test_no_field_of_a_request_becomes_markup"),
        in_file(
            "web/test_serving.py",
            "test_a_link_that_has_expired_lets_nobody_in",
            "test_a_connection_that_says_nothing_is_closed",
        ),
    ),
    row(
        "page:tokens-of-a-proxy",
        "design 22",
        "an ID token names a person, by the claim that is set, when it is of the issuer, for this page, in time, and"
        " its address, where that is the claim, verified; keys are found as they change, and"
        " unknown ones do not flood the issuer",
        in_file(
            "web/test_oidc.py",
            "test_a_person_who_is_signed_in_decides_and_the_decision_is_verified",
            "test_keys_of_other_kinds_and_new_ones_are_found_and_unknown_ones_do_not_flood_the_issuer",
            "test_a_token_that_is_not_for_this_page_lets_nobody_in",
            "test_for_two_pages_counts_when_it_was_made_out_to_this_one",
            "test_the_claim_that_names_people_is_the_one_that_is_set",
            "test_a_page_for_tokens_of_anybody_does_not_start",
        ),
    ),
    row(
        "page:readiness",
        "design 22",
        "/readyz answers 503 while Postgres or Temporal cannot be reached, and 200 again when Postgres can; /healthz"
        " answers 200 throughout",
        in_file(
            "web/test_page.py",
            "test_a_page_is_not_ready_while_its_store_does_not_answer_and_is_when_it_does_again",
            "test_a_page_is_not_ready_when_temporal_cannot_be_reached",
        ),
    ),
    row(
        "page:started",
        "design 22",
        "`backstay web` starts, lets a person in by a link, says when nobody is verified, writes no link to its log,"
        " and stops in good order; what would let anybody in is refused with the setting and the fix",
        in_file(
            "web/test_serving.py",
            "test_the_page_starts_lets_one_person_in_and_stops",
            "test_what_would_let_anybody_in_is_said_and_nothing_is_served",
            "test_no_link_is_made_where_a_proxy_says_who_people_are",
        ),
    ),
    row(
        "page:who-sees-what",
        "design 22",
        "a request concerns who may decide it and the user of its run, names compared sign by sign; equal requests are"
        " found, changes noticed, and who looks is known across processes; what was asked before is found too, and how"
        " often and when people were reminded is known when the notices of it are forgotten",
        in_file(
            "store/test_inbox.py",
            "test_a_request_concerns_who_may_decide_it_and_the_user_of_its_run",
            "test_requests_about_the_very_same_calls_are_counted_until_they_are_decided",
            "test_a_mark_differs_whenever_something_has_changed",
            "test_how_often_and_when_people_were_reminded_outlives_the_notices_of_it",
            "test_who_looks_is_seen_by_others_until_they_leave_or_are_gone_for_long",
            "test_what_was_asked_before_is_found_by_whom_it_concerns_after_the_migration",
        ),
    ),
    row(
        "page:crowd",
        "issue People Done 2",
        "while three approvers double-click on many requests at two page processes, one of which is killed, every"
        " request is decided once, by the person whom the page told so, and no mail is sent twice; the long form has"
        " 500 open requests beside 10,000 decided ones",
        in_file(
            "web/test_crowd.py",
            "test_of_a_crowd_with_two_page_processes_and_one_killed_no_decision_is_lost_or_counts_twice",
        ),
        in_file("soak/test_crowd.py", "test_of_five_hundred_requests_none_is_lost_and_none_decided_twice"),
    ),
    row(
        "page:fast",
        "issue People Done 2",
        "of 100 looks at the inbox with 500 open requests beside 10,000 decided ones, 95 took at most 300 ms in the"
        " last run of the benchmark",
        in_file("test_benchmarks.py", "test_the_inbox_came_within_300_milliseconds"),
    ),
)
