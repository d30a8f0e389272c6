"""What happens when people press a button or send a form: who they are, what still waits, and what the run says to it.

Slack is told within moments that it was heard; everything else follows.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.errors import SlackApiError
from slack_sdk.models.views import View
from slack_sdk.web.async_client import AsyncWebClient

from backstay.approvals.approval import ApprovalRequest
from backstay.client import Backstay
from backstay.errors import BackstayError, DecisionRefused
from backstay.shown import message_line
from gateways.slack.board import RunChannel
from gateways.slack.drawing import request as drawn
from gateways.slack.drawing.page import escaped, literally
from gateways.slack.forms import answer, choose, edit, verdicts, whole
from gateways.slack.forms.inputs import FormInput
from gateways.slack.people import People
from gateways.slack.place import ModalContext, event_of
from gateways.slack.posting import FAILURES, code_of
from people.decide.deciding import decide_shown, remembered_line
from people.decide.looking import KnownRequest, arguments_of, look_shown
from people.notices.delivering import NotTaken
from people.requests.entered import EntryRefused, FormEntry
from people.requests.form import DecisionForm
from people.requests.key import RequestKey
from people.requests.posted import PostedRequest
from store.store import Store

log = structlog.get_logger("backstay.slack")
FORM_S = 2.0
"""How long a form waits for what the run says to it; Slack gives three seconds, and then it is closed."""
Body = Mapping[str, Any]
_AT_ONCE = ("approve", "dry_run", "happened", "did_not_happen", "retry")
_CHOICES = {drawn.ACTIONS[choice]: choice for choice in _AT_ONCE}
"""What a button chooses by itself."""


class Interactions:
    """Act for people who press buttons and send forms."""

    def __init__(
        self, client: AsyncWebClient, backstay: Backstay, store: Store, board: RunChannel, people: People
    ) -> None:
        """`backstay` signs what it sends; the board shows what became of it."""
        self._client = client
        self._backstay = backstay
        self._store = store
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
            key = RequestKey.read(action.get("value"))
            by = await self._person(body)
            try:
                entered = FormEntry(_CHOICES[action["action_id"]])
                await self._decide(key, await self._look(key), entered, by=by, once=[seen])
            finally:
                await self._redraw(key)

        await self._or_say(decided(), self._answering(respond))

    def _opener(self, opening: Callable[..., Awaitable[View]]) -> Callable[..., Awaitable[None]]:
        async def opened(ack: AsyncAck, body: Body, respond: AsyncRespond) -> None:
            await ack()

            async def asked() -> None:
                request, place, by = await self._looked(body)
                await self._client.views_open(trigger_id=body["trigger_id"], view=await opening(request, place, by))

            await self._or_say(asked(), self._answering(respond))

        return opened

    async def _looked(self, body: Body) -> tuple[ApprovalRequest, ModalContext, str]:
        """Return what a button is about, where it stands, and who pressed it; raises a BackstayError."""
        key = RequestKey.read(body["actions"][0].get("value"))
        by = await self._person(body)
        try:
            request = (await self._look(key)).waiting
        except DecisionRefused:
            await self._redraw(key)
            raise
        channel = str((body.get("channel") or {}).get("id") or self._board.channel.id)
        seen = event_of((body.get("message") or {}).get("blocks"))
        return request, ModalContext(key=key, channel=channel, seen=seen), by

    async def _reject(self, request: ApprovalRequest, place: ModalContext, _by: str) -> View:
        return verdicts.reject_form(request, place)

    async def _always(self, request: ApprovalRequest, place: ModalContext, _by: str) -> View:
        return verdicts.remember_form(request, place)

    async def _answer(self, request: ApprovalRequest, place: ModalContext, _by: str) -> View:
        return answer.form(request, place)

    async def _choose(self, request: ApprovalRequest, place: ModalContext, by: str) -> View:
        return choose.form(request, place, by)

    async def _edit(self, request: ApprovalRequest, place: ModalContext, by: str) -> View:
        if len(request.calls) == 1:
            return await self._edit_call(request, place, request.calls[0].index)
        return edit.which(request, place, by)

    async def _edit_call(self, request: ApprovalRequest, place: ModalContext, index: int) -> View:
        arguments = await self._arguments(request, place.key, index)
        return edit.form(request, place.model_copy(update={"call": index}), arguments)

    async def _arguments(self, request: ApprovalRequest, key: RequestKey, index: int) -> dict[str, Any]:
        return await arguments_of(self._backstay.run(key.workflow_id), request, index)

    async def _more(self, ack: AsyncAck, body: Body, respond: AsyncRespond) -> None:
        await ack()

        async def shown() -> None:
            request, place, _ = await self._looked(body)
            # Slack lets a modal be opened for three seconds after the click; many arguments may take longer.
            opened = await self._client.views_open(trigger_id=body["trigger_id"], view=whole.loading())
            asked = [call.index for call in request.calls[: whole.MOST_CALLS]]
            found = {index: await self._arguments(request, place.key, index) for index in asked}
            view: Any = opened["view"]
            await self._client.views_update(view_id=view["id"], view=whole.form(request, place, found))

        await self._or_say(shown(), self._answering(respond))

    # Forms.

    async def _chosen(self, ack: AsyncAck, body: Body) -> None:
        """Lead from the choice of a call to its arguments."""
        view = body["view"]
        try:
            place = ModalContext.read(view["private_metadata"])
            await self._person(body)
            request = (await self._look(place.key)).waiting
            form = await self._edit_call(request, place, edit.chosen(FormInput(view["state"]["values"])))
        except BackstayError as error:
            await ack(response_action="errors", errors={"call": message_line(str(error))})
            return
        await ack(response_action="update", view=form)

    async def _send(self, ack: AsyncAck, body: Body) -> None:
        """Send what a form says; the run's objection to it is shown in the form, or to the person alone."""
        view = body["view"]
        filled = FormInput(view["state"]["values"])
        try:
            place = ModalContext.read(view["private_metadata"])
        except DecisionRefused as error:
            await ack(response_action="errors", errors={_first_input(view): message_line(str(error))})
            return
        whispering = self._whispering(place.channel, body["user"]["id"])
        deciding = asyncio.ensure_future(self._decided(view, place, body, filled))
        try:
            await asyncio.wait_for(asyncio.shield(deciding), FORM_S)
        except TimeoutError:
            await ack()
            await self._or_say(self._late(deciding, place.key, filled, whispering), whispering)
            return
        except BackstayError as error:
            await ack(response_action="errors", errors={_first_input(view): message_line(str(error))})
            await self._redraw(place.key)
            return
        if filled.errors:
            await ack(response_action="errors", errors=filled.errors)
            return
        await ack()
        await self._redraw(place.key)
        await self._or_say(self._told(deciding, whispering), whispering)

    async def _told(self, deciding: "asyncio.Future[str]", say: Callable[[str], Awaitable[Any]]) -> None:
        """Tell whoever decided what is remembered of it, which may be less than they asked for."""
        if said := await deciding:
            await say(said)

    async def _late(
        self, deciding: "asyncio.Future[str]", key: RequestKey, filled: FormInput, say: Callable[[str], Awaitable[Any]]
    ) -> None:
        """Wait for what became of a form that is closed; raises a BackstayError where nothing was decided."""
        await deciding
        if filled.errors:
            raise DecisionRefused(f"nothing was decided: {'; '.join(filled.errors.values())}; press the button again")
        await self._redraw(key)
        await self._told(deciding, say)

    async def _decided(self, view: Body, place: ModalContext, body: Body, filled: FormInput) -> str:
        """Decide what a form is about, unless something in it is wrong, which is in `filled.errors` then.

        Return what is remembered of it, in words.
        """
        key = place.key
        by = await self._person(body)
        known = await self._look(key)
        try:
            entered = await self._entered(view["callback_id"], known.waiting, place, filled)
            # The same form sent twice is one decision; one that was corrected is another.
            answered = await self._decide(key, known, entered, by=by, once=[view["id"], place.seen])
        except EntryRefused as refused:
            filled.refuse(refused.entries, [str(block["block_id"]) for block in _inputs(view)])
            return ""
        return remembered_line(key, answered)

    async def _entered(
        self, callback: str, request: ApprovalRequest, place: ModalContext, filled: FormInput
    ) -> FormEntry:
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
                return edit.entered(call, await self._arguments(request, place.key, call), filled)

    # Both need these.

    async def _look(self, key: RequestKey) -> KnownRequest:
        return await look_shown(self._backstay, self._store, key)

    async def _decide(
        self, key: RequestKey, known: KnownRequest, entered: FormEntry, *, by: str, once: Sequence[Any]
    ) -> dict[str, Any]:
        hidden = drawn.left_out_of(PostedRequest(workflow_id=key.workflow_id, request=known.waiting))
        once = ["slack", *once]
        return await decide_shown(self._backstay, key, known, entered, by=by, hidden=hidden, once=once)

    async def _person(self, body: Body) -> str:
        user = body["user"]
        teams = [user.get("team_id"), (body.get("team") or {}).get("id")]
        return await self._people.principal(str(user["id"]), teams)

    async def _redraw(self, key: RequestKey) -> None:
        """Show a request as it is now; where that fails, whoever follows the channel does it soon."""
        try:
            await self._board.request(key.workflow_id, key.run_id, key.request_id)
        except (BackstayError, NotTaken) as error:
            log.warning("slack.not_redrawn", request=key.request_id, error=str(error))

    async def _or_say(self, doing: Awaitable[None], say: Callable[[str], Awaitable[Any]]) -> None:
        """Do something, and tell the person alone why it was not done."""
        try:
            await doing
        except BackstayError as error:
            said = message_line(str(error), 1500)
        except SlackApiError as error:
            log.warning("slack.refuses", error=code_of(error))
            said = f"Slack refuses this ({code_of(error)}); press the button again"
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
    """Return the input that shows a fault of the whole form."""
    return next((str(block["block_id"]) for block in _inputs(view)), "")
