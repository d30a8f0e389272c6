"""One streamed answer over a real socket: put together it is the same as a whole one, whatever the endpoint does."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import openai
import pytest

from activities.endpoints.client import ANSWER_BYTES, STREAM_BYTES, open_http
from activities.endpoints.event_lines import MOST_LINES
from activities.model.completion import ContextTooLong, HttpPost, complete, written
from activities.model.streaming import STREAMED, read_answer, read_whole
from backstay.errors import ModelRefused, ModelUnavailable
from backstay.testing import Reply, ScriptedModel, Tokens
from tests.requirements import promise

REQUEST = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 500}
USAGE = Tokens(prompt=100, cached=40, completion=20, reasoning=5)
ANSWERS = [
    Reply(text="Hello, there.", usage=USAGE),
    Reply(text="I search.", calls=[("search_tools", {"query": "mail"}), ("read_result", {"ref": "r", "limit": 3})]),
    Reply(calls=[("finish", {"summary": 'Done: "three"\nare 日本 🪢', "success": True})], usage=USAGE),
    Reply(calls=[("search_tools", '{"query": "not whole')], finish_reason="length"),
    Reply(text="", usage=USAGE),
]


@asynccontextmanager
async def client_of(address):
    async with openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0, http_client=open_http()) as client:
        yield client


async def asked(reply, *, streamed, said=None):
    async with ScriptedModel([reply]) as model, client_of(model.base_url) as client:
        if not streamed:
            return await complete(client, HttpPost(written(REQUEST)))
        told = [] if said is None else said
        return await complete(client, HttpPost(written({**REQUEST, **STREAMED})), say=told.append)


def bare(completion):
    """A completion without what differs between two requests: the size of the request, and empty fields."""
    message = {name: value for name, value in completion.message.items() if value}
    return message, completion.finish_reason, completion.usage.output_tokens, completion.reported


@promise("models:streamed")
@pytest.mark.parametrize("reply", ANSWERS)
@pytest.mark.parametrize("piece", [0, 1, 7])
async def test_a_streamed_answer_is_the_same_as_a_whole_one(reply, piece):
    whole = await asked(reply, streamed=False)
    streamed = await asked(reply.model_copy(update={"piece": piece}), streamed=True)
    assert bare(streamed) == bare(whole)
    if reply.usage is not None:
        assert streamed.usage == whole.usage


@promise("models:streamed-words")
async def test_what_the_model_says_is_told_while_it_arrives():
    said = []
    await asked(Reply(text="one two three", piece=4), streamed=True, said=said)
    assert said == ["one ", "two ", "thre", "e"]


@promise("models:streamed-words")
@pytest.mark.parametrize("piece", [1, 2, 3, 5, 0])
async def test_the_summary_of_finish_is_told_like_words(piece):
    said = []
    summary = 'Done: "three"\nare 日本 🪢\\ \t and \x01 more'
    reply = Reply(text="I end.", calls=[("finish", {"summary": summary, "outputs": {"a": "b"}})], piece=piece)
    await asked(reply, streamed=True, said=said)
    assert "".join(said) == f"I end.\n{summary}"


@promise("models:streamed-words")
async def test_arguments_of_other_calls_are_not_told():
    said = []
    await asked(Reply(calls=[("mail__send", {"summary": "to Bo"})], piece=3), streamed=True, said=said)
    assert said == []


@promise("models:streamed-not")
async def test_an_endpoint_that_does_not_stream_is_read_all_the_same():
    data = {"choices": [{"message": {"content": "hello"}}], "usage": USAGE.wire()}
    for body in (json.dumps(data), json.dumps(data, indent=2), f"\n\n {json.dumps(data)}\n"):
        reply = Reply(body=body.encode(), headers={"content-type": "application/json"})
        completion = await asked(reply, streamed=True)
        assert completion.message == {"content": "hello"}
        assert completion.usage.output_tokens == USAGE.completion
        assert completion.reported


@promise("models:streamed-usage")
async def test_a_stream_that_does_not_say_what_it_used_counts_as_not_reported():
    completion = await asked(Reply(text="hello", reports_usage=False), streamed=True)
    assert completion.message["content"] == "hello"
    assert not completion.reported


def chunk(delta=None, **more):
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": more.pop("finish_reason", None)}]
    return f"data: {json.dumps({'choices': choices, **more})}\n\n"


def fragment(arguments="", **more):
    name = {"name": more.pop("name")} if "name" in more else {}
    return {"tool_calls": [{**more, "function": {"arguments": arguments, **name}}]}


async def streamed(body, said=None):
    reply = Reply(body=body.encode(), headers={"content-type": "text/event-stream"})
    return await asked(reply, streamed=True, said=said)


@promise("models:streamed-fragments")
@pytest.mark.parametrize(
    "fragments",
    [
        # In any order; each with its number.
        [
            fragment(index=1, id="b", name="two"),
            fragment('{"x":', index=0, id="a", name="one"),
            fragment('{"y": 2', index=1),
            fragment(" 1}", index=0),
            fragment("}", index=1),
        ],
        # Without numbers; an id begins a call.
        [fragment('{"x":', id="a", name="one"), fragment(" 1}"), fragment('{"y": 2}', id="b", name="two")],
        # With the id and the name in each piece.
        [
            fragment('{"x":', index=0, id="a", name="one"),
            fragment(" 1}", index=0, id="a", name="one"),
            fragment('{"y": 2}', index=1, id="b", name="two"),
        ],
        # With the name beside the arguments, as in whole answers.
        [
            {"tool_calls": [{"index": 0, "id": "a", "name": "one", "arguments": '{"x":'}]},
            {"tool_calls": [{"index": 0, "arguments": " 1}"}]},
            {"tool_calls": [{"index": 1, "id": "b", "name": "two", "arguments": '{"y": 2}'}]},
        ],
        # Numbers that nobody would expect.
        [fragment('{"y": 2}', index=10**9, id="b", name="two"), fragment('{"x": 1}', index=-7, id="a", name="one")],
    ],
)
async def test_calls_are_put_together_from_fragments(fragments):
    body = "".join(map(chunk, fragments)) + chunk({}, finish_reason="tool_calls") + "data: [DONE]\n\n"
    completion = await streamed(body)
    made = [(call["id"], call["function"]) for call in completion.message["tool_calls"]]
    assert [(name, function["name"], json.loads(function["arguments"])) for name, function in made] == [
        ("a", "one", {"x": 1}),
        ("b", "two", {"y": 2}),
    ]


@promise("models:streamed-usage")
async def test_usage_may_come_with_any_chunk_and_the_last_one_counts():
    early, late = Tokens(prompt=9, completion=1).wire(), USAGE.wire()
    body = chunk({"content": "a"}, usage=early) + chunk({"content": "b"}, usage=late, finish_reason="stop")
    completion = await streamed(body)
    assert (completion.message["content"], completion.usage.output_tokens) == ("ab", USAGE.completion)


@promise("models:streamed-usage")
async def test_usage_is_read_inside_of_a_choice_too():
    # https://platform.moonshot.cn/docs/api/chat
    ends = {"index": 0, "delta": {}, "finish_reason": "stop", "usage": USAGE.wire()}
    body = chunk({"content": "a"}) + f"data: {json.dumps({'choices': [ends]})}\n\ndata: [DONE]\n\n"
    completion = await streamed(body)
    assert (completion.reported, completion.usage.output_tokens) == (True, USAGE.completion)


def counted(tokens):
    return Tokens(prompt=25, completion=tokens).wire()


WORDS = chunk({"content": "word " * 3000})
END = chunk({}, finish_reason="stop")


@promise("models:streamed-usage-whole")
@pytest.mark.parametrize(
    ("body", "output"),
    [
        # What a first chunk says is of the beginning.
        (chunk({"role": "assistant", "content": ""}, usage=counted(1)) + WORDS + END, None),
        (chunk({"role": "assistant", "content": ""}, usage=counted(1)) + WORDS, None),
        (chunk({"content": "a"}, usage=counted(1)) + END, None),
        (chunk({"content": "a"}, usage=counted(1)) + chunk({"reasoning_content": "b" * 900}) + END, None),
        (chunk({"content": "a"}, usage=counted(1)) + chunk({"content": "b"}, usage=counted(2)) + WORDS + END, None),
        # At the end, after it, or at each chunk
        (WORDS + chunk({}, finish_reason="stop", usage=counted(3000)), 3000),
        (WORDS + END + chunk({}, usage=counted(3000)), 3000),
        (WORDS + chunk({}, usage=counted(3000)) + END, 3000),
        (WORDS + chunk({}, usage=counted(3000)), 3000),
        (chunk({"content": ""}, usage=counted(1)) + WORDS + END + chunk({}, usage=counted(3000)), 3000),
        (chunk({"content": "a"}, usage=counted(1)) + chunk({"content": "b"}, usage=counted(2)) + END, 2),
    ],
)
async def test_a_usage_counts_only_where_it_is_of_the_whole_answer(body, output):
    completion = await streamed(body + "data: [DONE]\n\n")
    assert (completion.reported, completion.usage.output_tokens) == (output is not None, output or 0)


@promise("models:streamed-fragments")
async def test_comments_other_fields_and_windows_line_ends_are_passed_over():
    body = ": ping\r\n\r\nevent: x\r\nid: 7\r\n" + chunk({"content": "a"}, finish_reason="stop").replace("\n", "\r\n")
    assert (await streamed(body)).message["content"] == "a"


@promise("models:streamed-fragments")
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\ufeff\n\n"])
@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_lines_end_and_events_are_parted_in_each_legal_way(end, before, size):
    said = [{"delta": {"content": "a"}}, {"delta": {"content": "b: ["}, "finish_reason": "stop"}]
    events = [json.dumps({"choices": [each]}, indent=indent) for each, indent in zip(said, (2, None), strict=True)]
    texts = ["".join(f"data: {line}\n" for line in event.splitlines()) + "\n" for event in events]
    body = f"{before}{''.join(texts)}data: [DONE]\n\n".replace("\n", end).encode()
    pieces = (body[at : at + size] for at in range(0, len(body), size))

    async def parts():
        for each in pieces:
            yield each

    for answer in (await read_answer(parts(), lambda _: None), await read_whole(body)):
        assert answer["choices"][0]["message"]["content"] == "ab: ["


@promise("models:streams-none")
@pytest.mark.parametrize(
    "body",
    [
        "<html>no</html>",
        "data: no json\n\n",
        "data: [1]\n\n",
        'data: {"choices": [7]}\n\n',
        'data: {"choices": [{"delta": [7]}]}\n\n',
        'data: {"choices": [{"delta": {"tool_calls": [7]}}]}\n\n',
        f"data: {'[' * 100_000}\n\n",
        "",
        ": nothing but comments\n\n",
        "data: [DONE]\n\n",
        'data: {"choices": null, "usage": null}\n\ndata: [DONE]\n\n',
    ],
)
async def test_a_stream_that_is_no_completion_is_taken_for_none(body):
    with pytest.raises(ModelUnavailable) as caught:
        await streamed(body)
    assert "not a chat completion; check OPENAI_BASE_URL" in str(caught.value)
    assert caught.value.facts["unbilled"] is False


@promise("models:streams-broken")
@pytest.mark.parametrize("body", [chunk({"content": "half"}), chunk({"content": "half"}) + 'data: {"error": {}}\n\n'])
async def test_a_stream_that_breaks_off_is_no_answer_and_may_have_been_billed(body):
    with pytest.raises(ModelUnavailable) as caught:
        await streamed(body)
    assert "broke off its answer" in str(caught.value)
    assert caught.value.facts["unbilled"] is False


@promise("models:streams-broken")
async def test_a_connection_that_is_cut_amid_the_stream_is_no_answer_either():
    said = []
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(text="one two three four", piece=4, then="cut"), streamed=True, said=said)
    assert "does not answer" in str(caught.value)
    assert caught.value.facts["unbilled"] is False
    assert said[:2] == ["one ", "two "]


@promise("models:streams-refusal")
@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=400),
        Reply(status=401),
        Reply(status=404),
        Reply(status=422),
        Reply(status=429, headers={"retry-after": "7"}),
        Reply(status=429, code="insufficient_quota"),
        Reply(status=400, code="context_length_exceeded"),
        Reply(status=500),
        Reply(status=503),
    ],
)
async def test_a_refusal_is_the_same_with_a_stream_as_without(reply):
    faults = []
    for streamed_too in (False, True):
        with pytest.raises((ModelUnavailable, ModelRefused)) as caught:
            await asked(reply, streamed=streamed_too)
        faults.append((type(caught.value), str(caught.value), caught.value.facts))
    assert faults[0] == faults[1]


@promise("models:streams-unsent")
async def test_a_connection_that_nobody_takes_is_proven_unsent():
    async with client_of("http://127.0.0.1:9/v1") as client:
        with pytest.raises(ModelUnavailable) as caught:
            await complete(client, HttpPost(written({**REQUEST, **STREAMED})), say=[].append)
    assert caught.value.facts["unbilled"] is True


HEAD = b"HTTP/1.1 %s\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


@asynccontextmanager
async def raw_endpoint(head, part, pause_s=0.0):
    """Answer every request with a head and the same part again and again; yields a client, requests and sizes."""
    requests, sizes = [], []

    async def answer(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            requests.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(head)
            while True:
                writer.write(part)
                await writer.drain()
                sizes.append(len(part))
                await asyncio.sleep(pause_s)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with server, client_of(address) as client:
        yield client, requests, sizes


@promise("models:hostile-streams")
@pytest.mark.parametrize(
    ("status", "part", "most"),
    [
        (b"200 OK", b"x" * 65_536, ANSWER_BYTES),
        (b"200 OK", b"data: " + b"x" * 65_536, ANSWER_BYTES),
        (b"200 OK", b'{"a": ' + b"x" * 65_536, ANSWER_BYTES),
        (b"200 OK", b"\n" * 65_536, MOST_LINES),
        (b"200 OK", b": " + b"x" * 65_536 + b"\n", STREAM_BYTES),
        (b"200 OK", b":\n" * 32_768, MOST_LINES),
        (b"200 OK", chunk({"content": "x" * 60_000}).encode(), ANSWER_BYTES),
        (b"200 OK", chunk(fragment("x" * 60_000, index=0)).encode(), ANSWER_BYTES),
        (b"500 Internal Server Error", b"x" * 65_536, ANSWER_BYTES),
        (b"400 Bad Request", b"x" * 65_536, ANSWER_BYTES),
    ],
    ids=[
        "one line",
        "one event",
        "json",
        "line breaks",
        "comments",
        "short lines",
        "words",
        "arguments",
        "an error",
        "a refusal",
    ],
)
async def test_a_stream_without_end_is_not_read_to_its_end(status, part, most):
    async with raw_endpoint(HEAD % status, part) as (client, _, sizes):
        with pytest.raises(ModelUnavailable) as caught:
            await complete(client, HttpPost(written({**REQUEST, **STREAMED})), say=[].append)
    assert f"more than {most} " in str(caught.value)
    assert caught.value.facts["unbilled"] is False
    assert sum(sizes) < 2 * max(most, ANSWER_BYTES) + 32 * 1024 * 1024


@promise("models:hostile-streams")
async def test_a_stream_that_drips_is_given_up_although_it_never_falls_silent():
    said = []
    async with raw_endpoint(HEAD % b"200 OK", chunk({"content": "x "}).encode(), 0.05) as (client, _, _sizes):
        with pytest.raises(ModelUnavailable) as caught:
            await complete(client, HttpPost(written({**REQUEST, **STREAMED})), within_s=1, say=said.append)
    assert "has not answered within 1 s" in str(caught.value)
    assert len(said) > 1


@promise("models:streamed-not")
async def test_the_endpoint_is_told_that_a_stream_is_accepted():
    async with raw_endpoint(HEAD % b"200 OK", b"x" * 65_536) as (client, requests, _):
        with pytest.raises(ModelUnavailable):
            await complete(client, HttpPost(written({**REQUEST, **STREAMED})), say=[].append)
    head = requests[0].decode().lower()
    assert "accept: text/event-stream" in head
    assert "accept-encoding: identity" in head


@promise("models:error-lines")
@pytest.mark.parametrize("streamed_too", [True, False])
@pytest.mark.parametrize("form", ["error: {}\n\n", "event: error\nid: 7\ndata: {}\n\n"])
async def test_an_error_under_a_name_of_its_own_in_a_stream_is_an_error(form, streamed_too):
    # ggml-org/llama.cpp#16109, #16486
    said = {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 8192}
    line = form.replace("{}", json.dumps(said)) + "data: [DONE]\n\n"
    reply, half = (Reply(body=(body + line).encode()) for body in ("", chunk({"content": "half"})))
    with pytest.raises(ContextTooLong) as caught:
        await asked(reply, streamed=streamed_too)
    assert (caught.value.facts["unbilled"], caught.value.refusal.lesson["context_tokens"]) == (True, 8192)
    with pytest.raises(ModelUnavailable, match=r"with an error.*context size") as broken:
        await asked(half, streamed=streamed_too)
    assert broken.value.facts["unbilled"] is False
    words = Reply(body=form.replace("{}", "it is gone").encode())
    with pytest.raises(ModelUnavailable, match="it is gone"):
        await asked(words, streamed=streamed_too)


@promise("models:streamed-done")
async def test_an_answer_counts_when_it_is_done_though_the_connection_stays_open():
    part = chunk({"content": "hello"}, finish_reason="stop") + "data: [DONE]\n\n"
    async with raw_endpoint(HEAD % b"200 OK", part.encode(), 0.5) as (client, _, _sizes):
        completion = await complete(client, HttpPost(written({**REQUEST, **STREAMED})), say=[].append)
    assert completion.message["content"] == "hello"


@promise("models:streamed-fragments")
@pytest.mark.parametrize("streamed_too", [True, False])
async def test_nulls_amid_a_stream_are_passed_over_and_a_stream_that_nobody_asked_for_is_read(streamed_too):
    # earendil-works/pi#2468, Kilo-Org/kilocode#3083, pydantic/pydantic-ai#5165, unslothai/unsloth#6570,
    # sgl-project/mini-sglang#51
    nulls = 'data: null\n\ndata: {"choices": null}\n\ndata: {"choices": [null]}\n\ndata: "ping"\n\n'
    call = fragment('{"x": 1}', index=0, id="a", name="one")
    call["tool_calls"].append(None)
    body = ": wait\n\n" + nulls + chunk(call) + nulls + chunk({}, finish_reason="tool_calls") + "data: [DONE]\n\n"
    reply = Reply(body=body.encode(), headers={"content-type": "text/event-stream"})
    completion = await asked(reply, streamed=streamed_too)
    assert [made["function"]["name"] for made in completion.message["tool_calls"]] == ["one"]
    assert completion.finish_reason == "tool_calls"


CALL_OF_ONE = {"id": "a", "type": "function", "function": {"name": "one", "arguments": "{}"}}


@promise("models:streamed-fragments")
@pytest.mark.parametrize(("finish", "made"), [("tool_calls", True), ("stop", False)])
async def test_words_and_calls_in_choices_of_their_own_are_one_answer_that_ends_with_calls(finish, made):
    # HKUDS/nanobot#1555: GitHub Copilot
    parts = [{"role": "assistant", "content": "I do it."}, {"role": "assistant", "tool_calls": [CALL_OF_ONE]}]
    choices = [
        {"index": index, "message": part, "finish_reason": finish if index == 0 else "tool_calls"}
        for index, part in enumerate(parts)
    ]
    whole = await asked(Reply(body=json.dumps({"choices": choices}).encode()), streamed=False)
    events = [{"choices": [{"index": index, "delta": part, "finish_reason": None}]} for index, part in enumerate(parts)]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    told = await streamed("".join(f"data: {json.dumps(event)}\n\n" for event in events))
    for completion in (whole, told):
        assert completion.message["content"] == "I do it."
        assert bool(completion.message.get("tool_calls")) == made


CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": '{"x": 1}'}}


@promise("models:streamed-fragments")
@pytest.mark.parametrize(
    "last",
    [
        {
            "index": 0,
            "delta": {"role": "assistant", "content": "Now.", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        },
        {"index": 0, "delta": {}, "message": {"content": "Now.", "tool_calls": [CALL]}, "finish_reason": "tool_calls"},
        {"index": 0, "message": {"content": "Now.", "tool_calls": [CALL]}, "finish_reason": "tool_calls"},
    ],
)
async def test_a_call_that_is_repeated_behind_its_pieces_is_one_call(last):
    # perplexityai/api-discussion#209 (kind): the whole message once more
    pieces = [
        {"tool_calls": [{**CALL, "function": {"name": "one", "arguments": '{"x":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]},
    ]
    told = await streamed("".join(map(chunk, pieces)) + f"data: {json.dumps({'choices': [last]})}\n\n")
    message = {"role": "assistant", "tool_calls": [CALL, CALL]}
    whole = await asked(Reply(body=json.dumps({"choices": [{"message": message}]}).encode()), streamed=False)
    for completion in (told, whole):
        assert [made["function"]["arguments"] for made in completion.message["tool_calls"]] == ['{"x": 1}']


NESTED = json.dumps('{"x": 1}')


@promise("models:repeated-calls")
@pytest.mark.parametrize(
    "again",
    [
        # BerriAI/litellm#20480: in a string of JSON; lidge-jun/opencodex#361: without a name
        {"index": 0, "id": "a", "function": {"arguments": NESTED}},
        {"index": 0, "id": "a", "function": {"name": "one", "arguments": NESTED}},
        {"index": 0, "function": {"arguments": '{"x": 1}'}},
        {"index": 0, "function": {"arguments": {"x": 1}}},
        {"index": 0, "id": "a", "function": {"name": "one", "arguments": '{"x":1}'}},
        {"index": 1, "id": "a", "function": {"name": "one", "arguments": '{ "x": 1 }'}},
    ],
)
async def test_a_call_whose_arguments_come_again_written_in_another_way_is_made_once(again):
    pieces = [{**CALL, "function": {"name": "one", "arguments": '{"x":'}}, fragment(" 1}", index=0)["tool_calls"][0]]
    body = "".join(chunk({"tool_calls": [each]}) for each in (*pieces, again))
    told = await streamed(body + chunk({}, finish_reason="tool_calls"))
    repeated = {**again, "id": "a", "function": {"name": "one", **again["function"]}}
    body = {"choices": [{"message": {"role": "assistant", "tool_calls": [CALL, repeated]}}]}
    whole = await asked(Reply(body=json.dumps(body).encode()), streamed=False)
    for completion in (told, whole):
        assert [made["function"]["arguments"] for made in completion.message["tool_calls"]] == ['{"x": 1}']


@promise("models:repeated-calls")
async def test_calls_that_are_alike_but_not_the_same_are_all_made():
    # One number each and no ids, and values that some take for equal.
    first, second = fragment('{"x": 1}', index=0, name="one"), fragment("", index=1, name="one")
    body = "".join(map(chunk, (first, second, fragment('{"x": 1}', index=1))))
    other = fragment('{"x": true}', index=2, id="a", name="one"), fragment('{"x": 1}', index=3, id="a", name="one")
    told = await streamed(body + "".join(map(chunk, other)) + chunk({}, finish_reason="tool_calls"))
    given = [made["function"]["arguments"] for made in told.message["tool_calls"]]
    assert given == ['{"x": 1}', '{"x": 1}', '{"x": true}', '{"x": 1}']


@promise("models:calls-of-one-id")
async def test_calls_of_two_functions_are_two_though_their_id_and_number_are_the_same_and_one_takes_nothing():
    for arguments in (["{}", '{"x": 1}'], ['{"x": 1}', "{}"], ["{}", "{}"], [{}, {"x": 1}]):
        pieces = [fragment(given, index=0, id="a", name=f"f{n}") for n, given in enumerate(arguments)]
        told = await streamed("".join(map(chunk, pieces)) + chunk({}, finish_reason="tool_calls"))
        made = [call["function"] for call in told.message["tool_calls"]]
        assert [(call["name"], call["arguments"]) for call in made] == [("f0", arguments[0]), ("f1", arguments[1])]


@promise("models:calls-as-meant")
async def test_a_call_of_several_functions_at_once_is_a_call_of_each():
    # vercel/ai#2786
    uses = [{"recipient_name": f"functions.{name}", "parameters": {"x": 1}} for name in ("one", "two")]
    function = {"name": "multi_tool_use.parallel", "arguments": json.dumps({"tool_uses": uses})}
    for arguments, names in ((function["arguments"], ["functions.one", "functions.two"]), ("[]", [function["name"]])):
        call = {"id": "a", "type": "function", "function": function | {"arguments": arguments}}
        body = {"choices": [{"message": {"role": "assistant", "tool_calls": [call]}}]}
        completion = await asked(Reply(body=json.dumps(body).encode()), streamed=False)
        made = completion.message["tool_calls"]
        assert [call["function"]["name"] for call in made] == names
        assert len({call["id"] for call in made}) == len(made)
