"""One request by a native API over a real socket: what goes out, what comes back, and what faults are taken for."""

import asyncio
import json
from base64 import b64encode
from contextlib import asynccontextmanager, suppress

import httpx2
import openai
import pytest

from activities.endpoints.apis import base_of
from activities.endpoints.client import ANSWER_BYTES, ModelClient, open_http
from activities.endpoints.endpoints import Target
from activities.model.completion import ContextTooLong, RequestRefused, complete
from activities.model.ends import end_of
from activities.model.learned import LearnedDialects
from activities.model.message import MessageExtras
from activities.model.native.writing import native
from activities.model.opaque import masked, with_beside
from activities.model.probing import probe
from backstay.errors import ModelRefused, ModelUnavailable
from backstay.redaction.redactor import Redactor
from tests.native_apis import KEY, MODELS, USED, Says, Vendor
from tests.requirements import promise
from tests.sizes import spread

ADD = {
    "type": "function",
    "function": {
        "name": "desk__add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
}
BEGUN = [{"role": "system", "content": "Add."}, {"role": "user", "content": "What is 1 + 2?"}]
CALLS = (("desk__add", {"b": 2, "a": 1}), ("desk__add", {"a": 3}))


def asked_for(api, messages=BEGUN, **more):
    return {"model": MODELS[api], "messages": messages, "max_completion_tokens": 500, "tools": [ADD], **more}


@asynccontextmanager
async def client_of(api, address, key=KEY):
    options = {"max_retries": 0, "http_client": open_http(key, api), "base_url": base_of(address, api)}
    async with openai.AsyncOpenAI(api_key=key or "none", **options) as client:
        yield client


async def sent(api, client, request, *, streams, **more):
    """Send a request once; return the completion, and what was told of it while it arrived."""
    told = []
    post = request.streamed(frozenset()) if streams else request.whole()
    found = await complete(client, post, listed=True, say=told.append if streams else None, **more)
    return found, "".join(told)


async def answered(api, says, *, streams=False, **more):
    async with Vendor(api, lambda *_: says).open() as vendor, client_of(api, vendor.base_url) as client:
        request = await native(api, MODELS[api]).request(asked_for(api, **more))
        return await sent(api, client, request, streams=streams)


def given_back(completion):
    """The message as a later request has it, after it was kept as JSON."""
    kept = MessageExtras.read(json.loads(json.dumps(completion.beside.plain())))
    return with_beside(json.loads(json.dumps(completion.message)), kept)


@promise("models:native-signed")
@pytest.mark.parametrize("streams", spread([True, False], 1))
@pytest.mark.parametrize("api", MODELS)
async def test_what_was_signed_comes_back_unchanged_beside_its_calls(api, streams):
    def script(answered, body):
        return Says("I add both.", CALLS, f"thought {answered}") if answered < 4 else Says("That is all.")

    async with Vendor(api, script).open() as vendor, client_of(api, vendor.base_url) as client:
        messages, model, told = list(BEGUN), native(api, MODELS[api]), []
        for _ in range(3):
            request = await model.request(asked_for(api, messages))
            again = await model.request(asked_for(api, json.loads(json.dumps(messages))))
            assert request.whole().content == again.whole().content
            completion, words = await sent(api, client, request, streams=streams)
            told.append(words)
            messages.append(given_back(completion))
            calls = completion.message.get("tool_calls", ())
            assert [json.loads(call["function"]["arguments"]) for call in calls] in ([], [CALLS[0][1], CALLS[1][1]])
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": "3"} for call in calls]
            messages.append({"role": "user", "content": "Left: 3 steps."})
            assert end_of(completion.finish_reason, completion.message) == "done"
    assert vendor.refused == []
    assert messages[-2]["content"] == "That is all."
    assert told == (["I add both.", "I add both.", "That is all."] if streams else ["", "", ""])
    assert vendor.streamed == (3 if streams else 0)


@promise("models:native-signed")
@pytest.mark.parametrize("api", MODELS)
async def test_what_others_have_said_goes_to_a_native_api_as_plain_words_and_calls(api):
    def script(answered, body):
        return Says("Yes.")

    call = {"id": "functions.add:0", "type": "function", "function": {"name": "desk add?", "arguments": '{"a": 1}'}}
    odd = {"id": "c" * 90, "type": "function", "function": {"name": "desk__add", "arguments": "{not json"}}
    foreign = {"role": "assistant", "content": None, "tool_calls": [call, odd], "reasoning_content": "Hidden thoughts."}
    answers = [{"role": "tool", "tool_call_id": given["id"], "content": "3"} for given in (call, odd)]
    said = {"role": "assistant", "content": "I have added.", "reasoning": "Hidden thoughts."}

    async with Vendor(api, script).open() as vendor, client_of(api, vendor.base_url) as client:
        messages = [*BEGUN, foreign, *answers, said, {"role": "user", "content": "Good?"}]
        request = await native(api, MODELS[api]).request(asked_for(api, messages))
        completion, _ = await sent(api, client, request, streams=False)

    assert (completion.message["content"], vendor.refused) == ("Yes.", [])
    assert "Hidden" not in request.whole().content.decode()


@promise("models:native-signed")
@pytest.mark.parametrize("api", MODELS)
async def test_a_call_that_was_changed_goes_back_changed_beside_what_was_signed(api):
    says = Says("I add both.", CALLS, "thought")
    async with Vendor(api, lambda *_: says).open() as vendor, client_of(api, vendor.base_url) as client:
        model = native(api, MODELS[api])
        completion, _ = await sent(api, client, await model.request(asked_for(api)), streams=False)
    message = given_back(completion)
    message["content"] = "I add."
    message["tool_calls"][1]["function"]["arguments"] = '{"a":4}'
    answers = [{"role": "tool", "tool_call_id": call["id"], "content": "3"} for call in message["tool_calls"]]

    written = (await model.request(asked_for(api, [*BEGUN, message, *answers]))).whole().content.decode()
    fewer = {**message, "tool_calls": message["tool_calls"][:1]}
    plain = (await model.request(asked_for(api, [*BEGUN, fewer, answers[0]]))).whole().content.decode()

    mark = {"responses": "enc-1", "anthropic": "sig-1", "gemini": b64encode(b"sig-1").decode()}[api]
    assert mark in written
    assert "I add both." not in written
    assert '"a":4' in written.replace("\\", "")
    # What was signed belongs to all its calls together.
    assert mark not in plain


@promise("models:native-usage")
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", MODELS)
async def test_usage_is_read_exactly_and_never_made_up(api, streams):
    completion, _ = await answered(api, Says("Three."), streams=streams)
    usage = completion.usage
    written = 0 if api == "gemini" else USED["written"]
    reasoning = 0 if api == "anthropic" else USED["reasoning"]
    assert completion.reported
    assert (usage.input_cached_tokens, usage.input_new_tokens) == (USED["cached"], USED["prompt"] - USED["cached"])
    assert (usage.input_written_tokens, usage.output_tokens) == (written, USED["output"])
    assert usage.reasoning_tokens == reasoning

    negative, _ = await answered(api, Says("Three.", used=USED | {"output": -200}), streams=streams)
    assert not negative.reported


@promise("models:native-usage")
@pytest.mark.parametrize("api", ["responses", "gemini"])
async def test_a_native_answer_without_usage_counts_as_not_reported(api):
    for streams in (False, True):
        completion, _ = await answered(api, Says("Three.", used=None), streams=streams)
        assert (completion.message["content"], completion.reported) == ("Three.", False)


ENDS = [
    ("responses", "max_output_tokens", "cut"),
    ("responses", "content_filter", "filtered"),
    ("responses", "refusal", "refused"),
    ("anthropic", "max_tokens", "cut"),
    ("anthropic", "model_context_window_exceeded", "cut"),
    ("anthropic", "pause_turn", "broken"),
    ("anthropic", "stop_sequence", "done"),
    ("anthropic", "refusal", "refused"),
    ("gemini", "MAX_TOKENS", "cut"),
    ("gemini", "SAFETY", "filtered"),
    ("gemini", "PROHIBITED_CONTENT", "filtered"),
    ("gemini", "MALFORMED_FUNCTION_CALL", "malformed"),
    ("gemini", "OTHER", "unknown"),
]


@promise("models:native-ends")
@pytest.mark.parametrize(("api", "end", "meant"), ENDS)
async def test_a_native_answer_ends_as_its_vendor_says(api, end, meant):
    for streams in (False, True):
        completion, _ = await answered(api, Says("Some words.", end=end), streams=streams)
        assert end_of(completion.finish_reason, completion.message) == meant, (streams, completion)


@promise("models:native-ends")
@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("thens", ["nothing", "an error"])
async def test_a_native_stream_that_breaks_off_or_tells_of_an_error_is_no_answer(api, thens):
    error = {
        "responses": {"type": "error", "code": "server_error", "message": "Oh no.", "sequence_number": 9},
        "anthropic": {"type": "error", "error": {"type": "overloaded_error", "message": "Oh no."}},
        "gemini": {"error": {"code": 503, "message": "Oh no.", "status": "UNAVAILABLE"}},
    }[api]
    then = None if thens == "nothing" else error
    with pytest.raises(ModelUnavailable) as caught:
        await answered(api, Says("One two three.", after=2, then=then), streams=True)
    assert caught.value.facts["unbilled"] is False
    assert ("Oh no." in str(caught.value)) == (then is not None)


@promise("models:native-errors")
@pytest.mark.parametrize("api", MODELS)
async def test_an_error_in_another_form_than_that_of_its_api_is_told_and_recognised(api):
    # ggml-org/llama.cpp#16109 (kind), gateways and vendors that only call themselves compatible
    for body, told in (
        ('error: {"code": 400, "message": "the request exceeds the available context size"}\n\n', ContextTooLong),
        ('data: {"detail": "context length exceeded"}\n\n', ContextTooLong),
        (
            'data: {"type": "", "base_resp": {"status_code": 1008, "status_msg": "arrearage"}}\n\n',
            ModelRefused,
        ),
    ):
        answer = httpx2.Response(200, content=body.encode(), headers={"content-type": "text/event-stream"})
        transport = httpx2.MockTransport(lambda _, answer=answer: answer)
        async with (
            httpx2.AsyncClient(transport=transport) as http,
            openai.AsyncOpenAI(api_key=KEY, base_url="https://a.example", max_retries=0, http_client=http) as client,
        ):
            request = await native(api, MODELS[api]).request(asked_for(api))
            with pytest.raises(told) as caught:
                await sent(api, client, request, streams=True)
        assert caught.value.facts["unbilled"] is True


@promise("models:native-schemas")
@pytest.mark.parametrize("api", MODELS)
async def test_one_bad_schema_takes_nothing_else_away(api):
    deep = {"type": "object"}
    for _ in range(300):
        deep = {"type": "object", "properties": {"a": deep}}
    bad = [
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": False},
        {"type": "object", "properties": {"a": {"type": 7}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"anyOf": "x"}}},
        deep,
        {},
    ]
    tools = [
        {"type": "function", "function": {"name": f"t{n}", "description": "", "parameters": schema}}
        for n, schema in enumerate(bad)
    ]
    completion, _ = await answered(api, Says("Fine."), tools=[ADD, *tools])
    assert completion.message["content"] == "Fine."

    request = await native(api, MODELS[api]).request(asked_for(api, tools=[ADD, *tools]))
    text = request.whole().content.decode()
    assert all(f'"t{n}"' in text for n in range(len(bad)))
    assert '"integer"' in text


@promise("models:native-secrets")
@pytest.mark.parametrize("api", MODELS)
async def test_a_known_secret_leaves_in_no_part_of_a_native_request(api):
    secret = 'a"secret\\of-this-run'
    message = {"role": "user", "content": f"The key is {secret}."}
    call = {"id": "c", "type": "function", "function": {"name": "desk__add"}}
    call["function"]["arguments"] = json.dumps({"a": secret})
    history = [message, {"role": "assistant", "content": "", "tool_calls": [call]}]
    history.append({"role": "tool", "tool_call_id": "c", "content": secret})
    asked = masked(asked_for(api, [*BEGUN, *history]), Redactor([secret]))
    request = await native(api, MODELS[api]).request(asked)
    for post in (request.whole(), request.streamed(frozenset())):
        assert "secret" not in post.content.decode()
        assert "desk__add" in post.content.decode()


@promise("models:native-output")
@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("strict", [True, False])
async def test_a_native_api_is_asked_for_json_by_a_schema(api, strict):
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    schema["additionalProperties"] = False
    form = {"name": "decision", "schema": schema} | ({"strict": True} if strict else {})
    asked = asked_for(api, response_format={"type": "json_schema", "json_schema": form})
    del asked["tools"]
    async with Vendor(api, lambda *_: Says('{"n": 3}')).open() as vendor, client_of(api, vendor.base_url) as client:
        request = await native(api, MODELS[api]).request(asked)
        completion, _ = await sent(api, client, request, streams=False)
    (body,) = vendor.requests
    found = {
        "responses": lambda: body["text"]["format"]["schema"],
        "anthropic": lambda: body["output_config"]["format"]["schema"],
        "gemini": lambda: body["generationConfig"]["responseJsonSchema"],
    }[api]()
    assert found["properties"]["n"]["type"] == "integer"
    assert completion.message["content"] == '{"n": 3}'


def said(kind, message, code=None, **more):
    return {
        "responses": {"error": {"message": message, "type": kind, "code": code, "param": None}},
        "anthropic": {"type": "error", "error": {"type": kind, "message": message}},
        "gemini": {"error": {"code": 400, "message": message, "status": kind, **more}},
    }


RETRY = {"details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30s"}]}
TOO_LONG = {
    "responses": (
        400,
        said(
            "invalid_request_error",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            "context_length_exceeded",
        ),
    ),
    "anthropic": (400, said("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum")),
    "gemini": (
        400,
        said(
            "INVALID_ARGUMENT",
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        ),
    ),
}
BUSY = {
    "responses": (503, said("server_error", "The engine is currently overloaded, please try again later")),
    "anthropic": (529, said("overloaded_error", "Overloaded")),
    "gemini": (503, said("UNAVAILABLE", "The model is overloaded. Please try again later.")),
}
KEYLESS = {
    "responses": (401, said("invalid_request_error", "Incorrect API key provided", "invalid_api_key")),
    "anthropic": (401, said("authentication_error", "invalid x-api-key")),
    "gemini": (403, said("PERMISSION_DENIED", "Method doesn't allow unregistered callers")),
}
QUOTA = {
    "responses": (
        429,
        said(
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
            "insufficient_quota",
        ),
    ),
    "anthropic": (400, said("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")),
    "gemini": (
        429,
        said("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
    ),
}
UNKNOWN = {
    "responses": (
        400,
        said("invalid_request_error", "The requested model 'gpt-99' does not exist.", "model_not_found"),
    ),
    "anthropic": (404, said("not_found_error", "model: claude-99")),
    "gemini": (
        404,
        said(
            "NOT_FOUND",
            "models/gemini-99 is not found for API version v1beta, or is not supported for generateContent.",
        ),
    ),
}
SCHEMA = {
    "responses": (
        400,
        said(
            "invalid_request_error",
            "Invalid schema for function 'desk__add': 'x' is not valid under any of the given schemas.",
            "invalid_function_parameters",
        ),
    ),
    "anthropic": (
        400,
        said(
            "invalid_request_error",
            "tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12",
        ),
    ),
    "gemini": (
        400,
        said(
            "INVALID_ARGUMENT",
            "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[a].items: missing field.",
        ),
    ),
}
NO_FUNCTIONS = {
    "responses": (400, said("invalid_request_error", "Function calling is not supported with this model.")),
    "anthropic": (
        400,
        said("invalid_request_error", "'claude-1' does not support tool types: custom. tool use is not supported"),
    ),
    "gemini": (400, said("INVALID_ARGUMENT", "Function calling is not enabled for models/gemma-3-4b-it")),
}
FILTERED = {
    "responses": (
        400,
        said(
            "invalid_request_error",
            "Your request was flagged as potentially violating our usage policy.",
            "invalid_prompt",
        ),
    ),
    "anthropic": (400, said("invalid_request_error", "Output blocked by content filtering policy")),
    "gemini": (400, said("INVALID_ARGUMENT", "The prompt was blocked due to PROHIBITED_CONTENT")),
}
CAUSES = [
    (TOO_LONG, ContextTooLong, "too_long"),
    (SCHEMA, RequestRefused, "function_schema"),
    (NO_FUNCTIONS, RequestRefused, "no_functions"),
    (UNKNOWN, RequestRefused, "unknown_model"),
    (QUOTA, ModelRefused, "raise the quota"),
    (FILTERED, ModelRefused, "its filter does not take"),
    (KEYLESS, ModelRefused, "key"),
]


@promise("models:native-causes")
async def test_a_prompt_that_gemini_blocks_is_a_refusal_though_it_comes_as_a_success():
    # https://ai.google.dev/api/generate-content#PromptFeedback
    for streams in (False, True):
        with pytest.raises(ModelRefused, match="the prompt was blocked: PROHIBITED_CONTENT") as caught:
            await answered("gemini", Says(end="blocked"), streams=streams)
        assert not isinstance(caught.value, RequestRefused)
        # What it read may be billed.
        assert caught.value.facts["unbilled"] is False


@promise("models:native-ends")
@pytest.mark.parametrize("api", MODELS)
async def test_no_sign_in_a_text_ends_a_line_of_a_native_stream(api):
    words = "one\u2028two\u2029three\x85four"
    completion, told = await answered(api, Says(words), streams=True)
    assert (completion.message["content"], told) == (words, words)


@promise("models:native-causes")
@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize(("table", "kind", "cause"), CAUSES, ids=[cause for *_, cause in CAUSES])
async def test_the_cause_of_a_native_refusal_is_known_by_its_vendors_words(api, table, kind, cause):
    status, bodies = table[api]
    for streams in (False, True):
        with pytest.raises(ModelRefused) as caught:
            await answered(api, Says(status=status, body=bodies[api]), streams=streams)
        assert isinstance(caught.value, kind), caught.value
        # What a filter has read may be billed.
        assert caught.value.facts["unbilled"] is (table is not FILTERED)
        found = caught.value.refusal.cause if isinstance(caught.value, RequestRefused) else str(caught.value)
        assert cause in found


@promise("models:native-causes")
@pytest.mark.parametrize("api", MODELS)
async def test_a_native_429_says_how_long_to_wait_and_an_overloaded_endpoint_may_be_asked_again(api):
    body = said("RESOURCE_EXHAUSTED" if api == "gemini" else "rate_limit_error", "Too many requests.", **RETRY)[api]
    headers = {} if api == "gemini" else {"retry-after": "30"}
    with pytest.raises(ModelUnavailable) as caught:
        await answered(api, Says(status=429, body=body, headers=headers))
    assert (caught.value.facts["unbilled"], caught.value.facts["retry_after"]) == (True, 30)
    status, bodies = BUSY[api]
    with pytest.raises(ModelUnavailable) as caught:
        await answered(api, Says(status=status, body=bodies[api]))
    assert caught.value.facts["unbilled"] is False
    assert f"HTTP {status}" in str(caught.value)


@promise("models:native-causes")
@pytest.mark.parametrize("api", MODELS)
@pytest.mark.parametrize("status", [200, 502])
async def test_a_page_of_html_is_no_native_answer(api, status):
    for streams in (False, True):
        with pytest.raises(ModelUnavailable) as caught:
            await answered(api, Says(status=status, body="<html>Bad Gateway</html>"), streams=streams)
        assert caught.value.facts["unbilled"] is False


HEAD = "HTTP/1.1 200 OK\r\ncontent-type: %s\r\nconnection: close\r\n%s\r\n"


@asynccontextmanager
async def raw(api, head, part, pause_s=0.0):
    """Answer every request with a head and the same part again and again."""
    count = []

    async def answer(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head.encode())
            while True:
                writer.write(part)
                await writer.drain()
                count.append(len(part))
                await asyncio.sleep(pause_s)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, client_of(api, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as client:
        yield client, count


@promise("models:native-bounded")
@pytest.mark.parametrize("api", MODELS)
async def test_a_native_answer_is_bounded_in_bytes_and_in_time_and_read_only_in_forms_that_are_known(api):
    request = await native(api, MODELS[api]).request(asked_for(api))
    async with raw(api, HEAD % ("application/json", ""), b"x" * 65_536) as (client, count):
        with pytest.raises(ModelUnavailable, match=f"more than {ANSWER_BYTES} bytes"):
            await sent(api, client, request, streams=False)
        assert sum(count) < 4 * ANSWER_BYTES
    async with raw(api, HEAD % ("application/json", "content-encoding: br\r\n"), b"x" * 65_536) as (client, _):
        with pytest.raises(ModelUnavailable, match="it compresses its answers"):
            await sent(api, client, request, streams=False)
    drips = [("application/json", b" "), ("text/event-stream", b": ping\n\n")]
    for streams, (kind, part) in zip((False, True), drips, strict=True):
        async with raw(api, HEAD % (kind, ""), part, pause_s=0.05) as (client, count):
            with pytest.raises(ModelUnavailable, match="has not answered within 1 s") as caught:
                await sent(api, client, request, streams=streams, within_s=1)
            assert caught.value.facts["unbilled"] is False
            assert len(count) > 1


@promise("models:native-bounded")
@pytest.mark.parametrize("api", MODELS)
async def test_a_native_stream_of_endless_words_is_not_read_to_its_end(api):
    words = "w" * 60_000
    event = {
        "responses": {"type": "response.output_text.delta", "delta": words, "item_id": "m", "output_index": 0}
        | {"content_index": 0, "logprobs": [], "sequence_number": 1},
        "anthropic": {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
        "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": words}]}, "index": 0}]},
    }[api]
    part = f"data: {json.dumps(event)}\n\n".encode()
    head = HEAD % ("text/event-stream", "")
    async with Vendor(api, lambda *_: Says("w")).open() as vendor:
        render = {"responses": vendor._say_responses, "anthropic": vendor._say_anthropic, "gemini": vendor._say_gemini}
        begun = render[api](Says("w"))[1][:3]
    head += "".join(f"data: {json.dumps(each)}\n\n" for each in begun)
    request = await native(api, MODELS[api]).request(asked_for(api))
    async with raw(api, head, part) as (client, count):
        with pytest.raises(ModelUnavailable, match=f"more than {ANSWER_BYTES} bytes"):
            await sent(api, client, request, streams=True)
    assert sum(count) < 4 * ANSWER_BYTES


@promise("models:native-probed")
@pytest.mark.parametrize("api", MODELS)
async def test_a_native_model_is_asked_for_a_word_before_any_run_and_what_is_refused_is_told(api):
    async with Vendor(api, lambda *_: Says("H")).open() as vendor:
        client = ModelClient(base_of(vendor.base_url, api), KEY, api)
        target = Target("main", True, MODELS[api], vendor.base_url, client, None, api=api)
        probed = await probe(target, LearnedDialects(), within_s=10)
        assert (probed.answered, probed.refused, vendor.refused) == (True, (), [])

        vendor.script = lambda *_: Says(status=404, body=UNKNOWN[api][1][api])
        with pytest.raises(RequestRefused, match=f"it has {MODELS[api]}"):
            await probe(target, LearnedDialects(), within_s=10)
        await client.close()
