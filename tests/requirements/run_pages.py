"""The pages of runs: what they show, to whom, and what people do there."""

from tests.requirements.requirement import in_file, row

ROWS = (
    row(
        "runpage:list",
        "design 22; issue People",
        "every run that a person may see is in a list, newest first in pages, also behind many runs of others",
        in_file("web/test_whose_runs.py", "test_the_list_goes_on_behind_many_runs_of_others"),
        in_file("store/test_runs.py", "test_runs_are_paged_newest_first_and_chosen_by_state_words_and_user"),
    ),
    row(
        "runpage:search",
        "design 22; issue People",
        "the list finds runs by state, by words of text, workflow id, user and session, and shows what waits",
        in_file("web/test_runs.py", "test_the_list_finds_runs_by_state_and_words_and_shows_what_waits"),
    ),
    row(
        "runpage:run",
        "design 22; issue People",
        "the page of a run shows its timeline, budget, effects, decisions, its result and what an undo takes back",
        in_file(
            "web/test_runs.py",
            "test_a_run_shows_what_it_did_what_it_cost_what_it_asks_and_what_an_undo_takes_back",
        ),
    ),
    row(
        "runpage:plan",
        "design 22; issue People",
        "the page of a run shows its plan step by step, before and after",
        in_file("web/test_runs.py", "test_the_plan_of_a_run_is_shown_step_by_step_before_and_after"),
    ),
    row(
        "runpage:neighbours",
        "design 22; issue People",
        "the runs before and after a run are linked from its page",
        in_file("web/test_runs.py", "test_runs_of_one_conversation_lead_to_each_other"),
    ),
    row(
        "runpage:not-begun",
        "design 22; issue People",
        "a run that no worker has begun is shown as such, to those whose it is",
        in_file("web/test_runs.py", "test_a_run_that_no_worker_has_begun_is_shown_as_such_to_whose_it_is"),
    ),
    row(
        "runpage:stream",
        "design 22; issue People",
        "a stream replays the events of a run, goes on behind the last one that the reader has had, and ends with "
        "the run",
        in_file("web/test_runs.py", "test_a_stream_replays_goes_on_after_the_last_event_seen_and_ends_with_the_run"),
    ),
    row(
        "runpage:saying",
        "design 22; issue People",
        "what the model is saying reaches those who watch, without a number",
        in_file("web/test_runs.py", "test_what_the_model_is_saying_reaches_those_who_watch_without_a_number"),
    ),
    row(
        "runpage:streams",
        "design 22; issue People",
        "one person has 12 streams at most",
        in_file("web/test_runs.py", "test_a_person_may_have_so_many_streams_and_no_more"),
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
        "nobody sees a run, its events or what it has stored, or does anything to it, who may not see it",
        in_file("web/test_runs.py", "test_nobody_sees_a_run_its_events_and_what_it_has_stored_that_is_not_theirs"),
    ),
    row(
        "runpage:missing",
        "design 22; issue People",
        "a run that is not there is 404",
        in_file("web/test_runs.py", "test_a_run_that_is_not_there_is_404"),
    ),
    row(
        "runpage:asked",
        "design 22; issue People",
        "of a run people see what it asks them and not what it asks others",
        in_file("web/test_whose_runs.py", "test_of_a_run_people_see_what_it_asks_them_and_not_what_it_asks_others"),
    ),
    row(
        "runpage:older",
        "design 22; issue People",
        "an older run of a name is shown as itself to its own people, and what is done means the run shown",
        in_file(
            "web/test_whose_runs.py",
            "test_an_older_run_of_a_name_is_shown_as_itself_to_its_own_people_and_is_not_steered",
        ),
    ),
    row(
        "runpage:deeds",
        "design 22; issue People",
        "people pause, resume, tell and raise limits in their own proven name, and a double click is one deed",
        in_file("web/test_runs.py", "test_people_pause_resume_tell_and_raise_limits_in_their_own_name"),
    ),
    row(
        "runpage:undo",
        "design 22; issue People",
        "an undo is done only as it was shown before, with what becomes of the effects",
        in_file("web/test_runs.py", "test_an_undo_shows_first_what_it_takes_back_and_does_that_and_nothing_else"),
    ),
    row(
        "runpage:undo-begun",
        "design 22; issue People",
        "an undo is called under way only once a worker has taken it",
        in_file("web/test_runs.py", "test_an_undo_is_called_under_way_only_once_a_worker_has_taken_it"),
    ),
    row(
        "runpage:end",
        "design 22; issue People",
        "a run is ended only after a look and only by those who may stop it",
        in_file("web/test_runs.py", "test_a_run_is_ended_only_after_a_look_and_only_by_those_who_may_stop_it"),
    ),
    row(
        "runpage:programs",
        "design 22; issue People",
        "programs act on a run with a bearer token and read the objects of the wire",
        in_file("web/test_runs.py", "test_programs_act_with_a_bearer_token_and_read_the_objects_of_the_wire"),
    ),
    row(
        "runpage:live",
        "design 22; issue People",
        "in a browser a run is followed live without losing what a person writes",
        in_file("web/test_run_live.py", "test_a_run_is_followed_live_and_what_a_person_writes_meanwhile_stays"),
    ),
    row(
        "runpage:barriers",
        "design 22; issue People",
        "the pages of runs fit a phone and work in the dark, and axe finds nothing serious",
        in_file("web/test_run_live.py", "test_the_pages_of_runs_fit_a_phone_work_in_the_dark_and_are_accessible"),
    ),
    row(
        "runpage:keyboard",
        "design 22; issue People",
        "without scripts and by keyboard a person pauses a run, looks before an undo and takes back",
        in_file(
            "web/test_run_live.py",
            "test_without_scripts_and_by_keyboard_a_person_pauses_looks_before_an_undo_and_takes_back",
        ),
    ),
    row(
        "runpage:links",
        "design 22; issue People",
        "where BACKSTAY_URL is set, the Web UI leads to the page of a run and to each request of it",
        in_file("web/test_runs.py", "test_the_web_ui_leads_to_the_page_of_a_run_and_to_each_of_its_requests"),
    ),
    row(
        "runpage:dev",
        "design 22; issue People",
        "dev serves the page, lets the person in who sits there, and its runs lead there",
        in_file("cli/test_dev.py", "test_dev_serves_the_page_lets_the_person_in_who_sits_here_and_runs_lead_there"),
    ),
    row(
        "runpage:pictures",
        "design 22; issue People",
        "the pictures of the page in the documents show what the page shows now: inbox, request, plan, run, in the dark"
        " and on a phone",
        in_file("docs/test_pictures.py", "test_what_the_pictures_of_the_page_show_is_what_the_page_shows"),
    ),
)
