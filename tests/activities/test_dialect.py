"""In which form a request is sent, and what of it is learned from a refusal."""

import asyncio
import json

import openai
import pytest

from activities.endpoints.client import ModelClient
from activities.endpoints.dialect import PLAIN, Dialect, shipped
from activities.endpoints.endpoints import Target
from activities.model.completion import HttpPost, complete, written
from activities.model.learned import HELD_S, LearnedDialects
from activities.model.learning import Lessons
from activities.model.message import MessageExtras, grown, in_one_form
from activities.model.opaque import FIELD, MOST_BYTES, Opaque, maker, masked, with_beside
from activities.model.output import value_in
from activities.model.probing import probe
from activities.model.refusals import fault_in, refusal_of
from activities.model.request import messages_of
from activities.model.schemas import simple
from activities.model.shaping import shaped
from activities.model.streaming import STREAMED
from backstay.digests.broken_up import break_up
from backstay.errors import ModelRefused, ModelUnavailable
from backstay.redaction.redactor import Redactor
from backstay.task.context import SENT, weight
from backstay.testing import Reply, ScriptedModel
from tests.requirements import promise


def called(*ids):
    calls = [{"id": each, "type": "function", "function": {"name": "a", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool(call_id):
    return {"role": "tool", "tool_call_id": call_id, "content": "{}"}


def user(text):
    return {"role": "user", "content": text}


SYSTEM = {"role": "developer", "content": "s"}
REQUEST = {
    "model": "m",
    "max_completion_tokens": 100,
    "messages": [SYSTEM, user("t"), user("n"), called("x", "x2"), tool("x"), tool("x2"), user("Left: 3 steps.")],
}


def roles(request):
    return [message["role"] for message in request["messages"]]


@promise("models:dialects")
def test_the_usual_form_is_left_as_it_is():
    assert shaped(REQUEST, PLAIN) is REQUEST


@promise("models:dialects")
def test_each_trait_changes_what_it_names_and_no_text_is_lost():
    assert "max_tokens" in shaped(REQUEST, Dialect(limit="max_tokens"))
    assert not {"max_tokens", "max_completion_tokens"} & shaped(REQUEST, Dialect(limit="none")).keys()
    assert roles(shaped(REQUEST, Dialect(roles="bridged")))[-3:] == ["tool", "assistant", "user"]
    alternating = shaped(REQUEST, Dialect(roles="alternating", system="first"))
    assert roles(alternating) == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert alternating["messages"][1]["content"] == "t\n\nn"
    assert shaped(REQUEST, Dialect(system="user"))["messages"][0] == user("s\n\nt")
    assert roles(shaped(REQUEST, Dialect(system="system")))[0] == "system"
    assert shaped(REQUEST, Dialect(content="empty"))["messages"][3]["content"] == ""
    assert "content" not in shaped(REQUEST, Dialect(content="absent"))["messages"][3]
    single = shaped(REQUEST, Dialect(parallel=False))
    assert roles(single)[3:7] == ["assistant", "tool", "assistant", "tool"]
    assert shaped(REQUEST, Dialect(answer_tokens=7))["max_completion_tokens"] == 7
    short = shaped(REQUEST, Dialect(ids="short"))["messages"]
    ids = [call["id"] for call in short[3]["tool_calls"]]
    assert [message["tool_call_id"] for message in short[4:6]] == ids
    assert all(len(each) == 9 and each.isalnum() for each in ids)


@promise("models:dialects")
def test_pictures_stay_where_messages_are_joined_and_go_where_they_are_refused():
    seen = [{"type": "text", "text": "This is it:"}, {"type": "image_url", "image_url": {"url": "data:,x"}}]
    messages = [SYSTEM, user("t"), user(seen), user("n"), called("x"), tool("x"), user(seen)]
    request = {"model": "m", "messages": messages}
    (first, *_, last) = shaped(request, Dialect(roles="alternating", system="user"))["messages"]
    texts = [{"type": "text", "text": text} for text in ("s\n\nt", "n")]
    assert (first["content"], last["content"]) == ([texts[0], *seen, texts[1]], seen)
    blind = shaped(request, Dialect(images=False))["messages"][-1]["content"]
    assert blind == [seen[0], {"type": "text", "text": "You do not see it: the model endpoint does not take it."}]


@promise("models:dialects")
@pytest.mark.parametrize(
    ("address", "limit"),
    [
        ("https://api.mistral.ai/v1", "max_tokens"),
        ("https://api.deepseek.com", "max_tokens"),
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://api.mistral.ai.example.com/v1", "max_completion_tokens"),
        # https://docs.ollama.com/api/openai-compatibility, ollama/ollama#7125
        ("http://127.0.0.1:11434/v1", "max_tokens"),
        ("https://ollama.com/v1", "max_tokens"),
        # https://lmstudio.ai/docs/developer/openai-compat/chat-completions
        ("http://localhost:1234/v1", "max_tokens"),
        # ggml-org/llama.cpp#13700
        ("http://[::1]:8080/v1", "max_tokens"),
        # https://docs.vllm.ai/en/latest/serving/openai_compatible_server/: takes both
        ("http://127.0.0.1:8000/v1", "max_completion_tokens"),
        ("https://example.com:11434/v1", "max_completion_tokens"),
        ("http://127.0.0.1:114340/v1", "max_completion_tokens"),
    ],
)
def test_the_dialects_of_known_vendors_are_shipped(address, limit):
    assert shipped(address).limit == limit


@promise("models:dialects")
def test_what_is_no_part_of_a_dialect_is_not_learned():
    assert PLAIN.taught({"limit": "max_bytes"}) == PLAIN
    assert PLAIN.taught({"nonsense": 1}) == PLAIN
    twice = PLAIN.taught({"without": ["a"]}).taught({"without": ["b"], "limit": "max_tokens"})
    assert twice.lesson(PLAIN) == {"limit": "max_tokens", "without": ["a", "b"]}


def target(name="m", where="http://a/v1", client=None):
    return Target(name, False, name, where, client or ModelClient(), None)


STREAMS_ONLY = [
    # langchain4j/langchain4j#3974, musistudio/claude-code-router#948, infiniflow/ragflow#5912: DashScope, ModelScope
    ("parameter.enable_thinking must be set to false for non-streaming calls", "invalid_parameter_error"),
    ("enable thinking can not be support when `stream=False`.", "invalid_parameter_error"),
    ("This model only support stream mode, please enable the stream parameter.", "invalid_parameter_error"),
    # nullclaw/nullclaw#231: Fireworks; leookun/cursor-byok#14: Codex
    ("Requests with max_tokens > 4096 must have stream=true", "BAD_REQUEST"),
    ("Stream must be set to true", None),
]


@promise("models:streams-only")
@pytest.mark.parametrize(("message", "code"), STREAMS_ONLY)
def test_a_model_that_answers_in_streams_only_is_asked_for_them_and_nothing_else_goes(message, code):
    request, lessons = {**REQUEST, "reasoning_effort": "high"}, Lessons(PLAIN)
    refusal = refusal_of(400, {"error": {"message": message, "code": code, "type": "invalid_request_error"}})
    assert lessons.learns(refusal, request)
    assert lessons.dialect.lesson(PLAIN) == {"stream": True}
    assert shaped(request, lessons.dialect) == {**request, **STREAMED}
    # The fields of a stream go where they are refused.
    said = "body.stream_options: Extra inputs are not permitted"
    assert lessons.learns(refusal_of(422, {"error": {"message": said}}), request)
    assert shaped(request, lessons.dialect) == {**request, "stream": True}


@promise("models:streams-unlearned")
def test_streams_that_were_learned_are_unlearned_where_they_are_refused_and_those_that_were_named_are_not(tmp_path):
    learned, of, streams = LearnedDialects(tmp_path), target(), Dialect(stream=True)
    learned.note(of, {"stream": True, "limit": "max_tokens"}, "")
    refusal = refusal_of(400, {"error": {"message": "Streaming is not supported for this model."}})
    lessons = Lessons(PLAIN.taught(learned.of(of)))
    assert lessons.learns(refusal, REQUEST)
    assert "stream" not in shaped(REQUEST, lessons.dialect)
    learned.note(of, {"stream": False}, "")
    assert learned.of(of) == {"limit": "max_tokens"}
    learned.note(of, {"limit": "max_completion_tokens"}, "")
    assert [*learned.lately()] == []
    for message, given in (
        ("Streaming is not supported for this model.", streams),
        ("body.stream_options: Extra inputs are not permitted", PLAIN),
        (STREAMS_ONLY[0][0], PLAIN),
        ("The server is busy with other streams.", PLAIN),
    ):
        lessons = Lessons(streams, given=given)
        lessons.learns(refusal_of(400, {"error": {"message": message}}), REQUEST)
        assert lessons.dialect.stream


@promise("models:streams-only")
async def test_a_probe_learns_that_a_model_answers_in_streams_only(tmp_path):
    message, code = STREAMS_ONLY[0]

    def streaming(talk):
        return Reply(text="Hi") if talk.body.get("stream") else Reply(status=400, text=message, code=code)

    learned = LearnedDialects(tmp_path)
    async with ScriptedModel(streaming) as model:
        client = ModelClient(model.base_url, "none")
        asked = target(where=model.base_url, client=client)
        found = await probe(asked, learned, within_s=10)
        assert (found.answered, found.lesson) == (True, "stream: True")
        assert (await probe(asked, learned, within_s=10)).refused == ()
        await client.close()
        assert [body.get("stream", False) for body in model.requests] == [False, True, True]


@promise("models:dialects")
def test_what_was_learned_is_known_to_other_workers_of_the_host_for_a_day(tmp_path):
    now = [1000.0]
    each, other = LearnedDialects(tmp_path, lambda: now[0]), LearnedDialects(tmp_path, lambda: now[0])
    each.note(target(), {"limit": "max_tokens"}, "")
    each.note(target(), {"without": ["strict"]}, "")
    assert other.of(target()) == {"limit": "max_tokens", "without": ["strict"]}
    assert other.of(target(where="http://b/v1")) == {}
    now[0] += HELD_S - 1
    each.note(target(), {"system": "first"}, "")
    assert other.of(target()).keys() == {"limit", "without", "system"}
    # What is added does not keep for longer what was there.
    now[0] += 2
    assert other.of(target()) == {}
    each.note(target(), {"system": "first"}, "")
    now[0] += HELD_S + 1
    assert other.of(target()) == {}


@promise("models:functions")
@pytest.mark.parametrize(
    ("schema", "properties"),
    [
        # lharries/mcphost#88, openai/openai-agents-python#449, karakeep-app/karakeep#1831, bnb-chain/bnbchain-mcp#68
        ({"type": "object"}, {}),
        ({"type": "object", "properties": {"x": True}}, {"x": {"type": "string"}}),
        (
            {"type": "object", "properties": {"x": {"type": "array"}}},
            {"x": {"type": "array", "items": {"type": "string"}}},
        ),
        ({"anyOf": [{"properties": {"x": {"type": "integer"}}}, {}]}, {"x": {"type": "integer"}}),
        (
            {
                "type": "object",
                "properties": {"x": {"$ref": "#/$defs/X"}},
                "$defs": {"X": {"type": ["null", "number"]}},
            },
            {"x": {"type": "number"}},
        ),
        ({"properties": {"x": {"const": 1, "exclusiveMinimum": 0, "type": "integer"}}}, {"x": {"type": "integer"}}),
        ({"properties": {"x": {"$ref": "#/properties/x"}}}, {"x": {"type": "string"}}),
        (
            {"properties": {"x": {"anyOf": [{"type": "null"}, {"enum": ["a", 1]}]}}},
            {"x": {"type": "string", "enum": ["a"]}},
        ),
    ],
)
def test_a_schema_is_put_simply(schema, properties):
    found = simple({"type": "function", "function": {"name": "a", "description": "", "parameters": schema}})
    assert found["function"]["parameters"]["properties"] == properties
    assert found["function"]["parameters"]["type"] == "object"


@promise("models:opaque")
def test_what_stands_beside_is_kept_apart_and_never_overwrites_what_is_ours():
    message = {
        "role": "user",
        "content": "c",
        "tool_call_id": "z",
        "reasoning": "r",
        "annotations": [1],
        "tool_calls": [
            {
                "id": "a",
                "type": "x",
                "index": 0,
                "extra": {"s": "é\\u0000"},
                "function": {"name": "f", "arguments": "{}", "sig": 1},
            }
        ],
    }
    plain, beside = in_one_form(message)
    assert (beside.message, beside.calls, beside.functions) == (
        {"reasoning": "r"},
        ({"extra": {"s": "é\\u0000"}},),
        ({"sig": 1},),
    )
    ours = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "b", "type": "function", "function": {"name": "g", "arguments": "[]"}}],
    }
    hostile = MessageExtras(
        {"role": "user", "content": "x", "tool_calls": [], "reasoning": "r"},
        ({"id": "z", "function": {}, "e": 1},),
        ({"name": "z", "arguments": "z"},),
    )
    found = with_beside(ours, hostile)
    assert (found["role"], found["content"], found["reasoning"]) == ("assistant", None, "r")
    assert found["tool_calls"] == [
        {"id": "b", "type": "function", "e": 1, "function": {"name": "g", "arguments": "[]"}}
    ]
    assert plain["content"] == "c"


@promise("models:opaque-sealed")
async def test_it_is_sealed_bounded_weighed_and_given_to_its_own_model_only(opened):
    async with opened() as (arguments, records, transcripts):
        opaque = Opaque(records, transcripts)
        run = "task-1/run"
        kept = await opaque.keep(run, target(), MessageExtras({"reasoning_content": "secretive thoughts"}))
        item = {"kind": "said", "text": "t", "calls": [], **kept}
        assert "secretive" not in json.dumps(item)
        sent = {**item, FIELD: {**kept[FIELD], SENT: True}}
        assert weight(sent) == weight(item) + len(f',"{SENT}":true') + kept[FIELD]["bytes"]
        opaque.recent.clear()
        found = await opaque.of(run, target(), [item])
        (message,) = messages_of([item], "system", found)
        assert message["reasoning_content"] == "secretive thoughts"
        assert messages_of([item], "system") == [{"role": "assistant", "content": "t"}]
        assert await opaque.of(run, target(where="http://b/v1"), [item]) == {}
        assert await opaque.of(run, target("other"), [item]) == {}
        large = MessageExtras({"reasoning": "x" * MOST_BYTES})
        assert FIELD not in await opaque.keep(run, target(), large)
        leaking = MessageExtras({"reasoning": "it is known-secret-value"})
        assert await opaque.keep(run, target(), leaking) == {"opaque_dropped": "it holds a known secret"}
        assert await opaque.keep(run, target(), MessageExtras({"reasoning": "\ud83d"})) == {
            "opaque_dropped": "it cannot be sent as it came"
        }
        assert maker(target()) != maker(target("other"))
        assert arguments is not None


@promise("models:opaque")
def test_a_secret_that_is_known_later_takes_it_out_and_leaves_the_message():
    message = {
        "role": "assistant",
        "content": "a later-secret b",
        "reasoning": "a later-secret b",
        "thinking_blocks": [1],
    }
    request = {"messages": [message, {"role": "user", "content": "later-secret"}]}
    found = masked(request, Redactor({"later-secret"}))
    assert set(found["messages"][0]) == {"role", "content"}
    assert "later-secret" not in json.dumps(found)
    assert masked(request, Redactor({"another"})) is request


@promise("models:opaque")
def test_what_stands_beside_a_streamed_answer_is_put_together():
    known = {}
    for piece in (
        {"reasoning": "I ", "reasoning_details": [{"type": "reasoning.text", "text": "I ", "index": 0}]},
        {
            "reasoning": "see.",
            "reasoning_details": [{"type": "reasoning.text", "text": "see.", "index": 0, "signature": "s"}],
        },
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d1", "index": 1}], "extra": {"a": {"b": 1}}},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d2", "index": 2}], "extra": {"a": {"c": 2}}},
    ):
        grown(known, piece)
    assert known == {
        "reasoning": "I see.",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "I see.", "index": 0, "signature": "s"},
            {"type": "reasoning.encrypted", "data": "d1", "index": 1},
            {"type": "reasoning.encrypted", "data": "d2", "index": 2},
        ],
        "extra": {"a": {"b": 1, "c": 2}},
    }


def piece(arguments, name=None, **more):
    return {**more, "function": {"arguments": arguments, **({"name": name} if name else {})}}


STREAMS = {
    # mcowger/plexus#691, su-kaka/gcli2api#406, 0xPlaygrounds/rig#1443, apache/maka#1976: one number, ids of their own
    "ids": [piece('{"n":1}', "a", index=0, id="x"), piece('{"n":2}', "a", index=0, id="y")],
    # huggingface/smolagents#1958: one number and no ids
    "whole": [piece('{"n":1}', "a", index=0), piece('{"n":2}', "a", index=0)],
    # ggml-org llama.cpp, hermes-agent#70724: one number and one id
    "same": [piece('{"n":1}', "a", index=0, id="x"), piece('{"n":2}', "a", index=0, id="x")],
    "pieces": [
        piece('{"n"', "a", index=0, id="x"),
        piece(":1}", index=0),
        piece('{"n":2', "a", index=0, id="y"),
        piece("}", index=0),
    ],
    "objects": [piece({"n": 1}, "a", index=0), piece({"n": 2}, "a", index=0)],
    "none": [piece('{"n":1}', "a", id="x"), piece('{"n":2}', "a", id="y")],
    "nothing": [piece('{"n":1}', "a"), piece('{"n":2}', "a")],
    # QwenLM/Qwen-Agent#943: interleaved
    "mixed": [
        piece('{"n"', "a", index=0, id="x"),
        piece('{"n"', "a", index=1, id="y"),
        piece(":1}", index=0),
        piece(":2}", index=1),
    ],
    # the name or an id of its own with each piece
    "repeated": [
        piece('{"n"', "a", index=0, id="x"),
        piece(":1}", "a", index=0, id="x"),
        piece('{"n":2}', "a", index=1, id="y"),
    ],
    "fresh ids": [
        piece('{"n"', "a", index=0, id="x"),
        piece(":1}", index=0, id="z"),
        piece('{"n":2}', "a", index=1, id="y"),
    ],
}


OPENED = {
    # envoyproxy/ai-gateway#1465, openai/openai-agents-js#712, unslothai/unsloth#10275
    "an object": [piece({}, "a", index=0, id="x"), piece('{"n"', index=0), piece(":1}", index=0)],
    "a text": [piece("{}", "a", index=0, id="x"), piece('{"n"', index=0), piece(":1}", index=0)],
    "the name each time": [
        piece("{}", "a", index=0, id="x"),
        *[piece(each, "a", index=0, id="x") for each in ('{"n"', ":1}")],
    ],
    "objects": [piece({}, "a", index=0, id="x"), piece({"n": 1}, "a", index=0, id="x")],
    "no number": [piece("", "a", id="x"), piece(" {} ", id="x"), piece('{"n":1}', id="x")],
}


MISNUMBERED = {
    # pipecat-ai/pipecat#4688, dirac-run/dirac#215: Nebius, Cerebras
    "the last piece": [
        piece('{"n":1}', "a", index=0, id="x"),
        piece('{"n"', "a", index=1, id="y"),
        piece(":2}", index=2),
    ],
    # 6Kmfi6HP/opencode2api#17
    "the arguments": [
        piece('{"n":1}', "a", index=0, id="x"),
        piece("", "a", index=1, id="y"),
        {"index": 2, "id": None, "function": {"name": "", "arguments": '{"n"'}},
        piece(":2}", index=2),
    ],
    # agno-agi/agno#8880: DeepSeek behind a gateway
    "the beginning": [
        piece('{"n":1}', "a", index=0, id="x"),
        piece('{"n"', "a", index=0, id="y"),
        piece(":2}", index=1),
    ],
    "known ids": [
        piece('{"n"', "a", index=0, id="x"),
        piece('{"n"', "a", index=1, id="y"),
        piece(":1}", index=1, id="x"),
        piece(":2}", index=7, id="y"),
    ],
}


async def streamed(*deltas, end="tool_calls", tail=""):
    choices = [*({"index": 0, "delta": delta} for delta in deltas), {"index": 0, "delta": {}, "finish_reason": end}]
    body = "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)
    reply = Reply(body=f"{tail or body}data: [DONE]\n\n".encode(), headers={"content-type": "text/event-stream"})
    async with (
        ScriptedModel([reply]) as model,
        openai.AsyncOpenAI(api_key="none", base_url=model.base_url, max_retries=0) as client,
    ):
        return await complete(client, HttpPost(written({"model": "m", **STREAMED})), say=lambda _: None)


@promise("models:grown-arguments")
async def test_arguments_that_come_whole_so_far_with_each_piece_are_the_last_of_them():
    # NousResearch/hermes-agent#35718: DeepSeek by Qianfan
    pieces = [piece('{"n"', "a", index=0, id="x"), piece('{"n":1', index=0), piece('{"n":1}', index=0)]
    for given, arguments in (
        (pieces, '{"n":1}'),
        ([*pieces, pieces[-1]], '{"n":1}'),
        # A piece that begins as the one before does, in what is JSON together
        ([piece('{"n":', "a", index=0, id="x"), piece("1", index=0), piece("11}", index=0)], '{"n":111}'),
        # No JSON in either way
        ([piece('{"n"', "a", index=0, id="x"), piece('{"n":1', index=0)], '{"n"{"n":1'),
    ):
        (call,) = (await streamed(*({"tool_calls": [each]} for each in given))).message["tool_calls"]
        assert call["function"]["arguments"] == arguments


@promise("models:empty-calls")
async def test_a_call_of_nothing_that_ends_a_stream_is_no_call():
    # CangShui/workbuddy-gateway#3
    for stub in ({"function_call": {"name": "", "arguments": ""}}, {"tool_calls": [piece("", index=0)]}):
        words = await streamed({"content": "Done."}, stub, end="stop")
        assert (words.message["content"], "tool_calls" in words.message) == ("Done.", False)
        called_too = await streamed({"tool_calls": [piece('{"n":1}', "a", index=1, id="x")]}, stub)
        assert [call["function"]["name"] for call in called_too.message["tool_calls"]] == ["a"]


@promise("models:wrong-numbers")
async def test_a_piece_of_a_streamed_call_is_added_to_it_although_it_has_another_number():
    for name, pieces in MISNUMBERED.items():
        made = (await streamed(*({"tool_calls": [each]} for each in pieces))).message["tool_calls"]
        given = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in made]
        assert given == [("x", "a", '{"n":1}'), ("y", "a", '{"n":2}')], name


@promise("models:parallel-streams")
async def test_streamed_calls_that_share_a_number_or_have_none_stay_apart():
    found = await asyncio.gather(
        *(streamed(*({"tool_calls": [each]} for each in pieces)) for pieces in STREAMS.values())
    )
    for name, completion in zip(STREAMS, found, strict=True):
        given = [call["function"]["arguments"] for call in completion.message["tool_calls"]]
        read = [json.loads(each) if isinstance(each, str) else each for each in given]
        assert read == [{"n": 1}, {"n": 2}], name
        assert {call["function"]["name"] for call in completion.message["tool_calls"]} == {"a"}, name


@promise("models:opened-empty")
async def test_a_streamed_call_that_opens_with_empty_arguments_is_made_once_with_those_that_follow():
    for name, pieces in OPENED.items():
        (call,) = (await streamed(*({"tool_calls": [each]} for each in pieces))).message["tool_calls"]
        arguments = call["function"]["arguments"]
        assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == {"n": 1}, name
    # Without ids, a call that needs no arguments and another one.
    two = [piece("{}", "a", index=0), piece('{"n":1}', "a", index=0)]
    made = (await streamed(*({"tool_calls": [each]} for each in two))).message["tool_calls"]
    assert [call["function"]["arguments"] for call in made] == ["{}", '{"n":1}']


@promise("models:error-with-200")
async def test_an_error_in_a_stream_is_told_in_its_own_words_and_is_charged_as_its_status_is():
    # diegosouzapw/OmniRoute#8210, open-octo/octo-agent#910, damianvtran/local-operator#223
    for code, unbilled in ((429, True), (502, False)):
        error = {"error": {"code": code, "message": "Worker local total request limit reached"}}
        first = f"data: {json.dumps({'choices': [], **error})}\n\n"
        with pytest.raises(ModelUnavailable, match="request limit reached") as caught:
            await streamed(tail=first)
        assert caught.value.facts["unbilled"] is unbilled
    half = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': 'half'}}]})}\n\n"
    ended = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'error'}], **error})}\n\n"
    for body in (half + first, half + ended):
        with pytest.raises(ModelUnavailable, match="request limit reached") as caught:
            await streamed(tail=body)
        assert caught.value.facts["unbilled"] is False


@promise("models:error-in-stream")
async def test_an_error_in_a_stream_is_found_in_each_form_and_progress_is_none():
    words = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': 'half'}}]})}\n\n"
    end = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {}, 'finish_reason': 'stop'}]})}\n\n"
    for form, kind in (
        ({"detail": "context length exceeded"}, ModelRefused),
        ({"choices": None, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}, ModelRefused),
        ({"type": "error", "message": "it is overloaded"}, ModelUnavailable),
        ({"success": False, "errors": [{"message": "it is overloaded"}]}, ModelUnavailable),
        # NousResearch/hermes-agent#65631, NousResearch/hermes-agent#68451: DeepInfra, Venice
        (
            {"choices": None, "error_type": "BadRequestError", "error_message": "over the maximum context length"},
            ModelRefused,
        ),
        ({"choices": [], "error_type": "InternalError", "error_message": "it is overloaded"}, ModelUnavailable),
        ({"choices": None, "code": "502", "message": "it is overloaded", "usage": None}, ModelUnavailable),
        ({"choices": [], "detail": "it is overloaded", "usage": {"prompt_tokens": 0}}, ModelUnavailable),
    ):
        first, said = f"data: {json.dumps(form)}\n\n", "context length|insufficient balance|is overloaded"
        with pytest.raises(kind, match=said) as caught:
            await streamed(tail=first)
        assert fault_in(form) is form
        assert caught.value.facts["unbilled"] is (kind is ModelRefused)
        with pytest.raises(ModelUnavailable, match=said) as caught:
            await streamed(tail=words + first)
        assert caught.value.facts["unbilled"] is False
    for other in (
        {"message": "Searching."},
        {"choices": [], "base_resp": {"status_code": 0, "status_msg": "success"}},
        {"choices": [], "error_type": None, "error_message": ""},
        {"choices": [], "error_code": 0, "error_msg": "success"},
        {"choices": [], "error_message": "OK."},
    ):
        told = f"data: {json.dumps(other)}\n\n"
        assert "choices" not in other or fault_in(other) is None
        completion = await streamed(tail=told + words + told + end + told)
        assert (completion.message["content"], completion.finish_reason) == ("half", "stop")


@promise("models:opaque")
def test_a_list_that_comes_in_pieces_is_not_copied_for_each():
    known, piece = {}, {"reasoning_details": [{"type": "x", "data": "1"}]}
    grown(known, piece)
    first = known["reasoning_details"]
    grown(known, piece)
    assert known["reasoning_details"] is first
    assert (len(first), len(piece["reasoning_details"])) == (2, 1)


@promise("context:engine-lines")
def test_a_value_that_a_model_repeats_is_put_together():
    assert value_in(json.dumps({"t": break_up("<|im_start|>")})) == {"t": "<|im_start|>"}
