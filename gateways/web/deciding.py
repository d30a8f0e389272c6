"""Decide in the name of a visitor, for a form of theirs or a program, and say what came of it."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.proof import ShownRequest
from backstay.errors import BackstayError
from backstay.policies.accepted import remembered_words
from backstay.shown import one_line
from gateways.web.identity import Visitor
from gateways.web.page import PageRoutes
from gateways.web.sent import text_in, without_names
from people.decide.deciding import decide, outcome_words
from people.decide.looking import KnownRequest, look
from people.requests.entered import FormEntry


async def decided(
    page: PageRoutes,
    visitor: Visitor,
    known: KnownRequest,
    said: Mapping[str, Any] | FormEntry,
    shown: ShownRequest,
    *,
    nonce: str = "",
    hidden: str = "",
) -> dict[str, Any]:
    """Decide a request in the name of a visitor, as `decide` does; the store is told of a vote.

    Raises DecisionInvalid where `shown` does not say which request of which run the visitor was shown.

    `nonce` is made with a form: the same decision of the same form is the same event, and the run, or Temporal once it
    has ended, repeats its answer.
    """
    for field, named in (("f", shown.run_id), ("d", shown.digest)):
        # Otherwise the decision would be bound to whatever waits now.
        if not named:
            raise DecisionInvalid(f"{field}: must say which request you were shown; look at it again and send its own")
    once, run = ("page", nonce) if nonce else (), page.backstay.run(known.workflow_id)
    answer = await decide(
        run,
        known,
        said,
        by=visitor.by,
        shown=shown,
        once=once,
        hidden=hidden,
        instead="open the request again, or look at it at a terminal with backstay attach",
        services=page.settings.may_act_for,
    )
    if answer.get("state") == "recorded":
        # The vote counts whether or not the store hears of it now.
        with suppress(BackstayError):
            await look(run, page.store, known.request_id)
    return answer


def from_program(visitor: Visitor, body: dict[str, Any]) -> tuple[dict[str, Any], ShownRequest]:
    """Return the decision that a program sends, and what it was shown; raises DecisionInvalid for another's name."""
    said = without_names(visitor, body)
    shown = ShownRequest(run_id=text_in(said, "f"), digest=text_in(said, "d"))
    return {name: value for name, value in said.items() if name not in {"f", "d"}}, shown


def outcome_line(answer: dict[str, Any], visitor: Visitor) -> str:
    """Return what people are told after they have decided, and how far it is remembered."""
    remembered = [words for line in answer.get("remembered", ()) for words in remembered_words(line)]
    return "; ".join([*outcome_words(answer, visitor.by), *(one_line(part, 300) for part in remembered)])
