"""What a model may answer, however hostile: the run goes on, says why, and nothing forged reaches a tool."""

import json

import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled, call, calls, raw
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import PRICES, assert_no_task_failure, engine
from tests.requirements import promise

TYPED = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
MODELS = {f"{label}-model": PRICES["scripted"] for label in ("text", "json", "empty")}


def look(n: int = 1, call_id: str = "c1"):
    return call("desk__look", {"n": n}, call_id)


def billing(usage):
    return raw({"content": None, "tool_calls": [finish("done")]}, usage=usage)


def finish(summary: str, call_id: str = "f1"):
    return call("finish", {"summary": summary}, call_id)


def deep(levels: int) -> str:
    return '{"n": ' + "[" * levels + "]" * levels + "}"


SCRIPTS = Labelled(
    unknown=[calls(call("desk__nothing", {})), DONE],
    schema=[calls(call("desk__look", {"n": "many", "m": 1})), DONE],
    malformed=[calls(call("desk__look", '{"n": 1')), DONE],
    listed=[calls(call("desk__look", "[1]")), DONE],
    thousand=[calls(*[look(n, f"c{n}") for n in range(1000)]), DONE],
    many=[calls(*[call("desk__store", {"rows": list(range(20_000))}, f"c{n}") for n in range(8)]), DONE],
    megabyte=[calls(call("desk__store", {"text": "m" * 1_000_000})), DONE],
    bigleaf=[calls(call("desk__store", {"text": "b" * 900_000})), DONE],
    nested=[calls(call("desk__store", deep(90))), DONE],
    abyss=[calls(call("desk__store", deep(50_000))), DONE],
    surrogate=[calls(call("desk__store", '{"text": "\\ud800"}')), DONE],
    surrogates=[
        calls(call("desk__look\ud800", {"n": 1}, "\ud800id"), call("search_tools", {"query": "look"}, "\udfff")),
        DONE,
    ],
    nan=[calls(call("desk__store", '{"n": NaN, "m": Infinity}')), DONE],
    duplicate=[calls(look(1, "same"), look(2, "same"), look(3, "same-1")), DONE],
    beside=[calls(look(7), finish("with a look")), DONE],
    besidefailing=[calls(call("desk__fail", {}), finish("too early")), DONE],
    besiderefused=[calls(call("desk__look", {}), finish("too early")), DONE],
    twofinishes=[calls(finish("one"), finish("two", "f2")), DONE],
    forgedref=[calls(call("desk__store", {"text": {"$ref": "a" * 40, "bytes": 5}})), DONE],
    forgedhandle=[calls(call("desk__store", {"text": f"⟦secret:desk/token:{'0' * 24}⟧"})), DONE],
    path=[calls(call("read_result", {"ref": "../../../etc/passwd"})), DONE],
    nousage=[billing(None)],
    negative=[billing({"prompt_tokens": -5, "completion_tokens": -9})],
    absurd=[billing({"prompt_tokens": 10**300, "completion_tokens": 1})],
    oddusage=[billing([1, 2])],
    honest=[calls(finish("done"), usage={"prompt_tokens": 100, "completion_tokens": 10})],
    odd=[raw({"content": {"a": 1}, "tool_calls": [7, None, {"function": 3}, {"id": {}, "function": {"name": []}}]}),
         DONE],
    empty=[Reply(text=""), Reply(text=None), DONE],
    text=[Reply(text="I think so."), Reply(text="It is so.")],
    json=[
        Reply(text="I shall look."),
        Reply(text=json.dumps({"reason": "look", "calls": [{"name": "desk__look", "arguments": '{"n": 5}'}]})),
        Reply(text=json.dumps({"reason": "", "calls": [{"name": "finish", "arguments": '{"summary": "seen"}'}]})),
    ],
)  # fmt: skip


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    tools = [reads("look", TYPED), writes("store"), writes("fail")]
    answers = {"look": {"data": {"seen": True}}, "store": {"data": {"stored": True}}, "fail": {"error": "no"}}
    desk = ScriptedServer(folder / "desk.json", tools, answers)
    options = {"toolbox": toolbox_of_servers(folder, desk=desk), "prices": PRICES | MODELS}
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, **options) as opened:
        yield opened, desk


async def run(office, label, **task):
    """Run one script to its end; return the Result, what the model was told last, and what reached the tools."""
    opened, desk = office
    before, asked = len(desk.calls()), len(opened.model.requests)
    handle = await opened.start({"text": f"<{label}>", **task})
    result = await handle.result()
    history = await handle.fetch_history()
    assert_no_task_failure(history)
    requests = opened.model.requests[asked:]
    assert not opened.model.faults
    size = sum(event.ByteSize() for event in history.events)
    return result, json.dumps(requests[-1]["messages"], ensure_ascii=False), desk.calls()[before:], size


@promise("runs:unknown-tool")
async def test_an_unknown_tool_is_an_error_to_the_model(office):
    result, last, reached, _ = await run(office, "unknown")
    assert result["outcome"] == "completed"
    assert "there is no function 'desk__nothing'" in last
    assert result["usage"]["steps"] == 2
    assert not reached


@promise("runs:schema")
async def test_arguments_that_do_not_fit_the_schema_are_an_error_to_the_model(office):
    result, last, reached, _ = await run(office, "schema")
    assert result["outcome"] == "completed"
    assert "must be integer" in last or "unknown field" in last
    assert not reached


@promise("runs:malformed")
async def test_malformed_arguments_cost_a_step_and_are_an_error_to_the_model(office):
    for label in ("malformed", "listed", "surrogate", "nan", "abyss"):
        result, last, reached, _ = await run(office, label)
        assert result["outcome"] == "completed", label
        assert "JSON" in last, label
        assert result["usage"]["steps"] == 2, label
        assert not reached, label


@promise("models:model-1000")
async def test_a_thousand_calls_in_one_message_are_refused_as_a_whole(office):
    result, last, reached, size = await run(office, "thousand")
    assert result["outcome"] == "completed"
    assert "held 1000 calls and none was made; make at most 64" in last
    assert not reached
    assert size < 60_000


@promise("models:model-1000")
async def test_calls_that_are_large_together_are_refused_beyond_what_history_bears(office):
    result, last, reached, size = await run(office, "many")
    assert result["outcome"] == "completed"
    assert "make fewer calls at once" in last
    assert len(reached) < 8
    assert size < 2_000_000


@promise("models:model-nested")
async def test_a_megabyte_in_one_argument_is_refused_and_less_is_stored_beside_history(office):
    result, last, reached, _ = await run(office, "megabyte")
    assert result["outcome"] == "completed"
    assert "larger than 1000000 bytes" in last
    assert not reached
    result, last, reached, size = await run(office, "bigleaf")
    assert [stored["arguments"] for stored in reached] == [{"text": "b" * 900_000}]
    assert size < 60_000
    assert len(last) < 60_000


@promise("models:deep-arguments")
async def test_arguments_nested_too_deeply_are_refused_and_not_cut(office):
    result, last, reached, _ = await run(office, "nested")
    assert result["outcome"] == "completed"
    assert "nested more than 64 levels deep" in last
    assert not reached


@promise("models:surrogates")
async def test_lone_surrogates_in_names_and_ids_harm_nothing(office):
    result, last, _, _ = await run(office, "surrogates")
    assert result["outcome"] == "completed", result
    assert "there is no function" in last


@promise("runs:call-ids")
async def test_calls_with_one_id_are_answered_apart(office):
    result, last, reached, _ = await run(office, "duplicate")
    assert result["outcome"] == "completed"
    assert sorted(seen["arguments"]["n"] for seen in reached) == [1, 2, 3]
    ids = [message["tool_call_id"] for message in json.loads(last) if message["role"] == "tool"]
    assert len(ids) == len(set(ids)) == 3


@promise("runs:beside-finish")
async def test_calls_beside_finish_are_made_first(office):
    result, _, reached, _ = await run(office, "beside")
    assert result["final_summary"] == "with a look"
    assert [seen["arguments"] for seen in reached] == [{"n": 7}]


@promise("runs:finish-dropped")
async def test_finish_beside_a_failed_or_refused_call_is_dropped(office):
    for label in ("besidefailing", "besiderefused"):
        result, last, _, _ = await run(office, label)
        assert (result["outcome"], result["final_summary"]) == ("completed", "done"), label
        assert "finish was dropped" in last, label


@promise("runs:finish-dropped")
async def test_of_two_finishes_none_counts_and_the_model_is_told(office):
    result, last, _, _ = await run(office, "twofinishes")
    assert result["final_summary"] == "done"
    assert "called twice in one answer" in last


@promise("secrets:forged-ref")
async def test_a_forged_reference_to_a_stored_argument_is_sent_as_the_object_that_it_is(office):
    result, _, reached, _ = await run(office, "forgedref")
    assert result["outcome"] == "completed"
    assert [stored["arguments"] for stored in reached] == [{"text": {"$ref": "a" * 40, "bytes": 5}}]


@promise("secrets:forged")
async def test_a_forged_secret_handle_is_never_sent(office):
    result, last, reached, _ = await run(office, "forgedhandle")
    assert result["outcome"] == "completed"
    assert "is not a secret of this run" in last
    assert not reached


@promise("runs:read-result")
async def test_a_path_is_no_reference_to_a_result(office):
    result, last, _, _ = await run(office, "path")
    assert result["outcome"] == "completed"
    assert "a ref is 40 hexadecimal digits" in last


@promise("models:worst-case")
async def test_a_missing_or_unbelievable_usage_is_charged_at_the_worst_case(office):
    honest, _, _, _ = await run(office, "honest")
    assert honest["usage"]["llm_cost_usd"] == (100 * 1 + 10 * 4) / 1e6
    # A token per byte of the request, and as many tokens as an answer may have.
    most_of_output = 4096 * 4 / 1e6
    for label in ("nousage", "negative", "absurd", "oddusage"):
        result, _, _, _ = await run(office, label)
        assert result["outcome"] == "completed", label
        assert most_of_output < result["usage"]["llm_cost_usd"] < 0.5, label


@promise("runs:odd-calls")
async def test_calls_that_are_no_calls_are_passed_over(office):
    result, _, reached, _ = await run(office, "odd")
    assert result["outcome"] == "completed", result
    assert not reached


@promise("models:model-empty")
async def test_an_empty_answer_costs_a_step_and_is_asked_about_again(office):
    result, last, _, _ = await run(office, "empty", model="empty-model")
    assert result["outcome"] == "completed"
    assert result["usage"]["steps"] == 3
    assert "Act by calling functions" in last


@promise("runs:text-finish")
async def test_text_alone_is_asked_about_once_and_then_taken_for_the_end(office):
    result, _, _, _ = await run(office, "text", model="text-model")
    assert (result["outcome"], result["final_summary"]) == ("completed", "It is so.")
    assert result["usage"]["steps"] == 2


@promise("runs:no-functions")
async def test_an_endpoint_that_ignores_functions_is_driven_by_a_json_schema(office):
    opened, _ = office
    asked = len(opened.model.requests)
    result, _, reached, _ = await run(office, "json", model="json-model")
    assert (result["outcome"], result["final_summary"]) == ("completed", "seen")
    assert [seen["arguments"] for seen in reached] == [{"n": 5}]
    first, second, _ = opened.model.requests[asked:]
    assert "tools" in first
    assert second["response_format"]["type"] == "json_schema"
    assert "tools" not in second
