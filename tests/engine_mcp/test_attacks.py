"""What attackers try by way of MCP, and what they get: nothing. docs/attacks.md has the table of it."""

import asyncio
import json
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import httpx2
import pytest
import pytest_asyncio
from mcp import types

from gateways.engine_mcp.limits import CallerLimits, TooMany
from gateways.engine_mcp.subscriptions import Subscriptions
from gateways.engine_mcp.tasks import ServedTask
from gateways.links import link_for, open_seals
from tests.docs.blocks import table
from tests.engine import Scripts, engine, pending
from tests.engine_mcp.served import EXTENSION, Refused, Wire, served_engine
from tests.engine_mcp.test_runs import ANA, ASK, BO, DONE, SENDS
from tests.requirements import promise
from tests.web.pages import behind_a_proxy, headers

EVE = "eve@example.com"
ALL = [{"kind": "call", "verdict": "approve"}, "approve", True, ["approve"], None, 1, {"action": "approve"}]


class Case:
    """Hold a run of Ana's that waits for people, and how attackers reach the server."""

    def __init__(self, running, url, scripts):
        self.running, self.url, self.scripts = running, url, scripts
        self.ana, self.eve = Wire(url, ANA), Wire(url, EVE)
        self.task = ""

    async def post(self, body=None, method="POST", by=ANA, **more):
        """Send a request as it is; return the status of the answer."""
        known = {**self.ana.headers("tools/list", {}), "Content-Type": "application/json", **headers(by), **more}
        known = {name: value for name, value in known.items() if value is not None}
        content = json.dumps(self.ana.body("tools/list")) if body is None else body
        async with httpx2.AsyncClient(timeout=30) as client:
            answer = await client.request(method, f"{self.url}/mcp", content=content, headers=known)
        return answer.status_code

    async def refused(self, wire, method, **params):
        with pytest.raises(Refused) as refused:
            await wire.ask(method, params)
        return refused.value

    async def wrong(self, wire, tool, **arguments):
        """Return why a tool refuses."""
        answer = await wire.call(tool, **arguments)
        assert answer.get("isError"), answer
        return answer["content"][0]["text"]


@pytest_asyncio.fixture(scope="module")
async def case(temporal, tmp_path_factory):
    folder, scripts = tmp_path_factory.mktemp("attacks"), Scripts()
    given = behind_a_proxy(web_starters=(ANA, BO, EVE))
    async with engine(temporal, folder, scripts, **given) as running, served_engine(running) as url:
        case = Case(running, url, scripts)
        case.task = (await case.ana.started(scripts.task(SENDS)["text"]))["taskId"]
        (request,) = await pending(running.client.get_workflow_handle(case.task))
        yield case
        assert [each["id"] for each in await pending(running.client.get_workflow_handle(case.task))] == [request["id"]]
        await case.ana.ask("tasks/cancel", {"taskId": case.task})
        await case.ana.until(case.task, "cancelled")


async def nobody_whom_the_page_would_know(case):
    assert await case.post(**{"X-Backstay-Proxy": None}) == 401
    assert await case.post(**{"X-Forwarded-Email": f"{ANA},{EVE}"}) == 401
    token = link_for(open_seals(case.running.settings), ANA)
    unknown = {"X-Backstay-Proxy": None, "X-Forwarded-Email": None}
    assert await case.post(**unknown, Authorization=f"Bearer {token}") == 401


async def a_cookie_of_the_page(case):
    settings = case.running.settings.model_copy(update={"web_identity": "link"})
    token = link_for(open_seals(settings), ANA)
    async with served_engine(case.running, web_identity="link") as url:
        other = Case(case.running, url, case.scripts)
        unknown = {"X-Backstay-Proxy": None, "X-Forwarded-Email": None}
        assert await other.post(**unknown, Cookie=f"backstay={token}") == 401
        assert await other.post(**unknown, Authorization=f"Bearer {token}") == 200
        assert await other.post(**unknown, Authorization=f"Bearer {token}x") == 401


async def a_page_of_another_site(case):
    host = urlsplit(case.url).netloc
    for origin in ("https://evil.example", "null", f"http://{host}.evil.example"):
        assert await case.post(Origin=origin) == 403
    assert await case.post(**{"Sec-Fetch-Site": "cross-site"}) == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert await case.post(**{"Content-Type": kind}) == 415


async def another_name_for_this_machine(case):
    for host in ("evil.example", "127.0.0.1.evil.example"):
        assert await case.post(Host=host) == 400


async def another_method(case):
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "PATCH"):
        assert await case.post(method=method, body="") == 405, method


async def a_body_that_is_no_request(case):
    for body in ("", "{", "[]", "[" * 100_000, "1", '{"jsonrpc": "2.0"}', json.dumps([case.ana.body("ping")] * 3)):
        assert await case.post(body=body) in {202, 400}, body[:20]
    assert await case.post(body=json.dumps({"x": "y" * 3_000_000})) == 413


async def the_task_of_somebody_else(case):
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        refused = await case.refused(case.eve, method, taskId=case.task, inputResponses={})
        assert (refused.code, refused.message) == (-32602, "Task not found")
    async with case.eve.listening(case.task) as heard:
        assert (await heard())["params"]["notifications"] == {}
        assert "result" in await heard()
    for tool in ("follow_run", "read_result", "cancel_run"):
        assert "no such run" in await case.wrong(case.eve, tool, run=case.task)
    assert "no such run" in await case.wrong(case.eve, "answer_question", run=case.task, question="r1", answer="yes")


async def a_task_that_is_guessed(case):
    nonce, mark = case.task.split("-")[1:]
    guesses = [f"mcp-{nonce}-{mark[::-1]}", f"mcp-{nonce[::-1]}-{mark}", f"mcp-{nonce}-", case.task.upper()]
    guesses += [case.task + " ", f"{case.task}\n", f"{case.task}/x", "x" * 100_000, "../" + case.task, "\u0000"]
    for guess in guesses:
        assert (await case.refused(case.ana, "tasks/cancel", taskId=guess)).code in {-32602, -32020}


async def a_run_that_another_door_has_started(case):
    task = case.scripts.task(ASK, DONE, user_id=EVE)
    for name in (None, f"mcp-{'0' * 24}-{'0' * 32}"):
        handle = await case.running.start(task, name)
        await pending(handle)
        assert (await case.refused(case.eve, "tasks/get", taskId=handle.id)).code == -32602
        assert handle.id not in json.dumps(await case.eve.call("list_runs"))
        await handle.terminate()


async def an_answer_that_approves(case):
    request = "r1"
    for said in ALL:
        await case.ana.ask("tasks/update", {"taskId": case.task, "inputResponses": {request: said}})
    for answer in ("approve", "yes", '{"verdict": "approve"}'):
        assert "is not a question" in await case.wrong(
            case.ana, "answer_question", run=case.task, question=request, answer=answer
        )


async def an_answer_that_passes_for_the_word_of_its_person(case):
    task = (await case.ana.started(case.scripts.task(ASK, SENDS)["text"]))["taskId"]
    ((key, _),) = (await case.ana.until(task, "input_required"))["inputRequests"].items()
    said = {key: {"action": "accept", "content": {"answer": "kim@x.example"}}}
    await case.ana.ask("tasks/update", {"taskId": task, "inputResponses": said})
    (request,) = await pending(case.running.client.get_workflow_handle(task))
    # Also where the policy does not ask for proofs of anybody.
    sources = request["calls"][0]["sources"]["/to"]
    assert [(source["kind"], source["content"]) for source in sources] == [("person", "others")]
    await case.ana.ask("tasks/cancel", {"taskId": task})


async def fields_that_are_the_operators(case):
    text = case.scripts.task(DONE)["text"]
    for field in ("user_id", "by", "proof", "policy", "profile", "model", "plan", "workspace", "shell", "text_from"):
        assert f"{field}: unknown field" in await case.wrong(case.ana, "start_run", text=text, **{field: "task"})


async def a_run_without_a_limit(case):
    text = case.scripts.task(DONE)["text"]
    for budget in ({"max_llm_cost_usd": None}, {"max_llm_cost_usd": 1e9}, {"max_steps": -1}, {"all": 1}):
        assert "budget." in await case.wrong(case.ana, "start_run", text=text, budget=budget)


async def fields_that_are_too_large(case):
    deep: dict = {}
    for _ in range(300):
        deep = {"a": deep}
    text = case.scripts.task(DONE)["text"]
    for more, field in (
        ({"text": "x" * 100_001}, "text"),
        ({"text": text, "once": "x" * 201}, "once"),
        ({"text": text, "input": {"a": "x" * 1_100_000}}, "Task"),
        ({"text": text, "input": deep}, "deep"),
        ({"text": text, "wait_s": 601}, "wait_s"),
        ({"text": text, "wait_s": "NaN"}, "wait_s"),
        ({"text": ["x"]}, "text"),
        ({}, "text"),
    ):
        assert field in await case.wrong(case.ana, "start_run", **more), field
    assert "answer" in await case.wrong(
        case.ana, "answer_question", run=case.task, question="r1", answer="\u0001" * 60_000 + "x"
    )
    assert "run" in await case.wrong(case.ana, "follow_run", run="x" * 10_000)
    assert "after" in await case.wrong(case.ana, "follow_run", run=case.task, after=-1)


async def a_header_that_names_another_task(case):
    with pytest.raises(Refused) as refused:
        await case.ana.ask("tasks/get", {"taskId": case.task}, **{"Mcp-Name": "another"})
    assert (refused.value.code, refused.value.status) == (-32020, 400)


async def a_client_that_hides_the_extension(case):
    plain = Wire(case.url, ANA, tasks=False)
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        refused = await case.refused(plain, method, taskId=case.task)
        assert (refused.code, list(refused.data)) == (-32021, ["requiredCapabilities"])
    refused = await unheard(plain, case.task)
    assert (refused.code, list(refused.data)) == (-32021, ["requiredCapabilities"])
    older = {"MCP-Protocol-Version": "2025-11-25"}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": {"taskId": case.task}})
    assert await case.post(body=body, **older) == 200


async def unheard(wire, *tasks):
    """Return why nothing is told to who listens."""
    with pytest.raises(Refused) as refused:
        async with wire.listening(*tasks):
            pass
    return refused.value


async def more_streams_than_a_caller_may(case):
    too_many = await unheard(case.ana, *(f"{case.task}{n}" for n in range(17)))
    assert (too_many.code, "one stream tells of 16" in too_many.message) == (-32602, True)
    for wrong in (1, {"a": 1}, None):
        assert (await unheard(case.ana, case.task, wrong)).code == -32602
    async with AsyncExitStack() as open_ones:
        for _ in range(4):
            heard = await open_ones.enter_async_context(case.ana.listening(case.task))
            assert (await heard())["params"]["notifications"] == {"taskIds": [case.task]}
        refused = await unheard(case.ana, case.task)
        assert (refused.code, "4 streams" in refused.message) == (-32000, True)
        # Others listen meanwhile, and what is no stream is answered.
        async with case.eve.listening(case.task) as heard:
            await heard()
        assert (await case.ana.get(case.task))["status"] == "working"
    async with asyncio.timeout(30):
        while True:
            try:
                async with case.ana.listening(case.task):
                    break
            except Refused:
                await asyncio.sleep(0.1)


async def more_at_once_than_a_caller_may(case):
    bo = Wire(case.url, BO)
    task = (await bo.started(case.scripts.task(SENDS)["text"]))["taskId"]
    waiting = [asyncio.create_task(bo.call("follow_run", run=task, wait_s=20)) for _ in range(24)]
    refused = []
    async with asyncio.timeout(30):
        for each in asyncio.as_completed(waiting):
            with pytest.raises(Refused) as error:
                await each
            refused.append(error.value)
            if len(refused) == 24 - 16:
                break
    assert {(error.code, "16 requests" in error.message) for error in refused} == {(-32000, True)}
    # Others are served meanwhile.
    assert (await case.ana.get(case.task))["status"] == "working"
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    async with asyncio.timeout(30):
        while True:
            try:
                await bo.ask("tasks/cancel", {"taskId": task})
                break
            except Refused:
                await asyncio.sleep(0.1)


ATTACKS = [
    nobody_whom_the_page_would_know,
    a_cookie_of_the_page,
    a_page_of_another_site,
    another_name_for_this_machine,
    another_method,
    a_body_that_is_no_request,
    the_task_of_somebody_else,
    a_task_that_is_guessed,
    a_run_that_another_door_has_started,
    an_answer_that_approves,
    an_answer_that_passes_for_the_word_of_its_person,
    fields_that_are_the_operators,
    a_run_without_a_limit,
    fields_that_are_too_large,
    a_header_that_names_another_task,
    a_client_that_hides_the_extension,
    more_at_once_than_a_caller_may,
    more_streams_than_a_caller_may,
]


@promise("clients:mcp-attacks")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
async def test_an_attack_reaches_nothing(case, attack):
    await attack(case)


@promise("clients:mcp-attacks")
def test_the_documentation_has_a_line_for_every_attack():
    rows = table("docs/attacks.md", "## Attacks by way of MCP")
    assert [row[2].strip("`") for row in rows] == [attack.__name__ for attack in ATTACKS]


@promise("clients:mcp-attacks")
def test_starts_are_counted_by_the_minute_for_each_caller():
    now = [0.0]
    limits = CallerLimits(lambda: now[0], most_starts=2)
    for caller in (ANA, BO):
        limits.start(caller)
        limits.start(caller)
        with pytest.raises(TooMany, match="2 runs within a minute"):
            limits.start(caller)
    now[0] = 61
    limits.start(ANA)


class Told:
    """A request of a client, with what it is told."""

    request_id = "listen-1"

    def __init__(self, capabilities):
        self.session, self.client_capabilities, self.told = self, capabilities, []

    async def send_notification(self, notification, related_request_id):
        assert related_request_id == self.request_id
        self.told.append(notification.method)


@promise("clients:mcp-attacks")
async def test_a_stream_ends_when_its_time_is_over_however_long_the_task_goes_on():
    runs, asked = _Endless(), types.SubscriptionFilter.model_validate({"taskIds": ["a"], "toolsListChanged": True})
    told = Told(types.ClientCapabilities(extensions={EXTENSION: {}}))
    served = Subscriptions(runs, lambda _: ANA, CallerLimits(), listen_s=0.05)
    async with asyncio.timeout(30):
        await served.listen(told, types.SubscriptionsListenRequestParams(notifications=asked))
    assert told.told == ["notifications/subscriptions/acknowledged", "notifications/tasks"]


class _Endless:
    async def look(self, _caller, task):
        return ServedTask.new(task)
