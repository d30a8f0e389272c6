"""Keep the channel as the runs are: a thread for each run, and in it its requests, its steps and what is told of it."""

from urllib.parse import quote

from backstay.approvals.approval import ApprovalRequest, Links
from backstay.approvals.notice import Notice, NoticeKind
from backstay.client import Backstay
from gateways.slack.drawing.page import section
from gateways.slack.drawing.request import request_blocks
from gateways.slack.drawing.run import (
    NOT_SHOWN,
    STEPS_OF_MESSAGE,
    ThreadHead,
    reminder_blocks,
    step_lines,
    steps_blocks,
    told,
)
from gateways.slack.people import People
from gateways.slack.posting import Channel
from people.decide.looking import posted_request, still_asked
from store.notices.posts import ChatPost
from store.notices.requests import RequestRow
from store.runs.runs import RunRow
from store.store import Store

MOST_MESSAGES = 2
"""How many messages of new steps are drawn at once; of more, the last ones."""
_ENDLESS = (1 << 31) - 1
_MOST_MENTIONED = 40
"""How many people a reminder mentions; it names the others."""


class RunChannel:
    """Show runs and their requests in one channel."""

    def __init__(self, channel: Channel, store: Store, backstay: Backstay, people: People, page: str = "") -> None:
        """Read from the store what is to be shown; `page` is the address of the page of approvals, if there is one."""
        self.channel = channel
        self.name = channel.receiver
        self._page = page
        self._store = store
        self._backstay = backstay
        self._people = people

    async def send(self, notice: Notice) -> None:
        """Show what a notice tells; raises NotTaken."""
        run = await self._run_of(notice.workflow_id, notice.run_id)
        if notice.event is NoticeKind.ENDED:
            await self._ended(notice, run)
            return
        if notice.request_id:
            await self.request(notice.workflow_id, notice.run_id, notice.request_id)
        if notice.event is NoticeKind.ASKED and notice.request is not None:
            request = ApprovalRequest.model_validate(notice.request)
            if notice.reminder or request.escalation:
                await self._remind(notice, run)
        elif said := told(notice):
            await self._tell(notice, run, said)

    async def request(self, workflow_id: str, run_id: str, request_id: str) -> None:
        """Show a request as it is now, where it is shown already or for the first time; raises NotTaken."""
        row = await self._store.requests.get(workflow_id, request_id, run_id)
        if row is None:
            return
        shown = await posted_request(self._backstay, row)
        thread = await self.thread(row.run)
        where = {"workflow_id": workflow_id, "run_id": run_id, "request_id": request_id}
        post = self.channel.named("request", f"{workflow_id}/{run_id}/{request_id}", row.run, **where)
        blocks, votes = request_blocks(shown), shown.votes
        await self.channel.put(
            post, shown.headline, blocks, thread=thread, broadcast=True, drawn=row.changed_at, event=votes
        )

    async def votes(self, row: RequestRow) -> None:
        """Show votes on a request that decide nothing yet, which no notice tells of; raises NotTaken."""
        request = ApprovalRequest.model_validate(row.request)
        parts = () if request.proposal is None else request.proposal.parts
        if request.quorum < 2 and len(parts) < 2 and all(part.quorum < 2 for part in parts):
            return
        name = f"request/{row.workflow_id}/{row.run_id}/{row.request_id}"
        post = await self._store.posts.get(self.channel.receiver, name)
        if post is not None and post.event != (await posted_request(self._backstay, row)).votes:
            await self.request(row.workflow_id, row.run_id, row.request_id)

    async def thread(self, run: str, *, started_by: str = "") -> str:
        """Return the place of the message that heads the thread of a run, posted where it is missing."""
        wanted = self.channel.named("run", run, run)
        known = await self._store.posts.get(self.channel.receiver, wanted.name)
        if known is not None and known.ts:
            return known.ts
        head = await self._head(run, started_by=started_by)
        return await self.channel.put(wanted, head.line, head.blocks(), once=True)

    async def _head(self, run: str, *, started_by: str = "") -> ThreadHead:
        workflow_id, _, run_id = run.rpartition("/")
        row = await self._store.runs.get(workflow_id, run_id)
        asked = await self._store.requests.of_workflow(workflow_id, 1)
        web_ui = Links.model_validate(asked[0].request.get("links") or {}).web_ui if asked else None
        page = f"{self._page}/runs/{quote(workflow_id, safe='')}" if self._page else None
        head = ThreadHead(workflow_id=workflow_id, started_by=started_by, links=Links(page=page, web_ui=web_ui))
        if row is None:
            return head
        known = {"task": str(row.opened.get("task_line") or ""), "user_id": row.user_id, "result": row.result}
        return head.model_copy(update=known)

    async def _run_of(self, workflow_id: str, run_id: str) -> str:
        """Return the key of the run that a workflow works on; an undo after the end works on that of another."""
        row: RunRow | None = await self._store.runs.get(workflow_id, run_id)
        return f"{workflow_id}/{run_id}" if row is None else row.run

    async def _ended(self, notice: Notice, run: str) -> None:
        """Show how a run ended, if it was shown before; runs that nobody was asked about stay unseen."""
        for row in await self._store.requests.of_workflow(notice.workflow_id):
            if row.run_id == notice.run_id:
                await self._catch_up(row)
        wanted = self.channel.named("run", run, run)
        known = await self._store.posts.get(self.channel.receiver, wanted.name)
        if known is None:
            return
        await self.steps(known)
        own = run == f"{notice.workflow_id}/{notice.run_id}"
        if own:
            head = ThreadHead(
                workflow_id=notice.workflow_id,
                task=notice.task,
                user_id=notice.user_id,
                links=notice.links,
                result=notice.result,
            )
            await self.channel.put(wanted, head.line, head.blocks())
        await self._tell(notice, run, told(notice) if own else f"Undo: {told(notice)}")

    async def _catch_up(self, row: RequestRow) -> None:
        name = f"request/{row.workflow_id}/{row.run_id}/{row.request_id}"
        post = await self._store.posts.get(self.channel.receiver, name)
        if post is not None and post.drawn < row.changed_at:
            await self.request(row.workflow_id, row.run_id, row.request_id)

    async def _tell(self, notice: Notice, run: str, text: str) -> None:
        post = self.channel.named("told", notice.id, run)
        await self.channel.put(post, text, [section(text)], thread=await self.thread(run), once=True)

    async def _remind(self, notice: Notice, run: str) -> None:
        """Mention in the thread those who have not decided yet, unless nobody needs to by now."""
        row = await self._store.requests.get(notice.workflow_id, notice.request_id, notice.run_id)
        if row is None or row.state != "open":
            return
        shown = await posted_request(self._backstay, row)
        if not shown.waits:
            return
        request = shown.request
        missing = [person for person in _named(request) if still_asked(request, person)]
        users = await self._people.users_of(missing[:_MOST_MENTIONED])
        blocks = reminder_blocks(request, [*users.values()], [person for person in missing if person not in users])
        post = self.channel.named("told", notice.id, run)
        thread = await self.thread(run)
        await self.channel.put(post, f"Still waits: {request.question}", blocks, thread=thread, once=True)

    async def steps(self, head: ChatPost) -> None:
        """Show in its thread what a run has done since, many steps in one message that grows; raises NotTaken."""
        claimed = await self.channel.posts.claim(head)
        if claimed is None:
            return
        shows = claimed.event
        try:
            last = await self._store.events.last(head.run, below=_ENDLESS)
            if last > shows:
                newest = (last - 1) // STEPS_OF_MESSAGE
                first = max(shows // STEPS_OF_MESSAGE, newest - MOST_MESSAGES + 1)
                for number in range(first, newest + 1):
                    await self._steps_message(claimed, number)
                shows = last
        finally:
            await self.channel.posts.release(claimed, event=shows)

    async def _steps_message(self, head: ChatPost, number: int) -> None:
        """Draw one message of steps, always of the same numbers, so that to draw it again repeats nothing."""
        before = number * STEPS_OF_MESSAGE
        events = await self._store.events.of_run(head.run, before, STEPS_OF_MESSAGE)
        events = [event for event in events if event.n <= before + STEPS_OF_MESSAGE and event.name not in NOT_SHOWN]
        if not events:
            return
        earlier = self.channel.named("steps", f"{head.run}/{number - 1}", head.run)
        jumped = number > 0 and await self._store.posts.get(self.channel.receiver, earlier.name) is None
        lines = step_lines(events, left_out=jumped)
        post = self.channel.named("steps", f"{head.run}/{number}", head.run)
        await self.channel.put(post, lines[-1], steps_blocks(lines), thread=head.ts)


def _named(request: ApprovalRequest) -> list[str]:
    """Return whom a request names, of a plan for parts that still wait; where anybody may decide, whom it asked too."""
    if request.proposal is None:
        return [*(request.approvers or request.escalated_to)]
    waiting = [part for part in request.proposal.parts if not part.complete]
    later = [part.escalate_to if request.escalated else () for part in waiting]
    named = [part.approvers or added for part, added in zip(waiting, later, strict=True)]
    return sorted({person for people in named for person in people})
