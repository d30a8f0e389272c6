"""Typed output: the value that a task wants is checked, mended by the model where it is wrong, or the run says why."""

import asyncio
import json
from typing import Any

import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator

from backstay.testing import Conversation, Reply
from tests.e2e.loop.malformed import GOOD_ORDER, GOOD_TREE, ORDER, TREE, Malformed, all_of_them, finish, order
from tests.engine import assert_no_task_failure, engine
from tests.requirements import promise
from tests.sizes import spread

AT_ONCE = 4
OF_EACH = 1
"""So many malformed answers of each kind; at full size all."""
KEY = "ghp_" + "Zq8Lw3Xc6Vb9Nm2Kj5Hg4Fd7Sa1Po0" + "iUyTrE"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"


class Numbered:
    """Answer each run from the script whose number stands in its task; the last reply is for all further requests."""

    def __init__(self) -> None:
        self.scripts: list[list[Reply]] = []
        self.asked: list[list[dict[str, Any]]] = []

    def task(self, *replies: Reply, **fields: Any) -> dict[str, Any]:
        self.scripts.append(list(replies))
        self.asked.append([])
        # Answers as long as a megabyte are reserved for, and would not fit into the default.
        budget = {"max_llm_cost_usd": None, **fields.pop("budget", {})}
        return {"text": f"script {len(self.scripts) - 1:04}", "budget": budget, **fields}

    def __call__(self, conversation: Conversation) -> Reply:
        number = int(conversation.task.partition("script ")[2][:4])
        self.asked[number].append(conversation.body)
        return self.scripts[number][min(len(self.asked[number]), len(self.scripts[number])) - 1]

    def requests(self, task: dict[str, Any]) -> list[dict[str, Any]]:
        return self.asked[int(task["text"][7:11])]


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    scripts = Numbered()
    folder = tmp_path_factory.mktemp("output")
    # A script is cut where a model would be, and these are to be long.
    options = {"policy": POLICY, "cached": 20, "max_completion_tokens": 1_000_000}
    async with engine(temporal, folder, scripts, **options) as opened:
        yield opened, scripts


async def run(office, task):
    opened, scripts = office
    handle = await opened.start(task)
    result = await handle.result()
    history = await handle.fetch_history()
    assert_no_task_failure(history)
    assert not opened.model.faults
    return result, scripts.requests(task), sum(event.ByteSize() for event in history.events)


def tool_named(request, name):
    return next(tool["function"] for tool in request["tools"] if tool["function"]["name"] == name)


@promise("models:malformed")
@pytest.mark.timeout(400)
async def test_malformed_answers_of_every_kind_end_as_a_valid_value_or_a_failed_run_that_says_why(office):
    cases = all_of_them()
    assert len(cases) == 200
    kinds = list(dict.fromkeys(case.kind for case in cases))
    assert len(kinds) == 11
    cases = [case for kind in kinds for case in spread([case for case in cases if case.kind == kind], OF_EACH)]
    room = asyncio.Semaphore(AT_ONCE)

    async def play(case: Malformed, mends: bool):
        script = (case.reply, case.mended) if mends else (case.reply,)
        task = office[1].task(*script, output_schema=case.wanted, budget={"max_steps": 9})
        async with room:
            return case, mends, *await run(office, task)

    played = await asyncio.gather(*(play(case, mends=index % 3 != 0) for index, case in enumerate(cases)))
    for case, mends, result, requests, size in played:
        said = f"{case.kind} {str(case.reply)[:300]} -> {str(result)[:600]}"
        assert size < 400_000, said
        assert len(requests) == result["usage"]["steps"], said
        if case.why and not mends:
            assert result["outcome"] == "failed", said
            assert result["error"]["type"] == "OutputInvalid", said
            assert any(why in result["error"]["message"] for why in case.why.split("|")), said
            assert len(requests) == 4, said
            assert result["output"] is None, said
            continue
        assert result["outcome"] == "completed", said
        assert len(requests) == (2 if case.why else 1), said
        if result["output_ref"] is None:
            Draft202012Validator(case.wanted).validate(result["output"])
        else:
            assert result["output"]["ref"] == result["output_ref"], said
            assert case.kind == "megabyte", said


@promise("models:finish")
async def test_finish_takes_the_schema_with_its_references_and_the_result_holds_the_value(office):
    task = office[1].task(finish(GOOD_TREE), output_schema=TREE)
    result, (request,), _ = await run(office, task)
    assert result["output"] == GOOD_TREE
    parameters = tool_named(request, "finish")["parameters"]
    assert parameters["required"] == ["summary", "output"]
    # As a part of the parameters, the schema is still the same: its references lead to it.
    checks = Draft202012Validator(parameters)
    assert checks.is_valid({"summary": "", "output": GOOD_TREE})
    assert not checks.is_valid({"summary": "", "output": {"name": "a", "parts": [{"name": 1}]}})
    task = office[1].task(finish(GOOD_ORDER), output_schema=ORDER)
    _, (request,), _ = await run(office, task)
    checks = Draft202012Validator(tool_named(request, "finish")["parameters"])
    assert checks.is_valid({"summary": "", "output": GOOD_ORDER})
    assert not checks.is_valid({"summary": "", "output": order(items=[{"name": "n"}])})


@promise("models:repair")
async def test_a_wrong_answer_goes_back_with_what_is_wrong_and_with_what_was_said(office):
    wrong = order(items=[{"name": "rope", "price": "2.5"}])
    result, requests, _ = await run(office, office[1].task(finish(wrong), finish(GOOD_ORDER), output_schema=ORDER))
    assert result["output"] == GOOD_ORDER
    *_, said, answer, left = requests[1]["messages"]
    assert json.loads(said["tool_calls"][0]["function"]["arguments"])["output"] == wrong
    assert "output.items[0].price: must be number, not string" in answer["content"]
    assert left["content"].startswith("Left")
    assert [event["name"] for event in result["events"]].count("output.refused") == 1


@promise("models:repair")
async def test_a_huge_wrong_answer_does_not_come_back_to_the_model(office):
    wrong = order(items=[{"name": "x" * 1_000_000, "price": "1"}])
    task = office[1].task(finish(wrong), finish(GOOD_ORDER), output_schema=ORDER)
    result, requests, size = await run(office, task)
    assert result["output"] == GOOD_ORDER
    assert len(json.dumps(requests[1])) < len(json.dumps(requests[0])) + 2000
    assert size < 400_000


@promise("models:output-none")
async def test_a_run_without_success_needs_no_value_and_gives_none(office):
    gives_up = Reply(calls=[("finish", {"summary": "no such order", "success": False, "output": {"id": "?"}})])
    result, requests, _ = await run(office, office[1].task(gives_up, output_schema=ORDER))
    assert result["outcome"] == "failed"
    assert result["error"] == {"type": "Unfinished", "message": "no such order"}
    assert result["output"] is None
    assert len(requests) == 1


@promise("models:budget")
async def test_a_run_that_its_budget_ends_has_no_output_and_says_so(office):
    for exhausted in ("finalize", "fail"):
        budget = {"max_steps": 2, "on_exhausted": exhausted}
        task = office[1].task(finish(order(id="x")), finish(order(id="y")), Reply(text="closed"), budget=budget)
        result, _, _ = await run(office, {**task, "output_schema": ORDER})
        assert result["outcome"] == "budget_exceeded"
        assert result["output"] is None
        assert (
            "there is no output: the last answer was not taken: output.id: must be integer" in result["final_summary"]
        )


@promise("models:dropped")
async def test_a_finish_beside_a_refused_call_is_dropped_as_ever_and_is_no_repair(office):
    both = Reply(calls=[("desk__nothing", {}), ("finish", {"summary": "done", "output": GOOD_ORDER})])
    result, requests, _ = await run(office, office[1].task(*[both] * 5, finish(GOOD_ORDER), output_schema=ORDER))
    assert result["output"] == GOOD_ORDER
    assert len(requests) == 6
    assert "output.refused" not in [event["name"] for event in result["events"]]


@promise("models:schema")
async def test_a_schema_that_cannot_be_used_is_refused_when_the_run_begins(office):
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"properties": {"a": deep}}
    refused = {
        "is nested deeper than 64 levels": deep,
        "holds more than": {"enum": list(range(30_000))},
        "is longer than": {"description": "x" * 300_000},
        "is not valid at schema.properties.id.type": {"properties": {"id": {"type": "number or so"}}},
        "which is not in it; nothing is fetched": {"$ref": "http://169.254.169.254/latest"},
        "refers to '#/$defs/Item'": {"items": {"$ref": "#/$defs/Item"}},
        "refers to itself without an end": {"$ref": "#"},
        "a secret (github_token) is in it": {"const": KEY},
        "must be a JSON Schema, which is an object": ["object"],
    }
    for why, schema in refused.items():
        handle = await office[0].start({"text": "script 0000", "output_schema": schema})
        error = await failure_of(handle)
        assert error.type == "TaskInvalid", why
        assert "output_schema: " in error.message, why
        assert why in error.message, error.message
        assert KEY not in error.message


@promise("models:schema")
async def test_a_plan_with_an_output_schema_is_refused(office):
    steps = [{"tool": "mail.list_invoices", "arguments": {}}]
    error = await failure_of(await office[0].start({"plan": {"steps": steps}, "output_schema": ORDER}))
    assert error.type == "TaskInvalid"
    assert "output_schema: no model answers in a plan" in error.message


@promise("models:secrets")
async def test_a_secret_in_the_value_is_replaced_before_it_is_checked(office):
    schema = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    opened, scripts = office
    task = scripts.task(finish({"note": f"use {KEY}"}), output_schema=schema)
    handle = await opened.start(task)
    result = await handle.result()
    assert result["outcome"] == "completed"
    assert "⟦secret:" in result["output"]["note"]
    history = await handle.fetch_history()
    assert KEY not in "".join(str(event) for event in history.events)
    short = {"type": "object", "properties": {"note": {"type": "string", "maxLength": len(KEY)}}}
    result, _, _ = await run(office, scripts.task(finish({"note": KEY}), output_schema=short))
    assert result["outcome"] == "failed"
    assert "leave out the secret that was there" in result["error"]["message"]
    assert KEY not in json.dumps(result)
    twice = Reply(calls=[("finish", f'{{"output": {{"{KEY}": 1, "{KEY}": 2}}}}')])
    result, _, _ = await run(office, scripts.task(twice, output_schema=schema))
    assert "stands twice" in result["error"]["message"]
    assert KEY not in json.dumps(result)


@promise("models:as-json")
async def test_an_endpoint_without_functions_gives_the_value_as_json(office):
    said = json.dumps({"reason": "", "calls": [{"name": "finish", "arguments": json.dumps({"output": GOOD_ORDER})}]})
    task = office[1].task(Reply(text="I shall see."), Reply(text=said), output_schema=ORDER, model="without-functions")
    result, requests, _ = await run(office, task)
    assert result["output"] == GOOD_ORDER
    assert "response_format" in requests[1]
    assert json.dumps(ORDER["$defs"]["Item"]["required"], separators=(",", ":")) in json.dumps(
        requests[1]["messages"]
    ).replace('\\"', '"')


@promise("models:any-type")
async def test_the_value_may_be_of_any_type(office):
    for schema, value in (
        ({"type": "array", "items": {"type": "integer"}}, [1, 2]),
        ({"type": "string", "pattern": "^[A-Z]+$"}, "ABC"),
        ({"type": ["null", "integer"]}, None),
        ({"enum": [False, 0.5]}, False),
        ({}, {"any": ["thing"]}),
    ):
        result, requests, _ = await run(office, office[1].task(finish(value), output_schema=schema))
        assert result["outcome"] == "completed"
        assert result["output"] == value
        assert len(requests) == 1


async def failure_of(handle) -> Any:
    """Return what failed the workflow."""
    try:
        await handle.result()
    except Exception as error:
        return error.__cause__
    raise AssertionError("the run was not refused")
