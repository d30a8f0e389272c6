"""`backstay policy learn`: what people decided about runs becomes lines, and nothing holds that nobody accepted."""

import asyncio
import json
import time
import uuid
from datetime import datetime

import pytest
import pytest_asyncio

from backstay.policies.policy import Policy
from backstay.testing import Reply
from backstay.yaml_text import read_yaml
from store.opening import open_store
from tests import signing
from tests.cli.commands import bare, environment_of, forked
from tests.engine import Scripts, ended, pending
from tests.learning.stored import asked, call, decided, record
from tests.ledger.recorded import a_store
from tests.requirements import promise

KEY = "the key that workers and gateways share"
ANA, BO, ZOE = "ana@example.com", "bo@example.com", "zoe@example.com"
STRICT = {"default": {"write_safe": "ask", "restricted_write": "ask"}}


def mail(to, body="b"):
    return Reply(calls=[("mail__send_email", {"to": to, "subject": "s", "body": body})])


@pytest_asyncio.fixture
async def office(open_engine):
    scripts = Scripts()
    async with open_engine(scripts, policy="", approver_key=KEY) as opened:

        async def start(*replies, **fields):
            workflow_id = f"task-{uuid.uuid4()}"
            task = scripts.task(*replies, by=ZOE, **fields)
            return await opened.start(signing.signed_start(opened.client, workflow_id, task, key=KEY), workflow_id)

        yield opened, start


async def decide(handle, by, verdict="approve"):
    said = {"request_id": "r1", "verdict": verdict, "by": by}
    await handle.execute_update("decide", await signing.signed(handle, said, key=KEY))


async def read_by_people(handles):
    """Wait until every request has been open for as long as somebody needs to read it."""
    asked = [(await pending(handle))[0]["created_at"] for handle in handles]
    latest = max(datetime.fromisoformat(at).timestamp() for at in asked)
    while time.time() < latest + 3.2:
        await asyncio.sleep(0.1)


@promise("approvals:learning")
async def test_a_user_with_default_preferences_is_asked_less_and_one_with_a_strict_policy_is_not(
    office, nursery, tmp_path
):
    opened, start = office

    async def command(*arguments, code=0):
        done = await forked(nursery, "policy", *arguments, environment=environment_of(opened), folder=tmp_path)
        assert done.code == code, (done.out, done.err)
        return done.out

    async def refuse(handle):
        await pending(handle)
        await decide(handle, BO, "reject")
        await ended(handle)

    approved = [await start(mail("a@corp.example", f"text {n}"), user_id="dana") for n in range(3)]
    rejected = await start(mail("x@other.example"), user_id="dana")
    strict = [await start(mail("a@corp.example", f"text {n}"), user_id="sten", policy=STRICT) for n in range(3)]
    await read_by_people([*approved, rejected, *strict])
    for handle, by in zip((*approved, *strict), (ANA, BO, ANA) * 2, strict=True):
        await decide(handle, by)
    await decide(rejected, BO, "reject")
    for handle in (*approved, rejected, *strict):
        await ended(handle)

    theirs = json.loads(await command("learn", "--user", "sten", "--output", "json"))
    assert (theirs["decisions"], theirs["lines"]) == (3, [])
    told = json.loads(await command("learn", "--user", "dana", "--output", "json"))
    assert (told["decisions"], told["evidence"]) == (4, 3)
    (line,) = told["lines"]
    assert (line["would_have_allowed"], line["asked"], line["approved_by"]) == (3, 4, [ANA, BO])
    assert [counter["by"] for counter in line["counter_examples"]] == [BO]
    assert "allow:" in await command("learn", "--user", "dana")
    printed = tmp_path / "learned.yaml"
    await command("learn", "--user", "dana", "--output-file", str(printed))
    assert Policy.admit(read_yaml(printed.read_text())).allow == Policy.admit({"allow": [line["rule"]]}).allow
    tried = json.loads(await command("try", str(printed), "--output", "json"))
    assert {row["rejected_by"] for row in tried["different"]} <= {""}

    kept = json.loads(await command("learn", "--keep", "--user", "dana", "--output", "json"))["lines"][0]
    assert kept["kept"]
    # What only waits lets nothing go.
    await refuse(await start(mail("a@corp.example", "again"), user_id="dana"))
    accepted = await command("accept", kept["line"])
    assert 'to equals "a@corp.example"' in accepted
    assert datetime.fromisoformat(json.loads(await command("list", "--output", "json"))[0]["expires"])
    assert (await ended(await start(mail("a@corp.example", "later"), user_id="dana")))["outcome"] == "completed"
    assert opened.mailbox.sent().count("a@corp.example") == 7
    for to, fields in (
        ("b@corp.example", {"user_id": "dana"}),
        ("a@corp.example", {"user_id": "dana", "policy": STRICT}),
        ("a@corp.example", {"user_id": "sten"}),
    ):
        await refuse(await start(mail(to, "elsewhere"), **fields))
    assert opened.mailbox.sent().count("a@corp.example") == 7


@promise("learning:hostile")
async def test_hostile_names_and_values_stay_within_a_line_of_the_policy_or_a_comment(nursery, tmp_path):
    odd = 'x" }]\n- {tool: "*"}\r\u202e\ufffe\x1b[2J # '
    arguments = {"to": "a@corp.example", "kind_of": True, "list": [odd]}
    async with a_store(tmp_path) as store:
        for number in range(6):
            by, said = ("ana\nallow: [mail.*]", "bo")[number % 2], "reject" if number > 3 else "approve"
            asks = [asked(1, call(0, arguments if number < 4 else {"to": odd}))]
            await record(store, f"run-{number}", asks, [decided(1, said, by=by)], started_by="zoe")
    environment = bare(BACKSTAY_HOME=str(tmp_path), BACKSTAY_POLICY=str(tmp_path / "policy.yaml"))
    done = await forked(nursery, "policy", "learn", "--since", "366d", environment=environment, folder=tmp_path)
    assert (done.code, done.out.isascii(), "\x1b" in done.out) == (0, True, False), done.err
    (line,) = Policy.admit(read_yaml(done.out)).allow
    assert (line.tool, line.when["list"]["equals"]) == ("mail.send", [odd])
    assert [text for text in done.out.splitlines() if text[:1] not in {" ", "#"}] == ["allow:"]


@promise("learning:bad-input")
@pytest.mark.parametrize("store", [False, True])
async def test_a_wrong_flag_a_missing_store_and_a_store_without_decisions(nursery, tmp_path, store):
    environment = bare(BACKSTAY_HOME=str(tmp_path), BACKSTAY_POLICY=str(tmp_path / "policy.yaml"))
    if store:
        async with open_store(database_url=None, home=tmp_path):
            pass

    async def learn(*arguments):
        return await forked(nursery, "policy", "learn", *arguments, environment=environment, folder=tmp_path)

    wrong = await learn("--since", "nonsense")
    assert (wrong.code, "--since: " in wrong.err, "write 45s" in wrong.err) == (2, True, True)
    alone = await learn("--keep")
    assert (alone.code, "--user: name the user" in alone.err) == (2, True)
    empty = await learn()
    said = empty.out + empty.err
    assert empty.code == (0 if store else 2), said
    assert ("nobody has decided about a call since" if store else "BACKSTAY_HOME") in said
