"""Plans about which no rule asks: who approves them where a run plans first, and who chooses among several."""

import pytest

from backstay.testing import Reply
from tests.engine import PLANS, Scripts, ended, engine, pending, update
from tests.requirements import promise
from tests.sizes import spread

FREE = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
ASKS = "deny: [{tool: mail.send_email, when: {to: {equals: x@evil.example}}}]\n" + FREE
READ = {"tool": "mail.list_sent", "arguments": {"to": "b@one.example"}}


def send(subject, to="b@one.example", **fields):
    return {"tool": "mail.send_email", "arguments": {"to": to, "subject": subject, "body": "b"}, **fields}


def propose(*steps, **fields):
    return Reply(calls=[("propose_plan", {"plan": {"title": "letters", "steps": list(steps)}, **fields})])


def after(subject="after"):
    return Reply(calls=[("mail__send_email", send(subject)["arguments"])])


async def decide(handle, request, verdict="approve", **more):
    given = {"request_id": request["id"], "verdict": verdict, "by": "ana", **more}
    return await update(handle, "decide", given)


def subjects(opened):
    return [
        row[0]
        for row in opened.mailbox.rows(
            "SELECT json_extract(arguments, '$.subject') FROM requests WHERE tool = 'send_email' ORDER BY id"
        )
    ]


def called(opened):
    return [row[0] for row in opened.mailbox.rows("SELECT tool FROM requests ORDER BY id")]


GIVEN = {
    "reads": ({"plan": {"title": "t", "steps": [READ]}}, {}),
    "allowed writes": ({"plan": {"title": "t", "steps": [send("planned")]}}, {}),
    "rehearsed": ({"plan": {"title": "t", "steps": [READ]}}, {"rehearse": True}),
}


@promise("plans:plan-first-people")
@pytest.mark.parametrize("name", spread(list(GIVEN), 2))
async def test_a_run_that_plans_first_calls_nothing_before_a_person_approves_whatever_the_policy_allows(
    temporal, tmp_path, name
):
    given, more = GIVEN[name]
    scripts = Scripts()
    policy = FREE + 'allow: ["engine.propose_plan"]\n'
    async with engine(temporal, tmp_path, scripts, policy=policy) as opened:
        task = scripts.task(Reply(calls=[("propose_plan", given)]), after(), mode="plan_first", **more)
        # What a task says about itself gives it no more room.
        handle = await opened.start({**task, "policy": {"plans": "allow"}})
        (request,) = await pending(handle)
        assert (request["kind"], request["proposal"]["parts"][0]["steps"], called(opened)) == ("plan", [0], [])
        await decide(handle, request, "reject", comment="no")
        assert (await ended(handle))["outcome"] in {"completed", "failed"}
        assert called(opened) == []


@promise("plans:plan-first-people")
@pytest.mark.thorough
async def test_an_approved_plan_of_one_read_lets_a_run_that_plans_first_go_on(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FREE) as opened:
        handle = await opened.start(scripts.task(propose(READ), after(), mode="plan_first"))
        (request,) = await pending(handle)
        assert request["rule"] == "engine: the run does nothing before a person has approved a plan"
        assert request["may_remember"] == []
        await decide(handle, request)
        assert (await ended(handle))["outcome"] == "completed"
        assert called(opened) == ["list_sent", "send_email"]


@promise("plans:plan-first-empty")
async def test_a_plan_of_which_nothing_is_left_does_not_let_a_run_that_plans_first_go_on(temporal, tmp_path):
    scripts = Scripts()
    evil = send("evil", to="x@evil.example", continue_on_failure=True)
    needing = send("${steps.0.result.message_id}")
    plans = [(evil,), (evil, needing), (send("left out"),), (send("left out"), needing)]
    async with engine(temporal, tmp_path, scripts, policy=ASKS) as opened:
        handle = await opened.start(scripts.task(*(propose(*steps) for steps in plans), after(), mode="plan_first"))
        for plan in ("p3", "p4"):
            (request,) = await pending(handle)
            assert request["proposal"]["plan_id"] == plan
            await decide(handle, request, option="approve_per_step", calls={"0": {"verdict": "reject"}})
        await ended(handle)
        assert called(opened) == []


@promise("plans:plans-allowed")
async def test_the_operators_word_that_plans_are_allowed_lets_one_run_that_no_rule_asks_about(temporal, tmp_path):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=FREE + "plans: allow\n", profiles=PLANS) as opened:
        handle = await opened.start(scripts.task(propose(send("planned")), after(), mode="plan_first"))
        result = await ended(handle)
        assert (result["outcome"], subjects(opened)) == ("completed", ["planned", "after"])
        assert "approval.asked" not in [event["name"] for event in result["events"]]
        # A task's own policy can only be stricter.
        asked = await opened.start(scripts.task(propose(send("asked"))) | {"policy": {"plans": "ask"}})
        (request,) = await pending(asked)
        assert request["rule"] == "task's own plans: ask"
        await decide(asked, request, "reject")
        await ended(asked)
        assert subjects(opened) == ["planned", "after"]


@promise("plans:rules-about-plans")
@pytest.mark.parametrize("line", spread(["plans: deny", "deny: [engine.propose_plan]", 'deny: ["engine.*"]'], 2))
async def test_plans_that_the_policy_denies_are_made_by_nobody(temporal, tmp_path, line):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=f"{FREE}{line}\n", profiles=PLANS) as opened:
        task = scripts.task(propose(send("planned")))
        handle = await opened.start(task)
        result = await ended(handle)
        assert "approval.asked" not in [event["name"] for event in result["events"]]
        assert subjects(opened) == []
        assert "denied by the policy" in str(opened.model.requests[-1]["messages"])


@promise("plans:rules-about-plans")
@pytest.mark.thorough
@pytest.mark.parametrize("line", ["plans: ask", "ask: [engine.propose_plan]"])
async def test_plans_that_the_policy_asks_about_wait_for_a_person_in_every_mode(temporal, tmp_path, line):
    scripts = Scripts()
    async with engine(temporal, tmp_path, scripts, policy=f"{FREE}{line}\n", profiles=PLANS) as opened:
        handle = await opened.start(scripts.task(propose(send("planned"), send("beside"))))
        (request,) = await pending(handle)
        assert [step["needs_approval"] for step in request["proposal"]["steps"]] == [True, True]
        await decide(handle, request, option="approve_per_step", calls={"1": {"verdict": "reject"}})
        assert (await ended(handle))["outcome"] == "completed"
        assert subjects(opened) == ["planned"]


@promise("plans:choose")
@pytest.mark.parametrize("line", spread(["", "plans: allow\n"], 1))
async def test_of_alternatives_about_which_no_rule_asks_people_choose_one(temporal, tmp_path, line):
    scripts = Scripts()
    policy = 'ask: [{tool: mail.send_email, when: {to: {ends_with: "@two.example"}}}]\n' + FREE + line
    others = [{"title": "t", "steps": [send("free")]}, {"title": "t", "steps": [READ]}]
    async with engine(temporal, tmp_path, scripts, policy=policy, profiles=PLANS) as opened:
        proposed = propose(send("asked", to="c@two.example"), alternatives=others)
        handle = await opened.start(scripts.task(proposed))
        requests = {request["proposal"]["plan_id"]: request for request in await pending(handle, 3)}
        assert called(opened) == []
        await decide(handle, requests["p2"])
        assert (await ended(handle))["outcome"] == "completed"
        assert subjects(opened) == ["free"]


@promise("plans:repeated-values")
async def test_a_write_is_repeated_where_its_references_bring_the_same_and_not_where_only_their_words_are_it(
    temporal, tmp_path
):
    scripts = Scripts()
    refers = "${steps.0.result.to}"
    first = propose(send("first"), send("s", to=refers), send("t", to=refers), send("t"))
    other = propose(send("other", to="c@one.example"), send("s", to=refers))
    async with engine(temporal, tmp_path, scripts, policy=FREE + "plans: allow\n", profiles=PLANS) as opened:
        handle = await opened.start(scripts.task(after("s"), first, after("t"), other))
        for subject in ("s", "t", "t"):
            (request,) = await pending(handle)
            (call,) = request["calls"]
            assert (call["arguments"]["to"], call["arguments"]["subject"]) == ("b@one.example", subject)
            assert "the same call was made" in call["repeats"]
            await decide(handle, request)
        assert (await ended(handle))["outcome"] == "completed"
        assert subjects(opened) == ["s", "first", "s", "t", "t", "t", "other", "s"]
