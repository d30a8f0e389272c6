"""A secret in an answer is shown to whom it is theirs, recorded, and nowhere in clear."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio

from backstay.approvals.approval import RecordedDecision
from backstay.client import Backstay
from backstay.errors import ArgumentsInvalid, DecisionRefused, NotVerified, QuorumPending, RunNotFound
from backstay.redaction.handles import MARK, handle_named, handles_in
from store.opening import open_store
from tests import signing
from tests.cli.commands import command, environment_of
from tests.e2e.faults.test_echoes import SERVER
from tests.e2e.labelled import Labelled
from tests.e2e.servers.spellings import token_of
from tests.e2e.tools.test_secrets import everything_of, steps
from tests.engine import ended, engine
from tests.requirements import promise

KEY = "the key that workers and gateways share"
ANA, BO, CY, DI = "ana@example.com", "bo@example.com", "cy@example.com", "di@example.com"
OPEN = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
RESTRICTED = """
groups: {"@support": ["bo@example.com", "cy@example.com"]}
default: {read_only: allow, write_safe: allow, restricted_write: allow}
ask: [{tool: "echo.keep", approvers: ["di@example.com"]}]
reveal:
  deny: ["vault.*"]
  ask: [{tool: "echo.*", approvers: ["ana@example.com", "@support"], quorum: 2}]
"""
SECRET = token_of(0)


def told(answers):
    handle = answers[0]["data"]["reset_token"]
    return [("finish", {"summary": f"Your link is https://example.test/reset?t={handle}", "outputs": {}})]


SCRIPTS = Labelled(reset=steps([("echo__issue", {"n": 0})], told))


@pytest_asyncio.fixture
async def office(temporal, tmp_path, monkeypatch, request):
    servers = {
        name: {"command": "python", "args": [str(SERVER), str(tmp_path / f"{name}.said")]} for name in ("echo", "vault")
    }
    data = {"mcpServers": servers, "providers": {name: {"trusted": True} for name in servers}}
    toolbox = tmp_path / "echo.json"
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    restricted = getattr(request, "param", False)
    options = {"policy": RESTRICTED, "approver_key": KEY} if restricted else {"policy": OPEN}
    async with engine(temporal, tmp_path, SCRIPTS, toolbox=toolbox, **options) as opened:
        for name, value in environment_of(opened).items():
            monkeypatch.setenv(name, value)
        if restricted:
            monkeypatch.setenv("BACKSTAY_APPROVER_KEY", KEY)
        yield opened


async def finished(opened):
    """Run to the end; return the run and the handle in its final answer."""
    handle = await opened.start({"text": "<reset> my password"})
    result = await ended(handle)
    (found,) = handles_in(result["final_summary"])
    assert SECRET not in json.dumps(result)
    return handle, found


async def told_by(opened, *arguments):
    """Run a command against the engine."""
    return await command(*arguments, environment=environment_of(opened), folder=opened.settings.home)


async def decisions_of(opened, handle):
    run = f"{handle.id}/{handle.first_execution_run_id}"
    async with open_store(database_url=None, home=opened.settings.home) as store:
        return [decision for decision in await store.decisions.of_run(run) if decision.update == "reveal"]


@promise("secrets:reveal")
@pytest.mark.thorough
async def test_a_link_in_the_final_answer_is_shown_to_its_owner_and_that_is_recorded(office):
    handle, found = await finished(office)
    run = Backstay(office.client).run(handle.id)
    assert await run.reveal(found, by=ANA) == SECRET
    assert await run.reveal(found.strip("⟦⟧"), by=BO) == SECRET
    shown = await decisions_of(office, handle)
    assert [(decision.by, decision.verified, decision.handle) for decision in shown] == [
        (ANA, False, found),
        (BO, False, found),
    ]
    done = await told_by(office, "show", handle.id)
    assert f"reveal {found} by {ANA} (unverified)" in done.out
    places = {**await everything_of(handle, office), "shown": done.out, "decisions": repr(shown)}
    assert [name for name, data in places.items() if SECRET in str(data)] == []


@promise("clients:earlier-run")
async def test_a_secret_of_an_earlier_run_of_a_name_is_shown_and_recorded_there(office):
    handle, found = await finished(office)
    later = await office.start({"text": "<reset> my password"}, handle.id)
    await ended(later)
    run = Backstay(office.client).run(handle.id, run_id=handle.first_execution_run_id)
    assert await run.reveal(found, by=ANA) == SECRET
    assert [[made.by for made in await decisions_of(office, of)] for of in (handle, later)] == [[ANA], []]


@promise("secrets:reveal")
@pytest.mark.thorough
async def test_the_command_prints_the_secret_and_nothing_else(office):
    handle, found = await finished(office)
    done = await told_by(office, "reveal", handle.id, found, "--by", ANA)
    assert (done.code, done.out) == (0, f"{SECRET}\n")
    assert SECRET not in done.err
    done = await told_by(office, "reveal", handle.id, found, "--by", ANA, "--output", "json")
    assert json.loads(done.out) == {"handle": found, "secret": SECRET}


@promise("secrets:reveal")
@pytest.mark.thorough
async def test_what_is_no_secret_of_the_run_is_not_shown(office):
    handle, found = await finished(office)
    other, _ = await finished(office)
    run = Backstay(office.client).run(handle.id)
    for made_up in ("secret", f"{MARK}echo/token:{'0' * 24}⟧", found.replace("echo", "vault"), ""):
        with pytest.raises(ArgumentsInvalid):
            await run.reveal(made_up, by=ANA)
    with pytest.raises(ArgumentsInvalid):
        await Backstay(office.client).run(other.id).reveal(found, by=ANA)
    with pytest.raises(RunNotFound):
        await Backstay(office.client).run("task-unknown").reveal(found, by=ANA)
    assert await decisions_of(office, handle) == []


@promise("secrets:reveal")
@pytest.mark.parametrize("office", [True], indirect=True)
async def test_only_those_whom_the_policy_names_are_shown_a_secret(office):
    handle, found = await finished(office)
    keyless, signing_client = Backstay(office.client), Backstay(office.client, approver_key=KEY)
    with pytest.raises(NotVerified):
        await keyless.run(handle.id).reveal(found, by=ANA)
    with pytest.raises(DecisionRefused, match="is not an approver"):
        await signing_client.run(handle.id).reveal(found, by=DI)
    with pytest.raises(DecisionRefused, match="shown to nobody"):
        await signing_client.run(handle.id).reveal(found.replace("echo", "vault"), by=ANA)
    for _ in range(2):
        with pytest.raises(QuorumPending, match="1 more must ask"):
            await signing_client.run(handle.id).reveal(found, by=ANA)
    assert await signing_client.run(handle.id).reveal(found, by=CY) == SECRET
    # Who asks next begins anew.
    with pytest.raises(QuorumPending):
        await signing_client.run(handle.id).reveal(found, by=BO)
    shown = await decisions_of(office, handle)
    assert [(decision.by, decision.verified, decision.state) for decision in shown] == [
        (ANA, True, "recorded"),
        (ANA, True, "recorded"),
        (CY, True, "decided"),
        (BO, True, "recorded"),
    ]


@promise("secrets:reveal")
@pytest.mark.thorough
@pytest.mark.parametrize("office", [True], indirect=True)
async def test_every_proof_that_does_not_hold_is_refused_where_secrets_are_shown(office):
    handle, found = await finished(office)
    other, _ = await finished(office)
    wish = {"handle": found, "by": ANA}
    run = Backstay(office.client).run(handle.id)

    async def made(given=wish, of=handle, **changed):
        return (await signing.signed(of, given, **({"update": "reveal", "key": KEY} | changed)))["proof"]

    proofs = {
        "malformed": "2.soon",
        "forged": await made(key="another key"),
        "expired": await made(life=-5),
        "too long": await made(life=48 * 3600),
        "foreign run": await made(of=other),
        "foreign namespace": await made(namespace="another"),
        "another way": await made(update="undo"),
        "another person": await made({**wish, "by": BO}),
        "another secret": await made({**wish, "handle": found.replace("/token:", "/password:")}),
    }
    for why, proof in proofs.items():
        with pytest.raises(NotVerified):
            await run.reveal(found, by=ANA, proof=proof)
        assert await decisions_of(office, handle) == [], why
    good = await made()
    with pytest.raises(QuorumPending):
        await run.reveal(found, by=ANA, proof=good)
    with pytest.raises(NotVerified, match="used already"):
        await run.reveal(found, by=ANA, proof=good)


@promise("approvals:old-word")
@pytest.mark.parametrize("office", [True], indirect=True)
async def test_an_old_wish_to_be_shown_a_secret_makes_up_no_number_with_a_new_one(office):
    handle, found = await finished(office)
    run, now = f"{handle.id}/{handle.first_execution_run_id}", datetime.now(UTC)
    wish = RecordedDecision(n=0, at="", update="reveal", by=ANA, verified=True, handle=handle_named(found))
    wish = wish.model_copy(update={"state": "recorded"})
    async with open_store(database_url=None, home=office.settings.home) as store:
        old = (now - timedelta(hours=25)).isoformat(timespec="microseconds")
        await store.decisions.add(run, wish.model_copy(update={"at": old}), lambda _earlier: {})
    person = Backstay(office.client, approver_key=KEY).run(handle.id)
    with pytest.raises(QuorumPending, match=r"^cy@example.com asked for this secret; 1 more must ask"):
        await person.reveal(found, by=CY)
    assert await person.reveal(found, by=BO) == SECRET
