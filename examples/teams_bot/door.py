"""Keep a conversation of Teams as the requests are, and decide what its members press."""

import asyncio
import time
from typing import Any

import structlog

from backstay.approvals.approval import ApprovalRequest
from backstay.approvals.notice import Notice, NoticeKind
from backstay.client import Backstay
from backstay.errors import BackstayError
from backstay.shown import message_line, one_line
from examples.teams_bot.activity import Activity
from examples.teams_bot.card import edit_card, edit_in, entered_in, painted, told
from examples.teams_bot.connector import Connector
from people.decide.deciding import decide_shown, remembered_line
from people.decide.looking import arguments_of, look_shown, posted_request
from people.notices.delivering import NotTaken
from people.notices.posting import is_first, put
from people.requests.entered import FormEntry
from people.requests.form import DecisionForm
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest
from store.notices.posts import ChatPost
from store.store import Store

LOOK_S = 10.0
SHOWN_BACK_S = 14 * 86_400.0
"""How old a request may be that is shown for the first time, or anew."""
log = structlog.get_logger("examples.teams_bot")


class TeamsDoor:
    """Show requests in one conversation, and send decisions, signed in the names of its members."""

    def __init__(self, connector: Connector, backstay: Backstay, store: Store) -> None:
        """`backstay` signs what it sends."""
        self._connector = connector
        self._conversation = connector.settings.conversation
        self.name = f"teams-{self._conversation}"
        self._backstay = backstay
        self._store = store

    async def send(self, notice: Notice) -> None:
        """Show the request that a notice is about, and remind people of it; raises NotTaken."""
        if notice.request_id:
            await self._show(notice.workflow_id, notice.run_id, notice.request_id)
        if notice.event is not NoticeKind.ASKED or notice.request is None:
            return
        request = ApprovalRequest.model_validate(notice.request)
        if notice.reminder or request.escalation:
            words = f"Still waits for a decision: {one_line(request.question, 1000)} {request.escalation}"
            wanted = ChatPost(receiver=self.name, name=f"told/{notice.id}", kind="told", run=notice.workflow_id)
            await self._put(wanted, told(words))

    async def follow(self) -> None:
        """Show what no notice tells in time: what was asked before this bot ran, and runs that ended unseen."""
        while True:
            try:
                for behind in await self._store.posts.behind(self.name, time.time() - SHOWN_BACK_S):
                    await self._quietly(self._show(*behind))
            except Exception:
                # A card that cannot be painted must not end what shows the others.
                log.exception("teams.failed")
            await asyncio.sleep(LOOK_S)

    async def act(self, sent: Activity) -> None:
        """Do what somebody chose on a card, once, and say in the conversation why it was not done."""
        base = sent.conversation.partition(";")[0]
        if sent.type != "message" or sent.value is None or base != self._conversation.partition(";")[0]:
            return
        wanted = ChatPost(receiver=self.name, name=f"command/{sent.id}", kind="command", run=sent.id)
        if not await is_first(self._store.posts, wanted):
            return
        try:
            said = await self._done(sent, await self._connector.person(sent))
        except (BackstayError, NotTaken) as error:
            said = message_line(str(error), 1500)
        if said:
            await self._quietly(self._connector.write(told(said)))

    async def _done(self, sent: Activity, by: str) -> str:
        """Decide, or open the form of a call; return what is remembered, in words. Raises a BackstayError."""
        key = RequestKey.read(sent.text("backstay"))
        try:
            request = (known := await look_shown(self._backstay, self._store, key)).waiting
            if (entered := await self._entered(sent, request, key)) is None:
                return ""
            _, hidden = painted(PostedRequest(workflow_id=key.workflow_id, request=request))
            once = ["teams", sent.reply_to, sent.text("seen")]
            answer = await decide_shown(self._backstay, key, known, entered, by=by, hidden=hidden, once=once)
            if entered.edits:
                await self._quietly(self._connector.write(told(f"Changed by {by}"), sent.reply_to))
        finally:
            await self._quietly(self._show(key.workflow_id, key.run_id, key.request_id))
        return remembered_line(key, answer)

    async def _entered(self, sent: Activity, request: ApprovalRequest, key: RequestKey) -> FormEntry | None:
        """Return what a person filled in; None for a press that opens the form of a call. Raises EntryRefused."""
        choice = sent.text("choice")
        if choice not in {"modify", "change"}:
            return entered_in(sent, DecisionForm.of(request))
        index = next(iter(sent.numbers("call")), 0)
        whole = await arguments_of(self._backstay.run(key.workflow_id), request, index)
        if choice == "change":
            return FormEntry("modify", sent.text("comment"), edits=(edit_in(sent, index, whole),))
        call = next(call for call in request.calls if call.index == index)
        await self._connector.write(edit_card(request, call, whole, key))
        return None

    async def _show(self, workflow_id: str, run_id: str, request_id: str) -> None:
        """Show a request as it is now, where it is shown already or for the first time; raises NotTaken."""
        row = await self._store.requests.get(workflow_id, request_id, run_id)
        if row is None:
            return
        posted = await posted_request(self._backstay, row)
        about = {"workflow_id": workflow_id, "run_id": run_id, "request_id": request_id, "run": row.run}
        name = f"request/{workflow_id}/{run_id}/{request_id}"
        wanted = ChatPost(receiver=self.name, name=name, kind="request", **about)
        await self._put(wanted, painted(posted)[0], drawn=row.changed_at, event=posted.votes)

    async def _put(self, wanted: ChatPost, card: dict[str, Any], **shows: Any) -> None:
        write = self._connector.write
        await put(self._store.posts, wanted, lambda post: write(card, post.ts), channel=self.name, **shows)

    async def _quietly(self, doing: Any) -> None:
        """Do something that is done again soon, or that only tells; where it cannot be done, nobody is told."""
        try:
            await doing
        except (BackstayError, NotTaken) as error:
            log.warning("teams.not_shown", error=str(error))
