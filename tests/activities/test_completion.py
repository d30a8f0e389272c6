"""One request over a real socket: what the endpoint makes of it, and what it is taken for."""

import json

import httpx2
import openai
import pytest

from activities.model.completion import complete, written
from backstay.errors import ModelRefused, ModelUnavailable
from backstay.testing import Reply, ScriptedModel, Tokens

REQUEST = {"model": "scripted", "messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 50}


async def asked(reply, timeout=10):
    async with (
        ScriptedModel([reply]) as model,
        openai.AsyncOpenAI(
            api_key="none", base_url=model.base_url, max_retries=0, timeout=httpx2.Timeout(timeout)
        ) as client,
    ):
        return await complete(client, written(REQUEST))


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


async def test_more_cached_than_there_is_is_cut_to_what_there_is():
    usage = {"prompt_tokens": 5, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 9}}
    completion = await asked(Reply(body=json.dumps({"choices": [{"message": {}}], "usage": usage}).encode()))
    assert (completion.usage.input_cached_tokens, completion.usage.input_new_tokens) == (5, 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html></html>",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b'{"choices": 7}',
        b"[" * 100_000,
    ],
)
async def test_what_is_no_completion_may_have_been_billed_and_is_tried_again(body):
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(body=body))
    assert caught.value.facts["unbilled"] is False
    assert "check OPENAI_BASE_URL" in str(caught.value)


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


async def test_a_dropped_or_silent_connection_may_have_been_billed():
    for reply in (Reply(then="drop"), Reply(then="hang")):
        with pytest.raises(ModelUnavailable) as caught:
            await asked(reply, timeout=0.5)
        assert caught.value.facts["unbilled"] is False


@pytest.mark.parametrize(("said", "seconds"), [("7", 7), ("0.5", 0.5), ("soon", None), ("", None)])
async def test_retry_after_is_read_in_seconds(said, seconds):
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(status=429, headers={"retry-after": said}))
    assert caught.value.facts["retry_after"] == seconds


async def test_retry_after_is_read_as_a_date():
    with pytest.raises(ModelUnavailable) as caught:
        await asked(Reply(status=429, headers={"retry-after": "Wed, 21 Oct 2065 07:28:00 GMT"}))
    assert caught.value.facts["retry_after"] > 1_000_000
