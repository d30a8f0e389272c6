"""A tool that says a secret back, in any spelling: nowhere in clear but in the tools, and sealed."""

import json
import re

import pytest
import pytest_asyncio

from backstay.redaction.redactor import Redactor
from backstay.testing import Reply
from tests.e2e.labelled import Labelled
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.e2e.servers.spellings import SPELLINGS, token_of
from tests.e2e.tools.test_secrets import KEY, everything_of, steps
from tests.engine import ROOT, ended, engine, pending
from tests.logs import logged
from tests.requirements import promise
from tests.sizes import sized, spread

ECHOES = sized(1000, 100)
AT_ONCE = 50
PER_PROGRAM = 100
SERVER = ROOT / "tests/e2e/servers/echo.py"
POLICY = "default: {read_only: allow, write_safe: allow, restricted_write: allow}\n"
WAYS = ("data", "error", "refusal", "progress")
BUDGET = {"max_steps": 100, "max_tool_calls": 5000, "max_code_runs": 20, "max_llm_cost_usd": None}


def echoes(first, count):
    """Return which secret is said back, how and in which spelling; the ways change more slowly than the spellings."""
    names = list(SPELLINGS)
    for number in range(first, first + count):
        turn, spelling = divmod(number, len(names))
        yield turn, names[spelling], WAYS[turn % len(WAYS)]


class Direct:
    """Have secrets issued, then have them said back by direct calls, many at a time."""

    def __init__(self):
        self.planned = list(echoes(0, ECHOES // 2))
        self.handles = []
        self.said = 0

    def __call__(self, conversation):
        if not conversation.calls("echo__issue"):
            return Reply(text="I begin.", calls=[("echo__issue", {"n": n}) for n in range(1 + self.planned[-1][0])])
        # Later on, the answers of the beginning are left out of the prompt.
        self.handles = self.handles or [answer["data"]["reset_token"] for answer in conversation.answers()]
        batch = self.planned[self.said : self.said + AT_ONCE]
        self.said += len(batch)
        if not batch:
            last = conversation.answers()[-1]
            return Reply(calls=[("finish", {"summary": f"said {json.dumps(last)}", "outputs": {"last": last}})])
        asked = [{"text": self.handles[turn], "spelling": name, "way": way} for turn, name, way in batch]
        return Reply(text="I go on.", calls=[("echo__say", arguments) for arguments in asked])


PROGRAM = """
import asyncio
from sandbox_py.client import ToolError

async def said(turn, name, way):
    try:
        return await echo.say(text=handles[turn], spelling=name, way=way)
    except ToolError as error:
        return str(error)

handles = {{}}
for turn in range({first}, {last} + 1):
    handles[turn] = (await echo.issue(n=turn))["reset_token"]
answers = []
planned = {planned}
for at in range(0, len(planned), 10):
    answers += await asyncio.gather(*(said(*echo) for echo in planned[at:at + 10]))
print(answers[0], "".join(map(str, answers[-40:])))
return {{"answers": answers}}
"""


def programs(conversation):
    """Have secrets said back by programs, whose calls and results are the engine's own steps."""
    done = conversation.calls("run_program")
    first = ECHOES // 2 + len(done) * PER_PROGRAM
    planned = list(echoes(first, min(PER_PROGRAM, ECHOES - first)))
    if not planned:
        return Reply(calls=[("finish", {"summary": "done", "outputs": {"last": done[-1].answer}})])
    code = PROGRAM.format(first=planned[0][0], last=planned[-1][0], planned=planned)
    return Reply(text="A program does it.", calls=[("run_program", {"code": code})])


def told(text):
    """Return a text as it is told apart from others: without blanks, quotes, escapes and case."""
    plain = "".join(sign if sign.isascii() else f"u{ord(sign):04x}" for sign in text)
    return re.sub(r"[\s\"\\\\]", "", plain).lower()


def letters(text):
    return re.sub(r"[^a-z0-9]", "", re.sub(r"u200b", "", text.lower()))


def leaks(places, said, secrets):
    """Return which of the things that were said stand in clear anywhere."""
    found = []
    for name, data in places.items():
        place = told(data.decode("utf-8", "replace") if isinstance(data, bytes) else data)
        bare = letters(place)
        # At both ends, an encoding depends on what stands beside the secret.
        found += [(name, text) for text in said if told(text)[4:-4] in place]
        found += [(name, secret) for secret in secrets if letters(secret) in bare]
    return found


@pytest_asyncio.fixture
async def opened(temporal, tmp_path, sandbox):
    said = tmp_path / "said.jsonl"
    data = {
        "mcpServers": {"echo": {"command": "python", "args": [str(SERVER), str(said)]}},
        "providers": {"echo": {"trusted": True}},
    }
    toolbox = tmp_path / "echo.json"
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    scripts = Labelled(direct=Direct(), programs=programs)
    limits = {"program_rounds": 200}
    async with engine(
        temporal, tmp_path, scripts, policy=POLICY, toolbox=toolbox, sandbox=sandbox, cached=10, **limits
    ) as made:
        yield made, said


@promise("secrets:echoes")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("form", spread(["direct", "programs"], 1))
async def test_a_tool_that_says_secrets_back_in_any_spelling_leaves_none_in_clear(opened, form):
    made, path = opened
    with logged(Redactor({KEY})) as buffer:
        handle = await made.start({"text": f"<{form}>", "budget": BUDGET})
        result = await ended(handle, within_s=280)
    assert result["outcome"] == "completed", result
    assert not made.model.faults
    said = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    # All of it was really there to be leaked.
    assert len(said) == ECHOES // 2
    places = {**await everything_of(handle, made), "Result": json.dumps(result), "logs": buffer.getvalue()}
    texts = [text if isinstance(text, str) else json.dumps(text)[1:-1] for text in said]
    first = 0 if form == "direct" else ECHOES // 2
    secrets = {token_of(turn) for turn, _, _ in echoes(first, ECHOES // 2)}
    assert leaks(places, texts, secrets) == []


def handle_in(answers):
    return answers[0]["data"]["reset_token"]


KEEPING = """
token = (await echo.issue(n=1))["reset_token"]
return await echo.keep(note=f"it is {token}")
"""
USES = Labelled(
    kept=steps([("echo__issue", {"n": 1})], lambda answers: [("echo__keep", {"note": f"it is {handle_in(answers)}"})]),
    used=steps(
        [("echo__issue", {"n": 1})],
        lambda answers: [
            ("echo__login", {"user": "bo", "credential": handle_in(answers)}),
            ("echo__say", {"text": handle_in(answers), "spelling": "as it is"}),
        ],
    ),
    abroad=steps(
        [("echo__issue", {"n": 1})],
        lambda answers: [("other__login", {"user": "bo", "credential": handle_in(answers)})],
    ),
    program=steps([("run_program", {"code": KEEPING})]),
)


@pytest_asyncio.fixture
async def office(temporal, tmp_path, sandbox):
    said = {name: tmp_path / f"{name}.jsonl" for name in ("echo", "other")}
    declared = {"login": {"secret_arguments": ["credential"]}}
    data = {
        "mcpServers": {name: {"command": "python", "args": [str(SERVER), str(path)]} for name, path in said.items()},
        "providers": {name: {"trusted": True, "tools": declared} for name in said},
    }
    toolbox = tmp_path / "echo.json"
    toolbox.write_text(json.dumps(data), encoding="utf-8")
    async with engine(temporal, tmp_path, USES, policy=POLICY, toolbox=toolbox, sandbox=sandbox, cached=10) as made:
        yield made, said


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@promise("policy:secret-arguments")
@pytest.mark.thorough
@pytest.mark.parametrize("form", ["kept", "program"])
async def test_a_secret_in_an_argument_that_is_no_credential_is_asked_about(office, form):
    opened, said = office
    handle = await opened.start({"text": f"<{form}>"})
    (request,) = await pending(handle)
    assert "note would take a secret" in request["rule"]
    assert lines(said["echo"]) == []
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "approve", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"
    assert lines(said["echo"]) == [{"note": f"it is {token_of(1)}"}]


@promise("policy:secret-arguments")
async def test_a_credential_and_a_read_of_its_own_provider_take_a_secret_unasked(office):
    opened, said = office
    assert (await ended(await opened.start({"text": "<used>"})))["outcome"] == "completed"
    assert {"user": "bo", "credential": token_of(1)} in lines(said["echo"])
    assert token_of(1) in lines(said["echo"])


@promise("policy:secret-arguments")
@pytest.mark.thorough
async def test_another_provider_is_asked_about_even_where_it_takes_credentials(office):
    opened, said = office
    handle = await opened.start({"text": "<abroad>"})
    (request,) = await pending(handle)
    assert "a secret of echo would be sent to other" in request["rule"]
    await handle.execute_update("decide", {"request_id": request["id"], "verdict": "reject", "by": "ana"})
    assert (await ended(handle))["outcome"] == "completed"
    assert lines(said["other"]) == []


LISTED = steps(
    [("vault__read", {})],
    [("search_tools", {"query": "late", "detail_level": "full"})],
    [("search_tools", {"query": "late"})],
)


@promise("secrets:echoes-descriptions")
async def test_a_server_that_says_a_secret_in_the_descriptions_of_its_tools_tells_it_to_nobody(temporal, tmp_path):
    secret = token_of(3)
    later = reads(
        "late", {"type": "object", "properties": {secret.upper(): {"type": "string"}}}, f"Late {secret[::-1]}."
    )
    answers = {"read": {"data": {"reset_token": secret}, "notify": True}, "late": {"data": {}}}
    vault = ScriptedServer(tmp_path / "vault.json", [reads("read")], answers, later=[later])
    toolbox = toolbox_of_servers(tmp_path, vault=vault)
    async with engine(temporal, tmp_path, LISTED, policy=POLICY, toolbox=toolbox) as made:
        handle = await made.start("find it")
        result = await ended(handle)
        assert result["outcome"] == "completed", result
        places = {**await everything_of(handle, made), "Result": json.dumps(result)}
        # The tool was really found.
        assert "vault__late" in places["prompts"]
        assert leaks(places, [secret[::-1]], {secret}) == []
