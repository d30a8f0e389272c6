"""What happens when people press a button or send a form: who they are, what still waits, and what the run says to it.

Slack is told within moments that it was heard; everything else follows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.errors import SlackApiError
from slack_sdk.models.views import View
from slack_sdk.web.async_client import AsyncWebClient

from backstay.approvals.approval import ApprovalRequest
from backstay.errors import BackstayError, DecisionRefused
from backstay.policies.accepted import remembered_words
from backstay.shown import message_line
from gateways.slack.aim import Aim, Place, event_of
from gateways.slack.board import Board
from gateways.slack.deciding import Desk
from gateways.slack.drawing import request as drawn
from gateways.slack.drawing.page import escaped, literally
from gateways.slack.forms import answer, choose, edit, verdicts, whole
from gateways.slack.forms.inputs import Filled
from gateways.slack.people import People
from gateways.slack.posting import FAILURES
from people.notices.delivering import NotTaken
from people.requests.entered import Entered, EntryRefused
from people.requests.form import DecisionForm

log = structlog.get_logger("backstay.slack")
FORM_S = 2.0
"""How long a form waits for what the run says to it; Slack gives three seconds, and then it is closed."""
Body = Mapping[str, Any]
_CHOICES = {
    drawn.APPROVE: "approve",
    drawn.DRY_RUN: "dry_run",
    drawn.HAPPENED: "happened",
    drawn.DID_NOT_HAPPEN: "did_not_happen",
    drawn.RETRY: "retry",
}
"""What a button chooses by itself."""


class Interactions:
    """Act for people who press buttons and send forms."""

    def __init__(self, client: AsyncWebClient, desk: Desk, board: Board, people: People) -> None:
        """Decide at the desk, and show on the board what became of it."""
        self._client = client
        self._desk = desk
        self._board = board
        self._people = people

    def listen(self, app: AsyncApp) -> None:
        """Have the app call us."""
        for action in _CHOICES:
            app.action(action)(self._press)
        opened: dict[str, Callable[..., Awaitable[View]]] = {
            drawn.EDIT: self._edit,
            drawn.REJECT: self._reject,
            drawn.ANSWER: self._answer,
            drawn.ALWAYS: self._always,
            drawn.CHOOSE: self._choose,
        }
        for action, opening in opened.items():
            app.action(action)(self._opener(opening))
        app.action(drawn.MORE)(self._more)
        for callback in (verdicts.REJECT, verdicts.REMEMBER, answer.CALLBACK, choose.CALLBACK, edit.CALLBACK):
            app.view(callback)(self._send)
        app.view(edit.CHOICE)(self._chosen)

    # Buttons.

    async def _press(self, ack: AsyncAck, body: Body, respond: AsyncRespond) -> None:
        await ack()
        action = body["actions"][0]
        seen = event_of(body.get("container", {}).get("message_ts"), (body.get("message") or {}).get("blocks"))

        async def decided() -> None:
            aim = Aim.read(action.get("value"))
            by = await self._person(body)
            try:
                entered = Entered(_CHOICES[action["action_id"]])
                await self._desk.decide(aim, await self._desk.look(aim), entered, by=by, once=[seen])
            finally:
                await self._redraw(aim)

        await self._or_say(decided(), self._answering(respond))

    def _opener(self, opening: Callable[..., Awaitable[View]]) -> Callable[..., Awaitable[None]]:
        async def opened(ack: AsyncAck, body: Body, respond: AsyncRespond) -> None:
            await ack()

            async def asked() -> None:
                request, place, by = await self._looked(body)
                await self._client.views_open(trigger_id=body["trigger_id"], view=await opening(request, place, by))

            await self._or_say(asked(), self._answering(respond))

        return opened

    async def _looked(self, body: Body) -> tuple[ApprovalRequest, Place, str]:
        """Return what a button is about, where it stands, and who pressed it; raises a BackstayError."""
        aim = Aim.read(body["actions"][0].get("value"))
        by = await self._person(body)
        try:
            request = (await self._desk.look(aim)).waiting
        except DecisionRefused:
            await self._redraw(aim)
            raise
        channel = str((body.get("channel") or {}).get("id") or self._board.channel.id)
        seen = event_of((body.get("message") or {}).get("blocks"))
        return request, Place(aim=aim, channel=channel, seen=seen), by

    async def _reject(self, request: ApprovalRequest, place: Place, _by: str) -> View:
        return verdicts.reject_form(request, place)

    async def _always(self, request: ApprovalRequest, place: Place, _by: str) -> View:
        return verdicts.remember_form(request, place)

    async def _answer(self, request: ApprovalRequest, place: Place, _by: str) -> View:
        return answer.form(request, place)

    async def _choose(self, request: ApprovalRequest, place: Place, by: str) -> View:
        return choose.form(request, place, by)

    async def _edit(self, request: ApprovalRequest, place: Place, by: str) -> View:
        if len(request.calls) == 1:
            return await self._edit_call(request, place, request.calls[0].index)
        return edit.which(request, place, by)

    async def _edit_call(self, request: ApprovalRequest, place: Place, index: int) -> View:
        arguments = await self._arguments(request, place.aim, index)
        return edit.form(request, place.model_copy(update={"call": index}), arguments)

    async def _arguments(self, request: ApprovalRequest, aim: Aim, index: int) -> dict[str, Any]:
        """Return the arguments of a call, whole; where no call waits, such as one whose outcome is asked, as shown."""
        try:
            return await self._desk.backstay.run(aim.w).arguments(request.id, index)
        except DecisionRefused:
            return next(call.arguments for call in request.calls if call.index == index)

    async def _more(self, ack: AsyncAck, body: Body, respond: AsyncRespond) -> None:
        await ack()

        async def shown() -> None:
            request, place, _ = await self._looked(body)
            # Slack lets a modal be opened for three seconds after the click; many arguments may take longer.
            opened = await self._client.views_open(trigger_id=body["trigger_id"], view=whole.loading())
            asked = [call.index for call in request.calls[: whole.MOST_CALLS]]
            found = {index: await self._arguments(request, place.aim, index) for index in asked}
            view: Any = opened["view"]
            await self._client.views_update(view_id=view["id"], view=whole.form(request, place, found))

        await self._or_say(shown(), self._answering(respond))

    # Forms.

    async def _chosen(self, ack: AsyncAck, body: Body) -> None:
        """Lead from the choice of a call to its arguments."""
        view = body["view"]
        try:
            place = Place.read(view["private_metadata"])
            await self._person(body)
            request = (await self._desk.look(place.aim)).waiting
            form = await self._edit_call(request, place, edit.chosen(Filled(view["state"]["values"])))
        except BackstayError as error:
            await ack(response_action="errors", errors={"call": message_line(str(error))})
            return
        await ack(response_action="update", view=form)

    async def _send(self, ack: AsyncAck, body: Body) -> None:
        """Send what a form says; what the run has against it is shown in the form, or to the person alone."""
        view = body["view"]
        filled = Filled(view["state"]["values"])
        try:
            place = Place.read(view["private_metadata"])
        except DecisionRefused as error:
            await ack(response_action="errors", errors={_first_input(view): message_line(str(error))})
            return
        whispering = self._whispering(place.channel, body["user"]["id"])
        deciding = asyncio.ensure_future(self._decided(view, place, body, filled))
        try:
            await asyncio.wait_for(asyncio.shield(deciding), FORM_S)
        except TimeoutError:
            await ack()
            await self._or_say(self._late(deciding, place.aim, filled, whispering), whispering)
            return
        except BackstayError as error:
            await ack(response_action="errors", errors={_first_input(view): message_line(str(error))})
            await self._redraw(place.aim)
            return
        if filled.errors:
            await ack(response_action="errors", errors=filled.errors)
            return
        await ack()
        await self._redraw(place.aim)
        await self._or_say(self._told(deciding, whispering), whispering)

    async def _told(self, deciding: "asyncio.Future[str]", say: Callable[[str], Awaitable[Any]]) -> None:
        """Tell whoever decided what is remembered of it, which may be less than they asked for."""
        if said := await deciding:
            await say(said)

    async def _late(
        self, deciding: "asyncio.Future[str]", aim: Aim, filled: Filled, say: Callable[[str], Awaitable[Any]]
    ) -> None:
        """Wait for what became of a form that is closed; raises a BackstayError where nothing was decided."""
        await deciding
        if filled.errors:
            raise DecisionRefused(f"nothing was decided: {'; '.join(filled.errors.values())}; press the button again")
        await self._redraw(aim)
        await self._told(deciding, say)

    async def _decided(self, view: Body, place: Place, body: Body, filled: Filled) -> str:
        """Decide what a form is about, unless something in it is wrong, which is in `filled.errors` then.

        Return what is remembered of it, in words.
        """
        aim = place.aim
        by = await self._person(body)
        known = await self._desk.look(aim)
        try:
            entered = await self._entered(view["callback_id"], known.waiting, place, filled)
            # The same form sent twice is one decision; one that was corrected is another.
            answered = await self._desk.decide(aim, known, entered, by=by, once=[view["id"], place.seen])
        except EntryRefused as refused:
            filled.refuse(refused.entries, [str(block["block_id"]) for block in _inputs(view)])
            return ""
        held = [words for line in answered.get("remembered", ()) for words in remembered_words(line)]
        return message_line(f"{aim.w} {aim.r}: {'; '.join(held)}", 1500) if held else ""

    async def _entered(self, callback: str, request: ApprovalRequest, place: Place, filled: Filled) -> Entered:
        match callback:
            case verdicts.REJECT:
                return verdicts.rejected(filled)
            case verdicts.REMEMBER:
                return verdicts.remembered(filled)
            case choose.CALLBACK:
                return choose.entered(DecisionForm.of(request), filled)
            case answer.CALLBACK:
                return answer.entered(DecisionForm.of(request), filled)
            case _:
                call = place.call or 0
                return edit.entered(call, await self._arguments(request, place.aim, call), filled)

    # What both need.

    async def _person(self, body: Body) -> str:
        user = body["user"]
        teams = [user.get("team_id"), (body.get("team") or {}).get("id")]
        return await self._people.principal(str(user["id"]), teams)

    async def _redraw(self, aim: Aim) -> None:
        """Show a request as it is now; where that fails, whoever follows the channel does it soon."""
        try:
            await self._board.request(aim.w, aim.f, aim.r)
        except (BackstayError, NotTaken) as error:
            log.warning("slack.not_redrawn", request=aim.r, error=str(error))

    async def _or_say(self, doing: Awaitable[None], say: Callable[[str], Awaitable[Any]]) -> None:
        """Do something, and tell the person alone why it was not done."""
        try:
            await doing
        except BackstayError as error:
            said = message_line(str(error), 1500)
        except SlackApiError as error:
            log.warning("slack.refuses", error=error.response.get("error"))
            said = f"Slack refuses this ({error.response.get('error')}); press the button again"
        except FAILURES as error:
            log.warning("slack.unanswered", error=type(error).__name__)
            said = "Slack did not answer; press the button again"
        else:
            return
        try:
            await say(said)
        except FAILURES as error:
            log.warning("slack.unheard", error=type(error).__name__)

    def _answering(self, respond: AsyncRespond) -> Callable[[str], Awaitable[Any]]:
        async def said(text: str) -> None:
            await respond(text=escaped(text), blocks=literally(text), response_type="ephemeral", replace_original=False)

        return said

    def _whispering(self, channel: str, user: str) -> Callable[[str], Awaitable[Any]]:
        async def said(text: str) -> None:
            await self._client.chat_postEphemeral(
                channel=channel, user=user, text=escaped(text), blocks=literally(text)
            )

        return said


def _inputs(view: Body) -> list[Body]:
    return [block for block in view["blocks"] if block["type"] == "input"]


def _first_input(view: Body) -> str:
    """Return the input at which something is said about the whole form."""
    return next((str(block["block_id"]) for block in _inputs(view)), "")
