"""The fields of a form stand in the order in which its server sent them, at every door."""

import json
import re
from pathlib import Path
from urllib.parse import quote

import pytest
import pytest_asyncio

from backstay.client import Backstay
from backstay.testing import Reply
from people.requests.form import DecisionForm
from tests.cli.commands import BACKSTAY, at_terminal, environment_of, forked
from tests.cli.screen import chatting
from tests.e2e.approvals.doors.pages import Page
from tests.engine import ended, engine, pending
from tests.requirements import promise
from tests.slack.workspace import ANA, KEY, U1, door, slack_settings
from tests.slack_server import open_slack
from tests.turns import Turns
from tests.web.pages import behind_a_proxy, listed, served_page

ASKING = Path(__file__).parents[1] / "servers" / "asking.py"
POLICY = "default: {read_only: allow, write_safe: ask, restricted_write: ask}"
TEXT = {"type": "string"}
ORDER = ["zeta", "omega", "beta", "psi", "alpha", "kappa"]
FORM = {"type": "object", "properties": dict.fromkeys(ORDER, TEXT) | {"alpha": {"type": "boolean"}}}
NAME = re.compile("|".join(map(re.escape, ORDER)))


@pytest_asyncio.fixture(scope="module")
async def doors(temporal, tmp_path_factory):
    folder, turns = tmp_path_factory.mktemp("order"), Turns()
    servers = {"asking": {"command": "python", "args": [str(ASKING), str(folder / "asked")]}}
    toolbox = folder / "toolbox.json"
    toolbox.write_text(
        json.dumps({"mcpServers": servers, "providers": {"asking": {"trusted": True}}}), encoding="utf-8"
    )
    async with open_slack(events_url="-") as slack:
        opening = {**slack_settings(slack, "http"), **behind_a_proxy(approver_key=KEY), "toolbox": toolbox}
        async with (
            engine(temporal, folder, turns, policy=POLICY, **opening) as running,
            door(running, slack, running.settings),
            served_page(running) as page,
        ):
            yield running, turns, slack, page


def asks(folder, form=FORM):
    """Return a call of a server that asks for the fields of a form in its order; arguments keep none."""
    file = folder / "form.json"
    file.write_text(json.dumps(form), encoding="utf-8")
    return Reply(calls=[("asking__ask", {"mark": "m", "message": "What?", "form": str(file)})])


def names_in(text):
    """Return the fields in the order in which a text names each first."""
    return [*dict.fromkeys(NAME.findall(text))]


@promise("approvals:form-order")
@pytest.mark.thorough
async def test_every_door_keeps_the_order_of_a_form(doors, nursery, tmp_path):
    running, turns, slack, page = doors
    handle = await running.start(turns.task(asks(tmp_path)))
    (waiting,) = await pending(handle)
    (request,) = await Backstay(running.client, task_queue=running.settings.task_queue).run(handle.id).pending()
    environment = environment_of(running, BACKSTAY_APPROVER_KEY=KEY)
    shown = await forked(nursery, "show", handle.id, request.id, environment=environment, folder=tmp_path)
    path = f"/requests/{quote(handle.id, safe='')}/{request.id}"
    async with page.person(ANA) as person:
        drawn = Page((await listed(person, "Answer", path)).text)
    message = await slack.until(
        lambda: next((m for m in slack.standing() if "backstay.answer" in m.buttons), None), 150
    )
    await slack.press(message, "backstay.answer", user=U1)
    view = await slack.view("What?", user=U1)
    said = {
        "client": [field.name for field in DecisionForm.of(request).fields],
        "query": [*waiting["schema"]["properties"]],
        "command": names_in(shown.out.partition("answer")[2] or shown.out),
        "page": names_in(" ".join(label for name, label in drawn.labels.items() if name.startswith("x."))),
        "Slack": names_in(" ".join(block["label"]["text"] for block in view.body["blocks"] if "label" in block)),
    }
    assert said == dict.fromkeys(said, ORDER)

    async with at_terminal(*BACKSTAY, "attach", handle.id, "--by", ANA, environment=environment) as terminal:
        assert names_in(await terminal.shows("[d]etach?")) == ORDER
        terminal.type("a")
        await terminal.shows("a single . stops")
        asked = await _filled_in(terminal.shows, terminal.type)
        await terminal.shows("decided: answered")
    assert asked == ORDER
    await ended(handle)


@promise("approvals:form-order")
@pytest.mark.thorough
async def test_a_chat_asks_for_the_fields_of_a_form_in_its_order(doors, nursery, tmp_path):
    running, turns, _, _ = doors
    text = turns.text(asks(tmp_path))
    environment = environment_of(running, BACKSTAY_APPROVER_KEY=KEY)
    async with chatting("--by", ANA, environment=environment, nursery=nursery) as screen:
        await screen.waits_for("you>")
        screen.enter(text)
        assert names_in(await screen.shows("[d]etach?")) == ORDER
        screen.enter("a")
        await screen.shows("a single . stops")
        assert await _filled_in(screen.shows, screen.enter) == ORDER
        await screen.shows("completed")
        await screen.waits_for("you>")
        screen.enter("/quit")
        assert await screen.ended() == 0


@promise("approvals:form-order")
async def test_several_questions_of_one_call_stand_in_the_order_in_which_they_were_sent(doors, tmp_path):
    running, turns, _, _ = doors
    form = {"type": "object", "properties": {"b": TEXT, "a": TEXT}}
    handle = await running.start(turns.task(asks(tmp_path, {"where": form, "how": form})))
    (request,) = await pending(handle)
    assert [*request["schema"]["properties"]] == ["where", "how"]
    said = {"where": {"b": "1", "a": "2"}, "how": {"b": "3", "a": "4"}}
    answer = {"request_id": request["id"], "verdict": "answer", "by": ANA, "answer": said}
    await handle.execute_update("decide", answer)
    await ended(handle)


async def _filled_in(shows, types):
    """Fill in a form at a terminal; return which field was asked for, one after the other."""
    asked = []
    while len(asked) < len(ORDER):
        # A terminal draws a question again while it is answered.
        for name in names_in(await shows("):"))[-1:]:
            if name not in asked:
                asked.append(name)
                types("yes" if name == "alpha" else "x")
    return asked
