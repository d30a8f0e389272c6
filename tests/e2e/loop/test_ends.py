"""An end is what it says: no run is completed by an answer that was cut off, withheld, broken off, or is no answer."""

import asyncio
import json

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled, call
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.whole_ends import WHOLE, Ended, WholeEnds

USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
HALF = "The customers that have to pay are Acme (120 EUR), Birch (90 E"


def answer(finish, content=HALF, *calls, usage=USAGE, **more):
    message = {"role": "assistant", "content": content, **more} | ({"tool_calls": list(calls)} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return Reply(body=json.dumps({"choices": [choice], "usage": usage}).encode())


LOOK = answer("tool_calls", None, call("desk__look", {}))
FINISH = call("finish", {"summary": "All three have paid."}, "f1")
# openai/openai-agents-python#4510 and #4513, agent0ai/agent-zero#1836, No-Compromise-AI/glm-mcp#41,
# UKGovernmentBEIS/inspect_ai#5189, damianvtran/local-operator#223, huggingface/chat-ui#2383
REASONS = {
    "length": "cut off",
    "max_tokens": "cut off",
    "MAX_TOKENS": "cut off",
    "model_length": "cut off",
    "content_filter": "filter",
    "SAFETY": "filter",
    "sensitive": "filter",
    "content_filter: PROHIBITED_CONTENT": "filter",
    "error": "broke off",
    "network_error": "broke off",
    "insufficient_system_resource": "broke off",
    "malformed_function_call": "could not read",
    "malformed_tool_use": "could not read",
    "refusal": "refuses",
    "anything else": "does not say",
    None: "whole",
}
NAMES = {f"end{place}": reason for place, reason in enumerate(REASONS)}
STUBBORN = {name: [LOOK, answer(reason)] for name, reason in NAMES.items()}
FINISHING = {f"f{name}": [LOOK, answer(reason, None, FINISH)] for name, reason in NAMES.items() if reason is not None}
MENDED = {f"m{name}": [LOOK, answer(reason), DONE] for name, reason in NAMES.items()}
# openai/openai-agents-python#2850, UKGovernmentBEIS/inspect_ai#1534: an error with HTTP 200
GATEWAY = {
    "id": None,
    "choices": None,
    "error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": "model is rate-limited upstream"}},
}
ERRORS = {
    "gateway": GATEWAY,
    "texterror": {"error": "the backend is away"},
    "vllmerror": {"object": "error", "message": "the backend is away", "code": 503},
    "listed": [{"error": {"code": 503, "message": "the backend is away", "status": "UNAVAILABLE"}}],
}
SCRIPTS = Labelled(
    **STUBBORN,
    **FINISHING,
    **MENDED,
    **{name: [Reply(body=json.dumps(body).encode())] for name, body in ERRORS.items()},
    refusal=[LOOK, answer("stop", None, refusal="I'm sorry, I can't assist with that.")],
    parts=[
        LOOK,
        answer(
            "stop",
            [{"type": "thinking", "thinking": []}, {"type": "text", "text": "All "}, {"type": "text", "text": "paid."}],
        ),
    ],
    thoughts=[LOOK, answer("stop", "<think>They paid.</think>\nAll paid.")],
    cutcall=[answer("length", None, call("desk__look", {}), call("desk__look", {}, "c2")), DONE],
    # vllm-project/vllm#58228, vllm-project/vllm#46303: the end of calls, at the limit
    fullcall=[
        answer(
            *("tool_calls", None, call("desk__look", {}), call("desk__look", {}, "c2")),
            usage=USAGE | {"completion_tokens": 4096, "total_tokens": 4196},
        ),
        DONE,
    ],
    written=[answer("stop", f"<tool_call>{json.dumps({'name': 'desk__look', 'arguments': {}})}</tool_call>"), DONE],
    pretending=[LOOK, answer("stop", f"<tool_call>{json.dumps({'name': 'desk__look', 'arguments': {}})}</tool_call>")],
    billed=[Reply(body=json.dumps({"error": {"message": "content must be a string"}, "usage": USAGE}).encode())],
    generation=[
        LOOK,
        Reply(status=400, code="tool_use_failed", text="Failed to call a function."),
        # ollama/ollama#12884: its own model's words, and the tokens were spent
        Reply(status=500, text="error parsing tool call: raw='{'", bill=False),
        DONE,
    ],
)


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("ends")
    schema = {"type": "object", "properties": {}}
    desk = ScriptedServer(folder / "desk.json", [reads("look", schema)], {"look": {"data": {"seen": True}}})
    async with engine(temporal, folder, SCRIPTS, toolbox=toolbox_of_servers(folder, desk=desk)) as made:
        yield made


async def ran(opened, label):
    handle = await opened.start({"text": f"<{label}> look at the desk"})
    result = await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return handle, result


async def together(opened, labels):
    return dict(
        zip(labels, [each for _, each in await asyncio.gather(*(ran(opened, label) for label in labels))], strict=True)
    )


@promise("models:ends")
@pytest.mark.thorough
async def test_a_text_that_does_not_end_as_a_whole_one_is_asked_for_thrice_and_then_fails_in_honesty(opened):
    results = await together(opened, list(STUBBORN))
    for name, result in results.items():
        reason = NAMES[name]
        assert result["outcome"] == "failed", reason
        assert REASONS[reason] in result["final_summary"], reason
        assert HALF in result["final_summary"]
        # The call, the text, and the text again three times.
        assert result["usage"]["steps"] == 5, reason
        assert SCRIPTS.asked[name] == 5


@promise("models:ends-full")
@pytest.mark.parametrize("label", ["cutcall", "fullcall"])
async def test_the_last_call_of_an_answer_that_was_cut_off_is_not_made_though_it_can_be_read(opened, label):
    # https://docs.claude.com/en/api/handling-stop-reasons: what was written of it by then may be a part
    _, result = await ran(opened, label)
    assert result["outcome"] == "completed"
    assert [event["name"] for event in result["events"]].count("action.called") == 1
    assert "cut off at the limit of its length" in SCRIPTS.heard[label]


@promise("models:ends")
@pytest.mark.thorough
async def test_finish_is_not_taken_from_an_answer_that_is_not_whole(opened):
    results = await together(opened, list(FINISHING))
    for name, result in results.items():
        assert (result["outcome"], result["usage"]["steps"]) == ("failed", 5), NAMES[name.removeprefix("f")]


@promise("models:ends")
@pytest.mark.thorough
async def test_a_model_that_mends_its_answer_completes_the_run(opened):
    results = await together(opened, list(MENDED))
    assert {result["outcome"] for result in results.values()} == {"completed"}
    assert "was not taken" in SCRIPTS.heard["mend0"]


@promise("models:ends")
async def test_the_engine_of_the_tests_refuses_a_completed_run_whose_last_answer_is_not_whole(opened):
    handle, result = await ran(opened, "mend0")
    assert result["outcome"] == "completed"
    assert opened.ends.last[handle.id] == Ended("chat", "tool_calls")
    kept = dict(opened.ends.last)
    for reason in (*(reason or "" for reason in REASONS), "other"):
        opened.ends.last = {handle.id: Ended("chat", reason)}
        with pytest.raises(AssertionError, match="is completed, and the last answer ended with"):
            await opened.ends.assert_none_is_taken_for_whole(opened.client)
    for reason in WHOLE["chat"]:
        opened.ends.last = {handle.id: Ended("chat", reason)}
        await opened.ends.assert_none_is_taken_for_whole(opened.client)
    opened.ends.last = kept


@promise("models:ends")
async def test_an_earlier_answer_that_is_closed_late_does_not_count_as_the_last_one():
    ends = WholeEnds()
    ends.note("run", 2, b'{"choices": [{"finish_reason": "stop", "message": {"content": "All is paid."}}]}')
    ends.note("run", 1, b'{"choices": [{"finish_reason": null, "message": {"content": "All is"}}]}')
    assert ends.last == {"run": Ended("chat", "stop")}


@promise("models:ends")
async def test_a_refusal_is_no_success(opened):
    _, result = await ran(opened, "refusal")
    assert result["outcome"] == "failed"
    assert "I can't assist with that." in result["final_summary"]


@promise("models:ends")
async def test_words_that_come_as_parts_or_behind_thoughts_are_the_summary(opened):
    results = await together(opened, ["parts", "thoughts"])
    assert {(each["outcome"], each["final_summary"]) for each in results.values()} == {("completed", "All paid.")}


@promise("models:disguised")
async def test_a_call_that_is_written_down_is_made_unless_the_model_makes_calls(opened):
    _, result = await ran(opened, "written")
    assert result["outcome"] == "completed"
    assert [event["data"]["tool"] for event in result["events"] if event["name"] == "action.called"] == ["desk.look"]
    _, result = await ran(opened, "pretending")
    assert (result["outcome"], result["usage"]["steps"]) == ("failed", 5)
    assert len([event for event in result["events"] if event["name"] == "action.called"]) == 1
    assert "Call the function instead of writing the call down" in SCRIPTS.heard["pretending"]


@promise("models:bad-generation")
async def test_what_the_model_wrote_badly_is_asked_for_again_and_nobody_is_asked(opened):
    _, result = await ran(opened, "generation")
    assert (result["outcome"], result["usage"]["steps"]) == ("completed", 4)
    assert not [event for event in result["events"] if event["name"] == "model.failed"]


@promise("models:error-with-200")
async def test_a_refusal_that_says_what_was_used_is_charged_and_not_sent_in_another_form(opened):
    handle = await opened.start("<billed>")
    (request,) = await pending(handle)
    assert "content must be a string" in request["question"]
    assert SCRIPTS.asked["billed"] == 1
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    result = await asyncio.wait_for(handle.result(), 150)
    assert result["outcome"] == "failed"
    assert result["usage"]["llm_cost_usd"] > 0


@promise("models:error-with-200")
@pytest.mark.thorough
async def test_an_error_in_place_of_an_answer_is_told_in_its_own_words_and_costs_what_its_status_does(opened):
    handles = {name: await opened.start(f"<{name}>") for name in ERRORS}
    for name, handle in handles.items():
        (request,) = await pending(handle)
        words = "rate-limited upstream" if name == "gateway" else "the backend is away"
        assert words in request["question"]
        assert "not a chat completion" not in request["question"]
        await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
        result = await asyncio.wait_for(handle.result(), 150)
        assert result["outcome"] == "failed"
        assert (result["usage"]["llm_cost_usd"] == 0) is (name == "gateway"), name
