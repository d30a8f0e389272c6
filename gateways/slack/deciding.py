"""Send what a person decided in Slack to the run, for exactly the request that they were shown."""

from collections.abc import Sequence
from typing import Any

from backstay.client import Backstay
from gateways.slack.aim import Aim
from gateways.slack.drawing.request import Shown, left_out_of
from people.decide.deciding import decide
from people.decide.looking import KnownRequest, look, require_same
from people.requests.entered import Entered
from people.requests.form import DecisionForm, decision_of
from store.store import Store


class Desk:
    """Ask runs what they wait for, and decide it."""

    def __init__(self, backstay: Backstay, store: Store) -> None:
        """`backstay` signs what it sends."""
        self.backstay = backstay
        self._store = store

    async def look(self, aim: Aim) -> KnownRequest:
        """Return a request that waits; raises DecisionRefused when it does not, or is not the one that was shown."""
        known = await look(self.backstay, self._store, aim.w, aim.r, aim.f)
        require_same(known, aim.shown)
        _ = known.waiting
        return known

    async def decide(
        self, aim: Aim, known: KnownRequest, entered: Entered, *, by: str, once: Sequence[Any]
    ) -> dict[str, Any]:
        """Decide a request with what a person entered; what was done `once` does nothing again when it comes again.

        Raises DecisionRefused, EntryRefused, NotVerified or Expired.
        """
        said = decision_of(DecisionForm.of(known.waiting), entered)
        hidden = left_out_of(Shown(workflow_id=aim.w, request=known.waiting))
        run, once = self.backstay.run(aim.w), ["slack", *once]
        return await decide(run, known, said, by=by, shown=aim.shown, hidden=hidden, once=once)
