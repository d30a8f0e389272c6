"""The pages of runs: what they show, to whom, and what people do there."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "runpage:list",
        "design 22; issue People",
        "every run that a person may see is in a list, newest first in pages, and found by state, by words of its text,"
        " workflow id, user and session",
        in_file("web/test_runs.py", "test_the_list_finds_runs_by_state_and_words_and_shows_what_waits"),
        in_file("web/test_whose_runs.py", "test_the_list_goes_on_behind_many_runs_of_others"),
        in_file("store/test_runs.py", "test_runs_are_paged_newest_first_and_chosen_by_state_words_and_user"),
    ),
    row(
        "runpage:run",
        "design 22; issue People",
        "the page of a run shows its timeline, its plan with the state of each step, budget, effects, what an undo"
        " takes back, decisions, its result, and the runs before and after it, also of one that no worker has begun",
        in_file(
            "web/test_runs.py",
            "test_a_run_shows_what_it_did_what_it_cost_what_it_asks_and_what_an_undo_takes_back",
            "test_the_plan_of_a_run_is_shown_step_by_step_before_and_after",
            "test_runs_of_one_conversation_lead_to_each_other",
            "test_a_run_that_no_worker_has_begun_is_shown_as_such_to_whose_it_is",
        ),
    ),
    row(
        "runpage:stream",
        "design 22; issue People",
        "a stream replays the events of a run, goes on behind the last one that the reader has had, brings what the"
        " model is saying without a number, ends with the run, and one person has 12 of them at most",
        in_file(
            "web/test_runs.py",
            "test_a_stream_replays_goes_on_after_the_last_event_seen_and_ends_with_the_run",
            "test_what_the_model_is_saying_reaches_those_who_watch_without_a_number",
            "test_a_person_may_have_so_many_streams_and_no_more",
        ),
    ),
    row(
        "runpage:stored",
        "design 22; issue People",
        "what a run has stored is read in its shown form, by path and in parts, and downloaded as a file that no"
        " browser takes for a page",
        in_file("web/test_runs.py", "test_what_a_run_has_stored_is_read_in_parts_and_downloaded_as_a_file"),
    ),
    row(
        "runpage:others",
        "design 22; issue People",
        "nobody reads a run, its stream or what it has stored, or does anything to it, who may not see it, or a request"
        " of it that is for others; an older run of a name is for its own people, and what is done means the run shown",
        in_file(
            "web/test_runs.py",
            "test_nobody_sees_a_run_its_events_and_what_it_has_stored_that_is_not_theirs",
            "test_a_run_that_is_not_there_is_404",
        ),
        in_file(
            "web/test_whose_runs.py",
            "test_of_a_run_people_see_what_it_asks_them_and_not_what_it_asks_others",
            "test_an_older_run_of_a_name_is_shown_as_itself_to_its_own_people_and_is_not_steered",
        ),
    ),
    row(
        "runpage:deeds",
        "design 22; issue People",
        "people pause, resume, tell, raise limits, undo and end in their own proven name, by form or as a program; a"
        " double click is one deed, and an undo or an end is done only as it was shown before, with what becomes of"
        " the effects; an undo is called under way only once a worker has taken it",
        in_file(
            "web/test_runs.py",
            "test_people_pause_resume_tell_and_raise_limits_in_their_own_name",
            "test_an_undo_shows_first_what_it_takes_back_and_does_that_and_nothing_else",
            "test_an_undo_is_called_under_way_only_once_a_worker_has_taken_it",
            "test_a_run_is_ended_only_after_a_look_and_only_by_those_who_may_stop_it",
            "test_programs_act_with_a_bearer_token_and_read_the_objects_of_the_wire",
        ),
    ),
    row(
        "runpage:live",
        "design 22; issue People",
        "in a browser a run is followed live without losing what a person writes; the pages of runs work without"
        " scripts, by keyboard, in the dark and on a phone, and axe finds nothing serious",
        in_file(
            "web/test_run_live.py",
            "test_a_run_is_followed_live_and_what_a_person_writes_meanwhile_stays",
            "test_the_pages_of_runs_fit_a_phone_work_in_the_dark_and_are_accessible",
            "test_without_scripts_and_by_keyboard_a_person_pauses_looks_before_an_undo_and_takes_back",
        ),
    ),
    row(
        "runpage:links",
        "design 22; issue People",
        "where BACKSTAY_URL is set, the Web UI leads to the page of a run and to each request of it, and dev serves"
        " that page, lets the person in who sits there, and sets the address for its runs",
        in_file("web/test_runs.py", "test_the_web_ui_leads_to_the_page_of_a_run_and_to_each_of_its_requests"),
        in_file(
            "cli/test_dev.py",
            "test_dev_serves_the_page_lets_the_person_in_who_sits_here_and_runs_lead_there",
        ),
    ),
    row(
        "runpage:pictures",
        "design 22; issue People",
        "the pictures of the page in the documents show what the page shows now: inbox, request, plan, run, in the dark"
        " and on a phone",
        in_file("docs/test_page_pictures.py", "test_what_the_pictures_of_the_page_show_is_what_the_page_shows"),
    ),
)
