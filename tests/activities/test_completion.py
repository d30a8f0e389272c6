"""One request over a real socket: what the endpoint makes of it, and what it is taken for."""

import asyncio
import gzip
import json
import zlib
from contextlib import asynccontextmanager, suppress

import httpx2
import openai
import pytest

from activities.endpoints.client import ANSWER_BYTES, open_http
from activities.model.completion import (
    ChatRequest,
    ContextTooLong,
    HttpPost,
    RequestRefused,
    complete,
    written,
)
from activities.model.ends import end_of
from backstay.errors import ModelRefused, ModelUnavailable
from backstay.testing import Reply, ScriptedModel, Tokens
from tests.ports import own_port
from tests.requirements import promise

REQUEST = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 50}


POST = HttpPost(written(REQUEST))


async def asked(reply, timeout=10, key="none", post=POST, say=None):
    async with (
        ScriptedModel([reply]) as model,
        openai.AsyncOpenAI(
            api_key=key, base_url=model.base_url, max_retries=0, timeout=httpx2.Timeout(timeout)
        ) as client,
    ):
        return await complete(client, post, say=say)


@promise("models:budget-usage")
async def test_usage_is_read_with_its_cached_and_reasoning_parts():
    usage = Tokens(prompt=100, cached=40, completion=20, reasoning=5)
    completion = await asked(Reply(text="hello", usage=usage))
    assert completion.message["content"] == "hello"
    assert completion.reported
    spent = completion.usage
    assert (spent.input_cached_tokens, spent.input_new_tokens, spent.output_tokens, spent.reasoning_tokens) == (
        40,
        60,
        20,
        5,
    )


@promise("models:usage-unbelieved")
@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "many",
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": 10, "completion_tokens": -1},
        {"prompt_tokens": 10},
        {"prompt_tokens": 10.5, "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": True},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
    ],
)
async def test_a_usage_that_cannot_be_believed_counts_as_not_reported(usage):
    body = {"choices": [{"message": {"content": "hello"}}], "usage": usage}
    completion = await asked(Reply(body=json.dumps(body).encode()))
    assert not completion.reported
    assert completion.message == {"content": "hello"}


@promise("models:budget-usage")
@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": "100", "completion_tokens": "20"},
        {"prompt_tokens": 100.0, "completion_tokens": 20.0},
        {"input_tokens": 100, "output_tokens": 20},
        {"promptTokens": 100, "completionTokens": 20},
        {"prompt_tokens": None, "completion_tokens": None, "input_tokens": 100, "output_tokens": 20},
    ],
)
async def test_usage_is_read_in_other_words_and_forms_too(usage):
    body = {"choices": [{"message": {"content": "hello"}}], "usage": usage}
    completion = await asked(Reply(body=json.dumps(body).encode()))
    assert (completion.reported, completion.usage.input_new_tokens, completion.usage.output_tokens) == (True, 100, 20)


@promise("models:budget-usage")
async def test_more_cached_than_there_is_is_cut_to_what_there_is():
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}
    completion = await asked(Reply(body=json.dumps({"choices": [{"message": {}}], "usage": usage}).encode()))
    assert (completion.usage.input_cached_tokens, completion.usage.input_new_tokens) == (5, 0)


@promise("models:no-completion")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html></html>",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [], "usage": {"prompt_tokens": 0}}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": [{"text": "of the older API", "finish_reason": "stop"}]}',
        b'{"choices": 7}',
        b"[" * 100_000,
    ],
)
async def test_what_is_no_completion_may_have_been_billed_and_is_tried_again(body):
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(body=body))
    assert caught.value.facts["unbilled"] is False
    assert "check OPENAI_BASE_URL" in str(caught.value)


WITHHELD = {"prompt_tokens": 700, "completion_tokens": 0, "total_tokens": 700}


@promise("models:withheld")
@pytest.mark.parametrize("sent", ["whole", "streamed", "streamed and done"])
@pytest.mark.parametrize(
    ("choices", "end"),
    [
        # openai/openai-agents-python#744, openai/openai-agents-python#746, BerriAI/litellm#40477
        ([{"index": 0, "finish_reason": "content_filter: PROHIBITED_CONTENT"}], "filtered"),
        ([{"index": 0, "finish_reason": "content_filter: OTHER", "message": None}], "filtered"),
        ([{"index": 0, "finish_reason": "content_filter", "delta": None}], "filtered"),
        ([], "unsaid"),
        (None, "unsaid"),
    ],
)
async def test_an_answer_that_was_withheld_whole_is_an_empty_one_that_is_paid_once(choices, end, sent):
    text = json.dumps({"choices": choices, "usage": WITHHELD})
    whole = {"whole": text, "streamed": f"data: {text}\n\n"}.get(sent, f"data: {text}\n\ndata: [DONE]\n\n")
    completion = await asked(Reply(body=whole.encode()), say=None if sent == "whole" else (lambda _: None))
    assert not any(value for name, value in completion.message.items() if name != "role")
    assert end_of(completion.finish_reason, completion.message) == end
    assert (completion.reported, completion.usage.input_new_tokens) == (True, 700)


@promise("models:refusals")
@pytest.mark.parametrize(
    ("status", "code", "kind", "unbilled"),
    [
        (400, None, ModelRefused, True),
        (401, None, ModelRefused, True),
        (404, None, ModelRefused, True),
        (408, None, ModelUnavailable, False),
        (409, None, ModelUnavailable, True),
        (429, None, ModelUnavailable, True),
        (429, "insufficient_quota", ModelRefused, True),
        (400, "context_length_exceeded", ModelRefused, True),
        (500, None, ModelUnavailable, False),
        (503, None, ModelUnavailable, False),
    ],
)
async def test_a_refusal_says_whether_it_may_be_tried_again_and_whether_it_was_billed(status, code, kind, unbilled):
    with pytest.raises(kind) as caught:
        await asked(Reply(status=status, code=code, text="with sk-" + "z" * 20))
    assert type(caught.value).__mro__[0] is kind or issubclass(type(caught.value), kind)
    assert caught.value.facts["unbilled"] is unbilled
    assert "zzzz" not in str(caught.value)


USED = {"prompt_tokens": 90_000, "completion_tokens": 4000}


async def used(usage, **message):
    """Return whether a usage beside this message is taken as reported, and the usage."""
    body = {"choices": [{"message": {"content": "hello"} | message}], "usage": usage}
    completion = await asked(Reply(body=json.dumps(body).encode()))
    return completion.reported, completion.usage


def thoughts(tokens):
    return {"completion_tokens_details": {"reasoning_tokens": tokens}}


@promise("models:usage-thoughts")
@pytest.mark.parametrize(
    ("usage", "output"),
    [
        # xAI counts thoughts beside the answer, gateways to Gemini only in the total.
        ({"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 331} | thoughts(317), 319),
        ({"prompt_tokens": 20, "completion_tokens": 151, "total_tokens": 553}, 533),
        ({"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81} | thoughts(60), 60),
        ({"input_tokens": 20, "output_tokens": 151, "total_tokens": 553}, 533),
        ({"prompt_tokens": 12, "completion_tokens": 2} | thoughts(317), 319),
        ({"prompt_tokens": 12, "completion_tokens": 2, "reasoning_tokens": 317}, 319),
        ({"input_tokens": 12, "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 317}}, 319),
        ({"prompt_tokens": 12, "completion_tokens": 2, "total_tokens": 3} | thoughts(317), 319),
        # Thoughts that are in the answer are counted once.
        ({"prompt_tokens": 12, "completion_tokens": 319, "total_tokens": 331} | thoughts(317), 319),
        ({"prompt_tokens": 12, "completion_tokens": 319} | thoughts(317), 319),
        ({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 0}, 30),
        ({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": 41}, 30),
        ({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": None}, 30),
        ({"prompt_tokens": 12, "completion_tokens": 30, "total_tokens": "many"}, 30),
        # What is cached is in the total once, as in the prompt.
        ({"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15, "cache_read_input_tokens": 9}, 3),
        ({"input_tokens": 12, "output_tokens": 3, "total_tokens": 25, "cache_read_input_tokens": 10}, 3),
    ],
)
async def test_thoughts_are_counted_wherever_an_endpoint_counts_them(usage, output):
    reported, spent = await used(usage)
    assert (reported, spent.output_tokens) == (True, output)


@promise("models:usage-thoughts")
async def test_an_answer_with_words_or_calls_and_no_tokens_has_not_said_what_it_used():
    nothing = {"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}
    call = {"id": "c", "type": "function", "function": {"name": "finish", "arguments": "{}"}}
    assert not (await used(nothing))[0]
    assert not (await used(nothing, content=None, tool_calls=[call]))[0]
    # An answer that is empty took nothing to write.
    assert (await used(nothing, content=""))[0]


@promise("models:usage-cached")
@pytest.mark.parametrize(
    ("usage", "cached", "new", "written_tokens"),
    [
        # LiteLLM, which tells both ways what it writes to a cache
        (
            {
                "prompt_tokens": 2006,
                "completion_tokens": 300,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_creation_tokens": 1900},
                "cache_creation_input_tokens": 1900,
            },
            *(0, 2006, 1900),
        ),
        (
            {
                "prompt_tokens": 2006,
                "completion_tokens": 300,
                "prompt_tokens_details": {"cached_tokens": 100, "cache_creation_tokens": 900},
            },
            *(100, 1906, 900),
        ),
        ({"prompt_tokens": 2006, "completion_tokens": 3, "cache_creation_input_tokens": 1900}, 0, 2006, 1900),
        (
            {"prompt_tokens": 900, "completion_tokens": 3, "total_tokens": 903, "cache_read_input_tokens": 800},
            *(800, 100, 0),
        ),
        # Claude's own words, in which the prompt is what is beside the cache
        (
            {
                "input_tokens": 10,
                "cache_read_input_tokens": 50_000,
                "cache_creation_input_tokens": 20_000,
                "output_tokens": 30,
            },
            *(50_000, 20_010, 20_000),
        ),
        (
            {"prompt_tokens": 10, "completion_tokens": 30, "cache_read_input_tokens": 500},
            *(500, 10, 0),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 30, "cache_creation_input_tokens": "x"}, 0, 10, 0),
        # earendil-works/pi#8075: Kimi; BerriAI/litellm#5017: DeepSeek; vercel/ai#14382: Mistral
        ({"prompt_tokens": 19, "completion_tokens": 13, "total_tokens": 32, "cached_tokens": 12}, 12, 7, 0),
        (
            {
                "prompt_tokens": 19,
                "completion_tokens": 13,
                "prompt_cache_hit_tokens": 8,
                "prompt_cache_miss_tokens": 11,
            },
            *(8, 11, 0),
        ),
        ({"prompt_tokens": 19, "completion_tokens": 13, "num_cached_tokens": 5}, 5, 14, 0),
        ({"prompt_tokens": 19, "completion_tokens": 13, "prompt_token_details": {"cached_tokens": 4}}, 4, 15, 0),
        # in the words of Responses
        ({"input_tokens": 19, "output_tokens": 13, "input_tokens_details": {"cached_tokens": 3}}, 3, 16, 0),
        # BerriAI/litellm#9221, BerriAI/litellm#31693: Bedrock, which counts what is cached beside the rest, too
        (
            {"inputTokens": 2, "outputTokens": 9, "cacheReadInputTokens": 90, "cacheWriteInputTokens": 40},
            *(90, 42, 40),
        ),
        (
            {"inputTokens": 2, "outputTokens": 9, "cacheReadInputTokenCount": 90, "cacheWriteInputTokenCount": 40},
            *(90, 42, 40),
        ),
        # ENTERPILOT/GoModel#726
        ({"prompt_tokens": 50, "completion_tokens": 9, "cache_write_input_tokens": 40}, 0, 50, 40),
        # One place at a time, and never more than there is
        (
            {
                "prompt_tokens": 19,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 7},
                "cached_tokens": 9,
            },
            *(7, 12, 0),
        ),
        ({"prompt_tokens": 19, "completion_tokens": 13, "cached_tokens": 90}, 19, 0, 0),
    ],
)
async def test_what_is_written_to_a_cache_and_read_from_it_is_found_in_all_words(usage, cached, new, written_tokens):
    reported, spent = await used(usage)
    counted = (spent.input_cached_tokens, spent.input_new_tokens, spent.input_written_tokens)
    assert reported
    assert counted == (cached, new, written_tokens)


@promise("models:error-with-200")
@pytest.mark.parametrize(
    ("status", "error", "usage", "kind", "unbilled"),
    [
        (200, {"message": "content must be a string"}, None, RequestRefused, True),
        (200, {"message": "content must be a string"}, USED, RequestRefused, False),
        (200, {"message": "context length exceeded"}, USED, RequestRefused, False),
        (200, {"message": "boom"}, {"input_tokens": 90_000}, ModelUnavailable, False),
        (200, {"message": "boom"}, {"total_tokens": 94_000}, ModelUnavailable, False),
        (200, {"message": "boom"}, None, ModelUnavailable, False),
        (200, {"message": "upstream timed out", "code": 504}, None, ModelUnavailable, False),
        (200, {"message": "slow down", "code": 429}, None, ModelUnavailable, True),
        (500, {"message": "this model does not support tools"}, None, RequestRefused, True),
        (500, {"message": "litellm.APIError: 'NoneType' object is not subscriptable"}, None, ModelUnavailable, False),
        (500, {"message": "'NoneType' object has no attribute 'content'"}, None, ModelUnavailable, False),
        (502, {"message": "context window exceeded after 4096 tokens"}, None, ModelUnavailable, False),
        (400, {"message": "Failed to call a function", "code": "tool_use_failed"}, None, RequestRefused, False),
        (400, {"message": "no such thing"}, USED, RequestRefused, False),
        # What only has to wait is not filtered.
        (503, {"message": "moderation service temporarily unavailable"}, None, ModelUnavailable, False),
        (429, {"message": "Rate limit for content filter requests reached"}, None, ModelUnavailable, True),
        # A filter has read the request, and Azure bills that.
        (400, {"message": "Please modify your prompt.", "code": "content_filter"}, None, ModelRefused, False),
        (403, {"message": "the prompt was blocked by content filter"}, None, ModelRefused, False),
        # xAI charges for it.
        (403, {"message": "Content violates usage guidelines."}, None, ModelRefused, False),
        # Not every status proves that no model was asked.
        (424, {"message": "the request failed while the model processed it"}, None, ModelRefused, False),
        (499, {"message": "client closed request"}, None, ModelRefused, False),
        (418, {"message": "no"}, None, ModelRefused, False),
        (408, {"message": "timed out"}, None, ModelUnavailable, False),
        *[(status, {"message": "no"}, None, ModelRefused, True) for status in (400, 401, 402, 403, 404, 405, 415, 422)],
        (429, {"message": "no"}, None, ModelUnavailable, True),
        (424, {"message": "this model's maximum context length is 8192 tokens"}, None, RequestRefused, True),
    ],
)
async def test_a_refusal_costs_nothing_only_where_that_is_proven(status, error, usage, kind, unbilled):
    body = {"error": error} | ({} if usage is None else {"usage": usage})
    with pytest.raises(kind) as caught:
        await asked(Reply(status=status, body=json.dumps(body).encode()))
    assert caught.value.facts["unbilled"] is unbilled


@promise("models:billed-too-long")
@pytest.mark.parametrize(
    ("host", "unbilled"),
    [
        ("here.openai.azure.com", False),
        ("HERE.services.ai.azure.com", False),
        ("here.openai.azure.us", False),
        ("here.azure-api.net", False),
        ("api.openai.com", True),
        ("azure.com.example.org", True),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
async def test_a_request_that_is_too_long_costs_something_at_azure(host, unbilled, status):
    body = {
        "error": {"message": "This model's maximum context length is 8192 tokens", "code": "context_length_exceeded"}
    }
    transport = httpx2.MockTransport(lambda _: httpx2.Response(status, json=body))
    async with (
        httpx2.AsyncClient(transport=transport) as http,
        openai.AsyncOpenAI(api_key="k", base_url=f"https://{host}/v1", max_retries=0, http_client=http) as client,
    ):
        with pytest.raises(ContextTooLong) as caught:
            await complete(client, HttpPost(written(REQUEST)))
    assert caught.value.facts["unbilled"] is unbilled


@promise("models:ends-refused")
@pytest.mark.parametrize(("usage", "reported"), [(None, False), (USED, True)])
@pytest.mark.parametrize("status", [200, 400, 500])
async def test_an_answer_that_is_refused_because_it_was_cut_off_is_one_that_was_cut_off(status, usage, reported):
    # openai/openai-python#2886, decolua/9router#972: a model that thinks up to the limit
    said = "Could not finish the message because max_tokens or model output limit was reached. Please try again."
    body = {"error": {"message": said, "type": "invalid_request_error"}} | ({} if usage is None else {"usage": usage})
    completion = await asked(Reply(status=status, body=json.dumps(body).encode()))
    assert end_of(completion.finish_reason, completion.message) == "cut"
    # One that does not say what it used is charged the most that it can cost.
    assert completion.reported is reported


CALL = {"id": "c", "type": "function", "function": {"name": "finish", "arguments": "{}"}}


@promise("models:ends-full")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("said", "counts", "end"),
    [
        # vllm-project/vllm#58228, #53269, #47963: the end of calls hides that the answer was cut off.
        ("tool_calls", {"completion_tokens": 50}, "cut"),
        ("stop", {"completion_tokens": 50}, "cut"),
        (None, {"completion_tokens": 50}, "cut"),
        ("tool_calls", {"completion_tokens": 50} | thoughts(40), "cut"),
        # The limit does not hold for thoughts, whether they are counted in the answer or beside it.
        ("tool_calls", {"completion_tokens": 90} | thoughts(40), "cut"),
        ("tool_calls", {"completion_tokens": 50, "total_tokens": 10 + 50 + 317} | thoughts(317), "cut"),
        ("tool_calls", {"completion_tokens": 49}, "done"),
        ("tool_calls", {"completion_tokens": 80} | thoughts(70), "done"),
        ("tool_calls", {"completion_tokens": 2, "total_tokens": 331} | thoughts(317), "done"),
        # An endpoint that does not keep to the limit has not cut anything.
        ("tool_calls", {"completion_tokens": 900}, "done"),
        ("content_filter", {"completion_tokens": 50}, "filtered"),
        ("malformed_function_call", {"completion_tokens": 50}, "malformed"),
    ],
)
async def test_an_answer_that_is_as_long_as_it_may_be_was_cut_off_whatever_its_end_is_called(
    said, counts, end, streamed
):
    usage = {"prompt_tokens": 10} | counts
    if streamed:
        delta = {"role": "assistant", "content": None, "tool_calls": [CALL | {"index": 0}]}
        chunks = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": said}]},
            {"choices": [], "usage": usage},
        ]
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    else:
        message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
        body = json.dumps({"choices": [{"message": message, "finish_reason": said}], "usage": usage})
    for name, found in (("max_completion_tokens", end), ("max_tokens", end), (None, end_of(said or "", {}))):
        request = {"model": "m", "messages": REQUEST["messages"]} | ({name: 50} if name else {})
        form = ChatRequest(request, written(request))
        completion = await asked(
            Reply(body=body.encode()),
            post=form.streamed(frozenset()) if streamed else form.whole(),
            say=(lambda _: None) if streamed else None,
        )
        assert end_of(completion.finish_reason, completion.message) == found


@promise("models:ends")
@pytest.mark.parametrize("place", ["answer", "choice"])
async def test_words_beside_an_error_are_no_whole_answer(place):
    error = {"error": {"message": "the provider broke", "code": None}}
    choice = {"index": 0, "message": {"content": "half of it"}, "finish_reason": "stop"}
    body = {"choices": [choice | (error if place == "choice" else {})], "usage": USED}
    with pytest.raises(ModelUnavailable, match="the provider broke") as caught:
        await asked(Reply(body=json.dumps(body | (error if place == "answer" else {})).encode()))
    assert caught.value.facts["unbilled"] is False


@promise("models:empty-errors")
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("place", ["answer", "choice"])
@pytest.mark.parametrize("error", [{}, {"message": "", "type": "", "param": "", "code": None}, {"code": 0}, []])
async def test_an_error_beside_words_that_says_nothing_is_none(error, place, streamed):
    # BerriAI/litellm#18407
    message = {"role": "assistant", "content": "all of it"}
    choice = {"index": 0, "delta" if streamed else "message": message, "finish_reason": "stop"}
    body = {"choices": [choice | ({"error": error} if place == "choice" else {})], "usage": USED}
    text = json.dumps(body | ({"error": error} if place == "answer" else {}))
    say = (lambda _: None) if streamed else None
    completion = await asked(Reply(body=(f"data: {text}\n\n" if streamed else text).encode()), say=say)
    assert (completion.message["content"], completion.finish_reason) == ("all of it", "stop")
    assert completion.reported


@promise("models:no-completion")
async def test_a_dropped_or_silent_connection_may_have_been_billed():
    for reply in (Reply(then="drop"), Reply(then="hang")):
        with pytest.raises(ModelUnavailable) as caught:
            await asked(reply, timeout=0.5)
        assert caught.value.facts["unbilled"] is False


@promise("models:unreached")
@pytest.mark.parametrize(("listed", "place"), [(False, "OPENAI_BASE_URL"), (True, "base_url in models.yaml")])
async def test_an_endpoint_that_cannot_be_reached_is_named_with_the_cause_and_the_setting(listed, place):
    address = f"http://127.0.0.1:{own_port()}/v1"
    async with openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0) as client:
        with pytest.raises(ModelUnavailable, match=r"127\.0\.0\.1: .*connect.*; check ") as caught:
            await complete(client, HttpPost(written(REQUEST)), listed=listed)
    assert str(caught.value).endswith(place)
    assert caught.value.facts["unbilled"] is True


@promise("models:retry-after")
@pytest.mark.parametrize(
    ("said", "seconds"), [("7", 7), ("0.5", 0.5), ("soon", None), ("", None), ("nan", None), ("inf", 86_400)]
)
async def test_retry_after_is_read_in_seconds(said, seconds):
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(status=429, headers={"retry-after": said}))
    assert caught.value.facts["retry_after"] == seconds


@promise("models:retry-after")
async def test_retry_after_is_read_as_a_date():
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(status=429, headers={"retry-after": "Wed, 21 Oct 2065 07:28:00 GMT"}))
    assert caught.value.facts["retry_after"] > 1_000_000


HEAD = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\nconnection: close\r\n%s\r\n"
ENDLESS = b"x" * 65_536


@asynccontextmanager
async def raw_endpoint(head, part, pause_s=0.0):
    """Answer every request with a head and the same part again and again; yields a client, and what was written."""
    written_bytes = []

    async def answer(reader, writer):
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            while True:
                writer.write(part)
                await writer.drain()
                written_bytes.append(len(part))
                await asyncio.sleep(pause_s)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    async with (
        server,
        openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0, http_client=open_http()) as client,
    ):
        yield client, written_bytes


@promise("models:bounded")
@pytest.mark.parametrize("status", [b"200 OK", b"500 Internal Server Error", b"400 Bad Request"])
@pytest.mark.parametrize("length", [b"", b"content-length: 1073741824\r\n"], ids=["endless", "a gigabyte"])
async def test_an_answer_without_end_is_not_read_to_its_end_whatever_its_status(status, length):
    async with raw_endpoint(HEAD % (status, length), ENDLESS) as (client, written_bytes):
        with pytest.raises(ModelUnavailable) as caught:
            await complete(client, HttpPost(written(REQUEST)))
    assert f"more than {ANSWER_BYTES} bytes" in str(caught.value)
    assert caught.value.facts["unbilled"] is False
    # What the sockets hold is on its way already.
    assert sum(written_bytes) < 4 * ANSWER_BYTES


@promise("models:bounded")
@pytest.mark.parametrize("status", [b"200 OK", b"500 Internal Server Error"])
async def test_an_answer_that_drips_is_given_up_although_it_never_falls_silent(status):
    async with raw_endpoint(HEAD % (status, b""), b" ", pause_s=0.05) as (client, written_bytes):
        with pytest.raises(ModelUnavailable) as caught:
            await complete(client, HttpPost(written(REQUEST)), within_s=1)
    assert "has not answered within 1 s" in str(caught.value)
    assert caught.value.facts["unbilled"] is False
    assert len(written_bytes) > 1


@promise("secrets:echoed-reason")
@pytest.mark.parametrize("before", [20, 360])
async def test_an_endpoint_that_repeats_the_key_tells_it_to_nobody(before):
    key = "plain/words-as-a-key/of-nobody"
    reply = Reply(status=401, text="x " * (before // 2) + f"the key {key} is not known here, nor is any other " * 3)
    with pytest.raises(ModelRefused) as refused:
        await asked(reply, key=key)
    assert "x the key" in str(refused.value)
    assert "plain/words" not in str(refused.value)


@promise("models:bounded")
@pytest.mark.parametrize(
    ("encoding", "packed", "said"),
    [
        ("gzip", gzip.compress(b" " * (ANSWER_BYTES + 1), mtime=0), f"it answers with more than {ANSWER_BYTES} bytes"),
        ("gzip", gzip.compress(b"{}" * 1000, mtime=0)[:-9], "its compressed answer is not whole"),
        ("gzip", b"no such thing", "its compressed answer cannot be read"),
        ("br", b"no such thing", "it compresses its answers"),
    ],
)
async def test_an_answer_that_is_compressed_though_nobody_asked_for_that_is_unpacked_within_bounds(
    encoding, packed, said
):
    with pytest.raises(ModelUnavailable, match=said) as caught:
        await bounded(Reply(body=packed, headers={"content-encoding": encoding}))
    assert caught.value.facts["unbilled"] is False


async def bounded(reply, **options):
    async with (
        ScriptedModel([reply]) as model,
        openai.AsyncOpenAI(api_key="none", base_url=model.base_url, max_retries=0, http_client=open_http()) as client,
    ):
        return await complete(client, HttpPost(written(REQUEST | options)))


@promise("models:bodies")
@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
async def test_an_answer_that_is_compressed_is_read(pack):
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]})
    encoding = "gzip" if pack is gzip.compress else "deflate"
    completion = await bounded(Reply(body=pack(body.encode()), headers={"content-encoding": encoding}))
    assert completion.message["content"] == "hello"
    for said in ("none", "utf-8", ""):
        completion = await bounded(Reply(body=body.encode(), headers={"content-encoding": said}))
        assert completion.message["content"] == "hello"


@promise("models:bodies")
async def test_bytes_that_are_no_text_and_a_message_that_calls_itself_a_delta_are_read():
    for body in (
        b'{"choices": [{"message": {"role": "assistant", "content": "caf\xe9"}, "finish_reason": "stop"}]}',
        '{"choices": [{"delta": {"role": "assistant", "content": "caf\ufffd"}, "finish_reason": "stop"}]}'.encode(),
    ):
        completion = await asked(Reply(body=body))
        assert (completion.message["content"], completion.finish_reason) == ("caf\ufffd", "stop")


@promise("models:retry-after")
@pytest.mark.parametrize(
    ("status", "said", "waits", "unbilled"),
    [
        # mostlygeek/llama-swap#146, containers/ramalama#2343
        (503, "Loading model", 10.0, True),
        (503, "Model meta/llama is currently loading", 10.0, True),
        (503, "overloaded", None, False),
        (500, "Loading model", 10.0, False),
    ],
)
async def test_a_model_that_is_being_loaded_is_waited_for_and_costs_nothing(status, said, waits, unbilled):
    body = json.dumps({"error": {"code": status, "message": said, "type": "unavailable_error"}}).encode()
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(status=status, body=body))
    assert (caught.value.facts.get("retry_after"), caught.value.facts["unbilled"]) == (waits, unbilled)


@promise("models:ends-of-gemini")
def test_an_end_that_names_the_filter_of_calls_is_a_call_that_could_not_be_read():
    # coder/coder#28470
    for said in ("function_call_filter: MALFORMED_FUNCTION_CALL", "function_call_filter: UNEXPECTED_TOOL_CALL"):
        assert end_of(said, {"content": None}) == "malformed"
