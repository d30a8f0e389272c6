"""`backstay run --profile`, and what a run is said to have used of its limits."""

import json

from backstay.testing import Reply
from tests.cli.commands import environment_of, forked
from tests.requirements import promise


@promise("plans:cli")
async def test_run_takes_the_name_of_a_profile_and_names_those_there_are(opened, scripts, nursery, tmp_path):
    task = scripts.task(Reply(calls=[("mail__list_customers", {"limit": 1})]))
    arguments = ("run", task["text"], "--output", "json", "--profile")

    async def run(profile):
        return await forked(nursery, *arguments, profile, environment=environment_of(opened), folder=tmp_path)

    done = await run("conservative")
    assert (done.code, json.loads(done.out)["outcome"]) == (0, "completed")
    assert "Be conservative" in opened.model.requests[-1]["messages"][0]["content"]

    done = await run("reckless")
    assert done.code == 2
    assert "profile: no profile 'reckless'; use one of conservative, default, exploratory" in done.err


@promise("plans:repeats-shown")
async def test_a_repeat_of_a_failed_step_is_not_shown_as_one_that_the_limit_counts(opened, scripts, nursery, tmp_path):
    task = scripts.task(Reply(calls=[("mail__list_customers", {"limit": "many"})]))
    arguments = ("run", task["text"], "--budget.max-steps", "1")
    done = await forked(nursery, *arguments, environment=environment_of(opened), folder=tmp_path)
    assert done.code == 0, done.err
    assert "steps 1/1" in done.err
