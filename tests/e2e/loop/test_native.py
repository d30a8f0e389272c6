"""Whole runs by the native APIs of vendors, whose endpoints refuse what their references say is refused."""

import asyncio
import json
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta

import pytest
import pytest_asyncio
import yaml

import opening
from backstay.testing import Reply, ScriptedModel
from tests.engine import assert_no_task_failure, engine
from tests.native_apis import KEY, MODELS, USED, Says, Vendor
from tests.requirements import promise
from tests.sizes import spread
from tests.whole_ends import WHOLE, Ended, ended

PRICE = {"input": 1.0, "cached": 0.1, "cache_write": 1.25, "output": 4.0}
LIST = ("mail__list_customers", {"limit": 1})
SEND = ("mail__send_email", {"to": "ana@example.com", "subject": "s", "body": "b"})
DONE = ("finish", {"summary": "All is said.", "success": True})
WORDS = "I have looked at all of them, and none is overdue by now. " * 8
THOUGHT = "The thoughts that nobody reads."


def label_in(body):
    """The word in <> at the beginning of a task, by which a run finds its own part of the script."""
    text = json.dumps(body)
    return text.partition("<<")[2].partition(">>")[0]


class Parts:
    """A script with a part for each label; the answer is chosen by how many answers of tools the request holds."""

    def __init__(self):
        self.parts = {}

    def __call__(self, answered, body):
        return self.parts[label_in(body)](answered, body)


def errand(answered, body):
    if answered == 0:
        return Says("I look twice.", (LIST, ("mail__list_customers", {"limit": 2})), THOUGHT)
    if answered == 2:
        return Says("", (SEND,), THOUGHT)
    return Says("", (DONE,), THOUGHT)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("native")
    scripts = {name: Parts() for name in (*MODELS, "spare")}
    async with AsyncExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("NATIVE_KEY", KEY)
        vendors = {api: await stack.enter_async_context(Vendor(api, scripts[api]).open()) for api in MODELS}
        spare = await stack.enter_async_context(
            ScriptedModel(lambda talk: scripts["spare"].parts[label_in(talk.messages)](talk))
        )
        endpoints = {
            api: {"base_url": vendor.base_url, "key": "${NATIVE_KEY}", "api": api} for api, vendor in vendors.items()
        }
        endpoints["spare"] = {"base_url": spare.base_url}
        models = {
            api: {"endpoint": api, "model": name, "price": PRICE, "fallback": ["spare"]} for api, name in MODELS.items()
        }
        models["keen"] = {"endpoint": "spare", "model": "scripted", "price": PRICE, "effort": "high"}
        models["spare"] = {"endpoint": "spare", "model": "scripted", "price": PRICE}
        path = folder / "models.yaml"
        await asyncio.to_thread(
            path.write_text, yaml.safe_dump({"endpoints": endpoints, "models": models}), encoding="utf-8"
        )
        allowed = "default: {read_only: allow, write_safe: allow, restricted_write: allow}"
        made = await stack.enter_async_context(engine(temporal, folder, [], policy=allowed, models=path))
        yield made, vendors, scripts


async def ran(made, label, model, **task):
    handle = await made.start({"text": f"<<{label}>> Write to Ana.", "model": model, **task})
    result = await asyncio.wait_for(handle.result(), 150)
    history = await handle.fetch_history()
    assert_no_task_failure(history)
    return result, history


@promise("models:native-run")
@pytest.mark.parametrize("api", spread(list(MODELS), 1))
async def test_a_run_by_a_native_api_gives_back_what_was_signed_and_is_billed_with_its_cache(opened, api):
    made, vendors, scripts = opened
    scripts[api].parts["whole"] = errand
    sent = len(made.mailbox.sent())

    result, history = await ran(made, "whole", api, budget={"max_llm_cost_usd": 1.0})

    assert (result["outcome"], vendors[api].refused) == ("completed", [])
    assert result["final_summary"] == "All is said."
    assert len(made.mailbox.sent()) == sent + 1
    used = result["usage"]["models"][api]
    written = 0 if api == "gemini" else USED["written"]
    new = USED["prompt"] - USED["cached"]
    assert (used["calls"], used["input_cached_tokens"], used["input_new_tokens"]) == (3, 3 * USED["cached"], 3 * new)
    cost = USED["cached"] * 0.1 + (new - written) + written * 1.25 + USED["output"] * 4
    assert used["cost_usd"] == pytest.approx(3 * cost / 1e6, abs=4e-6)
    told = json.dumps(result) + "".join(str(event) for event in history.events)
    assert THOUGHT not in told
    assert not [mark for mark in ("enc-", "sig-", "red-") if mark in told]


@promise("models:native-unsent")
@pytest.mark.parametrize("api", MODELS)
async def test_what_a_native_request_may_cost_is_known_before_it_is_sent(opened, api):
    made, vendors, scripts = opened
    scripts[api].parts["dear"] = errand
    before = len(vendors[api].requests)

    result, _ = await ran(made, "dear", api, budget={"max_llm_cost_usd": 0.000002})

    assert result["outcome"] == "budget_exceeded"
    assert result["usage"]["llm_cost_usd"] == 0
    assert len(vendors[api].requests) == before


@promise("models:native-fallback")
@pytest.mark.parametrize("api", MODELS)
async def test_a_run_goes_from_a_native_api_to_another_model_and_back(opened, api):
    made, vendors, scripts = opened
    label, native = f"back {api}", []

    def first(answered, body):
        native.append(body)
        if len(native) == 2:
            return Says(status=401, body={"error": {"message": "no key", "type": "x"}})
        return Says("I look.", (LIST,), THOUGHT) if answered == 0 else Says("", (DONE,), THOUGHT)

    def spare(talk):
        chat.append(talk)
        calls = [("mail__list_customers", {"limit": 2})]
        return Reply(text="I look again.", calls=calls) if len(chat) == 1 else Reply(status=401)

    chat = []
    scripts[api].parts[label], scripts["spare"].parts[label] = first, spare

    result, _ = await ran(made, label, api)

    moves = [event["data"] for event in result["events"] if event["name"] == "model.fallback"]
    assert [(move["from"], move["to"]) for move in moves] == [(api, "spare"), ("spare", api)]
    assert (result["outcome"], result["final_summary"], vendors[api].refused) == ("completed", "All is said.", [])
    # Another model gets the words and calls alone, and the native one its own thoughts and no others.
    (said,) = [message for message in chat[0].messages if message["role"] == "assistant"]
    assert said.keys() == {"role", "content", "tool_calls"}
    mark = {"responses": "enc-", "anthropic": "sig-", "gemini": "thoughtSignature"}[api]
    last = json.dumps(native[-1])
    assert mark in last
    assert "I look again." in last


# All reasons of the vendors' references but those of WHOLE, and one that nobody knows.
ENDS = {
    "responses": ["max_output_tokens", "content_filter", "refusal", "whatever"],
    "anthropic": ["max_tokens", "pause_turn", "refusal", "model_context_window_exceeded", "whatever"],
    "gemini": [
        *("MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
        *("MALFORMED_FUNCTION_CALL", "IMAGE_SAFETY", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
        *("MALFORMED_RESPONSE", "FINISH_REASON_UNSPECIFIED"),
    ],
}
STATUSES = {"responses": {"refusal": "refusal"}}
"""What stands for a reason that is not written down as one: Responses names it beside the status of the answer."""


@promise("models:ends")
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("api", "reason"), spread([(api, reason) for api, reasons in ENDS.items() for reason in reasons], 4)
)
async def test_the_engine_of_the_tests_refuses_a_completed_run_of_a_native_api_whose_last_answer_is_not_whole(
    opened, api, reason
):
    made, _, scripts = opened
    label, words = f"end {api} {reason}", "All are paid, and so"
    scripts[api].parts[label] = lambda answered, body: (
        Says("", (LIST,)) if answered == 0 else Says(words, (), end=reason)
    )
    handle = await made.start({"text": f"<<{label}>> Look.", "model": api})
    assert (await asyncio.wait_for(handle.result(), 150))["outcome"] == "failed"
    noted = made.ends.last[handle.id]
    assert noted == Ended(api, STATUSES[api].get(reason, "incomplete") if api in STATUSES else reason)

    # A run that is completed, as if that had been its last answer.
    label = f"whole {api} {reason}"
    scripts[api].parts[label] = errand
    handle = await made.start({"text": f"<<{label}>> Look.", "model": api})
    assert (await asyncio.wait_for(handle.result(), 150))["outcome"] == "completed"
    kept = made.ends.last
    assert kept[handle.id].reason in WHOLE[api]
    made.ends.last = {handle.id: noted}
    with pytest.raises(AssertionError, match=f"is completed, and the last answer ended with '{noted.reason}'"):
        await made.ends.assert_none_is_taken_for_whole(made.client)
    made.ends.last = kept


@promise("models:ends")
@pytest.mark.parametrize("api", MODELS)
async def test_how_a_streamed_answer_of_a_native_api_ended_is_noted_too(api):
    async with Vendor(api, lambda answered, body: Says("All.")).open() as vendor:
        render = {"responses": vendor._say_responses, "anthropic": vendor._say_anthropic, "gemini": vendor._say_gemini}
        for reason in ("", *ENDS[api]):
            whole, events = render[api](Says("All.", end=reason))
            streamed = "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in events)
            assert ended(streamed.encode()) == ended(json.dumps(whole).encode())
            assert (ended(streamed.encode()).reason in WHOLE[api]) == (not reason)


@promise("models:effort")
async def test_a_run_says_how_much_its_model_is_to_think_until_its_endpoint_refuses_that(opened):
    made, _, scripts = opened
    asked = []

    def script(talk):
        asked.append(talk.body.get("reasoning_effort"))
        if len(asked) == 3:
            return Reply(status=400, text="Unsupported parameter: 'reasoning_effort' is not supported with this model.")
        return Reply(calls=[("mail__list_customers", {"limit": len(asked)}) if len(asked) < 4 else DONE])

    scripts["spare"].parts["keen"] = script
    result, _ = await ran(made, "keen", "keen")
    assert (result["outcome"], asked) == ("completed", ["high", "high", "high", None])
    learned = [event["data"].get("learned") for event in result["events"] if event["name"] == "model.asked"]
    assert [told for told in learned if told] == ["without: reasoning_effort"]


@promise("models:native-words")
@pytest.mark.parametrize("api", MODELS)
async def test_what_a_native_model_says_is_told_while_it_arrives(opened, api):
    made, vendors, scripts = opened
    label, heard, found = f"read {api}", asyncio.Event(), []
    scripts[api].parts[label] = lambda answered, body: Says(WORDS, (DONE,), THOUGHT, held=heard)
    before = vendors[api].streamed
    # Only what somebody watches is streamed, so the run begins when somebody does.
    handle = await made.start({"text": f"<<{label}>> Look.", "model": api}, start_delay=timedelta(seconds=1))
    run = f"{handle.id}/{handle.first_execution_run_id}"
    async with opening.open_store(made.settings) as store:
        await store.deltas.watch(run, "a reader")

        async def read():
            async with aclosing(store.deltas.after(run)) as deltas:
                async for delta in deltas:
                    found.append(delta.text)
                    if delta.text:
                        heard.set()

        reading = asyncio.create_task(read())
        try:
            result = await asyncio.wait_for(handle.result(), 150)
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    assert result["outcome"] == "completed"
    assert vendors[api].streamed == before + 1
    # The answer ended only when some of it had been read.
    assert "".join(found)
    assert f"{WORDS}\nAll is said.".startswith("".join(found))
