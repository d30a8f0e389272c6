"""Servers that ask a person before they answer, of the newest revision and of older ones."""

import asyncio
import json
from dataclasses import replace

import pytest
from mcp import ClientSession
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCRequest

from backstay.errors import OutcomeUnknown
from tests.requirements import promise
from tests.sizes import spread
from toolbox.mcp import streams
from toolbox.mcp.http_transport import ObservedTransport, current
from toolbox.providers.elicitation import InputResponse, input_required_of


@pytest.fixture
def older(tmp_path, opened, servers):
    """Open a toolbox over a server of an older revision; what it did is in `tmp_path / "log"`."""

    def open_older(revision="2025-06-18", **provider):
        log = tmp_path / "log"
        entry = {"command": "python", "args": [str(servers / "older.py"), revision, str(log)]}
        return opened(tmp_path, {"mcpServers": {"older": entry}, "providers": {"older": provider}})

    return open_older


async def call(toolbox, name, arguments=None, *, deadline_s=20.0, **more):
    catalog = await toolbox.catalog("anyone")
    return await toolbox.call(catalog.definitions[name], arguments or {}, deadline_s=deadline_s, **more)


def done(folder):
    return (folder / "log").read_text(encoding="utf-8").splitlines()


def kept(question):
    """A question as the store hands it back."""
    return input_required_of(question.to_keep())


@promise("tools:revisions-reply")
@pytest.mark.parametrize("provider", spread(["remote", "office"], 1))
async def test_a_question_comes_back_instead_of_an_answer_and_the_reply_makes_the_call_go_on(office, provider):
    room = f"room of {provider}"
    asked = (await call(office, f"{provider}.give_away", {"room": room})).question
    assert [request.message for request in asked.requests] == [f"Give away {room}?"]
    assert asked.in_call is False
    answer = await call(
        office, f"{provider}.give_away", {"room": room}, reply=InputResponse(kept(asked), {"sure": True})
    )
    assert (answer.success, answer.question) == (True, None)
    assert f"{room} given 1 times" in str(answer.data)


@promise("approvals:declined")
async def test_a_declined_question_lets_the_server_do_without(office):
    asked = (await call(office, "office.give_away", {"room": "cellar"})).question
    answer = await call(
        office, "office.give_away", {"room": "cellar"}, reply=InputResponse(kept(asked), None, declined=True)
    )
    assert "kept" in str(answer.data)


@promise("tools:questions")
async def test_an_answer_to_a_question_that_the_server_has_forgotten_is_given_to_the_same_question_anew(office):
    asked = (await call(office, "office.give_away", {"room": "attic"})).question
    forgotten = input_required_of({**asked.to_keep(), "state": "sealed by a server that is no more"})
    answer = await call(office, "office.give_away", {"room": "attic"}, reply=InputResponse(forgotten, {"sure": True}))
    assert "attic given 1 times" in str(answer.data)


@promise("tools:questions")
async def test_a_question_that_an_older_version_kept_is_answered(office):
    asked = (await call(office, "office.give_away", {"room": "shed"})).question
    older = InputResponse(input_required_of(asked.plain()), {"sure": True})
    answer = await call(office, "office.give_away", {"room": "shed"}, reply=older)
    assert "shed given 1 times" in str(answer.data)


@promise("tools:questions")
async def test_what_was_seen_of_a_refused_answer_says_nothing_of_the_request_that_follows(office, monkeypatch):
    seen, send = [], ObservedTransport.handle_async_request

    async def watched(transport, request):
        if b'"tools/call"' in request.content:
            seen.append(current.get())
        return await send(transport, request)

    monkeypatch.setattr(ObservedTransport, "handle_async_request", watched)
    asked = (await call(office, "remote.give_away", {"room": "cellar"})).question
    forgotten = input_required_of({**asked.to_keep(), "state": "sealed by a server that is no more"})
    await call(office, "remote.give_away", {"room": "cellar"}, reply=InputResponse(forgotten, {"sure": True}))
    assert len(seen) == len({id(exchange) for exchange in seen}) == 4


def waits(state):
    return {"result": {"resultType": "input_required", "requestState": state}}


SPEAKS = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "resultType": "complete"}
SPEAKS |= {"ttlMs": 0, "cacheScope": "private"}
FINE = {"result": {"resultType": "complete", "content": [{"type": "text", "text": "fine"}]}}
GONE = {"error": {"code": -32602, "message": "no such state"}}
WAITING = {
    "wait": {"": waits("one"), "one": waits("two"), "two": FINE},
    "for_ever": {"": waits("one"), "one": waits("one")},
    "lost": {"": waits("one"), "one": GONE},
}


@pytest.fixture
def waiting(tmp_path, opened, raw):
    """Open a toolbox over a server of the newest revision that lets calls wait, by asking nothing but its state."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in WAITING]
    entry = raw(tools=tools, discover=SPEAKS, answers={name: {"rounds": rounds} for name, rounds in WAITING.items()})
    return opened(tmp_path, {"mcpServers": {"raw": entry}})


async def nothing():
    """Stand for the intent of a write."""


def visits(*urls, **said):
    asked = [{"mode": "url", "message": "Connect it", "url": url, "elicitationId": "e", **said} for url in urls]
    return {"error": {"code": -32042, "message": "connect first", "data": {"elicitations": asked}}}


@promise("tools:questions-visit")
@pytest.mark.parametrize("speaks", [{}, {"discover": SPEAKS}])
async def test_a_write_that_needs_an_address_visited_first_asks_for_that_and_is_made_afterwards(
    opened, raw, tmp_path, speaks
):
    tools = [{"name": "send", "inputSchema": {"type": "object"}}]

    def answering(answer):
        return raw(tools=tools, answers={"send": answer}, **speaks)

    entry = answering(visits("https://consent.example.com/a", "https://consent.example.com/b"))
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        asked = (await call(toolbox, "raw.send", before_send=nothing)).question
        (request,) = asked.requests
        assert (request.message, request.url, request.form) == ("Connect it", "https://consent.example.com/a", None)
        assert not asked.in_call
        answering(visits("https://consent.example.com/b", mode=None, message=None))
        visited = InputResponse(kept(asked), None)
        asked = (await call(toolbox, "raw.send", before_send=nothing, reply=visited)).question
        assert asked.requests[0].message == WORDLESS
        assert asked.requests[0].url == "https://consent.example.com/b"
        declined = InputResponse(kept(asked), None, declined=True)
        answering(FINE)
        refusal = await call(toolbox, "raw.send", before_send=nothing, reply=declined)
        assert (refusal.success, refusal.question, refusal.may_have_acted) == (False, None, False)
        assert "a person declined" in refusal.error
        answer = await call(toolbox, "raw.send", before_send=nothing, reply=InputResponse(kept(asked), None))
        assert (answer.data, answer.question) == ("fine", None)


@promise("tools:questions-visit")
@pytest.mark.parametrize("data", [None, [], {"elicitations": 5}, {"elicitations": [{"message": "where?"}]}])
async def test_a_server_that_names_no_address_to_visit_has_done_nothing(opened, raw, tmp_path, data):
    error = {"error": {"code": -32042, "message": "connect first", "data": data}}
    entry = raw(tools=[{"name": "send", "inputSchema": {"type": "object"}}], answers={"send": error})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        refusal = await call(toolbox, "raw.send", before_send=nothing)
    assert (refusal.success, refusal.question, refusal.may_have_acted) == (False, None, False)
    assert "connect first" in refusal.error


@promise("tools:questions-none")
async def test_a_server_that_only_wants_its_state_back_gets_it_until_it_answers(waiting):
    async with waiting as toolbox:
        for write in ({}, {"before_send": nothing}):
            answer = await call(toolbox, "raw.wait", **write)
            assert (answer.data, answer.question) == ("fine", None)


@promise("tools:questions-none")
async def test_a_write_that_its_server_lets_wait_and_then_does_not_answer_may_have_been_made(waiting):
    async with waiting as toolbox:
        for deadline_s in (20.0, 0.5):
            with pytest.raises(OutcomeUnknown, match="asks for nothing and does not answer"):
                await call(toolbox, "raw.for_ever", before_send=nothing, deadline_s=deadline_s)
        assert "does not answer" in (await call(toolbox, "raw.for_ever")).error
        refusal = await call(toolbox, "raw.lost", before_send=nothing)
    assert (refusal.success, refusal.error, refusal.may_have_acted) == (False, "no such state", True)


FORM = {"type": "object", "properties": {}}
ASKING = {"method": "elicitation/create", "params": {"message": "sure?", "requestedSchema": FORM}}
ASKED = {"result": {"resultType": "input_required", "inputRequests": {"q": ASKING}, "requestState": "one"}}
WORDLESS = "(the server asks without a message)"
NAMED = {"type": "object", "properties": {"who": {"type": "string"}}}
ODD = {
    "no mode": ({"mode": None, "message": "sure?", "requestedSchema": FORM}, ("sure?", FORM, None)),
    "no message": ({"requestedSchema": FORM}, (WORDLESS, FORM, None)),
    "no form": ({"message": "sure?"}, ("sure?", FORM, None)),
    "a form without a type": (
        {"message": None, "requestedSchema": {"properties": NAMED["properties"]}},
        (WORDLESS, NAMED, None),
    ),
    "a form without fields": ({"message": "", "requestedSchema": {"properties": []}}, (WORDLESS, FORM, None)),
    "nothing": (None, (WORDLESS, FORM, None)),
    "an address without a mode": (
        {"mode": None, "message": "sign", "url": "https://h.example/a", "requestedSchema": None},
        ("sign", None, "https://h.example/a"),
    ),
}
STATES = {
    "a number": 7,
    "an object": {"b": [1.5, None], "a": "x"},
    "a list": [],
    "no": False,
    "a mark of ours": "backstay/state:7",
}


def asking(params=ASKING["params"], state="one", **beside):
    asks = {"inputRequests": {"q": {**ASKING, "params": params}}, "requestState": state, **beside}
    return {"": {"result": {"resultType": "input_required", **asks}}, **rounds(state)}


def rounds(state):
    return {state if isinstance(state, str) else json.dumps(state): FINE}


@promise("tools:questions-others")
async def test_a_question_is_asked_whatever_its_server_leaves_out_and_its_state_comes_back_as_it_was(
    opened, raw, tmp_path
):
    plain = ("sure?", FORM, None)
    cases = {name: (asking(params), asked) for name, (params, asked) in ODD.items()}
    cases |= {name: (asking(state=state), plain) for name, state in STATES.items()}
    cases["an empty answer beside it"] = (asking({**ASKING["params"], "mode": None}, content=[], _meta=7), plain)
    answers = {name.replace(" ", "_"): {"rounds": said} for name, (said, _) in cases.items()}
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in answers]
    entry = raw(tools=tools, discover=SPEAKS, answers=answers)
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        for name, (_, asked) in cases.items():
            tool = f"raw.{name.replace(' ', '_')}"
            question = (await call(toolbox, tool, before_send=nothing)).question
            (request,) = question.requests
            assert (request.message, request.form, request.url) == asked, name
            reply = InputResponse(kept(question), None if request.form is None else {})
            assert (await call(toolbox, tool, before_send=nothing, reply=reply)).data == "fine", name


@promise("tools:questions-others")
def test_a_question_in_mid_call_is_read_alike():
    asks = JSONRPCRequest(jsonrpc="2.0", id=1, method="elicitation/create", params={"mode": None, "message": "sure?"})
    read = streams._Reads(None, {})._read(SessionMessage(asks))
    assert read.message.params == {"message": "sure?", "requestedSchema": FORM}


WITHHELD = [
    "Tool give has an output schema but no structured content was provided",
    "Invalid tools/call result: [ { code: 'invalid_union', path: [ 'content', 0 ] } ]",
]


@pytest.fixture
def calls(monkeypatch):
    """Return the names of the tools that are called, as they are."""
    names, made = [], ClientSession.call_tool

    async def counted(session, name, *args, **options):
        names.append(name)
        return await made(session, name, *args, **options)

    monkeypatch.setattr(ClientSession, "call_tool", counted)
    return names


@pytest.fixture
def answered(tmp_path, opened, raw):
    """Answer the question of a server that refuses the answer; return what the call comes to."""

    async def answer(said, **options):
        refusal = {"error": {"code": -32602, "message": said}}
        tools = [{"name": "give", "inputSchema": {"type": "object"}}]
        entry = raw(tools=tools, discover=SPEAKS, answers={"give": {"rounds": {"": ASKED, "one": refusal}}})
        async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
            asked = (await call(toolbox, "raw.give", **options)).question
            return await call(toolbox, "raw.give", reply=InputResponse(kept(asked), {}), **options)

    return answer


@promise("effects:withheld-answer")
@pytest.mark.parametrize("said", WITHHELD)
async def test_a_write_that_went_on_with_an_answer_and_keeps_back_its_own_is_not_made_again(answered, calls, said):
    answer = await answered(said, before_send=nothing)
    assert (answer.success, answer.may_have_acted, calls) == (False, True, ["give", "give"])


@promise("tools:questions-forgotten")
@pytest.mark.parametrize(
    ("said", "write", "again"),
    [
        ("Invalid or expired requestState", True, True),
        ("requestState failed integrity verification", True, True),
        ("the room was given away, and no mail could be sent", True, False),
        ("no such state", True, False),
        ("no such state", False, True),
    ],
)
async def test_only_a_refused_state_lets_a_write_be_made_again_after_an_answer(answered, calls, said, write, again):
    answer = await answered(said, **({"before_send": nothing} if write else {}))
    assert (answer.success, answer.error, answer.question) == (False, said, None)
    assert len(calls) == (4 if again else 2)


@promise("approvals:declined")
async def test_a_declined_call_is_not_made_where_its_server_can_no_longer_be_told(opened, raw, tmp_path):
    tools = [{"name": "give", "inputSchema": {"type": "object"}}]
    entry = raw(tools=tools, discover=SPEAKS, answers={"give": {"rounds": {"": ASKED, "one": GONE}}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        asked = (await call(toolbox, "raw.give", before_send=nothing)).question
        declined = InputResponse(kept(asked), None, declined=True)
        raw(tools=tools, discover=SPEAKS, answers={"give": {"rounds": {"": FINE, "one": GONE}}})
        forgotten = await call(toolbox, "raw.give", before_send=nothing, reply=declined)
    raw(tools=tools, answers={"give": FINE})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        older = await call(toolbox, "raw.give", before_send=nothing, reply=declined)
    assert [(each.success, each.question, each.may_have_acted) for each in (forgotten, older)] == [
        (False, None, False)
    ] * 2
    assert (forgotten.error, "a person declined" in older.error) == ("no such state", True)


@promise("approvals:nothing-sent")
async def test_what_does_not_fit_the_form_is_named_before_anything_is_sent(office):
    asked = (await call(office, "office.give_away", {"room": "roof"})).question
    assert asked.fault({"sure": "perhaps"}) == "answer.sure: must be boolean, not string"
    assert asked.fault({}) == "answer: 'sure' is required; add it"
    assert asked.fault({"sure": False}) is None


PROTOCOL = "cannot be sent; the protocol takes text, numbers, true, false and lists of texts"


@promise("approvals:nothing-sent")
async def test_an_answer_that_the_protocol_has_no_form_for_is_named_before_anything_is_sent(opened, raw, tmp_path):
    kinds = {"where": {"type": "object"}, "seats": {"type": "array"}, "sure": {"type": "boolean"}}
    asking = {**ASKING, "params": {"message": "where?", "requestedSchema": {"type": "object", "properties": kinds}}}
    asked = {"result": {"resultType": "input_required", "inputRequests": {"q": asking}, "requestState": "one"}}
    tools = [{"name": "book", "inputSchema": {"type": "object"}}]
    entry = raw(tools=tools, discover=SPEAKS, answers={"book": {"rounds": {"": asked, "one": FINE}}})
    async with opened(tmp_path, {"mcpServers": {"raw": entry}}) as toolbox:
        question = kept((await call(toolbox, "raw.book", before_send=nothing)).question)
        assert question.fault({"where": {"city": "Kiel"}}) == f"answer.where: {PROTOCOL}"
        assert question.fault({"seats": [1, 2]}) == f"answer.seats: {PROTOCOL}"
        # A tool in Python may ask for what MCP cannot carry.
        assert replace(question, flat=False).fault({"where": {"city": "Kiel"}}) is None
        given = {"seats": ["a", "b"], "sure": True}
        assert question.fault(given) is None
        answer = await call(toolbox, "raw.book", before_send=nothing, reply=InputResponse(question, given))
        assert answer.data == "fine"


@promise("tools:revisions")
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26"])
async def test_a_server_from_before_there_were_questions_is_called_as_ever(older, revision):
    async with older(revision) as toolbox:
        answer = await call(toolbox, "older.book")
    assert (answer.data, answer.question) == ("no day, no booking", None)


@promise("tools:revisions")
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
async def test_an_older_server_that_asks_in_mid_call_is_told_that_nobody_answered(older, tmp_path, revision):
    async with older(revision) as toolbox:
        answer = await call(toolbox, "older.book")
        assert (answer.success, answer.data) == (True, "no day, no booking")
        assert (answer.question.said, answer.question.failed) == ("no day, no booking", False)
        assert answer.question.requests[0].form["required"] == ["day"]
        again = await call(toolbox, "older.book", reply=InputResponse(kept(answer.question), {"day": "friday"}))
    assert (again.data, again.question) == ({"booked": "friday"}, None)
    assert done(tmp_path) == ["called book", "book was told cancel", "called book", "book was told accept"]


@promise("tools:questions-older")
async def test_an_older_server_that_fails_without_an_answer_is_asked_about_all_the_same(older):
    async with older() as toolbox:
        answer = await call(toolbox, "older.strict")
    assert (answer.success, answer.question.failed) == (False, True)


@promise("tools:questions-overlapping")
async def test_questions_of_calls_that_overlap_belong_to_nobody_and_the_calls_go_one_by_one_afterwards(older):
    async with older() as toolbox:
        both = await asyncio.gather(call(toolbox, "older.book"), call(toolbox, "older.peek"))
        assert [item.data for item in both] == ["no day, no booking"] * 2
        later = await asyncio.gather(call(toolbox, "older.book"), call(toolbox, "older.peek"))
    assert all(answer.question is not None for answer in later)


@promise("tools:questions-overlapping")
async def test_a_question_belongs_to_the_call_that_is_left_when_others_have_ended(older, tmp_path, eventually):
    async with older() as toolbox:
        later = asyncio.create_task(call(toolbox, "older.later"))
        await eventually(lambda: (tmp_path / "log").exists() and "called later" in done(tmp_path))
        assert (await call(toolbox, "older.now")).question is None
        await toolbox.catalog("anyone", fresh=True)
        answer = await later
    assert answer.question.requests[0].message == "Which day suits?"


@promise("tools:progress")
async def test_progress_is_told_in_one_line_and_a_call_that_takes_too_long_is_cancelled(older, tmp_path, eventually):
    told = []
    async with older() as toolbox:
        with pytest.raises(OutcomeUnknown, match="no answer within 1 s"):
            await call(toolbox, "older.climb", deadline_s=1, on_progress=told.append)
        await eventually(lambda: "cancelled" in done(tmp_path))
    assert told == ["3 of 8"]


@promise("tools:pages")
async def test_every_page_of_a_list_is_read(older):
    async with older() as toolbox:
        catalog = await toolbox.catalog("anyone")
    names = ("book", "climb", "crowd", "later", "now", "peek", "strict", "survey")
    assert sorted(catalog.definitions) == [f"older.{name}" for name in names]


@promise("tools:concurrency")
async def test_no_more_calls_run_at_once_than_the_operator_allows(older, tmp_path):
    async with older(concurrency=1) as toolbox:
        both = await asyncio.gather(call(toolbox, "older.book"), call(toolbox, "older.book"))
    assert all(item.question is not None for item in both)
    assert done(tmp_path) == ["called book", "book was told cancel"] * 2
