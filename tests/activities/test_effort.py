"""How much a model thinks, and what of a request its endpoint is to keep for the next one."""

import json

import pytest

from activities.endpoints.dialect import PLAIN
from activities.model.learning import Lessons
from activities.model.native.prefix import mark_for_cache, within_limit
from activities.model.native.writing import native
from activities.model.refusals import refusal_of
from activities.model.shaping import LIMIT, shaped
from tests.activities.test_native import ADD, BEGUN, asked_for
from tests.native_apis import MODELS
from tests.requirements import promise
from tests.sizes import spread

TAKEN = {
    "responses": lambda body: body["reasoning"]["effort"],
    "anthropic": lambda body: body["output_config"]["effort"],
    "gemini": lambda body: body["generationConfig"]["thinkingConfig"]["thinking_level"].lower(),
}


async def body_of(api, model=None, **more):
    request = await native(api, model or MODELS[api]).request(asked_for(api, **more))
    return json.loads(request.whole().content)


@promise("models:effort")
@pytest.mark.parametrize("api", spread(list(MODELS), 2))
async def test_a_native_api_is_told_in_its_own_form_how_much_its_model_is_to_think(api):
    for effort in ("low", "high"):
        assert TAKEN[api](await body_of(api, reasoning_effort=effort)) == effort
    plain = json.dumps(await body_of(api))
    assert not [word for word in ("effort", "thinking_level", '"thinking":') if word in plain]


@promise("models:effort")
async def test_a_budget_of_thoughts_stays_below_the_limit_of_the_answer_and_too_small_a_one_is_left_out():
    older = "claude-sonnet-4-5"
    body = await body_of("anthropic", older, reasoning_effort="high", max_completion_tokens=4096)
    assert (body["thinking"]["budget_tokens"], body["max_tokens"]) == (2048, 4096)
    assert "thinking" not in await body_of("anthropic", older, reasoning_effort="high", max_completion_tokens=1500)
    body = {"max_tokens": 90_000, "thinking": {"type": "enabled", "budget_tokens": 2048}}
    within_limit(body)
    assert body["thinking"]["budget_tokens"] == 2048


REFUSED = [
    # openai/codex and others: https://platform.openai.com/docs/guides/reasoning
    "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
    "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.",
    "[{'loc': ('body', 'reasoning_effort'), 'msg': 'Extra inputs are not permitted'}]",
    # router-for-me/CLIProxyAPI#1572: SGLang
    (
        "1 validation error: {'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be "
        "'low', 'medium' or 'high'\", 'input': 'xhigh', 'ctx': {'expected': \"'low', 'medium' or 'high'\"}}"
    ),
    # the same in the words of native APIs
    "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
    "output_config.effort: Extra inputs are not permitted",
    "Thinking level is not supported for this model.",
]


@promise("models:effort")
@pytest.mark.parametrize("message", REFUSED)
def test_an_endpoint_that_knows_no_effort_is_asked_without(message):
    asked = {"messages": [{"role": "user", "content": "Look."}], "reasoning_effort": "high", LIMIT: 900}
    lessons = Lessons(PLAIN)
    assert lessons.learns(refusal_of(400, {"error": {"message": message}}), asked)
    assert lessons.dialect.lesson(PLAIN) == {"without": ["reasoning_effort"]}
    assert "reasoning_effort" not in shaped(asked, lessons.dialect)


@promise("models:effort")
@pytest.mark.parametrize(
    "detail",
    [
        "messages.1.content.0.type: Input should be 'text' or 'thinking'",
        "Invalid request: messages.1.content.0.type: Input should be 'text' or 'thinking'",
        "messages.1.role: Input should be 'user' or 'assistant'",
    ],
)
def test_a_choice_that_another_field_does_not_hold_is_no_reason_to_ask_without_an_effort(detail):
    asked = {"messages": [{"role": "user", "content": "Look."}], "reasoning_effort": "high", LIMIT: 900}
    lessons = Lessons(PLAIN)
    lessons.learns(refusal_of(400, {"error": {"message": detail}}), asked)
    assert "reasoning_effort" in shaped(asked, lessons.dialect)


def marked(body):
    """What stands before each mark, as the vendor compares it: functions, system text, and messages."""
    whole, found = [], []
    messages = [block for message in body["messages"] for block in message["content"]]
    for block in (*body["tools"], *body["system"], *messages):
        kept = block.pop("cache_control", None)
        whole.append(json.dumps(block, sort_keys=True))
        if kept is not None:
            found.append("".join(whole))
    return found, "".join(whole)


@promise("models:native-cache")
async def test_what_is_kept_in_a_cache_is_what_the_next_request_begins_with():
    messages, before = [*BEGUN, {"role": "user", "content": "Left: 9 steps."}], ""
    for step in range(4):
        found, whole = marked(await body_of("anthropic", messages=messages))
        assert len(found) == 3
        assert whole.startswith(before)
        assert "Left" not in found[-1]
        before = found[-1]
        call = {"id": f"c{step}", "type": "function", "function": {"name": "desk__add", "arguments": "{}"}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        answer = {"role": "tool", "tool_call_id": f"c{step}", "content": f"answer {step}"}
        messages = [*messages[:-1], said, answer, {"role": "user", "content": f"Left: {8 - step} steps."}]


@promise("models:native-cache")
async def test_what_is_asked_once_is_not_kept():
    request = await native("anthropic", MODELS["anthropic"]).request(
        {"model": MODELS["anthropic"], "messages": BEGUN, LIMIT: 400}
    )
    assert b"cache_control" not in request.whole().content
    body = {"tools": [dict(ADD)], "messages": [{"role": "user", "content": "Look."}]}
    mark_for_cache(body)
    assert body["messages"] == [{"role": "user", "content": "Look."}]
