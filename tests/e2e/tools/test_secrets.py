"""Secrets in what tools answer: nowhere but in the tools, and sealed."""

import json
import sqlite3

import pytest
import pytest_asyncio
import structlog
from cryptography.fernet import Fernet

from backstay.redaction.redactor import Redactor
from backstay.testing import Reply
from store.opening import open_store
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers, writes
from tests.engine import assert_no_task_failure, engine, pending
from tests.logs import logged
from tests.requirements import promise

POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
KEY = "process-secret-" + "k" * 20
JWT = ".".join(["ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiJzZWNyZXQifQ", "c2lnbmF0dXJlLW9mLXRlc3Q"])
PEM_BODY = "MIIEpAIBAAKCAQ" + "Z" * 50
PLANTED = {
    "nested": "nested-" + "a1" * 12,
    "header": "header-" + "b2" * 12,
    "query": "query-" + "c3" * 12,
    "inner": "inner-" + "d4" * 12,
    "pem": PEM_BODY,
    "jwt": JWT,
    "bearer": "bearer-" + "e5" * 12,
    "basic": "basic-" + "f6" * 12,
    "spelling": "spelling-" + "g7" * 12,
    "known": KEY,
    "failing": "failing-" + "h8" * 12,
    "refusal": "refusal-" + "i9" * 12,
    "effect": "effect-" + "j0" * 12,
    "page": "page-" + "k1" * 12,
}
READ = {
    "deep": {"list": [{"client": {"password": PLANTED["nested"]}}]},
    "headers": [["Authorization", PLANTED["header"]], {"name": "X-Api-Key", "value": PLANTED["header"]}],
    "link": f"https://example.test/file?size=3&access_token={PLANTED['query']}&page=2",
    "payload": json.dumps({"outer": json.dumps({"secret": PLANTED["inner"]})}),
    "file": f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\n-----END RSA PRIVATE KEY-----",
    "identity": f"your ticket is {JWT} and it is good",
    "curl": f"curl -H 'Authorization: Bearer {PLANTED['bearer']}' https://example.test",
    "remote": f"https://user:{PLANTED['basic']}@example.test/repository.git",
    "xAPI-Key_value": PLANTED["spelling"],
    "Client.Secret": PLANTED["spelling"],
    "prose": f"When asked, they said that {KEY} opens everything.",
    "next_page_token": PLANTED["page"],
}


def steps(*made):
    """Follow steps, each a list of calls, or a function of the answers so far that returns one."""

    def script(conversation):
        number = sum(1 for message in conversation.messages if message["role"] == "assistant")
        if number >= len(made):
            return DONE
        step = made[number]
        return Reply(text="I go on.", calls=step(conversation.answers()) if callable(step) else step)

    return script


def handle_in(answers):
    return answers[0]["data"]["next_page_token"]


SCRIPTS = Labelled(
    planted=steps(
        [("vault__read", {}), ("vault__fail", {}), ("vault__refuse", {}), ("vault__act", {})],
        lambda answers: [("vault__read", {"page": handle_in(answers), "note": f"page {handle_in(answers)}"})],
        lambda answers: [("finish", {"summary": f"read with {handle_in(answers)}", "outputs": {"all": answers[0]}})],
    ),
    fitting=steps(
        [("vault__codes", {})],
        lambda answers: [
            ("vault__turn", {"page_token": answers[0]["data"]["next_page_token"]}),
            ("vault__enter", {"otp": answers[0]["data"]["otp"]}),
            ("vault__turn", {"page_token": answers[0]["data"]["otp"]}),
        ],
    ),
    foreign=steps([("vault__read", {})], lambda answers: [("other__look", {"token": handle_in(answers)})]),
)


CODES = {"otp": "482133", "next_page_token": 48213377}


def fields(**known):
    return {"type": "object", "properties": known, "required": [*known]}


def servers(folder):
    tools = [reads("read"), reads("fail"), reads("refuse"), writes("act"), reads("codes")]
    tools += [
        reads("turn", fields(page_token={"type": "integer"})),
        reads("enter", fields(otp={"pattern": "^[0-9]{6}$"})),
    ]
    answers = {
        "read": {"data": READ},
        "fail": {"error": f"login failed: password={PLANTED['failing']} is wrong"},
        "refuse": {"refusal": f"Authorization: Bearer {PLANTED['refusal']} was refused"},
        "codes": {"data": CODES},
        "turn": {"data": {"fine": True}},
        "enter": {"data": {"fine": True}},
        "act": {"data": {"id": 7, "session": {"refresh_token": PLANTED["effect"]}}},
    }
    vault = ScriptedServer(folder / "vault.json", tools, answers)
    other = ScriptedServer(folder / "other.json", [reads("look")], {"look": {"data": {"fine": True}}})
    return vault, other


@pytest_asyncio.fixture(scope="module")
async def office(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("secrets")
    vault, other = servers(folder)
    toolbox = toolbox_of_servers(folder, vault=vault, other=other)
    async with engine(temporal, folder, SCRIPTS, policy=POLICY, toolbox=toolbox, openai_api_key=KEY) as opened:
        yield opened, vault, other, folder


def found_in(data):
    data = data if isinstance(data, bytes) else data.encode()
    return [name for name, secret in PLANTED.items() if secret.encode() in data]


async def everything_of(handle, opened):
    """Return what other people and programs can see of a run, by where it stands."""
    history = await handle.fetch_history()
    assert_no_task_failure(history)
    queries = {name: await handle.query(name) for name in ("status", "result", "pending", "budget", "undo_preview")}
    timeline = await handle.query("timeline", {"after": 0})
    described = await handle.describe()
    home = opened.settings.home
    tables = {}
    with sqlite3.connect(home / "backstay.db") as connection:
        for table in ("effects", "events", "runs", "payloads"):
            tables[table] = repr(connection.execute(f"SELECT * FROM {table}").fetchall())
    shown = [path for path in (home / "blobs").rglob("*") if path.is_file() and path.suffix != ".sealed"]
    return {
        "history": b"".join(event.SerializeToString() for event in history.events),
        "description": described.raw_description.SerializeToString(),
        "prompts": json.dumps(opened.model.requests, ensure_ascii=False),
        "queries": json.dumps(queries, ensure_ascii=False),
        "timeline": json.dumps(timeline, ensure_ascii=False),
        **{f"table {table}": text for table, text in tables.items()},
        "blobs": b"\n".join(path.read_bytes() for path in shown),
        "logs of servers": b"".join(path.read_bytes() for path in home.glob("logs/*")),
    }


async def unsealed(opened):
    """Return all that is sealed in the store."""
    home = opened.settings.home
    with sqlite3.connect(home / "backstay.db") as connection:
        names = connection.execute("SELECT run, name FROM payloads WHERE name LIKE '%.sealed'").fetchall()
    async with open_store(database_url=None, home=home) as store:
        return b"".join([await store.blobs.of(run).unseal(name.removesuffix(".sealed")) for run, name in names])


@promise("secrets:ten-places")
async def test_a_secret_in_a_tools_answer_appears_nowhere_outside(office):
    opened, vault, _, _ = office
    with logged(Redactor({KEY})) as buffer:
        handle = await opened.start("<planted>")
        result = await handle.result()
        structlog.get_logger("backstay.test").info("answer.read", data=READ)
    assert result["outcome"] == "completed", result
    assert not opened.model.faults
    places = {**await everything_of(handle, opened), "Result": json.dumps(result, ensure_ascii=False)}
    assert {name: found_in(data) for name, data in places.items() if found_in(data)} == {}
    assert found_in(buffer.getvalue()) == []
    assert "answer.read" in buffer.getvalue()
    # All of it was really there to be leaked.
    assert len(vault.calls()) == 5
    assert set(found_in(await unsealed(opened))) >= {"nested", "header", "bearer", "spelling", "page", "effect"}


@promise("secrets:home")
async def test_a_handle_goes_back_to_its_own_provider_as_the_value(office):
    opened, vault, _, _ = office
    await (await opened.start("<planted>")).result()
    *_, page = vault.calls("read")
    assert page["arguments"] == {"page": PLANTED["page"], "note": f"page {PLANTED['page']}"}


@promise("secrets:fitting")
async def test_a_handle_fits_where_the_value_that_the_tool_gets_does(office):
    opened, vault, _, _ = office
    handle = await opened.start("<fitting>")
    assert (await handle.result())["outcome"] == "completed"
    assert [call["arguments"] for call in vault.calls("turn")] == [{"page_token": CODES["next_page_token"]}]
    assert [call["arguments"] for call in vault.calls("enter")] == [{"otp": CODES["otp"]}]
    heard = SCRIPTS.heard["fitting"]
    assert "arguments.page_token: must be integer, not string" in heard
    assert [value for value in CODES.values() if str(value) in heard] == []


@promise("secrets:elsewhere")
async def test_a_handle_towards_another_provider_is_asked_about(office):
    opened, _, other, _ = office
    handle = await opened.start("<foreign>")
    (request,) = await pending(handle)
    assert "a secret of vault would be sent to other" in request["rule"]
    assert found_in(json.dumps(request)) == []
    assert other.calls() == []
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    assert (await handle.result())["outcome"] == "completed"
    assert [call["arguments"] for call in other.calls()] == [{"token": PLANTED["page"]}]
    places = await everything_of(handle, opened)
    assert {name: found_in(data) for name, data in places.items() if found_in(data)} == {}


@promise("secrets:elsewhere")
@pytest.mark.thorough
async def test_a_reference_of_a_plan_brings_a_secret_back_to_its_own_provider_and_to_no_other(office):
    opened, vault, other, _ = office
    token = "${steps.0.result.next_page_token}"
    read = {"tool": "vault.read", "arguments": {}}
    before = other.calls()

    # A long text is kept apart, and holds its references there.
    for taking in ({"token": token}, {"note": f"{'x' * 20_000} {token}"}):
        taken = {"tool": "other.look", "arguments": taking}
        result = await (await opened.start({"plan": {"steps": [read, taken]}})).result()
        assert (result["outcome"], result["error"]["type"]) == ("failed", "StepFailed")
        assert "a reference would bring a secret of vault to other.look" in result["error"]["message"]
        assert other.calls() == before
        assert found_in(json.dumps(result)) == []

    back = {"tool": "vault.read", "arguments": {"page": token}}
    result = await (await opened.start({"plan": {"steps": [read, back]}})).result()
    assert result["outcome"] == "completed"
    assert vault.calls("read")[-1]["arguments"] == {"page": PLANTED["page"]}


@promise("secrets:sealed")
async def test_with_keys_nothing_sealed_can_be_read_on_disk(temporal, tmp_path):
    vault, other = servers(tmp_path)
    toolbox = toolbox_of_servers(tmp_path, vault=vault, other=other)
    keys = [Fernet.generate_key().decode()]
    options = {"toolbox": toolbox, "openai_api_key": KEY, "encryption_keys": keys}
    async with engine(temporal, tmp_path, SCRIPTS, policy=POLICY, **options) as opened:
        result = await (await opened.start("<planted>")).result()
        assert result["outcome"] == "completed", result
        files = [path for path in opened.settings.home.rglob("*") if path.is_file()]
        assert {path.name: found_in(path.read_bytes()) for path in files if found_in(path.read_bytes())} == {}
    assert vault.calls("read")[-1]["arguments"]["page"] == PLANTED["page"]
