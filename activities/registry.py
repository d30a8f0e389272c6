"""The activities that a worker in the runs role serves."""

from collections.abc import Callable
from typing import Any

from activities.model.model import Model
from activities.model.transcript import Transcripts
from activities.records import Records
from activities.resources import Resources
from activities.runs.pages import Pages
from activities.runs.runs import Runs
from activities.tools.outcomes import Outcomes
from activities.tools.reviews import Reviews
from activities.tools.searches import Searches
from activities.tools.tools import Tools


def run_activities(resources: Resources) -> list[Callable[..., Any]]:
    """Return the activities of the runs role, bound to the worker's resources, in the order of the menu."""
    records = Records(resources.store, resources.secrets, resources.settings.digest_characters)
    transcripts = Transcripts(records, resources.settings.context_tokens)
    runs = Runs(resources, records, transcripts)
    searches = Searches(resources, records)
    tools = Tools(resources, records)
    outcomes = Outcomes(resources)
    return [
        runs.open_run,
        Model(resources, records, transcripts).ask_model,
        searches.search_tools,
        Pages(resources, records).read_page,
        searches.read_result,
        tools.check_call,
        tools.preview_calls,
        runs.keep_plan,
        tools.call_tool,
        runs.end_rehearsal,
        outcomes.settle_effect,
        outcomes.load_effects,
        runs.notifications.check_proof,
        runs.remember_lines,
        searches.digest,
        Reviews(resources, records).review,
        runs.carry_over,
        runs.load_carried,
        runs.notifications.announce,
        runs.close_run,
    ]
