"""The page: who is let in, what people see and decide there, and what attackers do not."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "page:strangers",
        "design 22; issue People",
        "whom the page does not know reads nothing there, and its health says nothing of runs",
        in_file("web/test_page.py", "test_a_stranger_reads_nothing_and_health_says_nothing_of_runs"),
    ),
    row(
        "page:links",
        "design 22; issue People",
        "a link lets one person in, on this machine only, and an altered one nobody",
        in_file(
            "web/test_page.py",
            "test_a_link_lets_one_person_in_and_an_altered_one_nobody",
            "test_links_are_for_this_machine_only",
        ),
    ),
    row(
        "page:proxy-header",
        "design 22; issue People",
        "a header is believed only from the proxy that says its secret, by the name that is set for it",
        in_file(
            "web/test_page.py",
            "test_a_header_counts_only_from_the_proxy_that_says_its_secret",
            "test_the_header_that_names_people_is_the_one_that_is_set",
        ),
    ),
    row(
        "page:decided-by-link",
        "design 22",
        "who opens the link that `backstay web link` printed approves in a browser, where the page has the approver "
        "key, and the Result says who it was and that this was verified",
        in_file(
            "web/test_serving.py",
            "test_who_comes_by_a_link_approves_in_a_browser_and_the_run_says_that_they_are_verified",
        ),
    ),
    row(
        "page:whole-life",
        "issue People Done 1; design 8, 15, 22",
        "a person looks at a request and approves it in a real browser with keys alone, and the run's Result says "
        "that they were verified",
        in_file("web/test_life.py", "test_a_request_is_looked_at_and_approved_with_keys_alone"),
    ),
    row(
        "page:arguments",
        "issue People Done 1; design 8, 15, 22",
        "without scripts a verified person changes the arguments of a call in a browser, and the changed call is made",
        in_file("web/test_life.py", "test_arguments_are_changed_without_scripts_and_the_changed_call_is_made"),
    ),
    row(
        "page:rejection",
        "issue People Done 1; design 8, 15, 22",
        "the rejection of a verified person on the page reaches the model with its comment",
        in_file("web/test_life.py", "test_a_rejection_reaches_the_model_with_its_comment"),
    ),
    row(
        "page:remembered",
        "issue People Done 1; design 8, 15, 22",
        "what a verified person has remembered on the page for a run is not asked again in it",
        in_file("web/test_life.py", "test_what_is_remembered_is_not_asked_again_in_this_run"),
    ),
    row(
        "page:in-twos",
        "issue People Done 1; design 8, 15, 22",
        "two people agree in their browsers, and each sees what the other did and that it was verified",
        in_file("web/test_life.py", "test_two_people_must_agree_and_each_sees_what_the_other_did"),
    ),
    row(
        "page:plan-parts",
        "issue People Done 1; design 8, 15, 22",
        "in their browsers each of several people decides their part of a plan and may leave a step out",
        in_file("web/test_life.py", "test_each_decides_a_part_of_a_plan_and_leaves_a_step_out"),
    ),
    row(
        "page:two-plans",
        "issue People Done 1; design 8, 15, 22",
        "of two plans the other one is chosen on the page of the first",
        in_file("web/test_life.py", "test_of_two_plans_the_other_is_chosen_from_the_page_of_the_first"),
    ),
    row(
        "page:tool-form",
        "issue People Done 1; design 8, 15, 22",
        "the form of a tool's server is filled in by a verified person without scripts",
        in_file("web/test_life.py", "test_the_form_of_a_tools_server_is_filled_in_without_scripts"),
    ),
    row(
        "page:reminded",
        "issue People Done 1; design 8, 15, 22",
        "an open page says how often and when people were reminded, also of a request that then expires, and that "
        "it expired",
        in_file(
            "web/test_life.py",
            "test_a_page_that_is_open_says_how_often_and_when_people_were_reminded",
            "test_what_expires_says_so_while_it_is_looked_at_after_people_were_reminded",
        ),
    ),
    row(
        "page:withdrawn",
        "issue People Done 1; design 8, 15, 22",
        "the page says of a request that a cancelled run leaves behind that it was withdrawn",
        in_file("web/test_life.py", "test_a_request_that_a_cancelled_run_leaves_behind_says_that_it_was_withdrawn"),
    ),
    row(
        "page:buttons",
        "design 8, 22",
        "in a browser, to reject and stop ends the run, and the model is not asked again",
        in_file("web/test_buttons.py", "test_to_reject_and_stop_ends_the_run_and_the_model_is_not_asked_again"),
    ),
    row(
        "page:reject-always",
        "design 8, 22",
        "what is rejected always in a browser is neither asked again nor made, for the very same arguments or for any",
        in_file("web/test_buttons.py", "test_what_is_rejected_always_is_not_asked_again_and_not_done"),
    ),
    row(
        "page:for-session",
        "design 8, 22",
        "what is remembered in a browser for a session holds for the very same arguments in later runs there and in "
        "no others",
        in_file("web/test_buttons.py", "test_what_is_remembered_for_a_session_holds_there_for_the_very_same_arguments"),
    ),
    row(
        "page:always",
        "design 8, 22",
        "what is remembered always in a browser holds for any arguments in later runs of that user and of no others",
        in_file(
            "web/test_buttons.py",
            "test_what_is_remembered_always_holds_in_every_run_of_the_user_for_any_arguments",
        ),
    ),
    row(
        "page:ticked",
        "design 8, 22",
        "in a browser the ticked of equal calls are rejected with one comment, and the others wait",
        in_file(
            "web/test_buttons.py",
            "test_the_ticked_of_equal_calls_are_rejected_with_one_comment_and_the_others_wait",
        ),
    ),
    row(
        "page:dry-run-only",
        "design 8, 22",
        "of a plan of which only a dry run is approved in a browser, nothing is made",
        in_file("web/test_buttons.py", "test_of_a_plan_of_which_only_a_dry_run_is_approved_nothing_is_made"),
    ),
    row(
        "page:without-processes",
        "design 8, 22",
        "a plan that is approved in a browser without processes goes on without its commands",
        in_file("web/test_buttons.py", "test_a_plan_that_is_approved_without_processes_goes_on_without_its_commands"),
    ),
    row(
        "page:less-time",
        "design 8, 22",
        "in a browser each step of a plan is given less time, never more, and a step that needs more is ended",
        in_file("web/test_buttons.py", "test_a_step_that_needs_more_time_than_was_typed_is_ended"),
    ),
    row(
        "page:keys",
        "design 22",
        "in a browser j and k go down and up the rows and stay at their ends",
        in_file("web/test_keys.py", "test_j_and_k_go_down_and_up_the_rows_and_stay_at_their_ends"),
    ),
    row(
        "page:reject-key",
        "design 22",
        "in a browser r goes to Reject, in the inbox and on the page of a request, and Enter presses it",
        in_file(
            "web/test_keys.py",
            "test_r_goes_to_reject_from_the_inbox_and_on_the_page_of_a_request_and_enter_presses_it",
        ),
    ),
    row(
        "page:search-key",
        "design 22",
        "in a browser / goes to the search and is not typed there",
        in_file("web/test_keys.py", "test_a_slash_goes_to_the_search_without_being_typed_there"),
    ),
    row(
        "page:help-key",
        "design 22",
        "in a browser ? opens a help that names every key, and no other key does anything until it is closed",
        in_file(
            "web/test_keys.py",
            "test_a_question_mark_opens_the_help_which_keeps_all_other_keys_until_it_is_closed",
        ),
    ),
    row(
        "page:text-keys",
        "design 22",
        "a key that is typed in a field, or with Ctrl, Alt or Meta, does nothing else",
        in_file("web/test_keys.py", "test_a_key_that_is_typed_in_a_field_is_only_text"),
    ),
    row(
        "page:barriers",
        "design 22",
        "axe finds nothing serious, in the light or in the dark, in the form that changes arguments, also when it "
        "comes back with a fault",
        in_file(
            "web/test_barriers.py",
            "test_the_form_that_changes_arguments_has_none_nor_when_it_comes_back_with_a_fault",
        ),
    ),
    row(
        "page:barriers-before",
        "design 22",
        "axe finds nothing serious, in the light or in the dark, in what asks before a run is taken back or ended",
        in_file("web/test_barriers.py", "test_what_asks_whether_to_take_back_or_to_end_a_run_has_none"),
    ),
    row(
        "page:barriers-alike",
        "design 22",
        "axe finds nothing serious, in the light or in the dark, in what became of equal calls, also where one was "
        "not decided",
        in_file("web/test_barriers.py", "test_what_became_of_equal_calls_has_none_also_where_one_was_not_decided"),
    ),
    row(
        "page:barriers-refused",
        "design 22",
        "axe finds nothing serious, in the light or in the dark, in the pages 401 and 404",
        in_file("web/test_barriers.py", "test_pages_that_refuse_strangers_and_find_nothing_have_none"),
    ),
    row(
        "page:barriers-stale",
        "design 22",
        "axe finds nothing serious, in the light or in the dark, in a refusal that lists what has changed",
        in_file("web/test_barriers.py", "test_a_refusal_that_lists_what_has_changed_has_none"),
    ),
    row(
        "page:form-of-a-server",
        "issue People Done 1",
        "each field of a server's form says what fits where the field does not show it by itself",
        in_file("backstay/test_fields.py", "test_what_fits_is_hinted_where_a_field_does_not_show_it_by_itself"),
    ),
    row(
        "page:form-values",
        "issue People Done 1",
        "in a browser a number beyond its bound is refused by its field and all that was typed stays, and once it "
        "fits, a verified person's values reach the server in their own types",
        in_file(
            "web/test_life.py",
            "test_what_a_tools_server_asks_in_a_form_comes_back_to_it_as_typed_once_every_field_fits",
        ),
    ),
    row(
        "page:once",
        "issue People Done 1",
        "a double click and a replay decide once and say the same",
        in_file("web/test_life.py", "test_a_double_click_and_a_replay_decide_once_and_say_the_same"),
    ),
    row(
        "page:stale",
        "issue People Done 1",
        "a page that is stale is refused and says what has changed",
        in_file("web/test_life.py", "test_a_page_that_is_stale_is_refused_and_says_what_has_changed"),
    ),
    row(
        "page:not-theirs",
        "issue People Done 1",
        "whom a request does not concern neither sees nor decides it",
        in_file("web/test_life.py", "test_whom_a_request_does_not_concern_neither_sees_nor_decides_it"),
    ),
    row(
        "page:inbox",
        "issue People",
        "equal calls of several runs are decided at once in the inbox, each with a proof of its own",
        in_file("web/test_life.py", "test_equal_calls_of_several_runs_are_decided_at_once_each_with_its_own_proof"),
    ),
    row(
        "page:inbox-alike",
        "issue People",
        "what became of equal calls says which of them wait for others",
        in_file("web/test_life.py", "test_what_became_of_equal_calls_says_which_of_them_wait_for_others"),
    ),
    row(
        "page:inbox-news",
        "issue People",
        "the inbox tells of what is new by itself and counts what waits in its title",
        in_file("web/test_life.py", "test_the_inbox_tells_of_what_is_new_by_itself_and_counts_it_in_its_title"),
    ),
    row(
        "page:inbox-phone",
        "issue People",
        "the inbox fits a phone and is accessible in the dark",
        in_file("web/test_life.py", "test_the_page_fits_a_phone_and_is_accessible_in_the_dark"),
    ),
    row(
        "page:pressed",
        "design 22",
        "news that come while something is pressed wait until it is released, so that the click counts",
        (
            *in_file("web/test_inbox.py", "test_news_that_come_amid_a_click_wait_for_its_end_and_the_click_counts"),
            *in_file(
                "web/test_run_live.py",
                "test_a_click_on_a_run_counts_though_the_run_goes_on_while_it_is_pressed",
            ),
        ),
    ),
    row(
        "page:found",
        "design 22",
        "the inbox shows what fits words of a task, a tool, an argument, a person or a run, and a kind",
        in_file("web/test_inbox.py", "test_the_inbox_shows_the_requests_that_fit_a_search_and_a_kind"),
    ),
    row(
        "page:found-typed",
        "design 22",
        "while a search is typed the inbox shows what fits, and keeps to it when news come",
        in_file(
            "web/test_inbox.py",
            "test_while_a_search_is_typed_the_inbox_shows_what_fits_and_keeps_to_it_when_news_come",
        ),
    ),
    row(
        "page:found-by-button",
        "design 22",
        "without scripts a search and a kind are sent with a button, and what was decided is searched in the same way",
        in_file("web/test_inbox.py", "test_without_scripts_a_search_and_a_kind_are_sent_with_a_button"),
    ),
    row(
        "page:paging",
        "design 22",
        "of more requests than one page holds, open or decided, searched or not, the older ones are found page by "
        "page, each once and the newest first",
        in_file("web/test_paging.py", "test_older_requests_are_found_page_by_page_each_once_the_newest_first"),
    ),
    row(
        "page:paging-programs",
        "design 22",
        "a program goes on behind the position that it was told, until there is none",
        in_file(
            "web/test_paging.py",
            "test_a_program_goes_on_behind_the_position_that_it_was_told_until_there_is_none",
        ),
    ),
    row(
        "page:paging-end",
        "design 22",
        "behind the oldest request, the page does not say that nothing waits",
        in_file("web/test_paging.py", "test_behind_the_oldest_request_the_page_does_not_say_that_nothing_waits"),
    ),
    row(
        "page:paging-news",
        "design 22",
        "when news come, people stay on their page and at their row",
        in_file("web/test_paging.py", "test_news_leave_people_on_the_page_and_at_the_row_where_they_are"),
    ),
    row(
        "page:decided",
        "design 22",
        "each row of what was decided says how, by whom, whether that was proven, and the comment, or that the "
        "request expired, was withdrawn or that its run ended first",
        in_file("web/test_inbox.py", "test_each_row_of_what_was_decided_says_what_became_of_it_and_by_whom"),
    ),
    row(
        "page:looking",
        "design 22",
        "a row of the inbox says which others are looking at the request",
        in_file("web/test_inbox.py", "test_a_row_of_the_inbox_says_which_others_are_looking_at_the_request"),
    ),
    row(
        "page:standing",
        "design 22",
        "a request whose run has ended says so, while it is looked at and afterwards, and has no buttons",
        in_file(
            "web/test_standing.py",
            "test_a_request_whose_run_has_ended_says_so_while_it_is_looked_at_and_afterwards",
        ),
    ),
    row(
        "page:no-worker",
        "design 22",
        "while no worker answers, a request has no buttons and says why, and what was decided is still said",
        in_file(
            "web/test_standing.py",
            "test_while_no_worker_answers_a_request_has_no_buttons_and_what_was_decided_is_still_said",
        ),
    ),
    row(
        "page:not-verified",
        "design 22",
        "a decision that the workers cannot verify is refused with 403 and changes nothing, and the page says that "
        "it was not accepted",
        in_file(
            "web/test_standing.py",
            "test_a_decision_that_the_workers_cannot_verify_is_403_for_programs_and_changes_nothing",
            "test_a_page_with_another_key_says_that_a_decision_was_not_accepted",
        ),
    ),
    row(
        "page:no-key",
        "design 22",
        "without an approver key nobody is shown buttons for what only verified people decide",
        in_file("web/test_standing.py", "test_a_page_without_a_key_shows_no_buttons_for_what_verified_people_decide"),
    ),
    row(
        "page:escalated",
        "design 15, 22",
        "when nobody has decided in time, an open page says who else was asked, who see the request only then, with "
        "the same words, which stay, and may approve it",
        in_file(
            "web/test_standing.py",
            "test_who_is_asked_too_when_nobody_decides_in_time_is_said_to_both_and_may_decide",
        ),
    ),
    row(
        "page:foretold",
        "design 22",
        "the page of a rehearsed plan shows which lines of a file would change and whether each call was read, "
        "would be made or is assumed, and the plan is approved there and then done",
        in_file(
            "web/test_standing.py",
            "test_the_page_of_a_rehearsed_plan_shows_what_it_would_change_and_what_was_foretold",
        ),
    ),
    row(
        "page:long-plan",
        "design 22",
        "the page of a long plan says how many steps it leaves out, and the page of the run shows them",
        in_file(
            "web/test_standing.py",
            "test_the_page_of_a_long_plan_says_how_many_steps_it_leaves_out_and_where_they_are",
        ),
    ),
    row(
        "page:forms",
        "issue People; design 22",
        "a budget is topped up on the page, and what is no number is named with what was typed kept",
        in_file("web/test_forms.py", "test_a_budget_is_topped_up_and_what_is_no_number_is_said_with_what_was_typed"),
    ),
    row(
        "page:forms-questions",
        "issue People; design 22",
        "a question of the model is answered on the page",
        in_file("web/test_forms.py", "test_a_question_of_the_model_is_answered"),
    ),
    row(
        "page:forms-outcomes",
        "issue People; design 22",
        "an outcome that nobody knows is settled on the page by what a person says",
        in_file("web/test_forms.py", "test_an_outcome_that_nobody_knows_is_settled_by_what_a_person_says"),
    ),
    row(
        "page:forms-programs",
        "issue People; design 22",
        "a program reads and decides with the objects of the wire",
        in_file("web/test_forms.py", "test_a_program_reads_and_decides_with_the_objects_of_the_wire"),
    ),
    row(
        "page:forms-fields",
        "issue People; design 22",
        "every field of a server's form becomes the value that its schema asks for, and what is missing is said by "
        "the field",
        in_file(
            "web/test_forms.py",
            "test_every_field_of_a_servers_form_becomes_the_value_that_its_schema_asks_for",
            "test_what_a_form_lacks_is_said_by_the_field",
        ),
    ),
    row(
        "page:forms-changes",
        "issue People; design 22",
        "only what was changed of arguments is sent, and hidden signs in them are seen",
        in_file("web/test_forms.py", "test_only_what_was_changed_of_arguments_is_sent_and_hidden_signs_are_seen"),
    ),
    row(
        "page:forms-none-left",
        "issue People; design 22",
        "leaving out every call is no approval",
        in_file("web/test_forms.py", "test_leaving_out_every_call_is_no_approval"),
    ),
    row(
        "page:attacks",
        "issue People Done 7; design 22",
        "forged and stale forms, foreign origins, rebinding, frames, spoofed headers, forged links and tokens, ids, "
        "paths and news of others, and oversize, slow and endless requests gain nothing and decide nothing",
        in_file("web/test_attacks.py", "test_an_attack_gains_nothing_and_decides_nothing"),
    ),
    row(
        "page:attacks-listed",
        "issue People Done 7; design 22",
        "docs/security.md lists each attack on the page with its test",
        in_file("web/test_attacks.py", "test_the_table_of_attacks_is_complete"),
    ),
    row(
        "page:odd-ids",
        "issue People Done 7; design 22",
        "the page of a run is its own whatever signs its workflow id has",
        in_file("web/test_attacks.py", "test_a_workflow_id_of_any_signs_has_a_page_of_its_own"),
    ),
    row(
        "page:markup",
        "issue People Done 7; design 22",
        "nothing in any field of a request, of a decision or of a run becomes markup",
        in_file(
            "web/test_hostile.py",
            "test_every_field_of_a_request_that_can_hold_text_is_hostile_here",
            "test_no_field_of_a_request_becomes_markup",
            "test_nothing_of_what_was_decided_of_equal_requests_and_of_runs_becomes_markup",
        ),
    ),
    row(
        "page:old-links",
        "issue People Done 7; design 22",
        "a link that has expired lets nobody in, and what an older secret of the page signed does nothing",
        in_file(
            "web/test_serving.py",
            "test_a_link_that_has_expired_lets_nobody_in",
            "test_once_the_secret_of_the_page_is_changed_old_links_sessions_and_forms_do_nothing",
        ),
    ),
    row(
        "page:silent-connections",
        "issue People Done 7; design 22",
        "a connection that says nothing is closed",
        in_file("web/test_serving.py", "test_a_connection_that_says_nothing_is_closed"),
    ),
    row(
        "page:no-leaks",
        "design 22; docs/security.md",
        "through a whole life at the page, no key and no secret of the page or its proxy is in what it answers, its "
        "log, the run's history or the store",
        in_file("web/test_leaks.py", "test_no_answer_no_log_no_history_and_no_store_holds_a_key_or_a_secret"),
    ),
    row(
        "page:tokens-of-a-proxy",
        "design 22",
        "who is named by an ID token decides as a program or by the form in a browser, and the decision is verified",
        in_file(
            "web/test_oidc.py",
            "test_a_person_who_is_signed_in_decides_and_the_decision_is_verified",
            "test_a_person_with_a_token_decides_by_the_form_in_a_browser_and_the_decision_is_verified",
        ),
    ),
    row(
        "page:token-keys",
        "design 22",
        "keys of the issuer are found as they change, and unknown ones do not flood it",
        in_file(
            "web/test_oidc.py",
            "test_keys_of_other_kinds_and_new_ones_are_found_and_unknown_ones_do_not_flood_the_issuer",
        ),
    ),
    row(
        "page:token-refused",
        "design 22",
        "a token lets somebody in only when it is of the issuer, for this page, in time, and with a verified "
        "address where the address is the claim",
        in_file(
            "web/test_oidc.py",
            "test_a_token_that_is_not_for_this_page_lets_nobody_in",
            "test_for_two_pages_counts_when_it_was_made_out_to_this_one",
        ),
    ),
    row(
        "page:token-claim",
        "design 22",
        "the claim that names people is the one that is set",
        in_file("web/test_oidc.py", "test_the_claim_that_names_people_is_the_one_that_is_set"),
    ),
    row(
        "page:token-audience",
        "design 22",
        "a page that would take tokens made out to anybody does not start",
        in_file("web/test_oidc.py", "test_a_page_for_tokens_of_anybody_does_not_start"),
    ),
    row(
        "page:readiness",
        "design 22",
        "/readyz answers 503 while the store does not answer and 200 again when it does, and /healthz answers 200 "
        "throughout",
        in_file(
            "web/test_page.py",
            "test_a_page_is_not_ready_while_its_store_does_not_answer_and_is_when_it_does_again",
        ),
    ),
    row(
        "page:ready-temporal",
        "design 22",
        "/readyz answers 503 while Temporal cannot be reached, and /healthz answers 200 throughout",
        in_file("web/test_page.py", "test_a_page_is_not_ready_when_temporal_cannot_be_reached"),
    ),
    row(
        "page:ready-file",
        "design 22",
        "/readyz answers 503 while the file of SQLite is gone and 200 again when it is back, and /healthz answers "
        "200 throughout",
        in_file("web/test_page.py", "test_a_page_is_not_ready_while_the_file_of_its_store_is_gone"),
    ),
    row(
        "page:started",
        "design 22",
        "`backstay web` starts, lets a person in by a link, says when nobody is verified, writes no link to its "
        "log, and stops in good order",
        in_file("web/test_serving.py", "test_the_page_starts_lets_one_person_in_and_stops"),
    ),
    row(
        "page:open-to-all",
        "design 22",
        "what would let anybody in is refused at the start with the setting and the fix, and nothing is served",
        in_file("web/test_serving.py", "test_what_would_let_anybody_in_is_said_and_nothing_is_served"),
    ),
    row(
        "page:no-link",
        "design 22",
        "no link is made where a proxy says who people are",
        in_file("web/test_serving.py", "test_no_link_is_made_where_a_proxy_says_who_people_are"),
    ),
    row(
        "page:who-sees-what",
        "design 22",
        "a request concerns who may decide it and the user of its run, names compared sign by sign",
        in_file("store/test_inbox.py", "test_a_request_concerns_who_may_decide_it_and_the_user_of_its_run"),
    ),
    row(
        "page:alike",
        "design 22",
        "requests of which the same is shown are counted until they are decided, and others are not alike",
        in_file(
            "store/test_inbox.py",
            "test_requests_about_the_very_same_calls_are_counted_until_they_are_decided",
            "test_requests_of_whose_calls_people_are_shown_something_else_are_not_alike",
        ),
    ),
    row(
        "page:marks",
        "design 22",
        "a mark differs whenever something of a request has changed",
        in_file("store/test_inbox.py", "test_a_mark_differs_whenever_something_has_changed"),
    ),
    row(
        "page:reminders-kept",
        "design 22",
        "how often and when people were reminded is known when the notices of it are forgotten",
        in_file("store/test_inbox.py", "test_how_often_and_when_people_were_reminded_outlives_the_notices_of_it"),
    ),
    row(
        "page:lookers",
        "design 22",
        "who looks is seen by others across processes, until they leave or are gone for long",
        in_file("store/test_inbox.py", "test_who_looks_is_seen_by_others_until_they_leave_or_are_gone_for_long"),
    ),
    row(
        "page:crowd",
        "issue People Done 2",
        "while three approvers double-click at two page processes, one of which is killed, every request is decided "
        "once, by the person whom the page told so, and no mail is sent twice",
        in_file(
            "web/test_crowd.py",
            "test_of_a_crowd_with_two_page_processes_and_one_killed_no_decision_is_lost_or_counts_twice",
        ),
    ),
    row(
        "page:crowd-long",
        "issue People Done 2",
        "of 500 open requests beside 10,000 decided ones none is lost and none is decided twice in such a crowd",
        in_file("soak/test_crowd.py", "test_of_five_hundred_requests_none_is_lost_and_none_decided_twice"),
    ),
    row(
        "page:fast",
        "issue People Done 2",
        "of 100 looks at the inbox with 500 open requests beside 10,000 decided ones, 95 took at most 300 ms in the"
        " last run of the benchmark",
        in_file("test_benchmarks.py", "test_the_inbox_came_within_300_milliseconds"),
    ),
    row(
        "page:until",
        "issue People",
        "live streams of the inbox, of a request and of a run end once the link or the ID token behind them lets "
        "nobody in any more, and those of a longer one go on",
        in_file(
            "web/test_until.py",
            "test_live_streams_end_when_who_opened_them_is_let_in_no_more_and_not_those_of_who_still_is",
        ),
    ),
)
