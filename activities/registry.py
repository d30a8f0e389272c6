"""The activities that a worker in the runs role serves."""

from collections.abc import Callable
from typing import Any

from activities.batches import Batches
from activities.model.model import Model
from activities.model.transcript import Transcripts
from activities.resources import Resources
from activities.runs.pages import Pages
from activities.runs.recalling import Recalling
from activities.runs.runs import RunActivities
from activities.runs.starting import Starting
from activities.steps import Steps
from activities.tools.checks import Checks
from activities.tools.outcomes import Outcomes
from activities.tools.polls import Polls
from activities.tools.reviews import Reviews
from activities.tools.searches import Searches
from activities.tools.tools import Tools


def run_activities(resources: Resources) -> list[Callable[..., Any]]:
    """Return the activities of the runs role, bound to the worker's resources, in the order of the menu."""
    transcripts = Transcripts(resources.records, resources.settings.context_tokens)
    searches, outcomes, tools = Searches(resources), Outcomes(resources), Tools(resources)
    runs = RunActivities(resources, transcripts, searches, outcomes)
    checks = Checks(resources)
    batches = Batches(resources, tools)
    model = Model(resources, transcripts)
    starting = Starting(resources)
    return [
        runs.open_run,
        model.ask_model,
        searches.search_tools,
        Pages(resources).read_page,
        searches.read_result,
        Recalling(resources, transcripts).recall,
        checks.check_call,
        checks.preview_calls,
        runs.keep_plan,
        tools.call_tool,
        Polls(resources, tools.effects).follow_task,
        batches.call_together,
        Steps(resources, batches, model).act_and_ask,
        runs.end_rehearsal,
        outcomes.settle_effect,
        outcomes.load_effects,
        starting.begin_start,
        starting.end_start,
        runs.delegating.begin_subruns,
        runs.delegating.end_subruns,
        runs.notifications.check_proof,
        runs.notifications.hide_secrets,
        runs.remember_lines,
        searches.digest,
        Reviews(resources).review,
        runs.carry_over,
        runs.load_carried,
        runs.notifications.announce,
        runs.close_run,
    ]
