"""A fit worker or none: what a worker compares before it takes work, and what a fault of its settings leads to."""

from tests.requirements.requirement import in_file, row

SOURCE = "issue 11, a fit worker or none"

ROWS = (
    row(
        "fitness:misfit",
        "issue 11 Done 6",
        "a worker with other keys or another folder takes no work, names the difference and its fix, shows no key and "
        "ends with 2, and the runs of the fit worker go on meanwhile",
        in_file("cli/test_misfits.py", "test_a_worker_with_other_keys_or_another_folder_takes_no_work"),
    ),
    row(
        "misfit:payloads",
        "issue 11 Done 6",
        "a worker with the payloads of another store takes no work",
        in_file("cli/test_misfits.py", "test_a_worker_with_the_payloads_of_another_store_takes_no_work"),
    ),
    row(
        "misfit:database",
        "issue 11 Done 6",
        "a worker with another database takes no work and names the settings to look at",
        in_file("cli/test_misfits.py", "test_a_worker_with_another_database_takes_no_work"),
    ),
    row(
        "misfit:sandbox",
        "issue 11 Done 6",
        "a sandbox worker whose folder belongs to no store takes no work",
        in_file("cli/test_misfits.py", "test_a_sandbox_worker_whose_folder_belongs_to_no_store_takes_no_work"),
    ),
    row(
        "fitness:keys",
        SOURCE,
        "a list of keys must hold the key that the other workers write with, else the worker is refused and changes "
        "nothing",
        in_file(
            "store/test_fitness.py",
            "test_keys_are_rotated_without_a_worker_that_cannot_read_what_others_write",
            "test_a_worker_that_lacks_the_key_that_others_write_with_is_refused_and_changes_nothing",
        ),
    ),
    row(
        "keys:not-stored",
        SOURCE,
        "no key is found in the store, and two stores tell the same key apart",
        in_file("store/test_fitness.py", "test_no_key_is_found_in_the_store_and_two_stores_tell_the_same_key_apart"),
    ),
    row(
        "keys:differences",
        SOURCE,
        "every difference of a worker is named at once",
        in_file("store/test_fitness.py", "test_every_difference_is_named_at_once"),
    ),
    row(
        "fitness:payloads",
        SOURCE,
        "a folder of payloads carries a marker of its store, may be moved, and is not replaced by an empty one or by"
        " that of another store",
        in_file(
            "store/test_fitness.py",
            "test_a_folder_of_payloads_stays_with_its_store",
            "test_a_store_of_an_earlier_release_does_not_take_an_empty_folder_for_its_own",
        ),
    ),
    row(
        "fitness:adopt",
        SOURCE,
        "an operator replaces what all workers must have in common by one command, which asks first",
        in_file("store/test_fitness.py", "test_what_an_operator_adopts_is_what_fits_from_then_on"),
        in_file("cli/test_new_epoch.py", "test_other_settings_are_adopted_only_when_that_is_confirmed"),
    ),
    row(
        "fitness:toolbox",
        SOURCE,
        "a worker with another toolbox says so once and works",
        in_file("cli/test_misfits.py", "test_another_toolbox_is_only_named"),
        in_file("store/test_fitness.py", "test_another_toolbox_is_named_once_and_no_fault"),
    ),
    row(
        "fitness:transient",
        SOURCE,
        "an undo is not parked by a worker that lacks the key",
        in_file("e2e/faults/test_faults_worker.py", "test_an_undo_is_not_parked_by_a_worker_that_lacks_the_key"),
    ),
    row(
        "transient:payload",
        SOURCE,
        "a run does not fail at a worker with another folder of payloads",
        in_file("e2e/faults/test_faults_worker.py", "test_a_run_does_not_fail_at_a_worker_with_another_folder_of_payloads"),
    ),
    row(
        "transient:lost",
        SOURCE,
        "a person is asked about a lost worker, and the run goes on",
        in_file("e2e/faults/test_faults_worker.py", "test_a_lost_worker_is_asked_about_and_the_run_goes_on"),
    ),
    row(
        "fitness:patience",
        SOURCE,
        "patience counts from the start of the first attempt, which travels to the later ones, and not from when the"
        " activity was scheduled",
        in_file(
            "e2e/faults/test_faults_worker.py", "test_patience_counts_from_the_first_attempt_and_travels_to_the_later_ones"
        ),
    ),
    row(
        "fitness:home",
        SOURCE,
        "a worker whose home was deleted or replaced stops and says so, and nothing is recorded in a file that nobody"
        " else sees",
        in_file("cli/test_misfits.py", "test_a_worker_whose_home_is_gone_stops_and_says_so"),
        in_file("store/test_replaced_file.py", "test_nothing_is_written_into_a_file_that_nobody_else_sees"),
    ),
    row(
        "fitness:time-limit",
        SOURCE,
        "a run that a time limit of Temporal ended is told by an error of its own",
        in_file("client/test_run.py", "test_a_run_that_a_time_limit_of_temporal_ended_says_so"),
    ),
    row(
        "fitness:closed-folder",
        SOURCE,
        "a folder above the home that is closed to others keeps no jail of a worker of root from its image, its"
        " configuration and its workspace, and stays closed",
        in_file(
            "sandbox/test_isolation.py",
            "test_a_folder_that_is_closed_above_the_home_keeps_no_jail_from_what_it_needs",
        ),
    ),
    row(
        "fitness:programs",
        SOURCE,
        "the Result of a run says why its programs could not run, and nothing when they ran or when it made none",
        in_file(
            "e2e/programs/test_programs.py",
            "test_a_result_says_why_programs_could_not_run_and_nothing_when_they_did",
        ),
    ),
)
