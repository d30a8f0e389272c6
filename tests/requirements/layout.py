"""Where code stands: folders, imports, names, the list of activities and the wheel."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "house:imports",
        "design 1",
        "a root folder imports only what its table allows, and the folders that know only nouns import no client "
        "and no list of activities",
        in_file(
            "test_house.py",
            "test_a_room_imports_only_what_the_table_allows",
            "test_rooms_that_know_only_nouns_import_no_client_and_no_menu",
        ),
    ),
    row(
        "house:rooms",
        "design 1; issue House",
        "the docstring of every package says what it is for and names exactly the other rooms that it imports",
        in_file("test_house.py", "test_every_room_says_what_it_is_for_and_what_it_may_import"),
    ),
    row(
        "house:late",
        "design 1",
        "modules that the command line loads by their names exist, and so does what it takes from them",
        in_file("test_house.py", "test_every_module_and_name_that_the_command_line_loads_by_its_name_exists"),
    ),
    row(
        "house:chains",
        "design 1",
        "the import contracts hold through every chain of imports",
        in_file("test_house.py", "test_import_contracts_hold_through_every_chain"),
    ),
    row(
        "house:cycles",
        "design 1",
        "modules form no cycle",
        in_file("test_house.py", "test_modules_form_no_cycle"),
    ),
    row(
        "house:alive",
        "issue House",
        "no product code is unused but what the allow-list names, and no variable is called `one`",
        in_file("test_house.py", "test_no_code_is_unused", "test_no_variable_is_called_one"),
    ),
    row(
        "house:sizes",
        "design 1",
        "a module has at most 500 lines and a function at most 40",
        in_file(
            "test_house.py",
            "test_no_module_is_longer_than_500_lines_and_no_function_than_40",
        ),
    ),
    row(
        "house:names",
        "design 1",
        "no file and no class has a name that says only where code is kept",
        in_file("test_house.py", "test_no_name_says_only_where_code_is_kept"),
    ),
    row(
        "house:folders",
        "design 1",
        "no folder holds more than 25 modules or 14 folders, and a small module is shared by three others",
        in_file(
            "test_house.py",
            "test_no_folder_holds_more_than_25_modules_or_14_folders",
            "test_a_module_under_40_lines_is_imported_by_three_others_or_is_a_program",
        ),
    ),
    row(
        "house:no-surprise",
        "design 1",
        "modules of nouns import no clock, no chance and no operating system",
        in_file("test_house.py", "test_nouns_see_no_clock_no_chance_and_no_operating_system"),
    ),
    row(
        "loop:no-regex",
        "design 3",
        "workflow code reaches no regular expression, clock or file through any noun",
        in_file("test_house.py", "test_workflows_reach_no_regular_expression_clock_or_file_through_any_noun"),
    ),
    row(
        "house:words",
        "design 2",
        "every word of the glossary names its class or says that it has none, and every class named there exists",
        in_file(
            "test_house.py",
            "test_every_word_of_the_glossary_is_a_class_or_says_that_it_is_none",
            "test_every_class_that_the_glossary_names_exists",
        ),
    ),
    row(
        "house:files",
        "design 1",
        "SQL, markup and prompts are files, never strings",
        in_file("test_house.py", "test_sql_markup_and_prompts_are_files_and_no_strings"),
    ),
    row(
        "house:timeless",
        "design 1",
        "code and documents speak of what is, not of plans for it",
        in_file("test_house.py", "test_code_and_documents_speak_of_what_is_and_not_of_plans_for_it"),
    ),
    row(
        "house:reasons",
        "style 4",
        "every suppression and every rule that is switched off carries its reason",
        in_file(
            "test_house.py",
            "test_every_suppression_carries_its_reason",
            "test_every_rule_that_is_switched_off_says_why",
        ),
    ),
    row(
        "s000:agnostic",
        "seed 000 §1",
        "product code knows no provider by name",
        in_file("test_house.py", "test_no_provider_is_known_by_name"),
    ),
    row(
        "house:gen-ai",
        "design 16",
        "the names that OpenTelemetry gives to what models and agents do stand in one file of the product",
        in_file("test_house.py", "test_the_names_of_opentelemetry_for_models_stand_in_one_file"),
    ),
    row(
        "s000:prompt",
        "seed 000 §3",
        "one file is the planner's prompt: search first, how to read what is found, when to call a tool directly, "
        "aggregates and tiny samples, no whole documents, no secrets, no answer taken for an instruction",
        in_file("test_house.py", "test_there_is_one_prompt_and_it_teaches_the_rules"),
    ),
    row(
        "house:menu",
        "design 1",
        "the list of activities and their bodies agree in names, order, arguments and results, and every body is "
        "a coroutine method",
        in_file(
            "test_menu.py",
            "test_every_entry_has_one_body_of_the_same_name_in_the_same_order",
            "test_every_body_takes_and_returns_what_the_menu_says",
            "test_every_body_is_a_coroutine_method_bound_to_its_resources",
        ),
    ),
    row(
        "house:menu-entries",
        "design 1",
        "an entry of the list of activities takes one noun that names its run, has no body and says what it does",
        in_file(
            "test_menu.py",
            "test_an_entry_takes_one_noun_that_names_its_run",
            "test_an_entry_has_no_body_of_its_own_and_promises_something",
        ),
    ),
    row(
        "house:options",
        "design 3",
        "the table of timeouts has one row for each activity and no other",
        in_file("test_menu.py", "test_the_table_of_timeouts_has_one_row_for_each_entry_and_no_other"),
    ),
    row(
        "door:workflows",
        "design 22",
        "the workflow types are RunTask and UndoRun",
        in_file("test_menu.py", "test_the_workflows_are_the_ones_that_other_programs_start_by_name"),
    ),
    row(
        "house:wheel",
        "design 1",
        "the only import root of the wheel is backstay, and every file of the other folders rides inside it",
        in_file(
            "test_packaging.py",
            "test_the_only_import_root_of_the_wheel_is_backstay",
            "test_the_wheel_carries_every_file_of_every_room_and_nothing_else",
        ),
    ),
    row(
        "house:light",
        "design 1",
        "a service that imports backstay loads no model client, no tools and no database, and sees none of the "
        "other folders",
        in_file(
            "test_packaging.py",
            "test_a_service_that_imports_backstay_sees_none_of_the_rooms",
            "test_a_service_that_imports_backstay_pays_for_no_model_and_no_tools",
        ),
    ),
    row(
        "house:shadow",
        "design 1",
        "a worker refuses to start, by name, when a folder of its own was imported from elsewhere",
        in_file("test_packaging.py", "test_a_foreign_room_earlier_on_the_path_is_refused_by_name"),
    ),
    row(
        "house:beside",
        "design 1; design 22",
        "the installed worker says that it is ready, serves beside a foreign package named workflows and ends on "
        "a signal",
        in_file(
            "test_packaging.py", "test_the_installed_worker_command_serves_beside_a_foreign_package_named_workflows"
        ),
    ),
    row(
        "house:declared",
        "design 20",
        "every library that is imported is declared",
        in_file("test_house.py", "test_every_library_that_is_imported_is_declared"),
    ),
    row(
        "house:lock",
        "design 20",
        "the lock pins every library with hashes and holds no address",
        in_file("test_house.py", "test_the_lock_names_hashes_and_no_address"),
    ),
    row(
        "house:machine",
        "design 20",
        "no file names a machine or a registry",
        in_file("test_house.py", "test_no_file_names_a_machine_or_a_registry"),
    ),
    row(
        "house:mutants",
        "design 20",
        "a mutation check puts the same mutants to two commits: it takes lines that both have once, evenly from its "
        "rooms, and turns comparisons, changes constants and leaves statements out, one as often as the other",
        in_file(
            "mutation/test_choosing.py",
            "test_mutants_are_turned_comparisons_other_constants_and_statements_left_out",
            "test_the_lines_of_mutants_stand_once_in_both_commits",
            "test_the_same_seed_chooses_the_same_mutants_evenly_from_rooms_and_kinds",
            "test_a_mutant_is_put_where_its_line_stands_with_the_space_before_it",
        ),
    ),
)
