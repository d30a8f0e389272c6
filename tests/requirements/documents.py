"""Pages, their examples, their tables and the schemas beside them."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "house:docs",
        "issue House",
        "programs in the documents run to their end, fragments hold for a waiting run, and the plan of the "
        "quickstart sends its mail",
        in_file(
            "docs/test_python.py",
            "test_a_program_in_the_documents_runs_to_its_end",
            "test_a_fragment_in_the_documents_holds_for_a_run_that_waits",
        ),
        in_file("docs/test_data.py", "test_the_plan_of_the_quickstart_runs"),
    ),
    row(
        "docs:jail-program",
        "design 5",
        "a program for the jail in the documents counts the customers of the mailbox as the page says",
        in_file("docs/test_python.py", "test_a_program_for_the_jail_in_the_documents_does_what_it_says"),
    ),
    row(
        "docs:commands",
        "issue House; design 22",
        "shell blocks are correct shell, the commands and make targets in them exist and take these flags, and "
        "unknown flags are noticed",
        in_file(
            "docs/test_shell.py",
            "test_a_shell_block_is_correct_shell",
            "test_a_command_exists_and_takes_these_flags",
            "test_a_flag_that_does_not_exist_is_noticed",
        ),
    ),
    row(
        "docs:settings-named",
        "issue House",
        "every setting that a page with a shell block names exists",
        in_file("docs/test_shell.py", "test_settings_in_shell_blocks_exist"),
    ),
    row(
        "docs:data",
        "issue House; design 18",
        "a data block in the documents is admitted by the noun it names, and a field that does not exist is refused",
        in_file(
            "docs/test_data.py",
            "test_a_data_block_is_admitted_by_the_noun_it_names",
            "test_what_is_misspelt_in_a_block_would_be_noticed",
        ),
    ),
    row(
        "house:schemas",
        "design 22",
        "the JSON Schemas in the documents are those of the code, and none is that of an inner shape",
        in_file(
            "docs/test_data.py", "test_the_schemas_are_those_of_the_code", "test_no_schema_is_that_of_an_inner_shape"
        ),
    ),
    row(
        "house:reference",
        "issue House; design 22",
        "the reference lists every field of Task, Budget, Plan and its steps, Result, ApprovalRequest and Approval, "
        "and every field of toolbox.json and policy.yaml",
        in_file(
            "docs/test_reference.py",
            "test_every_field_of_a_noun_is_in_its_table",
            "test_every_field_of_an_inner_noun_is_described",
            "test_every_option_of_a_tool_in_python_is_described",
            "test_every_field_of_an_operators_file_is_described",
        ),
    ),
    row(
        "docs:defaults",
        "design 22; seed 000 §7",
        "the defaults of Task and Budget in the reference are those of the code, and so are the fields that take "
        "one value only",
        in_file(
            "docs/test_reference.py",
            "test_defaults_are_those_of_the_code",
        ),
    ),
    row(
        "docs:outcomes",
        "design 17",
        "the reference lists every outcome of a run",
        in_file("docs/test_reference.py", "test_every_outcome_is_explained"),
    ),
    row(
        "view:events",
        "design 16; issue House",
        "the reference lists every event name that the code records, and no other",
        in_file("docs/test_reference.py", "test_every_event_name_in_the_code_is_in_the_table_and_no_other"),
    ),
    row(
        "s002:safenet-all",
        "seed 002 §2",
        "structured events of everything that happened, requests and results included",
        in_file(
            "e2e/loop/test_events.py",
            "test_a_call_is_told_after_it_with_what_it_was_asked_and_what_came_back",
            "test_a_plan_tells_the_values_that_were_sent_and_not_its_references",
        ),
    ),
    row(
        "view:event-body",
        "design 22; seed 000 §7",
        "an event is the same in the Result, the store, the log and the schema, whatever a run does",
        in_file(
            "e2e/loop/test_events.py",
            "test_every_event_is_the_same_in_the_result_the_store_the_log_and_the_schema",
            "test_whatever_a_run_does_its_events_are_the_same_everywhere",
        ),
    ),
    row(
        "events:undo",
        "design 22; seed 000 §7",
        "the events of an undo follow those of the run and are the same everywhere",
        in_file("e2e/loop/test_events.py", "test_the_events_of_an_undo_follow_those_of_the_run_and_are_the_same_everywhere"),
    ),
    row(
        "events:model-calls",
        "design 22; seed 000 §7",
        "a model call is told with its tokens and what they cost, after it was made",
        in_file("e2e/loop/test_events.py", "test_a_model_call_tells_its_tokens_and_what_they_cost"),
    ),
    row(
        "end:errors",
        "design 17; issue House",
        "the reference lists every error and says whether it is final or transient",
        in_file("docs/test_reference.py", "test_every_error_is_in_the_table_with_its_kind"),
    ),
    row(
        "door:environment",
        "design 22; issue House",
        "the reference lists every setting with its default",
        in_file("docs/test_reference.py", "test_every_setting_is_in_the_table_with_its_default"),
    ),
    row(
        "docs:exit-codes",
        "design 17",
        "the reference lists every exit code of the command line",
        in_file("docs/test_reference.py", "test_every_exit_code_is_in_the_table"),
    ),
    row(
        "docs:operators",
        "design 8",
        "the reference lists every operator of a policy's conditions",
        in_file("docs/test_reference.py", "test_every_condition_operator_is_in_the_table"),
    ),
    row(
        "door:handlers",
        "design 22",
        "the reference lists every query, update and signal of a run by name",
        in_file("docs/test_reference.py", "test_every_door_of_a_run_is_in_the_table"),
    ),
    row(
        "docs:extras",
        "design 20",
        "the operations page lists every extra of the package",
        in_file("docs/test_reference.py", "test_every_extra_of_the_package_is_in_the_table"),
    ),
    row(
        "docs:attributes",
        "design 16",
        "the operations page lists the search attributes that workflows write, with their types",
        in_file("docs/test_reference.py", "test_search_attributes_are_those_that_workflows_write"),
    ),
    row(
        "door:cli",
        "design 22; seed 000 §12",
        "every command of the command line is documented",
        in_file("docs/test_shell.py", "test_every_command_is_documented"),
    ),
    row(
        "view:commands",
        "issue Done 9",
        "the command line takes the commands that the Web UI shows",
        in_file("docs/test_shell.py", "test_the_commands_that_people_are_shown_are_commands"),
    ),
    row(
        "view:screenshots",
        "issue Done 9",
        "every link of a page leads to a file, and to a heading of that file where it names one",
        in_file("docs/test_reference.py", "test_every_link_of_a_page_leads_somewhere"),
    ),
    row(
        "docs:tests-named",
        "issue Done 9",
        "every test that a page names exists",
        in_file("docs/test_reference.py", "test_every_test_that_a_page_names_exists"),
    ),
    row(
        "docs:picture-chat",
        "issue Done 9",
        "what the picture of a chat shows is what a terminal shows",
        in_file("docs/test_pictures.py", "test_what_the_picture_of_a_chat_shows_is_what_a_terminal_shows"),
    ),
    row(
        "docs:picture-slack",
        "issue Done 9",
        "what the picture of Slack shows is what is drawn for Slack now",
        in_file("docs/test_pictures.py", "test_what_the_picture_of_slack_shows_is_what_is_drawn_for_slack"),
    ),
    row(
        "docs:house",
        "issue Done 7",
        "the drawing of the house shows every root with the rooms inside it, and every import between roots and no "
        "other",
        in_file(
            "docs/test_how_it_works.py",
            "test_the_drawing_of_the_house_has_every_folder_and_the_rooms_inside_it",
            "test_the_drawing_of_the_house_has_every_import_between_folders_and_no_other",
        ),
    ),
    row(
        "docs:call",
        "issue Done 7",
        "the drawing of a call names code that exists, each name once, and its stages are those that the page explains",
        in_file(
            "docs/test_how_it_works.py",
            "test_the_drawing_of_a_call_names_code_that_exists_each_once",
            "test_the_stages_in_the_drawing_of_a_call_are_those_of_the_list_below_it",
        ),
    ),
    row(
        "docs:prose",
        "issue House",
        "a line of prose in a page holds one sentence",
        in_file("docs/test_reference.py", "test_a_line_of_prose_holds_one_sentence"),
    ),
)
