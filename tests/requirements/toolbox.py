"""The toolbox file, the catalog, search, the manifest on disk and tool pages."""

from tests.requirements.requirement import CONNECTIONS, in_file, row

ROWS = (
    row(
        "tool:configured",
        "issue 4 Done 4",
        "a provider that only the configuration names is found, called, asked about, digested, used by programs, "
        "undone and documented",
        in_file(
            "e2e/test_added_by_configuration.py", "test_what_only_the_configuration_names_is_a_tool_in_every_respect"
        ),
    ),
    row(
        "tool:toolbox-errors",
        "issue Bad input",
        "what is wrong in toolbox.json is named with field, place and fix, also a missing file, broken JSON or a "
        "key written twice",
        in_file(
            "toolbox/test_configuration.py",
            "test_a_missing_file_is_named_with_what_to_do",
            "test_invalid_json_is_named_with_line_and_column",
            "test_a_file_of_another_shape_is_refused",
            "test_a_key_written_twice_is_refused",
            "test_what_is_wrong_is_named_with_field_and_fix",
        ),
    ),
    row(
        "tool:variables",
        "design 22; issue First hour",
        "a variable that is not set disables its provider only and is named, and one with a default is not needed",
        in_file(
            "toolbox/test_configuration.py",
            "test_a_variable_that_is_not_set_disables_its_provider_only_and_is_named",
        ),
    ),
    row(
        "variables:misspelt",
        "design 22; issue First hour",
        "what is no reference to a variable is refused",
        in_file("toolbox/test_configuration.py", "test_what_is_no_reference_is_refused"),
    ),
    row(
        "tool:commented",
        "design 22; issue First hour",
        "toolbox.json may hold comments and trailing commas, and its faults keep their place",
        in_file(
            "toolbox/test_configuration.py",
            "test_a_file_may_hold_comments_and_trailing_commas_and_faults_keep_their_place",
        ),
        in_file("toolbox/test_commented.py", "test_comments_and_trailing_commas_are_read_over"),
    ),
    row(
        "commented:plain",
        "design 22; issue First hour",
        "plain JSON is read as it is, and what is no JSON stays a fault",
        in_file("toolbox/test_commented.py", "test_plain_json_is_read_as_it_is", "test_what_no_json_is_stays_a_fault"),
    ),
    row(
        "commented:twice",
        "design 22; issue First hour",
        "a key that is there twice is refused",
        in_file("toolbox/test_commented.py", "test_a_key_that_is_there_twice_is_refused"),
    ),
    row(
        "commented:added",
        "design 22; issue First hour",
        "what a command adds to toolbox.json leaves every comment and all else as it was",
        in_file(
            "toolbox/test_commented.py",
            "test_an_addition_loses_no_comment_and_makes_the_objects_on_the_way",
            "test_what_is_added_is_read_back_and_nothing_else_changes",
        ),
    ),
    row(
        "commented:removed",
        "design 22; issue First hour",
        "a removal takes the comments inside and behind what goes, and leaves those above and all else",
        in_file(
            "toolbox/test_commented.py",
            "test_a_removal_takes_the_comments_inside_and_behind_and_leaves_those_above",
            "test_what_is_removed_is_gone_and_nothing_else_however_it_was_laid_out",
        ),
    ),
    row(
        "commented:refused",
        "design 22; issue First hour",
        "what is not there cannot be removed, and a taken name or a way through no object is refused",
        in_file(
            "toolbox/test_commented.py",
            "test_what_is_not_there_cannot_be_removed",
            "test_a_taken_name_and_a_way_through_no_object_are_refused",
        ),
    ),
    row(
        "commented:one-pass",
        "design 22; issue First hour",
        "a hostile text is read in one pass",
        in_file("toolbox/test_commented.py", "test_a_hostile_text_is_read_in_one_pass"),
    ),
    row(
        "tool:no-file",
        "issue First hour",
        "a toolbox.json that no setting names may be missing",
        in_file("toolbox/test_configuration.py", "test_a_file_that_nobody_named_may_be_missing"),
    ),
    row(
        "tool:shown-paths",
        "issue First hour",
        "a path is shown as it is, and a server that ends at its start names the file that holds its output",
        in_file("toolbox/test_configuration.py", "test_a_path_is_no_secret_unless_it_is_named_like_a_secret"),
        in_file("toolbox/test_plugins.py", "test_a_default_that_is_a_path_is_shown_as_it_is"),
        in_file("toolbox/test_processes.py", "test_a_server_that_ends_without_a_word_names_no_file"),
    ),
    row(
        "tool:other-hosts",
        "issue First hour",
        "the servers of Claude Desktop, Cursor and VS Code are read with their references, and each secret becomes a "
        "variable that takes the place of no other",
        in_file(
            "toolbox/test_hosts.py",
            "test_claude_desktops_tokens_become_variables",
            "test_cursors_references_and_headers",
            "test_vs_codes_inputs_are_variables_that_are_needed",
            "test_no_imported_value_takes_the_place_of_a_setting_or_of_another_variable",
            "test_what_a_person_types_is_treated_alike",
            "test_what_cannot_be_taken_over_is_refused_with_the_file",
            "test_the_files_of_hosts_are_found_where_they_keep_them",
        ),
    ),
    row(
        "tool:proposed",
        "issue First hour",
        "a safety class is proposed by annotations and then by names, and none where a name sounds dangerous",
        in_file(
            "toolbox/test_proposal.py",
            "test_a_class_is_proposed_by_what_the_server_says_and_else_by_the_name",
            "test_nothing_is_proposed_for_what_may_be_dangerous",
            "test_nothing_is_proposed_where_the_operator_has_spoken",
            "test_tools_with_the_same_grounds_are_one_group_and_the_rest_is_named",
        ),
    ),
    row(
        "tool:hosts",
        "issue MCP",
        "servers as other hosts write them work unchanged, and what another host approves by itself is asked "
        "about here",
        in_file(
            "toolbox/test_configuration.py",
            "test_servers_as_other_hosts_write_them_work_unchanged",
            "test_what_another_host_approves_by_itself_is_asked_about_here",
        ),
    ),
    row(
        "tool:off",
        "design 11",
        "a disabled server is not there, and a folder of plugins may be empty or missing",
        in_file("toolbox/test_catalog.py", "test_a_disabled_server_is_not_there"),
        in_file("toolbox/test_configuration.py", "test_a_folder_of_plugins_may_be_empty_or_missing"),
    ),
    row(
        "tool:version",
        "issue Tools; seed 002 §9",
        "equal tools have one version, and every change of a tool or its declaration has another",
        in_file(
            "toolbox/test_catalog.py",
            "test_equal_tools_have_one_version_and_every_change_has_another",
            "test_a_declaration_is_part_of_the_definition",
        ),
    ),
    row(
        "tool:list-changed",
        "issue Tools",
        "a server that says its list changed is listed again",
        in_file(
            "toolbox/test_catalog.py",
            "test_a_server_that_says_its_list_changed_is_listed_again",
            "test_a_server_of_the_stateless_revision_is_heard_too",
        ),
    ),
    row(
        "tool:users",
        "design 22",
        "users see only the providers they are granted",
        in_file("toolbox/test_catalog.py", "test_users_see_only_the_providers_they_are_granted"),
    ),
    row(
        "tool:odd-names",
        "issue Bad input",
        "hostile names are listed, found and callable, and a name that people cannot read is left out and named",
        in_file(
            "toolbox/test_catalog.py",
            "test_hostile_names_are_listed_found_and_callable",
            "test_a_name_that_people_cannot_read_is_left_out_and_named",
        ),
    ),
    row(
        "loop:function-names",
        "design 22",
        "function names keep long names apart, and a name listed twice is one tool",
        in_file("toolbox/test_catalog.py", "test_long_names_stay_apart_and_a_name_listed_twice_is_one_tool"),
    ),
    row(
        "names:clashing",
        "design 22",
        "tools under one function name, of one provider or of two, are left out and named, and all others stay",
        in_file(
            "toolbox/test_catalog.py",
            "test_tools_under_one_function_name_are_left_out_and_named_and_all_others_stay",
            "test_tools_of_two_providers_that_clash_are_left_out_and_their_others_stay",
        ),
    ),
    row(
        "names:undo",
        "design 22",
        "an undo that is left out is no longer promised",
        in_file("toolbox/test_catalog.py", "test_an_undo_that_is_left_out_is_no_longer_promised"),
    ),
    row(
        "tool:odd-lists",
        "issue Bad input",
        "a list that is none is a reason, and numbers that JSON does not know do not break the catalog",
        in_file(
            "toolbox/test_catalog.py",
            "test_a_list_that_is_none_is_a_reason",
            "test_numbers_that_json_does_not_know_do_not_break_the_catalog",
        ),
    ),
    row(
        "tool:undo-exists",
        "design 9",
        "undo and verify are taken into a definition only when their tools exist",
        in_file("toolbox/test_catalog.py", "test_undo_and_verify_are_promised_only_when_their_tools_exist"),
    ),
    row(
        "tool:argument-faults",
        "design 3",
        "a fault of arguments names path, problem and expectation and never the value",
        in_file("toolbox/test_arguments.py", "test_a_fault_names_path_problem_and_expectation_and_never_the_value"),
    ),
    row(
        "tool:hostile-schemas",
        "issue Bad input",
        "a hostile schema is a message, and a pattern that cannot be decided in bounded time is left to the server",
        in_file(
            "toolbox/test_arguments.py",
            "test_a_hostile_schema_is_a_message",
            "test_a_pattern_that_cannot_be_decided_in_bounded_time_is_left_to_the_server",
            "test_a_pattern_that_takes_others_for_ever_is_decided",
            "test_patterns_of_names_are_bounded_too",
            "test_all_patterns_of_one_check_share_one_bound",
        ),
    ),
    row(
        "tool:schema-bounds",
        "issue 12 Definitions and schemas",
        "a slow schema ends by itself and keeps no other provider waiting",
        in_file(
            "toolbox/test_schema_bounds.py",
            "test_a_slow_schema_ends_by_itself_and_keeps_no_other_provider_waiting",
        ),
        in_file(
            "e2e/test_costly_servers.py",
            "test_a_server_that_clashes_and_is_slow_to_check_leaves_the_others_working",
        ),
    ),
    row(
        "bounds:decided",
        "issue 12 Definitions and schemas",
        "a check that could take long is decided, refused, or left to the server",
        in_file(
            "toolbox/test_schema_bounds.py",
            "test_what_could_take_long_is_decided_or_refused_or_left_to_the_server",
        ),
    ),
    row(
        "bounds:look",
        "issue 12 Definitions and schemas",
        "the look at a schema is bounded like a check",
        in_file("toolbox/test_schema_bounds.py", "test_the_look_at_a_schema_is_bounded_like_a_check"),
    ),
    row(
        "bounds:large",
        "issue 12 Definitions and schemas",
        "a schema that is too large leaves out its own tool only",
        in_file("toolbox/test_schema_bounds.py", "test_a_schema_that_is_too_large_leaves_out_its_own_tool_only"),
    ),
    row(
        "bounds:answers",
        "issue 12 Definitions and schemas",
        "the schema of answers is bounded too, and an answer that it cannot decide counts",
        in_file(
            "toolbox/test_schema_bounds.py",
            "test_the_schema_of_answers_is_bounded_too_and_an_answer_it_cannot_decide_counts",
        ),
    ),
    row(
        "bounds:forms",
        "issue 12 Definitions and schemas",
        "the form of a question is bounded too",
        in_file("toolbox/test_schema_bounds.py", "test_the_form_of_a_question_is_bounded_too"),
    ),
    row(
        "tool:endless-answers",
        "issue 12 Definitions and schemas",
        "an answer that never ends or is too long is read over HTTP up to the deadline and the cap only",
        in_file(
            "toolbox/test_http.py",
            "test_an_answer_that_never_ends_is_read_until_the_deadline_only",
            "test_an_answer_of_any_size_is_read_up_to_the_cap_only",
        ),
    ),
    row(
        "endless:line",
        "issue 12 Definitions and schemas",
        "a line that never ends ends a server over stdio, and the next call has another",
        in_file(
            "toolbox/test_schema_bounds.py",
            "test_a_line_that_never_ends_ends_the_server_and_the_next_call_has_another",
        ),
    ),
    row(
        "tool:changed-definitions",
        "issue 12 Definitions and schemas",
        "a tool whose definition changed since it was last allowed asks once, reads too, in whatever run meets it",
        in_file(
            "e2e/test_changed_definitions.py",
            "test_a_changed_tool_is_asked_about_once_and_what_was_allowed_before_stays_allowed",
            "test_a_changed_read_is_asked_about_too_because_its_words_reach_the_model",
        ),
        in_file("backstay/test_policy.py", "test_a_changed_tool_asks_and_its_name_is_quoted_for_a_shell"),
    ),
    row(
        "changed:known",
        "issue 12 Definitions and schemas",
        "a tool is known from the first catalog that holds it, and a rejection accepts nothing",
        in_file(
            "e2e/test_changed_definitions.py",
            "test_a_tool_is_known_from_the_first_catalog_that_holds_it_and_a_rejection_accepts_nothing",
        ),
    ),
    row(
        "changed:one-request",
        "issue 12 Definitions and schemas",
        "one request asks about all calls of a message and about all those of a program, and is not asked again",
        in_file(
            "e2e/test_changed_definitions.py",
            "test_one_request_asks_about_all_calls_of_a_message_and_the_run_is_not_asked_again",
            "test_a_program_is_asked_once_about_a_changed_tool_that_it_calls_again_and_again",
        ),
    ),
    row(
        "changed:declared",
        "issue 12 Definitions and schemas",
        "what the operator declares anew is a change, and a denied tool stays denied",
        in_file(
            "e2e/test_changed_definitions.py",
            "test_what_the_operator_declares_anew_is_a_change_and_a_denied_tool_stays_denied",
        ),
    ),
    row(
        "changed:rule",
        "issue 12 Definitions and schemas",
        "the rule that asks anyway is named with the change",
        in_file("e2e/test_changed_definitions.py", "test_the_rule_that_asks_anyway_is_named_with_the_change"),
    ),
    row(
        "changed:diff",
        "issue 12 Definitions and schemas",
        "`tools diff` shows a change line by line, and `tools accept` accepts it by name or pattern",
        in_file("cli/test_tools.py", "test_a_changed_tool_is_shown_line_by_line_and_accepted_by_name_or_pattern"),
    ),
    row(
        "changed:accepting",
        "issue 12 Definitions and schemas",
        "accepting a change needs a store and a tool that is there",
        in_file("cli/test_tools.py", "test_accepting_needs_a_store_and_a_tool_that_is_there"),
    ),
    row(
        "changed:pinned",
        "issue 12 Definitions and schemas",
        "of two workers that meet a tool at once the first pins it",
        in_file("store/test_definitions.py", "test_of_two_workers_that_meet_a_tool_at_once_the_first_pins_it"),
    ),
    row(
        "changed:forgotten",
        "issue 12 Definitions and schemas",
        "the last definitions of a tool stay allowed, and older ones are forgotten",
        in_file("store/test_definitions.py", "test_the_last_definitions_stay_allowed_and_older_ones_are_forgotten"),
    ),
    row(
        "changed:looked-up",
        "issue 12 Definitions and schemas",
        "an unchanged catalog is looked up once",
        in_file("store/test_definitions.py", "test_an_unchanged_catalog_is_looked_up_once"),
    ),
    row(
        "tool:patterns",
        "issue MCP",
        "patterns in schemas are read as ECMA-262 reads them: found anywhere, `$` only at the end, ASCII digits",
        in_file("toolbox/test_arguments.py", "test_patterns_are_read_as_ecma_262_reads_them"),
    ),
    row(
        "tool:dialects",
        "issue MCP",
        "schemas of older dialects keep their own rules",
        in_file("toolbox/test_arguments.py", "test_older_dialects_keep_their_own_rules"),
    ),
    row(
        "tool:search",
        "issue Tools; seed 000 §4",
        "search finds the tool a person would take, all tools of a whole task, and one of ten thousand",
        in_file(
            "toolbox/test_search.py",
            "test_the_best_hit_is_the_tool_a_person_would_take",
            "test_a_whole_task_finds_all_the_tools_it_needs",
            "test_ten_thousand_tools_are_searched",
        ),
    ),
    row(
        "tool:search-meaning",
        "issue Tools",
        "search finds what shares no word with the query, without any download",
        in_file("toolbox/test_search.py", "test_meaning_finds_what_shares_no_word_with_the_query_and_fetches_nothing"),
        by_hand="make bench, with backstay[search] installed",
    ),
    row(
        "tool:search-names",
        "issue Tools",
        "an exact name leads, and the name of a provider is searched too",
        in_file(
            "toolbox/test_search.py",
            "test_an_exact_name_leads",
            "test_every_full_name_leads",
            "test_the_name_of_a_provider_is_searched_too",
        ),
    ),
    row(
        "tool:search-speed",
        "issue 4 Done 3",
        "a search of 10,000 tools answers in 3 ms, 10 ms at worst, and is built in a second",
        in_file("test_benchmarks.py", "test_a_search_of_ten_thousand_tools_kept_its_targets_and_full_names_led"),
    ),
    row(
        "tool:search-gain",
        "issue 4 Done 3",
        "on queries held out, search finds ten points more than BM25 over name and description",
        in_file(
            "test_benchmarks.py",
            "test_on_the_queries_held_out_search_found_ten_points_more_than_names_and_descriptions_alone",
        ),
    ),
    row(
        "tool:search-unavailable",
        "issue Tools; seed 000 §7",
        "tools that cannot be used come last, say why, and hide none that can",
        in_file(
            "toolbox/test_search.py",
            "test_tools_that_cannot_be_used_now_come_last_and_say_why",
            "test_tools_that_can_be_used_are_found_behind_any_number_that_cannot",
        ),
    ),
    row(
        "tool:hit",
        "design 11; seed 000 §4",
        "a hit says what a planner needs, its parameters short or in full, and a limit out of range is brought into it",
        in_file(
            "toolbox/test_search.py",
            "test_a_hit_says_what_a_planner_needs",
            "test_a_limit_out_of_range_is_brought_into_it",
        ),
    ),
    row(
        "s000:dedupe",
        "seed 000 §4",
        "no query is ever syntax, and no tool comes twice",
        in_file("toolbox/test_search.py", "test_no_query_is_ever_syntax_and_no_tool_comes_twice"),
    ),
    row(
        "s004:help",
        "seed 004 Features",
        "an empty query lists tools by name",
        in_file("toolbox/test_search.py", "test_an_empty_query_lists_by_name"),
    ),
    row(
        "tool:manifest",
        "design 11; seed 000 §2.3; design 22; seed 000 §13",
        "the catalog lies in manifest.json and files by provider and tool, each of which says all of it, and is "
        "read back as it was written",
        in_file(
            "toolbox/test_manifest.py",
            "test_a_manifest_lies_in_files_by_provider_and_tool",
            "test_the_file_of_a_tool_says_all_of_it",
            "test_what_is_read_back_is_what_was_written",
        ),
    ),
    row(
        "tool:manifest-atomic",
        "design 11",
        "a reader never sees half a manifest, a killed writer leaves the old one, only changes are written, and a"
        " damaged one is written anew",
        in_file(
            "toolbox/test_manifest.py",
            "test_only_a_change_is_written_and_old_versions_go",
            "test_a_manifest_that_was_damaged_is_written_anew",
            "test_a_reader_sees_one_version_whole_while_others_are_written",
            "test_a_writer_killed_midway_leaves_the_old_manifest_and_the_next_cleans_up",
        ),
    ),
    row(
        "tool:manifest-safe",
        "design 11",
        "a manifest that leads out of its folder is not followed, names that look alike have files of their own, "
        "and a place that cannot be written is named",
        in_file(
            "toolbox/test_manifest.py",
            "test_a_manifest_that_leads_out_of_its_folder_is_not_followed",
            "test_providers_and_tools_whose_names_look_alike_have_files_of_their_own",
            "test_a_place_that_cannot_be_written_is_named",
        ),
    ),
    row(
        "tool:manifest-secrets",
        "design 11",
        "no header, variable or secret of the toolbox stands in a manifest",
        in_file("toolbox/test_manifest.py", "test_no_secret_of_the_toolbox_stands_in_a_manifest"),
    ),
    row(
        "tool:manifest-users",
        "design 11",
        "every user has a folder of their own beneath the home, whatever they are called",
        in_file(
            "toolbox/test_manifest.py",
            "test_every_user_has_a_folder_of_their_own_whatever_they_are_called",
            "test_the_manifest_of_a_hostile_user_stays_beneath_the_home",
        ),
    ),
    row(
        "tool:reasons",
        "design 11",
        "a provider or tool that cannot be used says why: down, not connected, denied",
        in_file("cli/test_tools.py", "test_the_list_says_what_cannot_be_called_and_why"),
        in_file("toolbox/test_manifest.py", "test_what_cannot_be_used_says_why"),
    ),
    row(
        "tool:closest",
        "design 22",
        "an unknown name is answered with the closest ones",
        in_file("cli/test_tools.py", "test_an_unknown_tool_is_answered_with_the_closest_names"),
        in_file("toolbox/test_introspection.py", "test_an_unknown_method_is_answered_with_what_comes_close"),
        in_file("toolbox/test_manifest.py", "test_an_unknown_name_is_answered_with_what_comes_close"),
    ),
    row(
        "tool:show",
        "design 22",
        "tools show tells all of one tool, and says when it is denied",
        in_file("cli/test_tools.py", "test_all_of_one_tool_is_shown", "test_a_tool_that_is_denied_is_shown_as_denied"),
    ),
    row(
        "tool:docs",
        "design 11; seed 002 §9",
        "a page of Markdown per provider says what a tool does, takes and costs to undo, and is written to a "
        "folder or printed",
        in_file(
            "cli/test_tools.py",
            "test_docs_are_written_to_a_folder_or_printed",
            "test_docs_that_cannot_be_written_name_the_folder",
        ),
        in_file("toolbox/test_tool_docs.py", "test_a_page_says_what_a_tool_does_takes_and_costs_to_undo"),
    ),
    row(
        "tool:docs-hostile",
        "design 11",
        "nothing that a server says acts in a page, no schema breaks one, and pages have names of their own",
        in_file(
            "toolbox/test_tool_docs.py",
            "test_nothing_that_a_server_says_acts_in_a_page",
            "test_pages_have_names_of_their_own",
            "test_no_schema_breaks_a_page",
        ),
    ),
    row(
        "tool:docs-examples",
        "design 11",
        "an example fits its schema and stays small, and its line is a call in Python",
        in_file(
            "toolbox/test_tool_docs.py",
            "test_an_example_fits_its_schema_and_its_line_is_python",
            "test_a_schema_that_refers_to_itself_has_a_small_example",
            "test_the_line_of_a_program_calls_the_function_with_the_arguments",
        ),
    ),
    row(
        "s002:introspection",
        "seed 002 §9",
        "list_domains, list_methods and get_method_info tell what a user is granted, and nothing else is known",
        in_file(
            "toolbox/test_introspection.py",
            "test_domains_are_the_providers_that_the_user_is_granted",
            "test_methods_are_the_tools_of_one_provider",
            "test_the_info_of_a_method_is_all_that_is_known_as_plain_json",
            "test_a_domain_that_is_not_granted_is_as_unknown_as_one_that_is_not_there",
            "test_another_user_has_other_domains",
        ),
    ),
    row(
        "door:late-library",
        "design 22",
        "tools refresh writes the manifest of a user once and says where",
        in_file("cli/test_tools.py", "test_refresh_writes_once_and_says_where"),
    ),
    row(
        "s000:registry",
        "seed 000 §2.1",
        "per-user registry that refreshes when connections appear",
        deferred=CONNECTIONS,
    ),
    row(
        "s000:gmail-slack",
        "seed 000 §8",
        "Composio-backed Gmail and Slack",
        deferred=CONNECTIONS,
    ),
    row(
        "tool:kinds",
        "design 11",
        "kind composio",
        deferred=CONNECTIONS,
    ),
)
