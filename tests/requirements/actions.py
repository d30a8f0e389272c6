"""Actions: tools of one's own over servers, by configuration or as Python functions."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "action:shapes",
        "issue Actions; seed 000 §2.2",
        "one action fits servers that name things differently, by configuration",
        in_file("toolbox/test_actions.py", "test_one_action_fits_servers_that_name_things_differently"),
    ),
    row(
        "action:safety",
        "issue Actions",
        "actions say their own danger and how they are undone",
        in_file("toolbox/test_actions.py", "test_actions_say_their_own_danger_and_how_they_are_undone"),
    ),
    row(
        "action:missing",
        "issue Actions",
        "an action is offered only where its tool is",
        in_file("toolbox/test_actions.py", "test_an_action_is_offered_only_where_its_tool_is"),
    ),
    row(
        "action:behind",
        "issue Answers that inform",
        "a hit names the tool behind an action",
        in_file("toolbox/test_actions.py", "test_a_hit_names_the_tool_behind_an_action"),
    ),
    row(
        "action:normalised",
        "issue Actions",
        "arguments that mean nothing are refused before the server sees them",
        in_file("toolbox/test_actions.py", "test_arguments_that_mean_nothing_are_refused_before_the_server_sees_them"),
    ),
    row(
        "action:refused",
        "issue Actions",
        "what the server refuses the action refuses",
        in_file("toolbox/test_actions.py", "test_what_the_server_refuses_the_action_refuses"),
    ),
    row(
        "action:unknown",
        "issue Actions",
        "a write without an answer is unknown, whatever the action makes of it",
        in_file(
            "toolbox/test_actions.py",
            "test_a_write_without_an_answer_is_unknown_whatever_the_action_makes_of_it",
            "test_an_effect_of_a_function_alone_is_unknown_when_the_function_breaks",
        ),
    ),
    row(
        "action:once",
        "issue Actions",
        "an action writes once, and what was written stands when the action fails after it",
        in_file(
            "toolbox/test_actions.py",
            "test_an_action_writes_once_and_what_was_written_stands_when_the_action_fails_after_it",
        ),
    ),
    row(
        "action:own",
        "issue Actions",
        "a function is a tool with the schema of its signature",
        in_file("toolbox/test_actions.py", "test_a_function_is_a_tool_with_the_schema_of_its_signature"),
    ),
    row(
        "action:held",
        "issue Actions",
        "what the intent raises comes out as it is",
        in_file("toolbox/test_actions.py", "test_what_the_intent_raises_comes_out_as_it_is"),
    ),
    row(
        "action:changed",
        "issue Actions",
        "a tool that changes behind an action changes the action",
        in_file("toolbox/test_actions.py", "test_a_tool_that_changes_behind_an_action_changes_the_action"),
    ),
    row(
        "action:gone",
        "issue Actions",
        "an action over a server that is gone is unavailable for its reason",
        in_file("toolbox/test_actions.py", "test_an_action_over_a_server_that_is_gone_is_unavailable_for_its_reason"),
    ),
    row(
        "action:configuration",
        "issue Actions",
        "what is wrong with actions is named with field and fix",
        in_file("toolbox/test_actions.py", "test_what_is_wrong_with_actions_is_named_with_field_and_fix"),
    ),
    row(
        "action:page",
        "issue Done 8",
        "the shapes on the page fit the servers they name, and its actions are tools",
        in_file(
            "docs/test_tools.py",
            "test_the_shapes_of_the_page_fit_the_servers_they_name",
            "test_the_actions_of_the_page_are_tools",
        ),
    ),
)
