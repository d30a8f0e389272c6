"""Endpoints that each take requests in a form of their own: a run learns it from their refusals and gets through.

Each script below enforces the rule of one vendor, as the public report beside it tells it. All runs share one engine; a
model of its own for each keeps what is learned apart.
"""

import asyncio
import json
import re
from itertools import pairwise

import pytest
import pytest_asyncio

from activities.model.completion import written
from activities.model.learned import ForgottenModels, LearnedDialects
from backstay.testing import Reply
from tests.e2e.labelled import Labelled
from tests.e2e.loop.taking import answers, call, refused, says, steps, taking
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import PRICES, assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.sizes import spread

BAROMETER = {"type": "object", "properties": {"x": {"type": "array"}}}


def pairs(body):
    roles = [message["role"] for message in body["messages"]]
    return list(pairwise(roles))


def max_tokens_only(body):
    # editor-code-assistant/eca#231, voideditor/void#128
    if "max_completion_tokens" in body:
        text = "[{'loc': ('body', 'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]"
        return Reply(status=422, body=json.dumps({"object": "error", "message": text}).encode())
    return None if body.get("max_tokens") else refused("max_tokens is required")


def no_limit(body):
    # voideditor/void#128: neither name is taken
    names = [name for name in ("max_completion_tokens", "max_tokens") if name in body]
    return refused(f"Unrecognized request argument supplied: {names[0]}") if names else None


def no_user_behind_tool(body):
    # Mistral, code 3230
    if ("tool", "user") in pairs(body):
        return refused("Unexpected role 'user' after role 'tool'", "3230")
    return None


def alternating(body):
    # mistralai/mistral-vibe#1006, eclipse-theia/theia#17104: 500 from a template
    roles = [m["role"] for m in body["messages"] if m["role"] in {"user", "assistant"} and not m.get("tool_calls")]
    if any(each == other for each, other in pairwise(roles)):
        text = "Jinja Exception: After the optional system message, conversation roles must alternate"
        return refused(text, 500, status=500)
    return None


def no_system(body):
    # google's Gemma through compatible endpoints
    return refused("System role not supported") if any(m["role"] == "system" for m in body["messages"]) else None


def short_ids(body):
    # karthink/gptel#1203, nearai/ironclaw#1241
    for message in body["messages"]:
        for each in message.get("tool_calls", ()):
            if not re.fullmatch("[a-zA-Z0-9]{9}", each["id"]):
                return refused(f"Tool call id was {each['id']} but must be a-z, A-Z, 0-9, with a length of 9.", "3280")
    return None


def one_call_each(body):
    # the templates of Llama models behind vLLM and TGI
    if any(len(message.get("tool_calls", ())) > 1 for message in body["messages"]):
        return refused("This model only supports single tool-calls at once!")
    return None


def no_null(body):
    # lmstudio-ai/lmstudio-bug-tracker#261
    if any(message.get("content", "") is None for message in body["messages"]):
        return Reply(status=400, body=b"{\"error\": \"Invalid 'content': 'content' field must be a string.\"}")
    return None


def no_empty(body):
    # gateways to Anthropic: neither null nor an empty text
    if any("content" in message and not message["content"] for message in body["messages"]):
        return refused("messages: text content blocks must be non-empty")
    return None


def vague(body):
    # a gateway that only says that it does not like it
    return no_null(body) and Reply(status=400, body=b"Bad Request")


def no_array_without_items(body):
    # ruvnet/ruflo#1294, Automattic/wordpress-mcp#103
    for place, tool in enumerate(body.get("tools", ())):
        for name, schema in tool["function"]["parameters"]["properties"].items():
            if schema.get("type") == "array" and "items" not in schema:
                where = f"In context=('properties', '{name}')"
                text = f"Invalid schema for function '{tool['function']['name']}': {where}, array schema missing items."
                return refused(text, "invalid_function_parameters", param=f"tools[{place}].function.parameters")
    return None


def no_barometer(body):
    # catatafishen/agentbridge#424: one function is refused in any form, and named by its place only
    for place, tool in enumerate(body.get("tools", ())):
        if tool["function"]["name"] == "desk__barometer":
            return refused(f"tools.{place}.custom.input_schema: JSON schema is invalid")
    return None


def few_functions(body):
    # 0x4m4/hexstrike-ai#29, vishalmysore/Tools4AI#16
    count = len(body.get("tools", ()))
    if count > 9:
        text = f"Invalid 'tools': array too long. Expected an array with maximum length 9, but got {count}."
        return refused(text, "array_above_max_length", param="tools")
    return None


def short_answers(body):
    text = "max_tokens is too large: this model supports at most 1000 completion tokens"
    return refused(text) if body["max_completion_tokens"] > 1000 else None


def streams_only(body):
    # langchain4j/langchain4j#3974: Qwen3 by DashScope, which thinks in streams only
    text = "parameter.enable_thinking must be set to false for non-streaming calls"
    return None if body.get("stream") else refused(text, "invalid_parameter_error")


def known_fields_only(body):
    # karthink/gptel#774, janhq/jan#8136, Kilo-Org/kilocode#10375
    for place, message in enumerate(body["messages"]):
        for name in ("reasoning", "reasoning_content"):
            if name in message:
                text = f"('messages.{place}' : property '{name}' is unsupported)"
                return refused(f"'messages.{place}' : for 'role:assistant' the following must be satisfied[{text}]")
    return steps(body, content="", reasoning="I look.", reasoning_content="I look.")


RULES = {
    "maxtokens": max_tokens_only,
    "nolimit": no_limit,
    "bridged": no_user_behind_tool,
    "alternating": alternating,
    "nosystem": no_system,
    "ids": short_ids,
    "single": one_call_each,
    "null": no_null,
    "empty": no_empty,
    "vague": vague,
    "schema": no_array_without_items,
    "poison": no_barometer,
    "few": few_functions,
    "short": short_answers,
    "streams": streams_only,
    "unknownfields": known_fields_only,
}


def wants(found, place):
    return (
        refused(f"reasoning_content is missing in assistant tool call message at index {place}") if not found else None
    )


def deepseek(conversation):
    # MoonshotAI/kimi-cli#2141, charmbracelet/crush#2696
    body = conversation.body
    for place, message in enumerate(body["messages"]):
        if message.get("tool_calls") and (
            fault := wants(message.get("reasoning_content") == "Hm, 3.10 \u4e2d.", place)
        ):
            return fault
    return steps(body, content="", reasoning_content="Hm, 3.10 \u4e2d.")


SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln+/=="}}}


def google(conversation):
    # openai/openai-python#2758, langroid/langroid#969, manthanabc/paws#103
    body = conversation.body
    for message in body["messages"]:
        if message.get("tool_calls") and message["tool_calls"][0].get("extra_content") != SIGNED["extra_content"]:
            return refused("Function call is missing a thought_signature in functionCall parts.")
    if not answers(body):
        return says(None, call("desk__look", "a", SIGNED), call("desk__look", "b"))
    return says(None, call("finish", "f", SIGNED, summary="seen"))


DETAILS = {
    "reasoning_details": [{"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1", "format": "x", "index": 0}],
    "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "EqQB"}],
    "provider_specific_fields": {"citations": [1.5, None]},
}


def gateways(conversation):
    # OpenRouter's reasoning_details, LiteLLM's thinking_blocks
    body = conversation.body
    for message in body["messages"]:
        if message["role"] == "assistant" and any(message.get(name) != value for name, value in DETAILS.items()):
            return refused("what was said is not given back")
    return steps(body, **DETAILS)


KEY = "known-secret-of-this-test"


def leaking(conversation):
    body = conversation.body
    if KEY in json.dumps(body):
        return refused("a secret came back")
    return steps(body, content="", reasoning_content=f"The key is {KEY}.", role="user", name="x", arguments="{}")


SCRIPTS = Labelled(
    **{name: taking(rule) for name, rule in RULES.items()},
    daily=taking(max_tokens_only),
    forgotten=taking(max_tokens_only),
    counted=taking(lambda body: None),
    deepseek=deepseek,
    google=google,
    gateways=gateways,
    leaking=leaking,
)
MODELS = {f"{name}-model": PRICES["scripted"] for name in SCRIPTS.scripts}


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("dialects")
    tools = [reads("look", {"type": "object", "properties": {}}), reads("barometer", BAROMETER)]
    desk = ScriptedServer(folder / "desk.json", tools, {"look": {"data": {"seen": True}}})
    toolbox = toolbox_of_servers(folder, desk=desk)
    more = {"toolbox": toolbox, "prices": PRICES | MODELS, "openai_api_key": KEY}
    async with engine(temporal, folder, SCRIPTS, **more) as made:
        yield made


async def ran(opened, label, **more):
    text = f"<{label}> look at the desk and read the barometer"
    handle = await opened.start({"text": text, "model": f"{label}-model", **more})
    result = await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return result, [body for body in opened.model.requests if body["model"] == f"{label}-model"]


@promise("models:dialects")
@pytest.mark.parametrize("label", spread(list(RULES), 4))
async def test_a_run_gets_through_whatever_form_its_endpoint_takes(opened, label):
    result, requests = await ran(opened, label)
    assert (result["outcome"], result["final_summary"]) == ("completed", "seen"), result["error"]
    assert len([event for event in result["events"] if event["name"] == "action.called"]) == 3
    assert all("tools" in body for body in requests[-3:])
    # What was refused is refused once: the next run knows it.
    again, more = await ran(opened, label)
    assert again["outcome"] == "completed"
    assert len(more) - len(requests) == 3
    # Nothing but answers was billed: 100 tokens at 1 USD per million, 20 at 4, three times.
    assert round(result["usage"]["llm_cost_usd"] * 1e6) == 3 * 180


@promise("models:opaque")
@pytest.mark.parametrize("label", ["deepseek", "google", "gateways"])
async def test_what_an_endpoint_puts_beside_its_answers_comes_back_to_it_unchanged(opened, label):
    result, requests = await ran(opened, label)
    assert (result["outcome"], result["final_summary"]) == ("completed", "seen"), result["error"]
    steps_taken = len([event for event in result["events"] if event["name"] == "model.asked"])
    assert len(requests) == steps_taken
    kept = json.dumps(result)
    assert all(secret not in kept for secret in ("Hm, 3.10", "c2ln+", "gAAAA"))


@promise("models:opaque")
async def test_what_holds_a_known_secret_is_not_given_back_and_never_takes_the_place_of_ours(opened):
    result, requests = await ran(opened, "leaking")
    assert result["outcome"] == "completed"
    said = [message for message in requests[-1]["messages"] if message["role"] == "assistant"]
    assert [set(message) for message in said] == [{"role", "content", "tool_calls"}] * 2


@promise("models:dialects")
async def test_a_function_that_is_taken_in_no_form_is_left_out_and_that_is_said(opened):
    result, requests = await ran(opened, "poison")
    assert result["outcome"] == "completed"
    assert "desk__barometer" not in json.dumps(requests[-1]["tools"])
    told = json.dumps(requests[-1]["messages"])
    assert ("desk__barometer" in told) or len(requests) > 6


def filtered(_conversation):
    return refused(
        "The response was filtered due to the prompt triggering content management policy.", "content_filter"
    )


def unknown(_conversation):
    return refused("The model `nowhere` does not exist", "model_not_found", status=404)


@promise("models:causes")
async def test_a_person_reads_what_the_endpoint_said_and_a_filter_is_asked_once(opened):
    for label, script, words in (
        ("filter", filtered, "prompt triggering content management policy"),
        ("nomodel", unknown, "does not exist"),
    ):
        SCRIPTS.scripts[label] = script
        handle = await opened.start({"text": f"<{label}>", "model": "scripted"})
        (request,) = await pending(handle)
        assert words in request["question"]
        assert SCRIPTS.asked[label] == 1
        if label == "nomodel":
            assert "it has scripted" in request["question"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        result = await asyncio.wait_for(handle.result(), 150)
        # A filter has read the request, which some bill.
        assert (result["outcome"], result["usage"]["llm_cost_usd"] > 0) == ("failed", label == "filter")


def limits(requests):
    return ["max_completion_tokens" if "max_completion_tokens" in body else "max_tokens" for body in requests]


@promise("models:dialects-age")
async def test_what_a_run_has_learned_holds_no_longer_for_it_than_for_its_worker(opened, monkeypatch):
    monkeypatch.setattr("activities.model.learned.HELD_S", -1)
    result, requests = await ran(opened, "daily")
    assert (result["outcome"], result["final_summary"]) == ("completed", "seen")
    # At each step it is found out anew whether the endpoint takes by now what it has refused.
    assert limits(requests) == ["max_completion_tokens", "max_tokens"] * 3


@promise("models:dialects-age")
async def test_what_an_operator_lets_be_forgotten_is_forgotten_by_a_run_under_way(opened):
    home = opened.settings.home

    def forgetting(conversation):
        if len(answers(conversation.body)) == 2:
            LearnedDialects(home).forget("forgotten-model")
            ForgottenModels(home).forget("forgotten-model")
        return taking(max_tokens_only)(conversation)

    SCRIPTS.scripts["forgotten"] = forgetting
    result, requests = await ran(opened, "forgotten")
    assert (result["outcome"], result["final_summary"]) == ("completed", "seen")
    assert limits(requests) == [
        "max_completion_tokens",
        "max_tokens",
        "max_tokens",
        "max_completion_tokens",
        "max_tokens",
    ]


@promise("budget:written-once")
async def test_a_request_is_written_once_where_the_token_limit_leaves_room_for_its_answer(opened, monkeypatch):
    sizes = []

    def counted(request):
        sizes.append(content := written(request))
        return content

    monkeypatch.setattr("activities.model.sending.written", counted)
    result, requests = await ran(opened, "counted", budget={"max_tokens": 1_000_000})
    assert (result["outcome"], len(requests)) == ("completed", 3)
    assert len(sizes) == 3
