"""What programs find below /api: from the start of a run to its result, in the forms that its description names."""

import asyncio
import json
import re
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest_asyncio
from jsonschema import Draft202012Validator

from backstay.testing import Reply
from gateways.web.api.routes import description
from gateways.web.app import FOR_PROGRAMS
from gateways.web.identity import Visitor
from tests.engine import Scripts, ended, engine, pending, reset
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, listed, served_page

ANA, BO, DESK = "ana@example.com", "bo@example.com", "desk@example.com"
MAIL = Reply(calls=[("mail__send_email", {"to": "k@x.example", "subject": "s", "body": "b"})])


@pytest_asyncio.fixture(scope="module")
async def shared(temporal, tmp_path_factory):
    async with AsyncExitStack() as stack:
        scripts = Scripts()
        given = behind_a_proxy(web_starters=(ANA, DESK), may_act_for=(DESK,))
        running = await stack.enter_async_context(engine(temporal, tmp_path_factory.mktemp("api"), scripts, **given))
        served = await stack.enter_async_context(served_page(running))
        ana = await stack.enter_async_context(served.person(ANA, **bearer_of(served, ANA)))
        yield running, scripts, served, ana


def bearer_of(served, by):
    return {"Authorization": f"Bearer {served.page.csrf(Visitor(by=by))}"}


def fits(method, path, answer):
    """Return the JSON of an answer, which has the form that the description gives it."""
    whole = description()
    answers = whole["paths"][path][method]["responses"]
    kind = answers.get(str(answer.status_code), answers["default"])
    if "$ref" in kind:
        kind = whole["components"]["responses"][kind["$ref"].rpartition("/")[2]]
    schema = {**kind["content"]["application/json"]["schema"], "components": whole["components"]}
    faults = [error.message for error in Draft202012Validator(schema).iter_errors(answer.json())]
    assert faults == [], (method, path, answer.status_code)
    return answer.json()


async def until_ended(client, run):
    """Return the names of the events of a run, to its end."""
    names, numbers = [], []
    async with asyncio.timeout(150), client.stream("GET", f"/api/runs/{run}/events") as stream:
        async for line in stream.aiter_lines():
            name, _, value = line.partition(": ")
            names += [value] if name == "event" else []
            numbers += [json.loads(value)["name"]] if name == "data" and '"name"' in value else []
    return names, numbers


@promise("page:api-reset")
async def test_the_result_of_a_run_that_an_operator_has_reset_is_that_of_its_end(shared):
    running, scripts, _, ana = shared
    task = {**scripts.task(MAIL), "user_id": ANA}
    run = (await ana.post("/api/runs", json={"task": task})).json()["workflow_id"]
    handle = running.client.get_workflow_handle(run)
    await pending(handle)
    await reset(running, handle, task=0, execution=(await handle.describe()).run_id)
    still = await ana.get(f"/api/runs/{run}/result?wait=1")
    assert (still.status_code, fits("get", "/runs/{workflow_id}/result", still)) == (202, {"open": True})
    (request,) = await pending(handle)
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": ANA})
    over = await ana.get(f"/api/runs/{run}/result?wait=60")
    assert (over.status_code, fits("get", "/runs/{workflow_id}/result", over)["outcome"]) == (200, "completed")


@promise("page:api")
async def test_a_program_goes_from_the_start_of_a_run_to_its_result(shared):
    _, scripts, _, ana = shared
    task = {**scripts.task(MAIL), "user_id": ANA}
    run = fits("post", "/runs", await ana.post("/api/runs", json={"task": task}))["workflow_id"]
    await listed(ana, run)
    still = await ana.get(f"/api/runs/{run}/result")
    assert (still.status_code, fits("get", "/runs/{workflow_id}/result", still)) == (202, {"open": True})
    rows = fits("get", "/requests", await ana.get("/api/requests"))["requests"]
    (row,) = [each for each in rows if each["workflow_id"] == run]
    assert row["state"] == "open"
    place = f"/api/requests/{run}/{row['request']['id']}"
    request = fits("get", "/requests/{workflow_id}/{request_id}", await ana.get(place))
    said = {"verdict": "approve", "f": request["run_id"], "d": request["live"]["digest"]}
    decided = await ana.post(f"{place}/decide", json=said)
    assert fits("post", "/requests/{workflow_id}/{request_id}/decide", decided)["state"] == "decided"
    result = fits("get", "/runs/{workflow_id}/result", await ana.get(f"/api/runs/{run}/result", params={"wait": 60}))
    assert (result["outcome"], result["effects"][0]["state"]) == ("completed", "applied")
    names, told = await until_ended(ana, run)
    assert (names[-1], told[0], told[-1]) == ("end", "run.started", "run.ended")
    same = await ana.get(f"/runs/{run}", headers={"Accept": "application/json"})
    assert same.json()["result"] == result
    seen = fits("get", "/runs/{workflow_id}", await ana.get(f"/api/runs/{run}"))
    assert (seen["open"], seen["user_id"], seen["result"]) == (False, ANA, result)
    decided = {each["workflow_id"]: each for each in fits("get", "/decided", await ana.get("/api/decided"))["requests"]}
    assert decided[run]["decision"]["by"] == ANA
    assert run in [each["workflow_id"] for each in fits("get", "/runs", await ana.get("/api/runs"))["runs"]]
    wrong = await ana.get(f"/api/runs/{run}/result", params={"wait": "61"})
    assert (wrong.status_code, fits("get", "/runs/{workflow_id}/result", wrong)["error"]["type"]) == (
        422,
        "ArgumentsInvalid",
    )


@promise("page:api-no-result")
async def test_a_run_that_has_ended_without_a_result_is_gone_and_says_how_it_ended(shared):
    running, scripts, _, ana = shared
    nobody, task = "a-queue-that-nobody-serves", {"text": "wait", "user_id": ANA}
    invalid = {**scripts.task(), "user_id": ANA, "output_schema": {"type": "nothing"}}
    started = {
        "TaskInvalid": await running.start(invalid),
        "RunTerminated": await running.client.start_workflow("RunTask", task, id="terminated", task_queue=nobody),
        "RunTimedOut": await running.client.start_workflow(
            "RunTask", task, id="timed-out", task_queue=nobody, execution_timeout=timedelta(seconds=1)
        ),
    }
    await started["RunTerminated"].terminate()
    answers = {
        kind: await ana.get(f"/api/runs/{handle.id}/result", params={"wait": 60}) for kind, handle in started.items()
    }
    told = {kind: fits("get", "/runs/{workflow_id}/result", answer)["error"] for kind, answer in answers.items()}
    assert {kind: (answer.status_code, told[kind]["type"]) for kind, answer in answers.items()} == {
        kind: (410, kind) for kind in started
    }
    assert told["RunTerminated"]["message"].startswith("the run was terminated")
    again = await ana.get(f"/api/runs/{started['TaskInvalid'].id}/result")
    assert (again.status_code, again.json()["error"]) == (410, told["TaskInvalid"])


@promise("page:api-persons-decide")
async def test_a_service_that_acts_for_others_starts_runs_and_answers_questions_but_approves_nothing(shared):
    _, scripts, served, ana = shared
    asked = Reply(calls=[("ask_person", {"question": "Which city?"})])
    task = {**scripts.task(asked, MAIL), "user_id": DESK}
    async with served.person("DESK@example.com", **bearer_of(served, DESK)) as desk:
        run = (await desk.post("/api/runs", json={"task": task})).json()["workflow_id"]

        async def request(kind):
            async with asyncio.timeout(60):
                while True:
                    rows = (await desk.get("/api/requests")).json()["requests"]
                    found = [each["request"] for each in rows if each["workflow_id"] == run]
                    if found and found[0]["kind"] == kind:
                        return found[0]
                    await asyncio.sleep(0.1)

        def said(shown, **more):
            return {"f": shown["run_id"], "d": shown["digest"], **more}

        question = await request("question")
        answered = await desk.post(
            f"/api/requests/{run}/{question['id']}/decide", json=said(question, verdict="answer", answer="Oslo")
        )
        assert answered.status_code == 200, answered.text
        call = await request("call")
        place = f"/requests/{run}/{call['id']}"
        for verdict in ("approve", "reject", "reject_stop"):
            refused = await desk.post(f"/api{place}/decide", json=said(call, verdict=verdict))
            assert fits("post", "/requests/{workflow_id}/{request_id}/decide", refused)["error"] == {
                "type": "DecisionRefused",
                "message": f"by: {DESK} is a service that acts for others (BACKSTAY_MAY_ACT_FOR); "
                "only a person may decide this",
            }
        page = (await desk.get(place, headers={"Accept": "text/html"})).text
        assert "is a service that acts for others" in page
        assert 'value="approve"' not in page
    decided = await ana.post(f"/api{place}/decide", json=said(call, verdict="approve"))
    assert decided.status_code == 200, decided.text
    result = (await ana.get(f"/api/runs/{run}/result", params={"wait": 60})).json()
    assert [effect["state"] for effect in result["effects"]] == ["applied"]


@promise("page:api-described")
async def test_the_description_names_every_address_of_the_api_and_no_other(shared):
    _, _, served, ana = shared
    routes = [route for part in FOR_PROGRAMS for route in part(served.page)]
    offered = {(method.lower(), re.sub(":[a-z]+}", "}", route.path)) for route in routes for method in route.methods}
    pages = {("get", "/"), ("get", "/openapi.json")}
    told = (await ana.get("/api/openapi.json")).json()

    assert {each for each in offered if each[0] != "head"} - pages == {
        (method, path) for path, deeds in told["paths"].items() for method in deeds if method in {"get", "post"}
    }
    assert [name for name, schema in told["components"]["schemas"].items() if not sound(schema)] == []
    assert set(re.findall(r"#/components/schemas/(\w+)", json.dumps(told))) <= told["components"]["schemas"].keys()


def sound(schema):
    Draft202012Validator.check_schema(schema)
    return True


@promise("page:api-starts")
async def test_a_program_starts_runs_in_its_own_name_only_and_once_under_one_name(shared):
    _, scripts, served, ana = shared
    task = {**scripts.task(Reply(text="done")), "user_id": ANA}
    started = [(await ana.post("/api/runs", json={"task": task, "once": "monday"})).json() for _ in range(2)]
    assert started[0] == started[1]
    result = fits(
        "get",
        "/runs/{workflow_id}/result",
        await ana.get(f"/api/runs/{started[0]['workflow_id']}/result", params={"wait": 60}),
    )
    assert result["outcome"] == "completed"
    again = (await ana.post("/api/runs", json={"task": task, "once": "monday"})).json()
    assert again == started[0]
    refused = {
        "task.user_id": {"task": {"text": "x", "user_id": BO}},
        "task.by": {"task": {"text": "x", "by": BO}},
        "task.proof": {"task": {"text": "x", "proof": "2.9999999999.00.00"}},
        "task": {"task": "write to a"},
        "text": {"task": {"text": ""}},
        "wrong": {"task": {"text": "x"}, "wrong": 1},
        "once": {"task": {"text": "x"}, "once": "x" * 201},
    }
    for field, body in refused.items():
        answer = await ana.post("/api/runs", json=body)
        assert (answer.status_code, answer.json()["error"]["message"].partition(":")[0]) == (422, field)
    async with served.person(BO, **bearer_of(served, BO)) as bo:
        denied = await bo.post("/api/runs", json={"task": {"text": "x"}})
        assert denied.status_code == 403
        assert "BACKSTAY_WEB_STARTERS" in fits("post", "/runs", denied)["error"]["message"]
        assert (await bo.get(f"/runs/{started[0]['workflow_id']}/result")).status_code == 404


@promise("page:api-once")
async def test_another_task_under_the_name_of_one_that_was_started_is_refused(shared):
    _, scripts, _, ana = shared
    task = scripts.task(Reply(text="done"))
    first = await ana.post("/api/runs", json={"task": task, "once": "tuesday"})
    other = await ana.post("/api/runs", json={"task": {"text": "pay everybody"}, "once": "tuesday"})
    assert (other.status_code, other.json()["error"]["message"].partition(":")[0]) == (409, "once")
    assert fits("post", "/runs", other)["error"]["type"] == "DecisionRefused"
    two = [{"task": scripts.task(Reply(text="done")), "once": "wednesday"} for _ in range(2)]
    answers = await asyncio.gather(*(ana.post("/api/runs", json=body) for body in two))
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert (await ana.post("/api/runs", json={"task": task, "once": "tuesday"})).json() == first.json()


@promise("page:api-methods")
async def test_a_method_that_an_address_does_not_take_is_refused_with_the_one_that_it_takes(shared):
    _, _, _, ana = shared
    for method, path, taken in (("POST", "/api/requests", "GET"), ("GET", "/api/runs/r/pause", "POST")):
        refused = await ana.request(method, path, json={})
        assert refused.status_code == 405, path
        assert refused.json()["error"]["message"] == f"nothing was done; open the page again, or send {taken}"
        assert taken in refused.headers["allow"]


@promise("page:api-fields")
async def test_a_number_is_no_text_and_no_truth_and_what_was_undone_by_hand_is_taken(shared):
    _, scripts, _, ana = shared
    run = (await ana.post("/api/runs", json={"task": scripts.task(Reply(text="done"))})).json()["workflow_id"]
    await ana.get(f"/api/runs/{run}/result", params={"wait": 60})
    sent = {
        ("top_up", "max_steps"): ({"max_steps": True}, {"max_steps": "5"}),
        ("undone_by_hand", "effect"): ({"effect": "1"}, {"effect": True}, {}),
    }
    for (deed, field), bodies in sent.items():
        for body in bodies:
            answer = await ana.post(f"/api/runs/{run}/{deed}", json=body)
            assert (answer.status_code, answer.json()["error"]["message"].partition(":")[0]) == (422, field), body
    # The run has sent nothing, and says so itself.
    none = await ana.post(f"/api/runs/{run}/undone_by_hand", json={"effect": 1, "comment": "by hand"})
    assert fits("post", "/runs/{workflow_id}/undone_by_hand", none)["error"]["type"] != "InternalError", none.text
    for before in ("nan x", "inf x", "1e999 x"):
        assert (await ana.get("/api/runs", params={"before": before})).status_code == 422


@promise("page:starts")
async def test_who_may_start_a_run_does_so_by_a_form_and_once_however_often_it_is_sent(shared):
    running, scripts, served, ana = shared
    text = scripts.task(Reply(text="done"))["text"]
    async with served.person(BO) as bo:
        assert 'action="/runs"' not in (await bo.get("/runs")).text.replace('method="get" action="/runs"', "")
        denied = await bo.post("/runs", data={"csrf": served.page.csrf(Visitor(by=BO)), "text": text})
        assert denied.status_code == 403
    shown = (await ana.get("/runs")).text
    form = {**dict(re.findall(r'<input type="hidden" name="(csrf|once)" value="([^"]+)">', shown)), "text": text}
    places = {(await ana.post("/runs", data=form)).headers["location"].partition("?")[0] for _ in range(2)}
    (place,) = places
    assert (await ana.get(place)).status_code == 200
    result = await ended(running.client.get_workflow_handle(place.rpartition("/")[2]))
    assert result["outcome"] == "completed"
    empty = await ana.post("/runs", data={**form, "text": " ", "once": "other"})
    assert (empty.status_code, "text: " in empty.text) == (422, True)


@promise("page:goes-on")
async def test_a_conversation_goes_on_by_a_form_of_a_run_that_has_ended_for_its_user_alone(shared):
    running, scripts, served, ana = shared
    once = {"once": "first of two"}
    task = {**scripts.task(Reply(text="the harbour is open")), "session_id": "harbour"}
    first = (await ana.post("/api/runs", json={"task": task, **once})).json()["workflow_id"]
    await ended(running.client.get_workflow_handle(first))
    shown = (await ana.get(f"/runs/{first}")).text
    async with served.person(BO) as bo:
        assert 'name="follows"' not in (await bo.get(f"/runs/{first}")).text
    sent = dict(re.findall(r'name="(csrf|once|follows|follows_run|session_id)" value="([^"]*)"', shown))
    next_text = scripts.task(Reply(text="again"))["text"]
    place = (await ana.post("/runs", data={**sent, "text": next_text})).headers["location"].partition("?")[0]
    assert (await ended(running.client.get_workflow_handle(place.rpartition("/")[2])))["outcome"] == "completed"
    told = (await ana.get(f"/api{place}")).json()
    assert (told["session_id"], told["follows"]) == ("harbour", [first])
    lost = await ana.post("/runs", data={**sent, "text": next_text, "once": "other", "follows_run": ""})
    assert (lost.status_code, "follows" in lost.text) == (422, True)
