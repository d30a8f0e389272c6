"""Decide who may see what: the one rule that every part of the page asks."""

from collections.abc import Iterable

from backstay.approvals.approval import ApprovalRequest
from backstay.policies.policy import Policy
from store.notices.requests import RequestRow
from store.store import Store


class Seeing:
    """Show runs to the people they concern, and to those who watch over all of them.

    A request is seen by those who may decide it, and by the user of its run. A run is seen by its user, and by whoever
    sees one of its requests. People whom the policy names under `accepting` see everything; where the policy names
    nobody, everybody does.
    """

    def __init__(self, policy: Policy, store: Store) -> None:
        """`policy` is the operator's."""
        named = [name for _, rules in policy.sections() for rule in rules for name in rule.approvers]
        accepting = policy.accepting
        self._names_nobody = accepting is None and not named
        self._operators = frozenset[str]() if accepting is None else frozenset(policy.persons(accepting))
        self._store = store

    def everything(self, by: str) -> bool:
        """Return whether a person watches over all runs."""
        return by in self._operators

    def only(self, by: str) -> str | None:
        """Return whose requests a person sees; None for those of everybody."""
        return None if self.everything(by) else by

    def request(self, by: str, row: RequestRow) -> bool:
        """Return whether a person may see a request."""
        return self.asked(by, ApprovalRequest.model_validate(row.request), row.user_id)

    def asked(self, by: str, request: ApprovalRequest, user_id: str | None = None) -> bool:
        """Return whether a person may see what a run asks; `user_id` is the user of the run, if it is known apart."""
        named = request.deciders
        user = request.user_id if user_id is None else user_id
        return self.everything(by) or by == user or not named or by in named

    def standing(self, by: str, author: str) -> bool:
        """Return whether a person may see a schedule or a trigger, with what came of its runs."""
        return self._names_nobody or by == author or self.everything(by)

    async def run(self, by: str, run: str, user_id: str) -> bool:
        """Return whether a person may see a run, with its events, results, refs and live progress.

        `run` is its name in the store, which no other run of its workflow id shares.
        """
        if self.everything(by) or by == user_id:
            return True
        return self._involved(by, await self._store.requests.of_workflow(run.rpartition("/")[0], run=run))

    def _involved(self, by: str, rows: Iterable[RequestRow]) -> bool:
        """Return whether a run's requests let a person see it; without any, the policy says whether everybody may."""
        seen = [self.request(by, row) for row in rows]
        return any(seen) or (not seen and self._names_nobody)
