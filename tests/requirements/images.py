"""Rows: the image, docker-compose.yml, and what stands beside them."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "house:compose",
        "issue House",
        "Compose accepts docker-compose.yml without any variable set, and refuses a misspelt one",
        in_file(
            "test_compose.py",
            "test_compose_accepts_the_file_without_any_variable_set",
            "test_compose_refuses_a_misspelt_file",
        ),
    ),
    row(
        "house:compose-linter",
        "issue House",
        "a linter finds nothing in docker-compose.yml but what is excepted with a reason",
        in_file("test_compose.py", "test_a_linter_finds_nothing_but_what_is_excepted_with_a_reason"),
    ),
    row(
        "house:compose-order",
        "issue House; issue 15",
        "each service of docker-compose.yml waits for those that it needs, and what stays says when it is healthy",
        in_file(
            "test_compose.py",
            "test_every_service_that_stays_says_when_it_is_healthy",
            "test_each_service_waits_for_those_that_it_needs",
        ),
    ),
    row(
        "compose:slack",
        "issue House; issue 15",
        "Slack starts in Compose only where it is asked for",
        in_file("test_compose.py", "test_slack_starts_only_where_it_is_asked_for"),
    ),
    row(
        "compose:scripts",
        "issue House; issue 15",
        "the scripts inside docker-compose.yml are correct",
        in_file("test_compose.py", "test_a_script_inside_the_file_is_a_correct_one"),
    ),
    row(
        "house:compose-private",
        "facts ecosystem 13",
        "every published port is bound to this machine, and no secret stands in the file or in an environment",
        in_file(
            "test_compose.py",
            "test_every_published_port_is_bound_to_this_machine",
            "test_no_secret_stands_in_the_file_or_in_the_environment_of_a_service",
        ),
    ),
    row(
        "compose:secrets",
        "issue 15",
        "one command makes the secrets that the file names, once",
        in_file("test_compose.py", "test_the_secrets_that_are_made_are_those_of_the_file_and_are_made_once"),
    ),
    row(
        "compose:database",
        "issue 15",
        "backstay gets a database and a user of its own in Temporal's Postgres, and that user sees no other database",
        in_file("test_compose.py", "test_backstay_gets_a_database_of_its_own_in_temporals_postgres_and_sees_no_other"),
    ),
    row(
        "compose:settings",
        "issue 15",
        "the settings, the example of variables, the operator's files and the file for workspaces are ones that "
        "are known",
        in_file(
            "test_compose.py",
            "test_every_setting_that_a_service_is_given_is_one_of_backstay",
            "test_every_line_of_the_example_is_a_variable_of_the_file_and_changes_it",
            "test_the_files_of_the_operator_that_come_with_it_are_correct",
            "test_workspaces_need_one_more_file_which_lets_the_worker_make_jails",
        ),
    ),
    row(
        "compose:rights",
        "issue 15",
        "no service has a capability, and backstay's own are an ordinary user who can change nothing of the image",
        in_file(
            "test_compose.py",
            "test_no_service_has_a_capability_and_ours_are_an_ordinary_user_who_can_change_nothing",
        ),
    ),
    row(
        "compose:jails",
        "issue 15",
        "only the service that has no secret, no database and no way out but to Temporal may make jails",
        in_file("test_compose.py", "test_the_sandbox_role_has_no_secret_no_database_and_no_way_out_but_to_temporal"),
    ),
    row(
        "image:filter",
        "issue 15",
        "under the system call filter of the sandbox role, loaded into the kernel, a user without rights makes "
        "jails that have every property",
        in_file(
            "image/test_filter.py",
            "test_a_jail_has_every_property_under_the_filter_without_any_right_of_an_administrator",
        ),
    ),
    row(
        "image:filter-least",
        "issue 15",
        "no jail starts without one of the calls that the filter allows for jails",
        in_file("image/test_filter.py", "test_no_jail_starts_without_one_of_the_calls_that_are_allowed_for_it"),
    ),
    row(
        "image:filter-attacks",
        "issue 15",
        "the filter refuses what only an attack asks for",
        in_file("image/test_filter.py", "test_what_only_an_attack_asks_for_is_refused_by_the_filter"),
    ),
    row(
        "image:filter-default",
        "issue 15",
        "the filter allows nothing by default and knows both machines",
        in_file("image/test_filter.py", "test_the_filter_allows_nothing_by_default_and_knows_both_machines"),
    ),
    row(
        "house:image",
        "design 13; issue 15",
        "the Dockerfile's own steps, run in a clean root, make an image in which worker and sandbox role run a "
        "program in a jail with the users and rights that docker-compose.yml gives them",
        in_file("image/test_image.py", "test_worker_and_sandbox_role_run_a_program_in_a_jail_as_compose_starts_them"),
    ),
    row(
        "image:contents",
        "design 13; issue 15",
        "the image holds what runs and nothing that its user could change",
        in_file("image/test_image.py", "test_the_image_holds_what_runs_and_nothing_that_its_user_could_change"),
    ),
    row(
        "image:page",
        "design 13; issue 15",
        "the page starts in the image, is healthy, and lets in whom the proxy names and nobody else",
        in_file("image/test_image.py", "test_the_page_is_healthy_and_lets_in_whom_the_proxy_names_and_nobody_else"),
    ),
    row(
        "image:no-jail",
        "design 13; issue 15",
        "where no jail starts in the image, the reason is said",
        in_file(
            "image/test_image.py",
            "test_without_the_profile_of_the_sandbox_role_no_jail_starts_and_the_reason_is_said",
        ),
    ),
    row(
        "s001:images",
        "seed 001 Future",
        "own images, built from locked packages and no file that could hold a secret",
        in_file(
            "test_compose.py",
            "test_the_part_of_the_lock_that_is_installed_holds_what_an_extra_needs_and_nothing_for_development",
            "test_the_build_is_given_no_file_that_could_hold_a_secret",
        ),
    ),
    row(
        "s001:monitoring",
        "seed 001 Future",
        "the configuration and the rules that an installation copies are accepted by Prometheus' own tool, and each "
        "alert fires where it should",
        in_file("telemetry/test_monitoring.py", "test_promtool_accepts_the_rules_and_each_alert_fires_where_it_should"),
    ),
    row(
        "monitoring:complete",
        "seed 001 Future",
        "every alert has a test, and every metric is on the dashboard and in the documents",
        in_file(
            "telemetry/test_monitoring.py",
            "test_every_alert_has_a_test_and_every_metric_is_on_the_dashboard_and_in_the_documents",
        ),
    ),
    row(
        "monitoring:picture",
        "design 22; issue People",
        "the picture of the dashboard in the documents shows what its file has now, and is stale when that changes",
        in_file(
            "docs/test_dashboard_picture.py",
            "test_what_the_picture_of_the_dashboard_shows_is_what_its_file_has",
            "test_a_change_of_what_the_dashboard_shows_makes_its_picture_stale",
        ),
    ),
    row(
        "picture:panels",
        "design 22; issue People",
        "a panel that nothing draws is refused",
        in_file("docs/test_dashboard_picture.py", "test_a_panel_that_nothing_draws_is_refused"),
    ),
    row(
        "trust:secret-files",
        "issue 15",
        "a folder of secret files counts as the environment, which comes before it",
        in_file(
            "backstay/test_settings.py",
            "test_a_folder_of_secret_files_counts_as_the_environment_which_comes_before_it",
        ),
    ),
    row(
        "secrets:not-sent",
        "issue 15",
        "a key of a secret file is not sent to an address of the folder's own file",
        in_file(
            "backstay/test_settings.py",
            "test_a_key_of_a_secret_file_is_not_sent_to_an_address_of_the_folders_file",
        ),
    ),
    row(
        "secrets:refused",
        "issue 15",
        "secret files that cannot be used are refused by name",
        in_file("backstay/test_settings.py", "test_secret_files_that_cannot_be_used_are_refused_by_name"),
    ),
    row(
        "secrets:not-handed",
        "issue 15",
        "a process that becomes a worker is not handed what stands in secret files",
        in_file("cli/test_roles.py", "test_a_process_that_becomes_a_worker_is_not_handed_what_stands_in_secret_files"),
    ),
    row(
        "cli:health",
        "issue 15",
        "a command tells a service manager whether the worker of this host asks for work",
        in_file("cli/test_roles.py", "test_the_health_of_a_worker_is_that_it_asks_for_work_from_this_host"),
    ),
    row(
        "image:backup",
        "issue People, operators",
        "the commands that back up and restore what Compose runs have flags that Compose knows, and name services, "
        "users, volumes and paths of its file",
        in_file(
            "docs/test_compose_backup.py",
            "test_a_command_has_flags_that_compose_knows_and_names_services_and_places_of_the_file",
        ),
    ),
    row(
        "image:backup-all",
        "issue People, operators",
        "the commands of the backup leave out no database and no volume that matters",
        in_file(
            "docs/test_compose_backup.py",
            "test_every_database_and_every_volume_that_matters_is_backed_up_and_restored",
        ),
    ),
    row(
        "image:backup-back",
        "issue People, operators",
        "what the commands of the backup run inside of a service brings all of it back on a real Postgres",
        in_file(
            "docs/test_compose_backup.py",
            "test_what_the_commands_run_inside_brings_databases_and_volumes_back_as_they_were",
        ),
        by_hand="the same commands with a Docker engine",
    ),
)
