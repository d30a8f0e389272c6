"""The forms of every kind of request, as browsers without scripts and as programs send them."""

import html
import json
import re
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from backstay.approvals.admission import DecisionInvalid
from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.testing import Reply
from gateways.web.forms import edited_fields, edits_in, entered_in
from gateways.web.sent import Submission
from people.decide.looking import KnownRequest
from people.requests.form import DecisionForm, decision_of
from tests.engine import Scripts, ended, engine, pending, toolbox_of
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, form_of, listed, mail, served_page

ANA = "ana@example.com"
MAIL = Reply(calls=[("mail__send_email", {"to": "k@x.example", "subject": "s", "body": "b"})])
POLICY = """
default: {write_safe: allow}
ask: [{tool: mail.send_email, when: {to: {ends_with: "@ask.example"}}}]
"""
READ = Reply(calls=[("mail__list_sent", {"to": "k@x.example"})])


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        folder, scripts = tmp_path_factory.mktemp("forms"), Scripts()
        toolbox = toolbox_of(folder, folder / "mailbox.db", MAILBOX_DIE_AFTER_SEND="1")
        data = json.loads(toolbox.read_text(encoding="utf-8"))
        data["providers"]["mail"]["tools"]["send_email"] = {"safety": "write_safe"}
        toolbox.write_text(json.dumps(data), encoding="utf-8")
        given = {"toolbox": toolbox, "policy": POLICY, "request_deadline_seconds": 3}
        running = await stack.enter_async_context(engine(temporal, folder, scripts, **given, **behind_a_proxy()))
        served = await stack.enter_async_context(served_page(running))
        yield running, scripts, served, await stack.enter_async_context(served.person(ANA))


async def decided(person, handle, request="r1", **more):
    """Send the form of a request, and return the page that follows."""
    await listed(person, handle.id)
    path = f"/requests/{handle.id}/{request}"
    shown = await person.get(path)
    return await person.post(f"{path}/decide", data=form_of(shown.text, **more), follow_redirects=True)


def verified(result):
    events = [event["data"] for event in result["events"] if event["name"] == "approval.decided"]
    return [(data["verdict"], data["by"], data["verified"]) for data in events]


@promise("page:forms")
async def test_a_budget_is_topped_up_and_what_is_no_number_is_said_with_what_was_typed(shared):
    running, scripts, _, person = shared
    handle = await running.start(scripts.task(READ, READ, budget={"max_steps": 1, "on_exhausted": "ask"}))
    await pending(handle)
    wrong = await decided(person, handle, verdict="answer", max_steps="many", comment="go on")
    nothing = await decided(person, handle, verdict="answer")
    done = await decided(person, handle, verdict="answer", max_steps="5", max_llm_cost_usd="0.5")
    assert (wrong.status_code, nothing.status_code, done.status_code) == (422, 422, 200)
    assert "max_steps: type a whole number" in wrong.text
    assert 'value="many"' in wrong.text
    assert "go on</textarea>" in wrong.text
    assert "nothing is added" in nothing.text
    result = await ended(handle)
    assert verified(result) == [("answer", ANA, True)]
    assert result["budget"]["max_steps"] == 6


TYPED = "\nBonjour\u00a0!\t👩\u200d💻 n\u200cm\ufeff <b>"


def textarea(text, name):
    """Return what a browser has in a field of a page; it drops a line break at the beginning."""
    (found,) = re.findall(rf'<textarea id="{name}"[^>]*>(.*?)</textarea>', text, re.DOTALL)
    return html.unescape(found.removeprefix("\n"))


@promise("page:forms-typed")
async def test_a_form_that_is_refused_comes_back_with_every_character_that_was_typed(shared):
    running, scripts, _, person = shared
    questions = [scripts.task(READ, READ, budget={"max_steps": 1, "on_exhausted": "ask"})]
    questions.append(scripts.task(Reply(calls=[("ask_person", {"question": "Which one?"})])))
    budget, question = [await running.start(task) for task in questions]
    for handle in (budget, question):
        await pending(handle)
    wrong = await decided(person, budget, verdict="answer", max_steps="x\u00a0", comment=TYPED)
    empty = await decided(person, question, verdict="nothing", answer=TYPED, comment=TYPED)
    for handle in (budget, question):
        await handle.terminate()
    assert (wrong.status_code, empty.status_code) == (422, 422)
    assert 'value="x\u00a0"' in wrong.text
    assert textarea(wrong.text, "comment") == textarea(empty.text, "comment") == textarea(empty.text, "answer") == TYPED


@promise("page:forms-typed")
async def test_arguments_that_were_changed_come_back_as_they_were_typed(shared):
    running, scripts, _, person = shared
    handle = await running.start(scripts.task(mail("k@ask.example")))
    await pending(handle)
    await listed(person, handle.id)
    path = f"/requests/{handle.id}/r1"
    shown = await person.get(path, params={"edit": "0"})
    fields = {"edited": "0", "verdict": "modify", "v.0.2": TYPED, "more.0": "no JSON"}
    back = await person.post(f"{path}/decide", data=form_of(shown.text, **fields))
    await handle.terminate()
    assert back.status_code == 422
    assert textarea(back.text, "v.0.2") == TYPED


@promise("page:forms-questions")
async def test_a_question_of_the_model_is_answered(shared):
    running, scripts, _, person = shared
    handle = await running.start(scripts.task(Reply(calls=[("ask_person", {"question": "Which <b>one</b>?"})])))
    await pending(handle)
    empty = await decided(person, handle, verdict="answer", answer="  ")
    done = await decided(person, handle, verdict="answer", answer="the blue\r\none")
    assert (empty.status_code, done.status_code) == (422, 200)
    assert "Which &lt;b&gt;one&lt;/b&gt;?" in done.text
    assert verified(await ended(handle)) == [("answer", ANA, True)]
    assert "the blue" in str(running.model.requests[-1]["messages"])


@promise("page:forms-outcomes")
async def test_an_outcome_that_nobody_knows_is_settled_by_what_a_person_says(shared):
    running, scripts, _, person = shared
    handle = await running.start(scripts.task(MAIL))
    await pending(handle, within_s=150)
    done = await decided(person, handle, verdict="happened")
    assert done.status_code == 200
    result = await ended(handle)
    assert verified(result) == [("happened", ANA, True)]
    assert [effect["state"] for effect in result["effects"]] == ["applied"]


@promise("page:forms-programs")
async def test_a_program_reads_and_decides_with_the_objects_of_the_wire(shared):
    running, scripts, _, person = shared
    handle = await running.start(scripts.task(Reply(calls=[("ask_person", {"question": "Which one?"})])))
    await pending(handle)
    await listed(person, handle.id)
    path = f"/api/requests/{handle.id}/r1"
    inbox = (await person.get("/api/requests")).json()
    shown = await person.get(path)
    found = shown.json()
    token = {"Authorization": f"Bearer {shown.headers['Backstay-Csrf']}"}
    said = {"verdict": "answer", "answer": {"any": ["JSON"]}, "f": found["run_id"], "d": found["live"]["digest"]}
    without = await person.post(f"{path}/decide", json=said)
    as_other = await person.post(f"{path}/decide", json={**said, "by": "bo@example.com"}, headers=token)
    stale = await person.post(f"{path}/decide", json={**said, "d": "0" * 64}, headers=token)
    unknown = await person.post(f"{path}/decide", json={**said, "mood": "good"}, headers=token)
    foreign = await person.post(f"{path}/decide", json=said, headers={**token, "Origin": "https://evil.example"})
    nothing = await person.get("/api/nothing")
    done = await person.post(f"{path}/decide", json=said, headers=token)
    assert handle.id in [row["workflow_id"] for row in inbox["requests"]]
    assert found["request"]["digest"] == found["live"]["digest"]
    refused = (without, as_other, stale, unknown, foreign, nothing)
    assert [(answer.status_code, answer.json()["error"]["type"]) for answer in refused] == [
        (401, "NotSignedIn"),
        (422, "DecisionInvalid"),
        (409, "DecisionRefused"),
        (422, "DecisionInvalid"),
        (403, "Forbidden"),
        (404, "NotFound"),
    ]
    assert done.status_code == 200
    assert done.json()["state"] == "decided"
    assert verified(await ended(handle)) == [("answer", ANA, True)]


@promise("page:forms-shown")
async def test_a_program_that_does_not_say_what_it_was_shown_decides_nothing(shared):
    running, scripts, _, person = shared
    handle = await running.start(scripts.task(Reply(calls=[("ask_person", {"question": "Which one?"})])))
    await pending(handle)
    await listed(person, handle.id)
    path = f"/requests/{handle.id}/r1"
    shown = await person.get(f"/api{path}")
    token = {"Authorization": f"Bearer {shown.headers['Backstay-Csrf']}"}
    named = {"f": shown.json()["run_id"], "d": shown.json()["live"]["digest"]}
    form = form_of((await person.get(path)).text, verdict="answer", answer="this one")
    for field in named:
        for less in ({}, {field: ""}, {field: None}):
            said = {"verdict": "answer", "answer": "this one", **{name: named[name] for name in named.keys() - {field}}}
            refused = await person.post(f"/api{path}/decide", json={**said, **less}, headers=token)
            assert (refused.status_code, refused.json()["error"]["message"].partition(":")[0]) == (422, field)
        without = {name: value for name, value in form.items() if name != field}
        assert (await person.post(f"{path}/decide", data=without)).status_code == 422
    assert len(await pending(handle)) == 1
    await handle.terminate()


def request_of(schema):
    return ApprovalRequest(kind=RequestKind.ELICITATION, question="?", options=("answer",), schema=schema)


def read(request, **fields):
    form = DecisionForm.of(request)
    return decision_of(form, entered_in(sent(**fields), form))


def sent(**fields):
    return Submission({name: value if isinstance(value, tuple) else (value,) for name, value in fields.items()})


ODD_DEFAULTS = {
    "text": {"type": "array", "items": {"enum": [1, 2]}, "default": "x"},
    "object": {"type": "array", "items": {"enum": [["a"], 2]}, "default": {}},
    "letters": {"type": "array", "items": {"enum": ["a", "b"]}, "default": "ab"},
    "number": {"type": "array", "items": {"enum": ["a", "b"]}, "default": 7},
    "lists": {"type": "array", "items": {"enum": [["a"], 2]}, "default": [["a"]]},
    "nothing": {"enum": ["a", None], "default": None},
    "list": {"enum": ["a", ["b"]], "default": ["b"]},
}


@promise("page:odd-defaults")
async def test_a_default_of_a_server_that_is_no_choice_chooses_nothing(shared, monkeypatch):
    _, _, _, person = shared
    asked = request_of({"type": "object", "properties": ODD_DEFAULTS})

    async def look(run, store, request_id, run_id=None):
        return KnownRequest(run.id, request_id, None, asked)

    monkeypatch.setattr("gateways.web.requests.look", look)
    shown = await person.get("/requests/odd/r1")
    assert shown.status_code == 200
    assert re.findall(r'name="(x[.][0-9]+)" value="([0-9]+)" checked', shown.text) == [("x.4", "0")]
    assert re.findall(r'<option value="([0-9]+)" selected', shown.text) == ["1"]


SCHEMA = {
    "type": "object",
    "required": ["name", "size", "colour"],
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "integer"},
        "colour": {"enum": ["red", "blue"]},
        "extras": {"type": "array", "items": {"enum": [1, 2, 3]}},
        "where": {"type": "object", "properties": {"street": {"type": "string"}}},
        "sure": {"type": "boolean"},
    },
}


@promise("page:forms-fields")
def test_every_field_of_a_servers_form_becomes_the_value_that_its_schema_asks_for():
    given = {"x.0": "Kim\r\nLee", "x.1": " 7 ", "x.2": "1", "x.3": ("0", "2"), "x.4": "Main Street", "x.5": "no"}
    answer = read(request_of(SCHEMA), verdict="answer", **given)["answer"]
    assert answer == {
        "name": "Kim\nLee",
        "size": 7,
        "colour": "blue",
        "extras": [1, 3],
        "where": {"street": "Main Street"},
        "sure": False,
    }
    few = read(request_of(SCHEMA), verdict="answer", **{"x.0": '""', "x.1": "7", "x.2": "0"})["answer"]
    assert few == {"name": "", "size": 7, "colour": "red"}


@promise("page:forms-fields")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"x.1": "7", "x.2": "0"}, "name: must be given"),
        ({"x.0": "Kim", "x.1": "seven", "x.2": "0"}, "size: type a whole number"),
        ({"x.0": "Kim", "x.1": "7", "x.2": "9"}, "colour: must be given"),
    ],
)
def test_what_a_form_lacks_is_said_by_the_field(given, said):
    with pytest.raises(DecisionInvalid, match=said):
        read(request_of(SCHEMA), verdict="answer", **given)


ARGUMENTS = {
    "plain": "one\r\ntwo",
    "mixed": "one\r\ntwo\nthree",
    "hidden": "a\u202eb",
    "n": 7,
    "list": ["x"],
    "secret": "⟦secret:mail.token:ab⟧",
}


@promise("page:forms-changes")
def test_only_what_was_changed_of_arguments_is_sent_and_hidden_signs_are_seen():
    fields = {field.name: field.text for field in edited_fields(0, ARGUMENTS)}
    assert fields["v.0.2"] == '"a\\u202eb"'
    unchanged = {name: text.replace("\r\n", "\n").replace("\n", "\r\n") for name, text in fields.items()}
    with pytest.raises(DecisionInvalid, match="nothing was changed"):
        edits_in(sent(**unchanged), {0: ARGUMENTS})
    given = {**unchanged, "v.0.0": "one\r\n3", "v.0.3": "8", "more.0": '{"new": null}'}
    (edit,) = edits_in(sent(**given), {0: ARGUMENTS})
    assert (edit.arguments, edit.without) == ({"plain": "one\r\n3", "n": 8, "new": None}, ())
    assert edits_in(sent(**{**unchanged, "drop.0.3": "1"}), {0: ARGUMENTS}) == ((0, {}, ("n",)),)
    with pytest.raises(DecisionInvalid, match="n: invalid JSON"):
        edits_in(sent(**{**unchanged, "v.0.3": "seven"}), {0: ARGUMENTS})


@promise("page:forms-none-left")
def test_leaving_out_every_call_is_no_approval():
    call = {"tool": "mail.send", "arguments": {}, "safety": "write_safe", "undoable": False}
    calls = (RequestedCall(index=0, **call), RequestedCall(index=1, **call))
    asked = ApprovalRequest(kind=RequestKind.BATCH, question="?", calls=calls)
    few = read(asked, verdict="approve", **{"offered.0": "1", "offered.1": "1", "take.0": "1"})
    assert few["calls"] == {1: {"verdict": "reject"}}
    with pytest.raises(DecisionInvalid, match="reject the request instead"):
        read(asked, verdict="approve", **{"offered.0": "1", "offered.1": "1"})
