"""Every promise as data: where it comes from, what should be, and which test proves it.

A row without a test either says for which later feature it is kept (`deferred`), or stands in `OPEN`.
A row whose tests prove only a part says what is run to see the rest (`by_hand`).
Tests are written as `folder/file::name`, without the `test_` that both begin with.
"""

from dataclasses import dataclass

SANDBOX = "programs in a sandbox"
WORKSPACE = "workspace, files and shell"
TOOLBOX = "toolbox files, bindings and action wrappers"
CONNECTIONS = "connections: OAuth and Composio"
PLANS = "plan lifecycle and review"
PROFILES = "profiles and perception"
MEMORY = "memory and learning"
AUDIT = "audit ledger"
PLUGINS = "plugin host and its newline-JSON daemon"
DOORS = "Slack bot, approvals page and engine as an MCP server"
REHEARSAL = "rehearsal"
ENDLESS = "runs without end (continue-as-new)"
TELEMETRY = "OpenTelemetry and metrics"
PRODUCTION = "production images"
REPLACED = "replaced: "


@dataclass(frozen=True)
class Requirement:
    """One promise."""

    id: str
    source: str
    behaviour: str
    proven_by: tuple[str, ...] = ()
    deferred: str | None = None
    by_hand: str | None = None


def row(
    name: str, source: str, behaviour: str, *proofs: str, deferred: str | None = None, by_hand: str | None = None
) -> Requirement:
    return Requirement(name, source, behaviour, tuple(_node(proof) for proof in proofs), deferred, by_hand)


def _node(proof: str) -> str:
    place, _, name = proof.partition("::")
    folder, _, file = place.rpartition("/")
    return f"tests/{folder}{'/' if folder else ''}test_{file}.py::test_{name}"


# fmt: off
HOUSE = (
    row("house:imports", "design 1", "each root imports only what the table allows", "house::a_room_imports_only_what_the_table_allows"),
    row("house:chains", "design 1", "import contracts hold through every chain", "house::import_contracts_hold_through_every_chain"),
    row("house:sizes", "design 1", "a module has at most 300 lines, a function at most 40", "house::no_module_is_longer_than_300_lines_and_no_function_than_40"),
    row("house:names", "design 1", "no name says only where code is kept", "house::no_name_says_only_where_code_is_kept"),
    row("house:cycles", "design 1", "modules form no cycle", "house::modules_form_no_cycle"),
    row("house:nouns", "design 1", "one noun is one class in one module", "house::one_noun_is_one_class_in_one_module", "house::no_room_has_two_classes_of_one_name"),
    row("house:menu", "design 1", "menu and bodies agree in names, arguments, results and order", "menu::every_entry_has_one_body_of_the_same_name_in_the_same_order", "menu::every_body_takes_and_returns_what_the_menu_says"),
    row("house:wheel", "design 1", "the wheel's only import root is backstay; the rooms ride inside", "packaging::the_only_import_root_of_the_wheel_is_backstay", "packaging::the_wheel_carries_every_file_of_every_room_and_nothing_else"),
    row("house:shadow", "design 1", "the worker refuses to start when a room was imported from elsewhere", "packaging::a_foreign_room_earlier_on_the_path_is_refused_by_name"),
    row("house:beside", "design 1", "the installed worker serves beside a foreign package named workflows", "packaging::the_installed_worker_command_serves_beside_a_foreign_package_named_workflows"),
    row("house:light", "design 1", "a service that imports backstay pays for no model and no tools", "packaging::a_service_that_imports_backstay_pays_for_no_model_and_no_tools", "packaging::a_service_that_imports_backstay_sees_none_of_the_rooms"),
    row("house:files", "design 1", "SQL, markup and prompts are files", "house::sql_markup_and_prompts_are_files_and_no_strings"),
    row("house:words", "design 2", "every noun of the glossary has a class or says that it has none", "house::every_word_of_the_glossary_is_a_class_or_says_that_it_is_none"),
    row("house:timeless", "design 1", "code and documents speak of what is", "house::code_and_documents_speak_of_what_is_and_not_of_plans_for_it"),
    row("house:lock", "design 20", "the lock is hashed and holds no address", "house::the_lock_names_hashes_and_no_address"),
    row("house:declared", "design 20", "every imported library is declared", "house::every_library_that_is_imported_is_declared"),
    row("house:machine", "design 20", "no file names a machine or a registry", "house::no_file_names_a_machine_or_a_registry"),
    row("house:reasons", "style 4", "every suppression and every rule switched off carries its reason", "house::every_suppression_carries_its_reason", "house::every_rule_that_is_switched_off_says_why"),
    row("house:options", "design 3", "one table of timeouts, retries and queues, a row per entry of the menu", "menu::the_table_of_timeouts_has_one_row_for_each_entry_and_no_other"),
    row("house:docs", "issue House", "every code block of README and docs runs", "docs/python::a_program_in_the_documents_runs_to_its_end", "docs/shell::a_command_exists_and_takes_these_flags", "docs/data::a_data_block_is_admitted_by_the_noun_it_names"),
    row("house:reference", "issue House", "tables of fields, events, errors, settings and exit codes equal the code", "docs/reference::every_field_of_a_noun_is_in_its_table", "docs/reference::every_event_name_in_the_code_is_in_the_table_and_no_other", "docs/reference::every_error_is_in_the_table_with_its_kind", "docs/reference::every_setting_is_in_the_table_with_its_default"),
    row("house:schemas", "design 22", "JSON Schemas of everything that crosses the door are current", "docs/data::the_schemas_are_those_of_the_code"),
    row("house:compose", "issue House", "docker-compose.yml brings server, Postgres and UI, and Compose accepts it", "compose::compose_accepts_the_file_without_any_variable_set", "compose::the_server_waits_for_its_schema_and_the_namespace_for_the_server"),
    row("house:compose-private", "facts ecosystem 13", "compose binds to this machine and takes the password from the environment", "compose::every_published_port_is_bound_to_this_machine", "compose::the_password_comes_from_the_environment"),
    row("house:manifest", "issue Done 12", "a row for every promise, enforced both ways", "requirements::every_row_has_a_proof_or_a_reason_or_stands_in_the_list_of_open_ones", "requirements::every_proof_that_a_row_names_exists"),
    row("house:image", "design 13", "images of worker and jail for production", deferred=PRODUCTION),
)

LOOP = (
    row("loop:task", "design 3", "a sentence becomes a run that searches, reads, acts and finishes", "e2e/reminders::recipients_and_total_are_those_of_an_sql_query_over_random_invoices"),
    row("loop:by-name", "issue Done 10", "programs that import nothing of ours start RunTask by name, decide, read status and Result", "e2e/reminders::recipients_and_total_are_those_of_an_sql_query_over_random_invoices", "e2e/approvals::the_temporal_command_line_decides"),
    row("loop:open-once", "design 3", "profile, prices, catalog, policy, prompt and store are resolved once", "e2e/loop::what_a_run_must_not_read_again_is_resolved_once_and_recorded", "e2e/faults_store::a_run_keeps_the_policy_it_was_opened_with"),
    row("loop:first-search", "design 3", "one search of the task text, limit 40, comes first", "e2e/loop::one_search_of_the_task_text_comes_before_the_first_step"),
    row("loop:new-search", "design 3", "a changed catalog version leads to a new search at the next step", "e2e/catalog_changes::a_changed_catalog_leads_to_a_new_search_at_the_next_step", "e2e/catalog_changes::an_unchanged_catalog_is_searched_once"),
    row("loop:one-door", "design 3", "calls, plan steps, verifies and compensations go through one path", "e2e/plans::a_plan_asks_once_for_all_its_writes_and_performs_its_steps_in_order", "e2e/undo::a_policy_may_ask_about_compensations"),
    row("loop:unknown-tool", "design 3", "an unknown tool is refused with an error to the model", "e2e/faults_answers::an_unknown_tool_is_an_error_to_the_model"),
    row("loop:schema", "design 3", "arguments are validated against the tool's JSON Schema before anything else", "e2e/faults_answers::arguments_that_do_not_fit_the_schema_are_an_error_to_the_model", "toolbox/arguments::a_fault_names_path_problem_and_expectation_and_never_the_value"),
    row("loop:tool-changed", "design 3", "a tool whose definition changed after the ruling is asked about again", "e2e/faults_tools::a_tool_that_changes_after_approval_is_asked_about_again", "toolbox/catalog::a_changed_tool_is_refused_before_the_intent"),
    row("loop:tool-error", "design 3", "an error of a tool is a result shown to the model", "toolbox/calls::an_error_of_the_tool_is_an_answer_with_one_line"),
    row("loop:own-bug", "design 3", "a fault of our own ends the run as InternalError and never hangs it", "e2e/loop::a_fault_of_our_own_ends_the_run_as_an_internal_error_with_its_effects_kept_and_listed"),
    row("loop:together", "design 3", "calls of one decision are asked about in one request and answered in order", "e2e/approvals::calls_of_a_batch_are_decided_one_by_one_in_one_request"),
    row("loop:serial", "design 3", "calls of a serial provider run one after another", "toolbox/calls::calls_run_side_by_side_unless_the_provider_is_serial"),
    row("loop:big-leaf", "design 3", "leaves over 4 KB in arguments become refs, whole at the tool", "e2e/approvals_hostile::a_text_of_ten_kilobytes_is_a_reference_in_history_and_whole_at_the_tool"),
    row("loop:opaque", "design 3", "a policy condition on what cannot be looked into asks", "backstay/policy::a_condition_on_what_cannot_be_looked_into_asks_and_says_so"),
    row("loop:digest", "design 3", "raw payloads never enter history, prompts or logs", "e2e/secrets::a_secret_in_a_tools_answer_appears_nowhere_outside", "e2e/faults_tools::twenty_megabytes_leave_a_few_kilobytes_of_history"),
    row("loop:plain-json", "design 3", "run, signals and updates take plain JSON and validate inside", "e2e/approvals_hostile::malformed_signals_become_events_and_malformed_updates_are_refused", "e2e/approvals_hostile::a_run_started_with_nothing_or_nonsense_fails_as_an_invalid_task"),
    row("loop:recoverable", "design 3", "nondeterminism stays a recoverable workflow-task failure", "e2e/loop::code_that_no_longer_fits_a_history_fails_a_workflow_task_and_never_the_run"),
    row("loop:no-regex", "design 3", "no regular expression, schema or template runs in workflow code", "house::workflows_reach_no_regular_expression_clock_or_file_through_any_noun"),
    row("loop:glob", "design 3", "globs match in linear time", "backstay/glob::a_pattern_fits_exactly_what_the_standard_library_says", "backstay/glob::a_hostile_pattern_does_not_blow_up"),
    row("loop:replay", "issue Done 8", "golden histories of six run shapes replay", "replay/replay::a_history_of_every_shape_is_kept", "replay/replay::a_kept_history_replays"),
    row("loop:mutants", "issue Done 8", "three deliberate mutations make the Replayer fail", "replay/replay::a_changed_workflow_is_noticed"),
    row("loop:old-history", "design 3", "models read from history ignore unknown fields; only ingress forbids them", "backstay/noun::no_noun_forbids_what_an_older_or_newer_history_holds_besides", "backstay/noun::what_is_read_from_history_may_hold_unknown_fields_at_any_depth", "backstay/noun::what_comes_in_at_the_door_is_refused_by_the_name_of_the_unknown_field"),
    row("loop:mixed", "design 22", "searches and reads, then one batch, then one question, then finish", "e2e/loop::searches_and_reads_then_one_batch_then_one_question_then_finish"),
    row("loop:finish-dropped", "design 22", "finish beside a failed, rejected or unknown call is dropped and the model told", "e2e/faults_answers::finish_beside_a_failed_or_refused_call_is_dropped"),
    row("loop:beside-finish", "design 22", "calls beside finish are made first", "e2e/faults_answers::calls_beside_finish_are_made_first"),
    row("loop:text-finish", "design 22", "text without calls is finish; before anything was done it is asked once more", "e2e/faults_answers::text_alone_is_asked_about_once_and_then_taken_for_the_end"),
    row("loop:call-ids", "design 22", "answers go back under the model's own call ids", "e2e/faults_answers::calls_with_one_id_are_answered_apart"),
    row("loop:malformed", "design 22", "malformed arguments go back as a tool error and cost a step", "e2e/faults_answers::malformed_arguments_cost_a_step_and_are_an_error_to_the_model"),
    row("loop:function-names", "design 22", "functions are provider__tool, cut with a hash over 64; a collision is an error", "toolbox/catalog::two_tools_under_one_function_name_are_an_error_that_names_both", "toolbox/catalog::long_names_stay_apart_and_a_name_listed_twice_is_one_tool"),
    row("loop:visible", "design 22", "the visible list is stable, only appended to, at most 64", "e2e/loop::the_list_of_functions_keeps_its_beginning_from_step_to_step", "activities/transcript::when_the_list_is_full_the_oldest_tool_that_was_never_called_leaves"),
    row("loop:no-functions", "design 22", "an endpoint that ignores tools is driven by json_schema", "e2e/faults_answers::an_endpoint_that_ignores_functions_is_driven_by_a_json_schema"),
    row("loop:developer-role", "design 22", "the prompt's role is system, or developer by setting", "e2e/loop::the_prompt_has_the_role_that_is_set"),
    row("loop:ask-person", "design 22", "ask_person is answered with any JSON", "e2e/approvals::a_question_is_answered_with_any_json_and_can_end_the_run"),
    row("loop:read-result", "design 6", "read_result reads further by ref, path, offset and limit", "e2e/loop::a_stored_result_is_read_further_by_path_offset_and_limit"),
    row("loop:carried", "issue Done 10", "carried state is one model with a round-trip test", "workflows/state::a_state_comes_back_whole_from_its_json", "workflows/state::no_field_is_left_out_of_the_round_trip"),
    row("loop:2000", "issue Done 10", "max_steps over 2,000 is refused", "e2e/bad_input::what_is_not_built_yet_is_refused_by_name"),
    row("loop:without-end", "design 6", "a run goes on over continue-as-new", deferred=ENDLESS),
    row("loop:programs", "design 5", "durable programs: journal, batches, shelf, divergence, limits", deferred=SANDBOX),
    row("loop:plan-first", "design 10", "mode plan_first", deferred=PLANS),
)

EFFECTS = (
    row("effect:once", "design 4", "no send goes out twice without proof or a person's word", "store/sends_property::no_send_goes_out_twice_without_proof"),
    row("effect:row", "design 4", "the row holds id, send, tool, digest, state, token, lease and outcome", "store/begin::the_first_attempt_goes_and_the_row_says_so"),
    row("effect:one-wins", "design 4", "of many attempts exactly one goes", "store/begin::of_many_attempts_on_two_engines_exactly_one_goes"),
    row("effect:recorded", "design 4.4", "applied or failed: the recorded outcome is returned", "store/begin::a_settled_effect_is_recorded_and_not_sent_again"),
    row("effect:live-lease", "design 4.4", "dispatched with a live lease: wait", "store/begin::while_the_lease_lives_others_wait"),
    row("effect:dead-lease", "design 4.4", "dispatched with a dead lease: unknown", "store/begin::after_the_lease_the_outcome_is_unknown"),
    row("effect:idempotent", "design 4.4", "a tool declared idempotent is sent again within its time", "e2e/effects::a_tool_declared_idempotent_is_sent_again_under_the_same_id_without_a_question", "e2e/effects::a_tool_whose_idempotency_has_run_out_is_asked_about_instead", "store/begin::of_many_attempts_to_repeat_an_idempotent_effect_exactly_one_goes"),
    row("effect:hint", "design 4.4", "an idempotentHint alone is no proof", "e2e/loop::an_idempotent_hint_of_the_server_alone_is_no_reason_to_send_again"),
    row("effect:before-intent", "design 4.1", "faults before the intent send nothing and are retried", "toolbox/calls::a_fault_before_the_intent_is_committed_sends_nothing", "toolbox/http::a_server_gone_before_the_intent_is_unavailable_and_the_intent_is_not_committed"),
    row("effect:lease-check", "design 4.2", "the lease is checked again just before the send", "crash/stops_and_restarts::a_worker_stopped_before_its_send_and_continued_much_later_does_not_send"),
    row("effect:cancel", "design 4.2", "from the intent on, cancellation waits for the outcome", "e2e/undo::a_call_under_way_when_the_run_is_cancelled_is_waited_for_and_taken_back"),
    row("effect:not-sent", "design 4.3", "401, 403, 407 and 429 without a JSON-RPC body prove not sent", "toolbox/http::these_statuses_without_a_json_rpc_body_prove_that_nothing_was_sent"),
    row("effect:else-unknown", "design 4.3", "everything else without an answer is unknown", "toolbox/http::any_other_status_without_an_answer_is_unknown", "toolbox/calls::a_call_that_hangs_is_unknown_at_its_deadline_and_others_go_on"),
    row("effect:settle-once", "design 4.3", "an outcome is settled once, by token", "store/settle::an_effect_is_settled_once", "store/settle::a_wrong_token_settles_nothing"),
    row("effect:repair", "design 4.3", "when the outcome cannot be written, the result is returned and the row repaired later", "activities/effects::an_outcome_that_cannot_be_written_is_returned_and_the_row_repaired_later"),
    row("effect:late", "design 4.3", "a late outcome is an event, never a second truth", "activities/effects::an_outcome_that_comes_after_a_persons_word_is_an_event_and_changes_nothing", "store/settle::the_attempt_that_lost_its_turn_says_nothing_more", "crash/stops_and_restarts::a_worker_continued_while_a_person_is_asked_adds_no_second_truth"),
    row("effect:verify", "design 4.5", "an unknown effect is checked by the declared verify, up to three times", "e2e/effects::a_check_that_finds_the_mail_settles_the_effect_without_a_question", "e2e/undo::an_effect_of_unknown_outcome_is_checked_before_it_is_taken_back"),
    row("effect:verify-final", "design 4.5", "a negative check resends only when it is declared final, else a person is asked", "e2e/effects::a_final_check_that_finds_nothing_sends_again_under_a_new_number", "e2e/effects::a_check_that_is_not_final_and_finds_nothing_leads_to_a_person"),
    row("effect:person", "design 4.5", "happened, did not happen, or retry under a new send number", "e2e/effects::a_person_who_says_it_happened_ends_the_matter_without_a_second_send", "e2e/effects::a_person_who_says_it_did_not_happen_is_believed_and_the_model_is_told", "e2e/effects::a_person_who_asks_for_another_send_gets_one_that_names_the_old"),
    row("effect:told", "design 4.5", "the model is told what is known", "e2e/effects::a_person_who_says_it_did_not_happen_is_believed_and_the_model_is_told"),
    row("effect:undeclared", "issue Done 4", "a non-idempotent tool without verify leads to a question, never to a second send", "crash/stops_and_restarts::an_undeclared_tool_killed_after_its_send_leads_to_a_question_never_to_a_second_send"),
    row("effect:conflict", "design 4.6", "another call under the same id is a conflict, never overwritten, never sent", "store/begin::another_call_under_the_same_id_is_a_conflict_and_changes_nothing"),
    row("effect:id-travels", "design 4", "the effect id travels in _meta and in the declared argument", "toolbox/calls::the_effect_id_travels_beside_the_arguments", "toolbox/calls::the_declared_argument_carries_the_effect_id_and_the_model_never_sees_it"),
    row("effect:approval-once", "design 4", "an approval is used once and bound to its digest", "e2e/approvals::an_approval_is_used_once"),
    row("effect:legal", "design 4", "states follow the legal order", "store/settle::marking_keeps_the_outcome_and_follows_the_legal_order"),
    row("effect:refused-retry", "design 4", "workflow-level retry and cron are refused", "e2e/loop::retry_and_cron_of_a_whole_run_are_refused"),
    row("effect:kill-matrix", "issue Done 4", "killed at 30 or more named points, every run ends and every mail is sent once", "crash/kill_points::a_worker_killed_at_any_point_is_replaced_and_every_mail_is_sent_once", "crash/kill_points::the_matrix_names_at_least_thirty_points_and_none_twice"),
    row("effect:sigstop", "issue Done 4", "stopped past its heartbeat and continued, nothing is sent again", "crash/stops_and_restarts::a_worker_stopped_before_its_send_and_continued_much_later_does_not_send", "crash/stops_and_restarts::a_worker_stopped_amid_its_send_and_continued_much_later_adds_nothing"),
    row("effect:server-restart", "issue Done 4", "the Temporal server is killed and restarted, nothing is lost", "crash/stops_and_restarts::a_temporal_server_killed_amid_sending_and_started_again_loses_nothing"),
    row("effect:no-worker", "design 4", "a decision made while no worker lives is acted on by the next", "crash/stops_and_restarts::a_decision_made_while_no_worker_lives_is_acted_on_by_the_next"),
    row("effect:soak", "issue Done 4", "200 or more random kills in make soak, figures in docs/reliability.md", "soak/random_kills::runs_end_and_every_mail_is_sent_once_however_often_their_workers_are_killed", "soak/more_points::a_worker_killed_at_a_further_point_is_replaced_and_every_mail_is_sent_once"),
    row("effect:count-on", "design 4", "n goes on counting over continue-as-new", deferred=ENDLESS),
)

CONTEXT = (
    row("context:constant", "issue Done 8", "history per step between steps 20 and 60 is at most 4 kB and constant within 10 %", "e2e/history::history_per_step_is_small_and_constant_whatever_the_results_weigh"),
    row("context:addressed", "design 6", "the transcript is append-only and content-addressed", "e2e/history::history_per_step_is_small_and_constant_whatever_the_results_weigh"),
    row("context:trim", "design 6", "trimming is deterministic: prompt, task and facts stay, oldest digests go first, what was dropped is named", "backstay/trimming::what_is_pinned_stays_in_order_and_every_answer_keeps_its_call", "backstay/trimming::the_oldest_answers_go_first_and_the_newest_two_stay", "backstay/trimming::what_was_dropped_whole_is_named"),
    row("context:hash", "design 6", "the prompt's hash is recorded", "e2e/loop::what_a_run_must_not_read_again_is_resolved_once_and_recorded"),
    row("context:answers-small", "design 6", "Result and every query answer stay under 128 KiB", "e2e/answers_small::every_query_answer_and_the_result_stay_under_128_kib_however_much_is_asked"),
    row("context:digest-keys", "design 6", "a digest has label, original_size, truncated, schema, sample, aggregates, notes, storage_ref", "backstay/digest::a_digest_has_eight_keys_and_fits_whatever_the_payload"),
    row("context:purposes", "design 6", "the three purposes differ", "backstay/digest::the_purposes_tell_different_things"),
    row("context:whole", "design 6", "payloads under 2 KB pass whole", "backstay/digest::a_small_result_passes_whole_and_a_large_one_by_its_digest"),
    row("context:20mb", "issue Bad input", "a 20 MB result is digested", "backstay/digest::twenty_megabytes_are_digested", "toolbox/calls::twenty_megabytes_come_through"),
    row("secret:total", "design 6", "redaction is total and idempotent", "backstay/redaction::redaction_is_total_idempotent_and_keeps_the_structure", "backstay/redaction::no_secret_survives"),
    row("secret:known", "design 6", "a secret the process knows is found in every place", "backstay/redaction::a_known_secret_is_found_in_every_place_and_spelling", "backstay/redaction::short_known_values_are_not_looked_for"),
    row("secret:handles", "design 6", "handles are deterministic per run", "backstay/secret::equal_secrets_have_equal_handles_in_one_run_only"),
    row("secret:home", "design 6", "a handle becomes its value only towards the provider it came from", "e2e/secrets::a_handle_goes_back_to_its_own_provider_as_the_value", "store/secret_handles::a_handle_is_revealed_in_its_own_run_only"),
    row("secret:elsewhere", "design 6", "towards another provider the call is asked about, saying so", "e2e/secrets::a_handle_towards_another_provider_is_asked_about", "backstay/policy::a_secret_of_another_provider_is_asked_about"),
    row("secret:forged", "design 6", "a forged handle is never sent", "e2e/faults_answers::a_forged_secret_handle_is_never_sent"),
    row("secret:ten-places", "issue Bad input", "secrets planted in ten places of results appear nowhere", "e2e/secrets::a_secret_in_a_tools_answer_appears_nowhere_outside"),
    row("secret:sealed", "design 6", "raw payloads are sealed, encrypted when keys are set", "store/blobs::with_a_key_nothing_sealed_lies_on_disk_in_clear", "store/secret_handles::with_a_key_no_secret_lies_on_disk_in_clear"),
    row("secret:rotate", "design 18", "keys are rotated by putting the new one first", "store/blobs::keys_are_rotated_by_putting_the_new_one_first"),
    row("secret:logs", "design 18", "no secret reaches logs or errors", "store/secret_handles::no_secret_reaches_logs_or_errors", "backstay/redaction::a_text_for_logs_is_redacted_like_a_payload"),
    row("secret:variables", "design 22", "${NAME} is read on the worker and never part of a message", "toolbox/configuration::values_of_variables_are_secrets_and_never_part_of_a_message"),
    row("secret:codec", "design 18", "payload encryption of Temporal's history", deferred=PRODUCTION),
)

BUDGET = (
    row("budget:ceiling", "issue Done 5", "spent and reserved never exceed the ceiling, whatever ends how", "backstay/budget::spent_and_reserved_never_exceed_the_ceiling_whatever_ends_how"),
    row("budget:billed", "issue Done 5", "what the endpoint billed, lost answers included, stays under the ceiling", "e2e/budget::what_the_endpoint_billed_stays_under_the_ceiling"),
    row("budget:steps", "design 7", "a run stops at its steps with a summary and keeps its effects", "e2e/budget::a_run_stops_at_its_steps_with_a_summary_and_keeps_its_effects"),
    row("budget:calls", "design 7", "calls and quotas are refused before anything is sent", "e2e/budget::calls_and_quotas_are_refused_before_anything_is_sent"),
    row("budget:batch", "design 7", "a batch fits whole or not at all", "backstay/budget::a_batch_fits_whole_or_not_at_all"),
    row("budget:free", "design 7", "verify, undo, search, reads, closing summary and retries of one id are counted apart", "e2e/budget::searches_reads_and_undos_are_counted_apart_and_never_refused", "e2e/budget::a_closing_summary_is_written_recorded_and_counted_apart"),
    row("budget:wall", "design 7", "wall time stops while only a person is awaited", "e2e/approvals::wall_time_stands_still_while_only_a_person_is_awaited"),
    row("budget:tokens", "design 7", "max_tokens bounds a run", "e2e/budget::a_run_ends_when_its_tokens_are_used_up_and_asks_for_no_more_than_are_left"),
    row("budget:reserve", "design 7", "a call that may cost more than its reservation is refused before sending", "e2e/budget::a_call_that_may_cost_more_than_is_left_is_not_sent"),
    row("budget:tries", "design 7", "each try reserves anew, at most three before a person is asked", "e2e/faults_model::errors_and_dropped_connections_are_charged_and_tried_again"),
    row("budget:charged", "design 7", "timeouts, 408, 5xx, lost workers and bad bodies charge the reservation", "e2e/faults_model::errors_and_dropped_connections_are_charged_and_tried_again", "e2e/budget::what_the_endpoint_billed_stays_under_the_ceiling"),
    row("budget:released", "design 7", "a reservation is released only where proven unbilled", "e2e/faults_model::an_unreachable_endpoint_costs_nothing_and_is_asked_about"),
    row("budget:worst-case", "design 7", "a missing or unbelievable usage is charged at the worst case", "e2e/faults_answers::a_missing_or_unbelievable_usage_is_charged_at_the_worst_case"),
    row("budget:finalize", "design 7", "a finalize reserve keeps enough for one closing summary", "backstay/budget::a_closing_summary_may_use_what_was_kept_back_for_it"),
    row("budget:ask", "design 7", "on_exhausted ask: top-up resumes where the run stopped", "e2e/budget::a_topped_up_run_goes_on_where_it_stopped", "e2e/budget::an_answer_to_the_request_tops_up_as_well"),
    row("budget:ask-no", "design 7", "a rejected top-up ends the run", "e2e/budget::a_rejected_top_up_ends_the_run"),
    row("budget:fail", "design 7", "on_exhausted fail rolls back", "e2e/undo::an_exhausted_budget_keeps_effects_unless_it_shall_fail"),
    row("budget:top-up", "design 7", "top_up adds to limits and refuses the rest", "backstay/budget::top_up_adds_to_limits_and_refuses_the_rest"),
    row("budget:unpriced", "design 7", "an unpriced model with a USD limit is refused at start", "e2e/bad_input::an_unpriced_model_may_be_used_without_a_limit_in_usd", "e2e/bad_input::a_task_that_is_not_valid_is_refused_naming_field_value_and_fix"),
    row("budget:usage", "design 7", "usage per model: cached, new, output and reasoning tokens", "e2e/budget::tokens_and_cost_are_told_per_call_and_in_sum_per_model", "activities/completion::usage_is_read_with_its_cached_and_reasoning_parts"),
    row("budget:prices", "design 7", "prices are overridable", "backstay/settings::prices_are_read_by_model"),
    row("budget:named", "design 7", "the first bound that is hit is named", "backstay/budget::the_first_bound_that_is_hit_is_named"),
    row("budget:plan-steps", "design 7", "a plan is not bounded by decisions", "e2e/plans::a_plan_of_more_steps_than_max_steps_runs_to_its_end"),
    row("budget:code-runs", "issue Done 10", "max_code_runs and max_calls_per_program are accepted without effect", "e2e/bad_input::what_is_not_built_yet_is_accepted_at_its_default"),
)

APPROVALS = (
    row("approval:verdicts", "design 8", "what does not fit the request is refused by field and it stays open", "e2e/approvals::what_does_not_fit_the_request_is_refused_by_field_and_the_request_stays_open"),
    row("approval:repeat", "issue Done 6", "a repeat under its event id gets the stored answer", "e2e/approvals::a_decision_repeated_under_its_event_id_gets_the_stored_answer_and_no_other_decision_does", "e2e/approvals::the_same_event_arriving_twice_at_once_is_one_decision"),
    row("approval:late", "issue Done 6", "a late or second decision is refused", "e2e/approvals::an_approval_is_used_once"),
    row("approval:partial", "issue Done 6", "calls of a batch are decided one by one", "e2e/approvals::calls_of_a_batch_are_decided_one_by_one_in_one_request"),
    row("approval:stale", "issue Done 6", "a stale digest is refused", "e2e/approvals::what_does_not_fit_the_request_is_refused_by_field_and_the_request_stays_open"),
    row("approval:expiry", "design 8", "expiry is a durable timer: reject, escalate or fail", "e2e/approvals::expiry_rejects_fails_or_asks_once_more_as_the_rule_says"),
    row("approval:modify", "design 8", "a changed call is validated and ruled again", "e2e/approvals::a_changed_call_is_validated_and_ruled_again"),
    row("approval:modify-redacted", "issue Done 6", "a value that equals what was shown means unchanged, secrets included", "e2e/approvals::a_changed_call_keeps_what_the_person_could_not_see"),
    row("approval:separate", "design 8", "calls whose deciders differ are several requests, each waits alone", "e2e/approvals_proof::calls_that_different_people_decide_about_are_asked_about_at_the_same_time", "e2e/approvals_proof::a_rejection_with_stop_withdraws_what_else_is_asked"),
    row("approval:facts", "design 8", "a request separates engine facts from what the model says", "e2e/approvals_hostile::a_request_shows_what_is_called_how_it_is_undone_and_what_cannot_be_undone"),
    row("approval:hostile", "issue Done 6", "bidi, markdown and fake commands are shown as one harmless line", "e2e/approvals_hostile::hostile_text_is_shown_as_one_harmless_line_wherever_people_look", "backstay/shown::markdown_shows_hostile_text_literally"),
    row("approval:clipped", "design 8", "a clipped request needs its full digest", "e2e/approvals_hostile::a_request_too_long_to_show_is_approved_only_with_the_digest_of_all_of_it"),
    row("approval:proof", "design 8", "only a proof for exactly this decision verifies who decided", "e2e/approvals_proof::only_a_proof_for_exactly_this_decision_verifies_who_decided", "backstay/proof::a_proof_holds_for_exactly_what_was_signed"),
    row("approval:proof-foreign", "design 8", "a program without this package can sign", "backstay/proof::a_program_without_this_package_can_sign", "docs/python::a_program_in_the_documents_runs_to_its_end"),
    row("approval:forged", "issue Done 6", "a forged or unverified decision is refused where a rule names people", "e2e/approvals_proof::a_verified_stranger_and_an_unverified_approver_are_both_refused"),
    row("approval:signal", "design 8", "a refused signal is an event and nothing else", "e2e/approvals_proof::a_signal_needs_its_own_proof_and_a_strangers_signal_is_an_event_and_nothing_else"),
    row("approval:quorum", "design 8", "a quorum is so many verified persons; one rejection decides", "e2e/approvals_proof::a_quorum_is_so_many_verified_persons", "e2e/approvals_proof::one_verified_rejection_decides_a_quorum"),
    row("approval:self", "issue Done 6", "nobody approves a run of their own where the rule forbids it", "e2e/approvals_proof::nobody_approves_a_run_of_their_own_where_the_rule_forbids_it"),
    row("approval:top-up-proof", "design 8", "where a rule names persons, top_up and undo need a proof too", "e2e/approvals_proof::where_a_rule_names_persons_topping_up_and_undoing_need_a_proof_too_and_each_proof_works_once"),
    row("approval:days", "design 8", "an approval waits as long as it must, holding no process", "crash/stops_and_restarts::a_decision_made_while_no_worker_lives_is_acted_on_by_the_next"),
    row("approval:announce", "design 8", "each request is announced, redacted and signed; failure never blocks", "e2e/announce::a_request_is_announced_redacted_and_signed", "e2e/announce::receivers_that_are_down_fail_or_hang_neither_block_the_run_nor_each_other"),
    row("approval:answer", "design 9", "a rejected call is an answer to the model", "e2e/approvals::a_rejection_is_an_answer_to_the_model_which_may_go_on"),
    row("approval:pause", "design 16", "pause holds a run before its next step or call; it answers meanwhile", "e2e/pause::a_paused_run_makes_no_approved_call_until_it_is_resumed_and_answers_meanwhile", "e2e/pause::a_run_paused_before_a_step_asks_the_model_nothing_until_it_is_resumed"),
    row("approval:temporal", "issue Approvals", "Temporal's own command line decides", "e2e/approvals::the_temporal_command_line_decides"),
    row("policy:order", "design 8", "deny, ask, allow, then the default by safety", "backstay/policy::deny_comes_before_ask_and_ask_before_allow", "backstay/policy::where_no_rule_applies_the_safety_of_the_tool_decides"),
    row("policy:conditions", "design 8", "conditions hold, fail, or count against the call", "backstay/policy::a_condition_that_holds_makes_the_rule_apply", "backstay/policy::a_value_of_another_type_counts_against_the_call"),
    row("policy:total", "design 8", "ruling is total and tightening never loosens", "backstay/policy::ruling_is_total_and_tightening_never_loosens"),
    row("policy:floor", "design 8", "a task can only tighten", "backstay/policy::a_task_can_only_tighten", "e2e/approvals::a_task_may_only_tighten_the_policy"),
    row("policy:published", "design 22", "the policy of section 22 is read and ruled by", "backstay/policy::the_published_policy_is_read_and_ruled_by"),
    row("policy:raise", "design 8", "annotations may only raise safety unless the server is trusted", "toolbox/catalog::a_server_lowers_its_danger_only_when_it_is_trusted"),
    row("approval:rehearsal", "design 8", "rehearse: the forecast is approved as a set", deferred=REHEARSAL),
    row("approval:remember", "design 8", "remember stores a preference that becomes a suggestion", deferred=MEMORY),
    row("approval:elicitation", "design 8", "servers that ask back and log-ins are requests", deferred=CONNECTIONS),
    row("approval:slack", "design 15", "approve from Slack and from a page", deferred=DOORS),
)

UNDO = (
    row("undo:failure", "issue Done 7", "failure after five effects takes back five, last first", "e2e/undo::a_failure_after_five_effects_takes_back_five_last_first"),
    row("undo:stop", "issue Done 7", "rejection with stop takes back a batch in reverse order", "e2e/undo::a_rejection_with_stop_takes_back_a_batch_in_reverse_order_of_its_calls"),
    row("undo:cancel", "issue Done 7", "cancel during a call waits for it and takes it back", "e2e/undo::a_call_under_way_when_the_run_is_cancelled_is_waited_for_and_taken_back", "e2e/undo::a_cancelled_run_ends_as_cancelled_after_taking_back_what_it_did"),
    row("undo:to-step", "issue Done 7", "undo to a step and on", "e2e/undo::an_undo_to_a_step_takes_back_what_came_after_it_and_the_run_goes_on"),
    row("undo:after-end", "issue Done 7", "undo after the end, to any step, and only once", "e2e/undo_after_end::a_completed_run_is_undone_last_effect_first_to_any_step_and_only_once"),
    row("undo:unknown", "issue Done 7", "an unknown effect is reconciled first", "e2e/undo::an_effect_of_unknown_outcome_is_checked_before_it_is_taken_back"),
    row("undo:by-id", "design 9", "what stays unknown is undone by its id or parked", "e2e/undo::an_effect_that_stays_unknown_is_undone_by_its_id_or_parked"),
    row("undo:parked", "issue Done 7", "a compensation that fails is retried, then parked, and the others go on", "e2e/undo::a_compensation_that_fails_is_tried_again_then_parked_and_the_others_go_on"),
    row("undo:none", "design 9", "what cannot be undone says so and is kept and named", "e2e/undo::an_effect_that_cannot_be_undone_is_kept_and_named"),
    row("undo:keep", "design 9", "on_failure keep keeps; completed never rolls back by itself", "e2e/undo::what_the_task_wants_kept_and_what_was_completed_is_kept"),
    row("undo:policy", "design 9", "the policy's undo section asks or denies", "e2e/undo::a_policy_may_ask_about_compensations", "e2e/undo::a_policy_may_deny_a_compensation_and_let_the_question_expire"),
    row("undo:bound", "design 9", "the compensation is rendered and sealed with the outcome", "store/settle::an_outcome_is_recorded_with_what_would_take_it_back"),
    row("undo:template", "design 9", "templates are sandboxed and strict", "toolbox/template::what_tools_answer_is_never_a_template", "toolbox/template::what_cannot_be_computed_is_one_error"),
    row("undo:open-refused", "design 9", "UndoRun refuses an open run and undoes a terminated one", "e2e/undo_after_end::an_open_run_is_refused_and_a_terminated_one_is_undone"),
    row("undo:chain", "design 9", "a run is named by any run id of its chain", "e2e/undo_after_end::an_earlier_run_of_the_same_name_is_undone_while_the_later_one_is_open"),
    row("undo:again", "design 9", "what was parked is tried again when undone again", "e2e/undo_after_end::a_compensation_that_was_parked_is_tried_again_when_undone_again"),
    row("undo:preview", "design 9", "undo_preview lists what would be done and what cannot be", "e2e/undo::a_rejection_with_stop_takes_back_a_batch_in_reverse_order_of_its_calls", "e2e/undo::an_undo_to_a_step_takes_back_what_came_after_it_and_the_run_goes_on"),
    row("undo:paused", "design 9", "a paused run can be undone and cancelled", "e2e/pause::a_paused_run_can_still_be_undone_and_cancelled"),
    row("undo:outcomes", "design 9", "rollback_failed wins; cancelled stays; failed becomes rolled_back", "e2e/undo::a_compensation_that_fails_is_tried_again_then_parked_and_the_others_go_on", "e2e/undo::a_cancelled_run_ends_as_cancelled_after_taking_back_what_it_did"),
    row("undo:snapshot", "design 9", "workspace snapshots are a source of undo", deferred=WORKSPACE),
)

PLAN = (
    row("plan:order", "issue Plans", "steps run in order through the one path; all writes in one request", "e2e/plans::a_plan_asks_once_for_all_its_writes_and_performs_its_steps_in_order"),
    row("plan:references", "design 22", "references to input and earlier results; a lone one keeps its type", "e2e/plans::a_lone_reference_keeps_the_type_of_its_value"),
    row("plan:bad-reference", "design 22", "a reference that leads nowhere ends the plan before anything is done", "e2e/plans::a_reference_that_can_lead_nowhere_ends_the_plan_before_anything_is_done"),
    row("plan:abort", "design 10", "a plan aborts on the first failure unless continue_on_failure", "e2e/plans::a_step_that_may_fail_does_not_end_the_plan_and_what_needs_it_is_not_sent", "e2e/plans::a_rejected_step_ends_the_plan_before_its_first_step_unless_it_may_fail"),
    row("plan:undo", "issue Plans", "a failing plan takes back its earlier steps", "e2e/plans::a_reference_to_what_a_step_did_not_return_fails_that_step_and_takes_back_the_earlier_ones"),
    row("plan:transactional", "design 22", "a transactional step that cannot be undone is refused", "e2e/plans::a_transactional_step_that_cannot_be_undone_is_an_invalid_task"),
    row("plan:safety", "design 22", "a step's safety may only be raised", "e2e/plans::the_safety_of_a_step_may_only_be_raised"),
    row("plan:timeout", "design 22", "a step waits no longer than its timeout", "e2e/plans::a_step_waits_no_longer_than_its_timeout"),
    row("plan:invalid", "design 22", "a malformed plan names the field", "e2e/plans::a_malformed_plan_is_an_invalid_task_that_names_the_field"),
    row("plan:budget", "design 7", "plans keep to calls and quotas", "e2e/plans::a_plan_that_does_not_fit_its_budget_of_calls_or_a_quota_is_not_begun"),
    row("plan:lifecycle", "design 10", "states, impact, amendments, review, confidence", deferred=PLANS),
)

TOOLS = (
    row("tool:stdio", "issue Tools", "MCP over stdio from toolbox.json", "toolbox/calls::structured_content_is_the_data_and_keeps_its_types"),
    row("tool:http", "issue Tools", "MCP over streamable HTTP", "toolbox/http::headers_are_filled_from_the_environment_and_never_shown", "examples/mailbox::the_same_tools_answer_over_http"),
    row("tool:text", "design 5", "text is read as JSON when it is JSON", "toolbox/calls::text_is_read_as_json_when_it_is_json_and_else_stays_text"),
    row("tool:search", "issue Tools", "search finds what a person would take", "toolbox/search::the_best_hit_is_the_tool_a_person_would_take", "toolbox/search::ten_thousand_tools_are_searched"),
    row("tool:hit", "design 11", "a hit has provider, tool, short_description, parameters, available, path, mcp_tool_name", "toolbox/search::a_hit_says_what_a_planner_needs"),
    row("tool:version", "issue Tools", "the catalog has a version hash, tools have definition hashes", "toolbox/catalog::equal_tools_have_one_version_and_every_change_has_another", "toolbox/catalog::a_declaration_is_part_of_the_definition"),
    row("tool:users", "design 22", "users see only the providers they are granted", "toolbox/catalog::users_see_only_the_providers_they_are_granted"),
    row("tool:died", "issue Bad input", "a server that dies in mid-call is unknown and opened again", "toolbox/calls::a_server_that_dies_in_mid_call_is_unknown_and_opened_again"),
    row("tool:missing", "issue Bad input", "a missing server is a reason that names it", "toolbox/processes::a_missing_command_is_a_reason_that_names_it"),
    row("tool:garbage", "issue Bad input", "garbage on stdout is passed over and kept for people", "toolbox/processes::garbage_on_stdout_is_passed_over_and_kept_for_people"),
    row("tool:hangs", "issue Bad input", "a tool that hangs is unknown at its deadline", "toolbox/calls::a_call_that_hangs_is_unknown_at_its_deadline_and_others_go_on"),
    row("tool:changes", "issue Bad input", "a definition changed after approval is asked about again", "e2e/faults_tools::a_tool_that_changes_after_approval_is_asked_about_again", "toolbox/catalog::a_server_that_was_replaced_is_looked_at_before_it_is_called"),
    row("tool:cap", "facts sdk C2", "an answer over the cap is named and the connection goes on", "toolbox/calls::an_answer_over_the_cap_is_named_and_the_connection_goes_on"),
    row("tool:retry-after", "facts sdk C2", "a server that asks to wait is heard", "toolbox/http::a_server_that_asks_to_wait_is_heard"),
    row("tool:clean-env", "design 18", "a server sees only the harmless variables and its own", "toolbox/processes::a_server_sees_only_the_harmless_variables_and_its_own"),
    row("tool:no-orphans", "design 11", "servers end with the process that opened them", "toolbox/processes::servers_end_when_the_process_that_opened_them_is_killed"),
    row("tool:toolbox-errors", "issue Bad input", "toolbox.json errors name field and fix", "toolbox/configuration::what_is_wrong_is_named_with_field_and_fix", "toolbox/configuration::a_key_written_twice_is_refused"),
    row("tool:undo-exists", "design 9", "undo and verify are promised only when their tools exist", "toolbox/catalog::undo_and_verify_are_promised_only_when_their_tools_exist"),
    row("tool:sse", "design 11", "MCP over SSE", deferred=TOOLBOX),
    row("tool:uid", "design 11", "a stdio server runs under its own uid", deferred=PRODUCTION),
    row("tool:manifest", "design 11", "the catalog is persisted as manifest.json and files", deferred=TOOLBOX),
    row("tool:kinds", "design 11", "kinds action, plugin, builtin, composio", deferred=f"{TOOLBOX}; {PLUGINS}; {CONNECTIONS}"),
)

STORE = (
    row("store:identity", "design 14", "another store is refused, both named", "store/identity::another_store_is_refused_and_both_are_named"),
    row("store:epoch", "design 14", "a restored store has a new epoch; a missing row is unknown then", "store/identity::a_new_epoch_is_the_same_store_and_is_noticed", "store/begin::after_a_restore_only_a_first_attempt_without_a_row_goes"),
    row("store:sqlite", "design 14", "WAL, every commit synced, one host enforced", "store/opening::the_file_is_in_wal_mode_and_every_commit_is_synced", "store/opening::a_database_on_a_network_filesystem_is_refused"),
    row("store:migrate", "design 14", "migrations run at worker start behind a lock", "store/opening::processes_that_open_an_empty_home_at_once_find_one_store", "store/opening::a_migration_that_is_cut_off_leaves_nothing_behind"),
    row("store:newer", "design 14", "a database of a newer version is refused untouched", "store/opening::a_database_of_a_newer_version_is_refused_untouched"),
    row("store:blobs", "design 14", "blobs are content-addressed and checked", "store/blobs::bytes_come_back_under_their_hash", "store/blobs::a_payload_changed_on_disk_is_noticed_and_healed_when_it_is_written_again"),
    row("store:events", "design 14", "events are kept by run; a repeat changes nothing", "store/events::events_come_back_in_order_and_by_run", "store/events::a_repeat_changes_nothing"),
    row("store:runs", "design 14", "show, list and attach of closed runs read the store", "store/runs::a_run_is_recorded_from_beginning_to_end"),
    row("store:private", "design 18", "files are for this user only", "store/opening::files_and_directories_are_for_this_user_only"),
    row("store:locked", "issue Bad input", "a store locked for 30 s is unavailable and works again", "store/unavailable::a_store_locked_for_too_long_is_unavailable_and_works_again_afterwards"),
    row("store:several-hosts", "design 14", "Postgres and S3-compatible blobs for several hosts", deferred=PRODUCTION),
    row("store:ledger", "design 14", "HMAC chain per run, verify, export", deferred=AUDIT),
    row("store:memory", "design 14", "memory with full-text recall; learning", deferred=MEMORY),
    row("store:gc", "design 14", "gc of runs closed longer than the undo window", deferred=PRODUCTION),
    row("store:connections", "design 14", "tokens encrypted and refreshed under a row lock", deferred=CONNECTIONS),
)

OPERATORS = (
    row("view:details", "issue Done 9", "state, limits, pending request with its literal command and undo stack are read through the API", "e2e/view::details_tell_state_limits_the_deciding_command_and_what_undo_would_do"),
    row("view:summaries", "design 16", "every activity and timer has a summary", "e2e/view::every_activity_and_timer_says_in_history_what_it_is_for"),
    row("view:attributes", "design 16", "typed search attributes, only when the namespace knows them", "e2e/view::search_attributes_are_typed_and_find_the_run", "e2e/faults_store::a_namespace_without_our_search_attributes_carries_runs_all_the_same"),
    row("view:commands", "issue Done 9", "the commands that are shown are commands", "docs/shell::the_commands_that_the_web_ui_shows_are_commands"),
    row("view:descriptions", "design 16", "every handler has a description", "docs/reference::every_door_says_what_it_is_for"),
    row("view:events", "design 16", "event names are those of the reference", "docs/reference::every_event_name_in_the_code_is_in_the_table_and_no_other"),
    row("view:summary-event", "design 16", "summary.created when a closing summary was written", "e2e/budget::a_closing_summary_is_written_recorded_and_counted_apart"),
    row("view:logs", "design 16", "logs are JSON lines, redacted", "backstay/redaction::a_text_for_logs_is_redacted_like_a_payload"),
    row("view:screenshots", "issue Done 9", "screenshots of Web UI and terminal are in docs", "docs/reference::every_link_of_a_page_leads_somewhere"),
    row("view:otel", "design 16", "OpenTelemetry and metrics", deferred=TELEMETRY),
    row("end:result", "design 17", "every outcome completes the workflow with a Result", "e2e/undo::a_failure_after_five_effects_takes_back_five_last_first"),
    row("end:invalid", "design 17", "an invalid task fails as TaskInvalid", "e2e/approvals_hostile::a_run_started_with_nothing_or_nonsense_fails_as_an_invalid_task"),
    row("end:cancelled", "design 17", "a cancelled run's Result is read all the same", "e2e/undo::a_cancelled_run_ends_as_cancelled_after_taking_back_what_it_did"),
    row("end:codes", "design 17", "CLI exit codes", "cli/runs::the_exit_code_says_how_the_run_ended", "cli/runs::rejecting_with_stop_ends_the_run_and_attach_tells_how", "cli/runs::a_run_is_held_resumed_topped_up_previewed_taken_back_and_cancelled", "docs/reference::every_exit_code_is_in_the_table"),
    row("end:errors", "design 17", "Final and Transient, drawn in errors.py, the docstring is the default message", "docs/reference::every_error_is_in_the_table_with_its_kind"),
    row("end:lasting", "design 17", "a transient error that lasts becomes a request: retry or stop", "e2e/faults_model::whoever_stops_after_a_fault_ends_the_run", "e2e/faults_model::an_unreachable_endpoint_costs_nothing_and_is_asked_about"),
    row("trust:settings", "design 18", "settings are read once; an unknown one is refused", "backstay/settings::an_unknown_setting_in_the_file_is_refused", "backstay/settings::the_environment_comes_before_the_file"),
    row("trust:names", "design 18", "history, logs and ledger hold names of secrets", "backstay/settings::secrets_are_known_but_never_shown"),
    row("trust:task", "design 18", "a task's fields tighten only", "backstay/policy::a_task_can_only_tighten"),
    row("trust:docs", "design 18", "docs/security says who is trusted and how to close the doors", "docs/data::a_data_block_is_admitted_by_the_noun_it_names"),
)

DOOR = (
    row("door:task-fields", "design 22", "a field whose feature is not built is accepted at its default and refused otherwise", "e2e/bad_input::what_is_not_built_yet_is_refused_by_name", "e2e/bad_input::what_is_not_built_yet_is_accepted_at_its_default"),
    row("door:workflows", "design 22", "workflow types RunTask and UndoRun", "menu::the_workflows_are_the_ones_that_other_programs_start_by_name"),
    row("door:handlers", "design 22", "queries, updates and signal by their names", "docs/reference::every_door_of_a_run_is_in_the_table"),
    row("door:shapes", "design 22", "fields of Task, Budget, Plan, Result, ApprovalRequest and Approval", "docs/reference::every_field_of_a_noun_is_in_its_table", "docs/reference::defaults_are_those_of_the_code"),
    row("door:attach", "issue Bad input", "the same workflow id started twice attaches to the open run", "client/run::the_same_id_while_open_attaches_instead_of_starting_twice"),
    row("door:environment", "design 22", "the environment variables of section 22", "docs/reference::every_setting_is_in_the_table_with_its_default"),
    row("door:cli", "design 22", "dev worker run attach list show approve reject answer top-up undo pause resume cancel tools doctor", "docs/shell::every_command_is_documented"),
    row("door:cli-run", "issue CLI", "run: live steps, budget bars, an approval prompt that shows call, undo and rule", "cli/prompt::a_person_sees_what_would_be_called_and_approves_it", "cli/prompt::live_steps_come_with_budget_bars"),
    row("door:cli-detach", "design 22", "Ctrl-C in run detaches and prints how to come back, exit code 130", "cli/prompt::letting_go_leaves_the_run_going_and_says_how_to_come_back", "cli/prompt::ctrl_c_lets_go_while_the_run_is_at_work"),
    row("door:cli-dev", "design 22", "dev brings Temporal, Web UI and worker; a taken port names its holder", "cli/dev::dev_brings_temporal_a_web_ui_and_a_worker_and_ctrl_c_ends_all_of_them", "cli/dev::a_taken_port_names_its_holder"),
    row("door:cli-worker", "design 22", "a worker prints that it is ready and drains on SIGTERM", "packaging::the_installed_worker_command_serves_beside_a_foreign_package_named_workflows"),
    row("door:cli-doctor", "design 22", "doctor says for each part whether it works", "cli/runs::doctor_finds_every_part_well_and_asks_the_model_nothing", "cli/runs::doctor_names_cause_and_fix_of_every_part_that_is_missing"),
    row("door:cli-streams", "design 22", "human text on stderr, result on stdout", "cli/runs::people_read_stderr_and_programs_read_stdout"),
    row("door:starter", "design 22", "starter.py is the smallest client", "docs/python::the_smallest_client_runs_and_prints_the_summary"),
    row("door:client", "design 22", "connect, start, events, approve, result", "docs/python::the_first_example_does_what_the_readme_promises", "client/run::a_run_is_started_followed_approved_and_its_result_read"),
    row("door:library", "design 22", "execute_mcp_task, summarize_payload, redact_payload, search_tools from their homes", "client/library::one_call_carries_a_task_to_its_result", "client/library::the_library_finds_the_rooms_of_its_own_house", "client/library::the_library_refuses_a_foreign_room_that_was_imported_before"),
    row("door:make", "design 22", "make targets exist", "docs/shell::a_command_exists_and_takes_these_flags"),
    row("door:model", "issue Demo", "the scripted model is an OpenAI-compatible server over a real socket", "testing/scripted_model::calls_are_answered_as_native_function_calls_with_ids_of_their_own", "testing/scripted_model::what_was_computed_and_never_arrived_is_billed_all_the_same"),
    row("door:late-library", "design 22", "ToolboxBuilder, run_python_plan, register_tool_caller", deferred=f"{TOOLBOX}; {SANDBOX}"),
    row("door:late-updates", "design 15", "engine as an MCP server, codec server", deferred=DOORS),
)

DEMO = (
    row("demo:two-commands", "issue Done 1", "in a fresh clone make demo and make test are enough, as root and as an ordinary user", "makefile::each_of_the_two_commands_first_makes_its_own_environment_from_the_lock", by_hand="both commands in a fresh clone with an empty home, as root and as an ordinary user"),
    row("demo:first-step", "issue Done 1", "the demo's first step shows within 20 s of the end of the installation", "cli/demo::at_a_terminal_the_demo_asks_once_and_stays_up_until_it_was_taken_back", by_hand="make demo with a clock, from the end of the installation to the first step"),
    row("demo:computed", "issue Done 2", "recipients and total of the demo equal a SQL query over random invoices", "examples/reminders::recipients_and_total_equal_the_sql_query_for_any_mailbox"),
    row("demo:asks-once", "issue Demo", "the demo asks once for the batch and answers with the total", "e2e/reminders::recipients_and_total_are_those_of_an_sql_query_over_random_invoices", "examples/reminders::the_demo_takes_four_decisions_and_names_each_invoice_in_its_mail"),
    row("demo:mailbox", "issue Demo", "the mailbox is a real MCP server that never deduplicates and counts requests itself", "examples/mailbox::the_same_mail_twice_is_sent_twice_and_both_requests_are_counted"),
    row("demo:script", "issue Demo", "no recipient and no total is written in the script", "examples/reminders::recipients_and_total_equal_the_sql_query_for_any_mailbox", "examples/reminders::the_number_of_days_comes_from_the_task"),
    row("demo:crash", "issue Demo", "make demo-crash kills the worker amid sending and shows every mail sent once", "cli/demo::a_worker_that_is_killed_amid_the_sending_sends_nothing_twice"),
    row("demo:no-terminal", "issue Demo", "without a terminal it approves by itself and says so", "cli/demo::without_a_terminal_the_demo_approves_by_itself_says_so_and_ends"),
    row("demo:real-model", "issue Demo", "with OPENAI_API_KEY or OPENAI_BASE_URL the same command uses that model", "cli/demo::with_a_model_of_ones_own_the_demo_uses_that_and_does_not_call_it_scripted"),
    row("demo:ctrl-c", "issue Demo", "Ctrl-C leaves no process behind", "cli/demo::however_the_demo_is_ended_no_process_is_left"),
    row("demo:ends", "issue Demo", "it ends by saying how to look at the run and how to take it back", "cli/demo::without_a_terminal_the_demo_approves_by_itself_says_so_and_ends", "cli/demo::at_a_terminal_the_demo_asks_once_and_stays_up_until_it_was_taken_back"),
    row("demo:test-time", "issue Done 3", "make test is green in 15 minutes on 2 cores, nothing skipped in CI", "makefile::no_test_is_skipped_or_expected_to_fail", by_hand="make test with a clock on two cores"),
    row("demo:matrix", "issue Done 3", "make test-matrix shows the same on Python 3.11, 3.12 and 3.13", "makefile::the_matrix_runs_the_same_tests_on_every_supported_python", by_hand="make test-matrix where the three Pythons are installed"),
    row("demo:steps-benchmark", "issue Done 11", "benchmarks/steps.py measures against the bare floor; CPU per step at most 1.5 of it", "benchmarks::every_size_was_measured_beside_the_floor_in_cpu_wall_events_and_bytes", "benchmarks::the_published_table_is_that_of_the_last_run", "benchmarks::in_a_run_of_200_steps_a_step_took_at_most_one_and_a_half_times_the_cpu_of_the_floor", by_hand="make bench; the ratio of short runs is in docs/performance.md"),
)

FAULTS = (
    row("fault:task", "issue Bad input", "unknown, missing or mistyped fields of Task and Budget name field, value and fix", "e2e/bad_input::a_task_that_is_not_valid_is_refused_naming_field_value_and_fix", "e2e/bad_input::a_task_that_is_no_json_is_refused_and_fails_no_workflow_task"),
    row("fault:policy", "issue Bad input", "a faulty policy names field and fix", "backstay/policy::a_faulty_policy_is_refused_naming_field_and_fix"),
    row("fault:toolbox", "issue Bad input", "a faulty toolbox.json names field and fix", "e2e/bad_input::a_worker_refuses_files_that_are_not_valid_with_exit_code_2", "toolbox/configuration::what_is_wrong_is_named_with_field_and_fix"),
    row("fault:exit-2", "issue Bad input", "such a fault at the command line is exit code 2", "cli/bad_input::what_is_wrong_is_named_in_one_line", "e2e/bad_input::a_worker_refuses_files_that_are_not_valid_with_exit_code_2", "e2e/bad_input::a_worker_refuses_an_unknown_setting_with_exit_code_2"),
    row("fault:temporal", "issue Bad input", "Temporal unreachable or a wrong namespace is one clear line", "e2e/bad_input::a_worker_says_that_temporal_cannot_be_reached_with_exit_code_2", "e2e/bad_input::a_worker_names_a_namespace_that_does_not_exist_with_exit_code_2"),
    row("fault:model-gone", "issue Bad input", "the model endpoint is unreachable", "e2e/faults_model::an_unreachable_endpoint_costs_nothing_and_is_asked_about"),
    row("fault:model-html", "issue Bad input", "the model endpoint answers HTML", "e2e/faults_model::a_page_of_html_is_tried_thrice_and_then_asked_about"),
    row("fault:model-401", "issue Bad input", "401", "e2e/faults_model::a_refused_key_is_asked_about_at_once_and_never_shown"),
    row("fault:model-429", "issue Bad input", "429 with Retry-After is a visible wait", "e2e/faults_model::retry_after_is_a_timer_that_says_so_and_costs_nothing", "e2e/faults_model::a_long_retry_after_shows_as_waiting"),
    row("fault:model-quota", "issue Bad input", "quota exhausted", "e2e/faults_model::an_exhausted_quota_is_asked_about_at_once"),
    row("fault:model-long", "issue Bad input", "context too long", "e2e/faults_model::a_context_that_is_too_long_is_sent_again_shorter_and_unbilled", "e2e/faults_model::a_context_that_nothing_makes_short_enough_is_asked_about"),
    row("fault:model-empty", "issue Bad input", "an empty answer", "e2e/faults_answers::an_empty_answer_costs_a_step_and_is_asked_about_again"),
    row("fault:model-malformed", "issue Bad input", "malformed arguments", "e2e/faults_answers::malformed_arguments_cost_a_step_and_are_an_error_to_the_model"),
    row("fault:model-unknown-tool", "issue Bad input", "an unknown tool", "e2e/faults_answers::an_unknown_tool_is_an_error_to_the_model"),
    row("fault:model-schema", "issue Bad input", "a schema violation", "e2e/faults_answers::arguments_that_do_not_fit_the_schema_are_an_error_to_the_model"),
    row("fault:model-1000", "issue Bad input", "1,000 tool calls in one message", "e2e/faults_answers::a_thousand_calls_in_one_message_are_refused_as_a_whole"),
    row("fault:model-nested", "design 6", "arguments nested too deeply, lone surrogates, a megabyte in one argument", "e2e/faults_answers::arguments_nested_too_deeply_are_refused_and_not_cut", "e2e/faults_answers::lone_surrogates_in_names_and_ids_harm_nothing", "e2e/faults_answers::a_megabyte_in_one_argument_is_refused_and_less_is_stored_beside_history"),
    row("fault:tool-20mb", "issue Bad input", "a 20 MB tool result ends in a run that goes on", "e2e/faults_tools::twenty_megabytes_leave_a_few_kilobytes_of_history"),
    row("fault:tool-hangs", "issue Bad input", "a tool that hangs, end to end", "e2e/faults_tools::a_read_that_hangs_is_an_error_to_the_model", "e2e/faults_tools::an_effect_that_hangs_is_asked_about_and_not_sent_again"),
    row("fault:tool-dies", "issue Bad input", "a server that dies in mid-call, is missing, or prints garbage, end to end", "e2e/faults_tools::an_effect_whose_server_died_in_mid_call_is_a_question", "e2e/faults_tools::garbage_between_the_answers_is_passed_over", "e2e/faults_tools::a_missing_server_takes_only_its_own_tools_away"),
    row("fault:tool-changed", "issue Bad input", "a definition changed after approval, end to end", "e2e/faults_tools::a_tool_that_changes_after_approval_is_asked_about_again"),
    row("fault:store-locked", "issue Bad input", "a store locked for 30 s, end to end", "e2e/faults_store::a_store_that_is_locked_for_a_while_is_waited_for", "e2e/faults_store::a_store_that_stays_locked_is_asked_about_and_the_run_goes_on", "e2e/faults_deadlines::a_locked_store_is_asked_about_within_a_minute"),
    row("fault:two-stores", "issue Bad input", "two workers with two stores, end to end", "e2e/faults_store::of_two_workers_with_two_stores_the_right_one_carries_the_run_or_a_person_is_asked", "e2e/faults_store::a_worker_with_another_store_is_refused_naming_both"),
    row("fault:attributes", "issue Bad input", "search attributes not registered", "e2e/faults_store::a_namespace_without_our_search_attributes_carries_runs_all_the_same", "e2e/faults_store::a_new_namespace_gets_our_search_attributes_before_the_first_run"),
    row("fault:twice", "issue Bad input", "the same workflow id started twice", "client/run::the_same_id_while_open_attaches_instead_of_starting_twice"),
    row("fault:reset", "issue Bad input", "a reset to before a sent e-mail", "e2e/faults_store::after_a_reset_the_same_decision_finds_the_recorded_outcome", "e2e/faults_store::after_a_reset_another_decision_is_a_conflict_that_a_person_settles"),
    row("fault:bounded", "issue Bad input", "within 60 s after each fault the run is closed, waiting for a person, or in a visible wait", "e2e/faults_deadlines::whatever_an_attempt_takes_a_lasting_fault_is_asked_about_within_a_minute", "e2e/faults_deadlines::a_locked_store_is_asked_about_within_a_minute", "e2e/faults_deadlines::an_effect_that_hangs_is_asked_about_within_a_minute", "e2e/faults_deadlines::an_endpoint_that_cannot_be_reached_is_asked_about_within_a_minute", "e2e/faults_deadlines::another_store_is_asked_about_within_a_minute", "e2e/faults_deadlines::a_server_that_is_silent_at_its_start_is_given_up_within_a_minute"),
    row("fault:no-task-failure", "issue Bad input", "no workflow-task failure is recorded", "e2e/bad_input::a_task_that_is_no_json_is_refused_and_fails_no_workflow_task", "e2e/approvals_hostile::malformed_signals_become_events_and_malformed_updates_are_refused", "e2e/faults_answers::lone_surrogates_in_names_and_ids_harm_nothing", "e2e/faults_tools::an_effect_whose_server_died_in_mid_call_is_a_question"),
)

SEED_000 = (
    row("s000:task-string", "seed 000 §1", "accept a single task string", "e2e/reminders::recipients_and_total_are_those_of_an_sql_query_over_random_invoices"),
    row("s000:result", "seed 000 §2", "a structured result: success, final_summary, raw_outputs, budget_usage, logs, error", "client/library::one_call_carries_a_task_to_its_result"),
    row("s000:agnostic", "seed 000 §1", "no provider is named in engine code", "house::no_provider_is_known_by_name"),
    row("s000:shared", "seed 000 §2.0", "shared token tracker, logger and client", deferred=f"{REPLACED}one process has one client, one ledger and one log pipeline"),
    row("s000:registry", "seed 000 §2.1", "per-user registry that refreshes when connections appear", deferred=CONNECTIONS),
    row("s000:actions", "seed 000 §2.2", "action wrappers normalise arguments and call an MCP tool", deferred=TOOLBOX),
    row("s000:manifest", "seed 000 §2.3", "manifest, providers and tools as files", deferred=TOOLBOX),
    row("s000:sole-search", "seed 000 §4", "search_tools is the only discovery", "toolbox/search::the_best_hit_is_the_tool_a_person_would_take"),
    row("s000:detail", "seed 000 §4", "detail_level summary and full, limit, user_id", "toolbox/search::a_limit_out_of_range_is_brought_into_it", "toolbox/search::a_hit_says_what_a_planner_needs"),
    row("s000:dedupe", "seed 000 §4", "hits are deduplicated by provider and tool", "toolbox/search::no_query_is_ever_syntax_and_no_tool_comes_twice"),
    row("s000:refined", "seed 000 §4", "refined searches", "examples/reminders::the_script_searches_when_the_tools_are_not_visible_yet"),
    row("s000:prompt", "seed 000 §3", "one canonical prompt with the rules of behaviour", "house::there_is_one_prompt_and_it_teaches_the_rules"),
    row("s000:trim", "seed 000 §3", "deterministic trimming under a cap", "backstay/trimming::it_fits_or_only_the_last_exchange_and_what_is_pinned_are_left"),
    row("s000:summarize", "seed 000 §5", "summarize_payload with its eight keys and three purposes", "backstay/digest::a_digest_has_eight_keys_and_fits_whatever_the_payload", "backstay/digest::the_purposes_tell_different_things"),
    row("s000:persist", "seed 000 §5", "the full payload is persisted and referred to", "backstay/digest::a_small_result_passes_whole_and_a_large_one_by_its_digest"),
    row("s000:redact", "seed 000 §5", "redact_payload before logs, prompts and files, with own keys", "backstay/redaction::own_names_replace_the_usual_ones", "backstay/redaction::redaction_is_total_idempotent_and_keeps_the_structure"),
    row("s000:codegen", "seed 000 §6", "generated Python bindings per tool", deferred=TOOLBOX),
    row("s000:run-plan", "seed 000 §6", "run_python_plan and SandboxResult", deferred=SANDBOX),
    row("s000:no-network", "seed 000 §9", "sandboxed code has no network and reaches tools only", deferred=SANDBOX),
    row("s000:budget", "seed 000 §7", "max_steps, max_tool_calls, max_code_runs, max_llm_cost_usd with these defaults", "docs/reference::defaults_are_those_of_the_code"),
    row("s000:halt", "seed 000 §7", "budget exceeded: a clear message and a partial summary", "e2e/budget::a_run_stops_at_its_steps_with_a_summary_and_keeps_its_effects"),
    row("s000:cost", "seed 000 §10", "cached, new and output tokens and cost, per call and cumulative", "e2e/budget::tokens_and_cost_are_told_per_call_and_in_sum_per_model"),
    row("s000:choose", "seed 000 §7", "each step is a tool call, code, or the end", "e2e/faults_answers::calls_beside_finish_are_made_first"),
    row("s000:available", "seed 000 §7", "a tool's availability is checked and its reason told", "toolbox/search::tools_that_cannot_be_used_now_come_last_and_say_why"),
    row("s000:telemetry", "seed 000 §7", "events with task, user, step and a minimal redacted payload", "docs/reference::every_event_name_in_the_code_is_in_the_table_and_no_other"),
    row("s000:library", "seed 000 §12", "execute_mcp_task as a library call", "client/library::one_call_carries_a_task_to_its_result"),
    row("s000:cli", "seed 000 §12", "CLI as a thin shell", "docs/shell::every_command_is_documented"),
    row("s000:gmail-slack", "seed 000 §8", "Composio-backed Gmail and Slack", deferred=CONNECTIONS),
    row("s000:typescript", "seed 000 §13", "TypeScript output removed", deferred=f"{REPLACED}there never was any here"),
    row("s000:model", "seed 000 §10", "one default model, any compatible endpoint", "backstay/settings::without_anything_set_the_defaults_hold"),
)

SEED_001 = (
    row("s001:workspace", "seed 001 Usage", "a workspace is mounted, filesystem and shell opt in", deferred=WORKSPACE),
    row("s001:servers", "seed 001 Usage", "own MCP servers by URL with headers and by command", "toolbox/http::headers_are_filled_from_the_environment_and_never_shown", "toolbox/calls::structured_content_is_the_data_and_keeps_its_types"),
    row("s001:outside", "seed 001 Usage", "local servers run outside the sandbox", "toolbox/processes::a_server_runs_in_the_directory_of_the_file_and_dies_with_the_toolbox"),
    row("s001:planner-tools", "seed 001 Tools", "planning sees read-only files, execution all tools", deferred=PLANS),
    row("s001:create-plan", "seed 001 Tools", "create_plan, update_plan, mark_step", deferred=PLANS),
    row("s001:isolation", "seed 001 Security", "files, network, resources and privileges are confined", deferred=WORKSPACE),
    row("s001:lifecycle", "seed 001 Lifecycle", "the sandbox starts and stops with the run, the workspace survives", deferred=WORKSPACE),
    row("s001:unavailable", "seed 001 Errors", "without isolation the tools are refused", deferred=WORKSPACE),
    row("s001:reconnect", "seed 001 Errors", "MCP connection failures are retried with backoff", "toolbox/processes::a_server_that_comes_back_is_used_again"),
    row("s001:cleanup", "seed 001 Lifecycle", "connections end with the process", "toolbox/processes::a_server_that_will_not_end_is_killed"),
    row("s001:images", "seed 001 Future", "own images, network policies, monitoring", deferred=PRODUCTION),
)

SEED_002 = (
    row("s002:response", "seed 002 §1", "one result shape: success, data, context, error, trace", deferred=f"{REPLACED}a ToolResult carries success, ref, error and error_type; the payload is behind the ref"),
    row("s002:safety", "seed 002 §1", "read_only, write_safe, restricted_write", "backstay/policy::where_no_rule_applies_the_safety_of_the_tool_decides"),
    row("s002:plan", "seed 002 §1", "a plan with title, author, steps, summary and metadata", "e2e/plans::a_plan_asks_once_for_all_its_writes_and_performs_its_steps_in_order"),
    row("s002:states", "seed 002 §3", "the plan's state machine", deferred=PLANS),
    row("s002:no-write", "seed 002 §3", "no write runs without a recorded approval", "e2e/plans::a_rejected_step_ends_the_plan_before_its_first_step_unless_it_may_fail"),
    row("s002:abort", "seed 002 §3", "abort on the first critical failure unless continue_on_failure", "e2e/plans::a_step_that_may_fail_does_not_end_the_plan_and_what_needs_it_is_not_sent"),
    row("s002:reverse", "seed 002 §8", "rollbacks run in reverse order of successful steps", "e2e/undo::a_failure_after_five_effects_takes_back_five_last_first"),
    row("s002:decorators", "seed 002 §4", "safety is declared on the tool", "toolbox/catalog::a_server_lowers_its_danger_only_when_it_is_trusted"),
    row("s002:transactional", "seed 002 §4", "transactional steps have a way back", "e2e/plans::a_transactional_step_that_cannot_be_undone_is_an_invalid_task"),
    row("s002:timeout", "seed 002 §5", "per-step timeouts, 30 s by default", "e2e/plans::a_step_waits_no_longer_than_its_timeout"),
    row("s002:external", "seed 002 §5", "external processes: allowlist, limits, clean environment, artifacts", deferred=WORKSPACE),
    row("s002:preview", "seed 002 §6", "a proposal shows steps, diffs, side effects and options", deferred=PLANS),
    row("s002:per-step", "seed 002 §6", "approve all, per step, or reject", "e2e/approvals::calls_of_a_batch_are_decided_one_by_one_in_one_request"),
    row("s002:preference", "seed 002 §6", "an approval may be stored as a preference", deferred=MEMORY),
    row("s002:review", "seed 002 §7", "review: lint, types, smoke, tests, artifacts, confidence", deferred=PLANS),
    row("s002:rollback-failed", "seed 002 §8", "rollback failed surfaces manual steps", "e2e/undo::a_compensation_that_fails_is_tried_again_then_parked_and_the_others_go_on"),
    row("s002:limits", "seed 002 §8", "20 steps per plan", "e2e/plans::a_malformed_plan_is_an_invalid_task_that_names_the_field"),
    row("s002:introspection", "seed 002 §9", "list_domains, list_methods, get_method_info; Markdown per provider", deferred=TOOLBOX),
    row("s002:registry", "seed 002 §9", "tools are discovered at start with metadata and version", "toolbox/catalog::equal_tools_have_one_version_and_every_change_has_another"),
    row("s002:safenet", "seed 002 §2", "structured events of everything that happened", "store/events::events_come_back_in_order_and_by_run"),
    row("s002:immutable", "seed 002 App. B", "an approved plan is immutable; amendments are new plans", deferred=PLANS),
    row("s002:retention", "seed 002 App. B", "plans and diffs are kept 90 days", deferred=PLANS),
    row("s002:export", "seed 002 App. B", "exportable audit reports", deferred=AUDIT),
    row("s002:binding", "seed 002 §11", "${input.group} in steps", "e2e/plans::a_lone_reference_keeps_the_type_of_its_value"),
    row("s002:dry-run", "seed 002 §1", "dry_run", deferred=REHEARSAL),
    row("s002:learning", "seed 002 §2", "learning from approvals", deferred=MEMORY),
    row("s002:cached", "seed 002 §4", "cached results of read-only tools", deferred=TOOLBOX),
    row("s002:multi-agent", "seed 002 §10", "several agents check each other", deferred=DOORS),
)

SEED_003 = (
    row("s003:loop", "seed 003 §1", "perceive, decide, act, remember, step by step", "e2e/reminders::recipients_and_total_are_those_of_an_sql_query_over_random_invoices"),
    row("s003:final", "seed 003 §1", "a final answer, or further processing", "e2e/faults_answers::text_alone_is_asked_about_once_and_then_taken_for_the_end"),
    row("s003:perception", "seed 003 perception", "intent, entities, tool_hint, tags, selected_servers", deferred=PROFILES),
    row("s003:strategies", "seed 003 context", "conservative and exploratory strategies", deferred=PROFILES),
    row("s003:lifelines", "seed 003 loop", "lifelines per step", deferred=PROFILES),
    row("s003:dispatch", "seed 003 session", "tools of all servers are listed and dispatched by name", "toolbox/calls::calls_run_side_by_side_unless_the_provider_is_serial"),
    row("s003:sandbox", "seed 003 action", "solve() in a sandbox that can only talk to tools, bounded calls", deferred=SANDBOX),
    row("s003:guardrails", "seed 003 title", "heuristic guardrails", "backstay/policy::ruling_is_total_and_tightening_never_loosens"),
    row("s003:max-steps", "seed 003 loop", "a run ends at its maximum of steps", "e2e/budget::a_run_stops_at_its_steps_with_a_summary_and_keeps_its_effects"),
    row("s003:memory", "seed 003 memory", "run metadata, tool calls, outputs and answers, by session", deferred=MEMORY),
    row("s003:history", "seed 003 memory", "an index of history, offered as tools", deferred=MEMORY),
    row("s003:progress", "seed 003 context", "progress of each step is visible", "e2e/pause::a_paused_run_makes_no_approved_call_until_it_is_resumed_and_answers_meanwhile"),
    row("s003:config", "seed 003 agent", "models and profiles from files", deferred=PROFILES),
)

SEED_004 = (
    row("s004:plugins", "seed 004 Features", "argparse programs as plugins, found by folder, introspected by --help", deferred=PLUGINS),
    row("s004:protocol", "seed 004 Protocol", "newline-JSON requests and status events", deferred=PLUGINS),
    row("s004:commands", "seed 004 Commands", "run, help, reload-help, health", deferred=PLUGINS),
    row("s004:queue", "seed 004 Queue", "jobs run serially per plugin", deferred=PLUGINS),
    row("s004:timeouts", "seed 004 Features", "a timeout per job, with a default", deferred=PLUGINS),
    row("s004:errors", "seed 004 Errors", "non-zero exit, timeout, bad_json, not_found", deferred=PLUGINS),
    row("s004:ready", "seed 004 §3", "ready at start, shutdown at end", deferred=PLUGINS),
    row("s004:mcp", "seed 004 top", "plugins as MCP tools", deferred=PLUGINS),
    row("s004:serial", "seed 004 Best", "never two actions at once on one resource", "toolbox/calls::calls_run_side_by_side_unless_the_provider_is_serial"),
    row("s004:no-port", "seed 004 §9", "the daemon opens no port", deferred=PLUGINS),
    row("s004:audit", "seed 004 Features", "every request and result is logged, redacted", "store/events::events_come_back_in_order_and_by_run"),
    row("s004:secrets", "seed 004 Security", "secrets come from the environment and are never logged", "backstay/settings::secrets_are_known_but_never_shown"),
    row("s004:bad-output", "seed 004 Extending", "a tool that fails, hangs or prints no JSON is caught and reported", "toolbox/processes::an_answer_that_is_none_is_unknown"),
    row("s004:durable", "seed 004 Queue", "jobs survive restarts", "crash/kill_points::a_worker_killed_at_any_point_is_replaced_and_every_mail_is_sent_once"),
    row("s004:help", "seed 004 Features", "tools and their arguments can be asked for", "toolbox/search::an_empty_query_lists_by_name"),
    row("s004:metrics", "seed 004 Monitoring", "job counts, times, queue length", deferred=TELEMETRY),
    row("s004:health", "seed 004 Commands", "a health check says what is wrong", "cli/runs::doctor_names_cause_and_fix_of_every_part_that_is_missing"),
)

# fmt: on
REQUIREMENTS = (
    *HOUSE,
    *LOOP,
    *EFFECTS,
    *CONTEXT,
    *BUDGET,
    *APPROVALS,
    *UNDO,
    *PLAN,
    *TOOLS,
    *STORE,
    *OPERATORS,
    *DOOR,
    *DEMO,
    *FAULTS,
    *SEED_000,
    *SEED_001,
    *SEED_002,
    *SEED_003,
    *SEED_004,
)  # fmt: skip

OPEN: tuple[str, ...] = ()
"""Rows whose tests are still missing; the manifest is complete when this is empty."""
