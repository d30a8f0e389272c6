"""The scripted model as an OpenAI client sees it."""

import asyncio
import json
import sys

import httpx2
import openai
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from backstay.testing import Bill, Conversation, Reply, ScriptedModel, Tokens, payload_of
from tests.requirements import promise
from tests.sizes import spread

ASK = {"model": "m", "messages": [{"role": "user", "content": "Say something."}]}
PRICES = {"m": (1.0, 0.1, 4.0)}


def client(model):
    return openai.AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0, timeout=150)


@promise("testing:model")
async def test_a_text_is_answered_with_usage_in_the_shape_the_client_reads():
    async with ScriptedModel([Reply(text="hello")]) as model, client(model) as endpoint:
        answer = await endpoint.chat.completions.create(**ASK)
    assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("hello", "stop")
    size = len(json.dumps(model.requests[0], separators=(",", ":")).encode())
    assert answer.usage.prompt_tokens == -(-size // 4)
    assert answer.usage.prompt_tokens_details.cached_tokens == 0
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


@promise("testing:model")
async def test_calls_are_answered_as_native_function_calls_with_ids_of_their_own():
    reply = Reply(text="Both at once.", calls=[("mail__list", {"limit": 2}), ("mail__send", "{not json")])
    async with ScriptedModel([reply, reply]) as model, client(model) as endpoint:
        tools = [{"type": "function", "function": {"name": "mail__list", "parameters": {"type": "object"}}}]
        answers = [await endpoint.chat.completions.create(**ASK, tools=tools) for _ in range(2)]
    calls = [call for answer in answers for call in answer.choices[0].message.tool_calls]
    assert [(call.function.name, call.function.arguments) for call in calls[:2]] == [
        ("mail__list", '{"limit": 2}'),
        ("mail__send", "{not json"),
    ]
    assert len({call.id for call in calls}) == 4
    assert answers[0].choices[0].finish_reason == "tool_calls"


@promise("testing:rules")
async def test_a_rule_sees_task_tools_calls_and_answers():
    seen = []

    def rule(conversation):
        seen.append(conversation)
        if not conversation.answers("look"):
            return Reply(calls=[("look", {"at": "sea"}), ("look", {"at": "sky"})])
        return Reply(text=str([answer["data"] for answer in conversation.answers("look")]))

    async with ScriptedModel(rule) as model, client(model) as endpoint:
        messages = [{"role": "system", "content": "You look."}, {"role": "user", "content": "Look around."}]
        tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
        first = (await endpoint.chat.completions.create(model="m", messages=messages, tools=tools)).choices[0].message
        messages.append(first.model_dump(exclude_none=True))
        for call, data in zip(first.tool_calls, ("blue", "grey"), strict=True):
            content = json.dumps({"data": data, "ref": "r"})
            messages.append({"role": "tool", "tool_call_id": call.id, "content": content})
        last = await endpoint.chat.completions.create(model="m", messages=messages, tools=tools)
    assert last.choices[0].message.content == "['blue', 'grey']"
    assert (seen[1].task, seen[1].tools, seen[1].model) == ("Look around.", ["look"], "m")
    assert [(call.arguments["at"], payload_of(call.answer)) for call in seen[1].calls()] == [
        ("sea", "blue"),
        ("sky", "grey"),
    ]


@promise("testing:bill")
async def test_a_growing_conversation_is_billed_as_cached_where_it_repeats():
    async with ScriptedModel([Reply(text="a"), Reply(text="b")]) as model, client(model) as endpoint:
        long = [{"role": "user", "content": "word " * 400}]
        await endpoint.chat.completions.create(model="m", messages=long)
        answer = await endpoint.chat.completions.create(
            model="m", messages=[*long, {"role": "user", "content": "more"}]
        )
    assert 490 < answer.usage.prompt_tokens_details.cached_tokens < answer.usage.prompt_tokens
    assert list(model.bill)[1][1].cached == answer.usage.prompt_tokens_details.cached_tokens


@promise("testing:bill")
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=500, usage=Tokens(prompt=100, completion=10)), openai.InternalServerError),
        (Reply(status=504, usage=Tokens(prompt=100, completion=10)), openai.InternalServerError),
        (Reply(then="drop", usage=Tokens(prompt=100, completion=10)), openai.APIConnectionError),
    ],
)
async def test_what_was_computed_and_never_arrived_is_billed_all_the_same(reply, error):
    async with ScriptedModel([reply, Reply(text="ok", usage=Tokens(prompt=1))]) as model, client(model) as endpoint:
        with pytest.raises(error):
            await endpoint.chat.completions.create(**ASK)
        assert model.billed_micro(PRICES) == 100 + 4 * 10
        await endpoint.chat.completions.create(**ASK)
    assert (len(model.requests), model.billed_micro(PRICES)) == (2, 141)


@promise("testing:bill")
async def test_silence_is_billed_and_ends_with_the_client_or_the_server():
    async with ScriptedModel(lambda _: Reply(then="hang", usage=Tokens(prompt=7))) as model, client(model) as endpoint:
        with pytest.raises(openai.APITimeoutError):
            await endpoint.with_options(timeout=0.5).chat.completions.create(**ASK)
        waiting = asyncio.create_task(endpoint.chat.completions.create(**ASK))
        await model.charged(2)
        assert not waiting.done()
    with pytest.raises(openai.APIConnectionError):
        await asyncio.wait_for(waiting, 150)
    assert model.billed_micro(PRICES) == 14


@promise("testing:faults")
async def test_a_page_of_html_is_answered_byte_for_byte():
    page = b"<html><body>Bad gateway</body></html>"
    async with ScriptedModel([Reply(body=page)] * 2) as model, client(model) as endpoint:
        async with httpx2.AsyncClient(timeout=150) as browser:
            answer = await browser.post(model.base_url + "/chat/completions", json=ASK)
        assert await endpoint.chat.completions.create(**ASK) == page.decode()
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (
        200,
        page,
        "text/html; charset=utf-8",
    )


@promise("testing:faults")
async def test_a_refusal_names_its_code_and_its_headers_and_costs_nothing():
    replies = [
        Reply(status=429, headers={"Retry-After": "7"}, text="slow down"),
        Reply(status=429, code="insufficient_quota"),
        Reply(status=400, code="context_length_exceeded"),
        Reply(status=401),
        Reply(status=408),
    ]
    async with ScriptedModel(replies) as model, client(model) as endpoint:
        faults = []
        for _ in replies:
            with pytest.raises(openai.APIStatusError) as caught:
                await endpoint.chat.completions.create(**ASK)
            faults.append(caught.value)
    assert faults[0].response.headers["retry-after"] == "7"
    assert "slow down" in str(faults[0])
    assert [fault.code for fault in faults[:3]] == [None, "insufficient_quota", "context_length_exceeded"]
    assert [fault.status_code for fault in faults] == [429, 429, 400, 401, 408]
    assert len(model.bill) == 1


@promise("testing:faults")
async def test_an_answer_longer_than_the_request_allows_is_cut_and_billed_as_cut():
    async with ScriptedModel([Reply(text="word " * 100)]) as model, client(model) as endpoint:
        answer = await endpoint.chat.completions.create(**ASK, max_completion_tokens=5)
    assert (answer.choices[0].finish_reason, answer.usage.completion_tokens) == ("length", 5)
    assert answer.choices[0].message.content == "word " * 4


@promise("testing:model")
async def test_an_answer_can_be_empty_and_say_nothing_of_its_usage():
    async with ScriptedModel([Reply(reports_usage=False)]) as model, client(model) as endpoint:
        answer = await endpoint.chat.completions.create(**ASK)
    assert (answer.choices[0].message.content, answer.usage) == (None, None)
    assert len(model.bill) == 1


@promise("testing:model")
async def test_a_stream_carries_text_calls_and_usage():
    reply = Reply(text="hello", calls=[("look", {"at": "sea"})])
    async with ScriptedModel([reply]) as model, client(model) as endpoint:
        options = {"include_usage": True}
        stream = await endpoint.chat.completions.create(**ASK, stream=True, stream_options=options)
        chunks = [chunk async for chunk in stream]
    assert chunks[0].choices[0].delta.content == "hello"
    assert chunks[0].choices[0].delta.tool_calls[0].function.name == "look"
    assert chunks[1].choices[0].finish_reason == "tool_calls"
    assert chunks[2].usage.prompt_tokens > 0


@promise("testing:rules")
async def test_a_rule_may_wait_for_what_the_test_decides():
    may_answer = asyncio.Event()

    async def rule(_):
        await may_answer.wait()
        return Reply(text="now")

    async with ScriptedModel(rule) as model, client(model) as endpoint:
        asking = asyncio.create_task(endpoint.chat.completions.create(**ASK))
        await model.asked(1)
        assert len(model.bill) == 0
        may_answer.set()
        assert (await asyncio.wait_for(asking, 150)).choices[0].message.content == "now"
    assert len(model.bill) == 1


@promise("testing:script-faults")
async def test_a_script_at_its_end_and_a_script_that_raises_say_so():
    async with ScriptedModel([]) as model, client(model) as endpoint:
        with pytest.raises(openai.BadRequestError, match="the script has 0 replies and this is request 1"):
            await endpoint.chat.completions.create(**ASK)
    async with ScriptedModel(lambda conversation: conversation.nothing) as model, client(model) as endpoint:
        with pytest.raises(openai.BadRequestError, match="the script failed"):
            await endpoint.chat.completions.create(**ASK)
        assert [type(fault) for fault in model.faults] == [AttributeError]
    assert len(model.bill) == 0


@promise("testing:script-faults")
async def test_waiting_for_requests_that_never_come_is_bounded():
    async with ScriptedModel([]) as model:
        with pytest.raises(TimeoutError):
            await model.asked(1, within_s=0.05)


@promise("testing:process")
async def test_as_a_process_it_prints_its_address_serves_and_ends_on_a_signal():
    script = ["--script", "examples.mailbox.reminders:Reminders", "--port", "0"]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backstay.testing", *script, stdout=asyncio.subprocess.PIPE
    )
    try:
        ready = (await asyncio.wait_for(process.stdout.readline(), 150)).decode()
        address = ready.removeprefix("scripted model ready: ").strip()
        async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0, timeout=150) as endpoint:
            answer = await endpoint.chat.completions.create(**ASK)
            assert [model.id async for model in endpoint.models.list()] == ["scripted"]
        assert answer.choices[0].message.content.startswith("I had to stop")
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 150) == 0


@promise("testing:script-faults")
@pytest.mark.parametrize(
    "script", spread(["examples.mailbox.reminders:Nobody", "reminders", "examples.nowhere:Reminders"], 1)
)
async def test_a_script_that_cannot_be_loaded_is_refused_by_name(script):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backstay.testing", "--script", script, stderr=asyncio.subprocess.PIPE
    )
    _, complaint = await asyncio.wait_for(process.communicate(), 150)
    assert process.returncode == 2
    assert f"--script: '{script}'".encode() in complaint


@promise("testing:bill")
@settings(deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink))
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_the_bill_is_the_exact_sum_rounded_up_once(entries):
    bill = Bill()
    for new, cached, completion in entries:
        bill.add("m", Tokens(prompt=new + cached, cached=cached, completion=completion))
    tenths = sum(10 * new + cached + 40 * completion for new, cached, completion in entries)
    assert bill.micro(PRICES) == -(-tenths // 10)


@promise("testing:bill")
def test_a_model_without_a_price_is_no_free_model():
    bill = Bill()
    bill.add("other", Tokens(prompt=1))
    with pytest.raises(ValueError, match="no price for model 'other'"):
        bill.micro(PRICES)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@promise("testing:rules")
@given(messages=JSON, tools=JSON, content=JSON)
def test_any_request_can_be_read_as_a_conversation(messages, tools, content):
    odd = [{"role": "assistant", "tool_calls": tools}, {"role": "tool", "tool_call_id": "x", "content": content}]
    for body in ({"messages": messages, "tools": tools}, {"messages": odd, "tools": [{"function": messages}]}):
        conversation = Conversation(body)
        assert isinstance(conversation.task + conversation.last_text + "".join(conversation.tools), str)
        assert conversation.answers() == []
    payload_of(content)
