"""Models of several endpoints: what fails is left for the next one, within the ceiling, and the bill names each."""

import asyncio
import json
import socket

import pytest
import pytest_asyncio
import yaml
from temporalio.client import WorkflowFailureError

from activities.endpoints import pausing
from backstay.testing import Reply, ScriptedModel
from tests.e2e.labelled import DONE, Labelled, call, calls
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine, pending
from tests.requirements import promise
from tests.sizes import spread

KEYS = {"FIRST_KEY": "key-of-the-first-endpoint", "SPARE_KEY": "key-of-the-spare-endpoint"}
PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}
DEAR = {"input": 50.0, "cached": 50.0, "output": 50.0}
LOOK = calls(call("desk__look", {}))
LOOK_AT_MUCH = calls(*(call("desk__much", {}, f"c{number}") for number in range(6)))
FAILING = {
    "drop": (Reply(then="drop"), 3),
    "cut": (Reply(text="some words", then="cut"), 3),
    "broken": (Reply(status=503), 3),
    "throttled": (Reply(status=429), 3),
    "hour": (Reply(status=429, headers={"retry-after": "3600"}), 1),
    "quota": (Reply(status=429, code="insufficient_quota"), 1),
    "refused": (Reply(status=401), 1),
    "odd": (Reply(status=404), 1),
}
"""How an endpoint fails, and how often it is asked before another one is."""
BILLED = {"drop", "cut", "broken"}
FIRST = Labelled(
    **{label: [LOOK, *[reply] * 9] for label, (reply, _) in FAILING.items()},
    both=[Reply(status=401), DONE],
    dear=[Reply(status=401)],
    lost=[Reply(status=401)],
    narrow=[LOOK_AT_MUCH, LOOK_AT_MUCH, Reply(status=401)],
    steps=[LOOK],
)
SPARE = Labelled(
    **{label: [LOOK, DONE] for label in FAILING},
    unheard=[DONE],
    both=[Reply(status=401)],
    dear=[DONE],
    lost=[Reply(then="drop")],
    narrow=[DONE],
    steps=[Reply(text="what was done")],
)


@pytest.fixture(scope="module", autouse=True)
def _each_run_waits_alone():
    """Let no run wait for what the endpoint, which all of them share, has told another one."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(pausing, "LONGEST_PAUSE_S", 0.0)
        yield


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fallbacks")
    with pytest.MonkeyPatch.context() as patch, socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        for name, value in KEYS.items():
            patch.setenv(name, value)
        async with ScriptedModel(FIRST) as first, ScriptedModel(SPARE) as spare:
            at = {
                "first": first.base_url,
                "spare": spare.base_url,
                "dead": f"http://127.0.0.1:{held.getsockname()[1]}/v1",
            }
            keys = {"first": "${FIRST_KEY}", "spare": "${SPARE_KEY}"}
            models = {
                "main": {"endpoint": "first", "model": "scripted-1", "price": PRICE, "fallback": ["spare"]},
                "spare": {"endpoint": "spare", "model": "scripted-2", "price": PRICE},
                "unheard": {"endpoint": "dead", "model": "m", "price": PRICE, "fallback": ["spare"]},
                "cheap": {"endpoint": "first", "model": "m", "price": PRICE, "fallback": ["dear"]},
                "dear": {"endpoint": "spare", "model": "m", "price": DEAR},
                "wide": {"endpoint": "first", "model": "m", "price": PRICE, "fallback": ["narrow"]},
                "narrow": {"endpoint": "spare", "model": "m", "price": PRICE, "context_tokens": 4000},
            }
            endpoints = {name: {"base_url": address, "key": keys.get(name)} for name, address in at.items()}
            path = folder / "models.yaml"
            said = {"endpoints": endpoints, "models": models, "use": {"closing": "spare"}}
            await asyncio.to_thread(path.write_text, yaml.safe_dump(said), encoding="utf-8")
            answers = {"look": {"data": {}}, "much": {"data": {"text": "word " * 800}}}
            desk = ScriptedServer(folder / "desk.json", [reads("look"), reads("much")], answers)
            toolbox = toolbox_of_servers(folder, desk=desk)
            async with engine(temporal, folder, [], toolbox=toolbox, models=path) as made:
                yield made, first, spare


async def finished(opened, label, model, **budget):
    handle = await opened[0].start({"text": f"<{label}>", "model": model, "budget": budget})
    result = await asyncio.wait_for(handle.result(), 150)
    assert_no_task_failure(await handle.fetch_history())
    return result


def fallbacks(result):
    found = [event["data"] for event in result["events"] if event["name"] == "model.fallback"]
    return [(data["from"], data["to"]) for data in found]


def bill(result):
    return {name: used["calls"] for name, used in result["usage"]["models"].items()}


@promise("models:fallback")
@pytest.mark.thorough
@pytest.mark.parametrize("label", spread(list(FAILING), 4))
async def test_what_a_failing_endpoint_leaves_undone_the_next_one_does_and_the_bill_names_both(opened, label):
    result = await finished(opened, label, "main")
    assert result["outcome"] == "completed"
    assert fallbacks(result) == [("main", "spare")]
    # The rest of the run stays with the spare one.
    assert bill(result) == {"main": 1, "spare": 2}
    assert (FIRST.asked[label], SPARE.asked[label]) == (1 + FAILING[label][1], 2)
    billed = sum(used["cost_usd"] for used in result["usage"]["models"].values())
    charged = result["usage"]["llm_cost_usd"] > billed + 1e-5
    assert charged == (label in BILLED)


@promise("models:fallback")
async def test_an_endpoint_that_refuses_connections_costs_nothing_and_the_next_one_is_asked(opened):
    result = await finished(opened, "unheard", "unheard")
    assert (result["outcome"], fallbacks(result), bill(result)) == ("completed", [("unheard", "spare")], {"spare": 1})
    assert result["usage"]["llm_cost_usd"] == pytest.approx(result["usage"]["models"]["spare"]["cost_usd"], abs=1e-6)


@promise("models:keys")
async def test_each_endpoint_gets_its_own_key_and_its_own_name_of_the_model_and_no_key_is_kept(opened):
    made, first, spare = opened
    result = await finished(opened, "quota", "spare")
    assert {request["model"] for request in spare.requests} <= {"scripted-2", "m"}
    assert {request["model"] for request in first.requests} <= {"scripted-1", "m"}
    assert not [key for key in KEYS.values() if key in json.dumps(result)]
    assert "key-of-the-first-endpoint" in made.settings.environment.values()


@promise("models:fallback")
async def test_where_all_models_fail_a_person_is_asked_and_a_retry_begins_with_the_first(opened):
    handle = await opened[0].start({"text": "<both>", "model": "main"})
    (request,) = await pending(handle)
    assert request["kind"] == "outcome"
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "retry", "by": "ana"})
    result = await asyncio.wait_for(handle.result(), 150)
    assert (result["outcome"], bill(result)) == ("completed", {"main": 1})
    assert (FIRST.asked["both"], SPARE.asked["both"]) == (2, 1)


@promise("models:ceiling")
async def test_a_dearer_fallback_that_does_not_fit_the_ceiling_is_not_asked(opened):
    result = await finished(opened, "dear", "cheap", max_llm_cost_usd=0.20, on_exhausted="fail")
    assert result["outcome"] == "budget_exceeded"
    assert (SPARE.asked["dear"], result["usage"]["llm_cost_usd"]) == (0, 0)
    assert fallbacks(result) == [("cheap", "dear")]


@promise("models:ceiling")
async def test_a_dearer_fallback_that_fits_is_reserved_at_its_own_worst_case(opened):
    result = await finished(opened, "dear", "cheap", max_llm_cost_usd=5.0)
    assert (result["outcome"], bill(result)) == ("completed", {"dear": 1})
    assert result["usage"]["llm_cost_usd"] == pytest.approx(result["usage"]["models"]["dear"]["cost_usd"], abs=1e-6)


@promise("models:lost-answers")
async def test_lost_answers_of_a_dearer_fallback_are_charged_and_stay_under_the_ceiling(opened):
    _, _, spare = opened
    before = len(spare.bill)
    result = await finished(opened, "lost", "cheap", max_llm_cost_usd=1.20, on_exhausted="fail")
    assert result["outcome"] == "budget_exceeded"
    assert 0 < result["usage"]["llm_cost_usd"] <= 1.20
    sent = list(spare.bill)[before:]
    assert 0 < len(sent) < 3
    billed = sum((tokens.prompt + tokens.completion) * DEAR["input"] / 1e6 for _, tokens in sent)
    assert billed <= result["usage"]["llm_cost_usd"]


@promise("models:fallback")
async def test_a_fallback_is_shown_no_more_than_it_takes(opened):
    _, first, spare = opened
    result = await finished(opened, "narrow", "wide")
    assert (result["outcome"], bill(result)) == ("completed", {"wide": 2, "narrow": 1})
    refused, shorter = first.requests[-1], spare.requests[-1]
    sizes = [len(json.dumps(request["messages"])) for request in (shorter, refused)]
    assert sizes[0] < 0.8 * sizes[1]
    assert shorter["max_completion_tokens"] == 2000


@promise("models:closing")
async def test_a_closing_summary_is_written_by_the_model_that_is_named_for_it(opened):
    result = await finished(opened, "steps", "main", max_steps=1)
    assert result["outcome"] == "budget_exceeded"
    assert "what was done" in result["final_summary"]
    assert bill(result) == {"main": 1, "spare": 1}


@promise("models:no-price")
@pytest.mark.parametrize("purpose", spread(["fallback", "closing", "perception"], 2))
async def test_a_model_without_a_price_is_refused_at_the_start_whatever_it_is_asked_for(temporal, tmp_path, purpose):
    async with ScriptedModel([DONE]) as model:
        said = {
            "endpoints": {"here": {"base_url": model.base_url}},
            "models": {
                "main": {"endpoint": "here", "model": "m", "price": PRICE},
                "unknown": {"endpoint": "here", "model": "nobody-knows"},
            },
            "use": {"act": "main"},
        }
        if purpose == "fallback":
            said["models"]["main"]["fallback"] = ["unknown"]
        else:
            said["use"][purpose] = "unknown"
        path = tmp_path / "models.json"
        path.write_text(json.dumps(said), encoding="utf-8")
        profiles = "default: {perception: true}" if purpose == "perception" else "{}"
        async with engine(temporal, tmp_path, [], models=path, profiles=profiles) as made:
            with pytest.raises(WorkflowFailureError) as refused:
                await (await made.start({"text": "anything", "model": "main"})).result()
            assert "model: no price is known for 'unknown'" in str(refused.value.cause)
            if purpose == "fallback":
                free = await made.start({"text": "t", "model": "main", "budget": {"max_llm_cost_usd": None}})
                assert (await free.result())["outcome"] == "completed"
    assert len(model.requests) == (1 if purpose == "fallback" else 0)
