"""The operator's own checks of calls: they tighten, and what goes wrong in one denies."""

import pytest

from backstay import Ask, Deny, ProposedCall, safety_policy
from backstay.errors import Denied, ToolboxInvalid
from tests.requirements import promise
from toolbox.providers.elicitation import InputResponse
from toolbox.providers.provider import Caller

HEAD = (
    "import asyncio\n"
    "from pydantic import BaseModel, Field\n"
    "from backstay import Ask, Deny, ProposedCall, safety_policy, tool\n"
    "@tool\n"
    "def pay(account: str, cents: int) -> int:\n    return cents\n"
    "@tool(safety='read_only')\n"
    "def show(account: str) -> str:\n    return account\n"
)
PAYS = {"account": "DE1", "cents": 5}


@pytest.fixture
def judged(opened, tmp_path):
    """Say what the checks of a file say of a call of `bank.pay`, or of another tool."""

    async def judge(source, arguments=None, tool="bank.pay"):
        (tmp_path / "bank.py").write_text(HEAD + source)
        entries = {"python": {"bank": {"module": "bank.py"}}, "safety": ["bank.py"]}
        async with opened(tmp_path, entries) as toolbox:
            definition = (await toolbox.catalog("ana")).definitions[tool]
            return await toolbox.judge(definition, arguments or PAYS, Caller(user_id="ana", session_id="s1"))

    return judge


TARGETS = (
    "@safety_policy('bank.*')\n"
    "def ours(call: ProposedCall) -> Deny | None:\n"
    "    strange = [value for value in call.targets.values() if not value.startswith('DE')]\n"
    "    return Deny(f'{call.user_id}/{call.session_id} {call.safety}') if strange else None\n"
    "@safety_policy('bank.pay')\n"
    "async def large(call: ProposedCall) -> Ask | None:\n"
    "    return Ask('it is much') if call.arguments['cents'] > 100 else None\n"
    "@safety_policy('*.pay')\n"
    "def odd(call: ProposedCall) -> Ask | None:\n"
    "    return Ask('it is odd') if call.arguments['cents'] % 2 else None\n"
)


@promise("python:checks")
@pytest.mark.parametrize(
    ("arguments", "tool", "said"),
    [
        ({"account": "DE1", "cents": 4}, "bank.pay", None),
        ({"account": "DE1", "cents": 5}, "bank.pay", Ask("it is odd")),
        ({"account": "DE1", "cents": 101}, "bank.pay", Ask("it is much; it is odd")),
        ({"account": "FR1", "cents": 101}, "bank.pay", Deny("ana/s1 restricted_write")),
        ({"account": "FR1"}, "bank.show", Deny("ana/s1 read_only")),
        ({"account": "DE1"}, "bank.show", None),
    ],
)
async def test_the_strictest_word_of_all_checks_of_a_domain_counts(judged, arguments, tool, said):
    assert await judged(TARGETS, arguments, tool) == said


WITHIN = (
    "from typing import Any\n"
    "from backstay import Ask, Deny, ProposedCall, ToolContext, safety_policy, tool\n"
    "@tool(reads=['search_emails'], writes=['send_email'])\n"
    "async def tell(to: str, context: ToolContext) -> Any:\n"
    "    try:\n"
    "        await context.read('search_emails', query=to, limit=1)\n"
    "        return await context.write('send_email', to=[to], subject='s', body='')\n"
    "    except Exception:\n"
    "        return 'all is well'\n"
    "@safety_policy('people.*')\n"
    "def check(call: ProposedCall) -> Ask | Deny | None:\n"
)


@pytest.fixture
def told(opened, tmp_path, servers):
    """Call a Python tool over a plain server under a check; return what came of it and how often it was sent."""

    async def tell(check, reply=None):
        (tmp_path / "own.py").write_text(WITHIN + f"    {check}\n")
        server = {"command": "python", "args": [str(servers / "people.py"), "plain"]}
        python = {"own": {"module": "own.py", "provider": "people"}}
        entries = {"mcpServers": {"people": server}, "python": python, "safety": ["own.py"]}
        sent = []

        async def begin():
            sent.append(1)

        async with opened(tmp_path, entries) as toolbox:
            definition = (await toolbox.catalog("ana")).definitions["own.tell"]
            more = {"deadline_s": 60, "before_send": begin, "effect_id": "run/1", "judged": True}
            answer = await toolbox.call(definition, {"to": "a@b.c"}, **more)
            if reply is not None:
                sent.clear()
                answer = await toolbox.call(
                    definition, {"to": "a@b.c"}, reply=InputResponse(answer.question, reply, declined=False), **more
                )
        return answer, len(sent)

    return tell


@promise("python:checks-within")
@pytest.mark.parametrize("tool", ["search_emails", "send_email"])
async def test_a_check_denies_what_a_python_tool_calls_on_its_way_before_it_is_sent(told, tool):
    seen = f"return Deny(f'{{call.safety}} {{call.arguments}}') if call.tool == 'people.{tool}' else None"
    if tool == "send_email":
        # What a tool makes of an error does not hide that its write was denied.
        with pytest.raises(Denied, match=r"send_email: denied by a safety policy: .*'subject': 's'"):
            await told(seen)
    else:
        answer, _ = await told(seen)
        assert answer.data == "all is well"


@promise("python:checks-within")
async def test_a_check_asks_about_what_a_python_tool_calls_and_the_answer_holds(told):
    check = "return Ask('is it meant?') if call.tool == 'people.send_email' else None"
    answer, sent = await told(check)
    assert (answer.success, answer.question.requests[0].message, sent) == (False, "a safety policy: is it meant?", 0)
    answer, sent = await told(check, reply=True)
    assert (answer.success, answer.data["message_id"], sent) == (True, "m1", 1)
    with pytest.raises(Denied, match="a person did not allow"):
        await told(check, reply=False)


@promise("python:types-and-targets")
async def test_arguments_that_do_not_fit_the_model_of_a_check_are_denied_without_their_value(judged):
    typed = (
        "class Payment(BaseModel):\n    account: str = Field(pattern='^DE')\n    cents: int = Field(le=100)\n"
        "@safety_policy('bank.pay', arguments=Payment)\n"
        "def typed(call: ProposedCall) -> None:\n    return None\n"
    )
    assert await judged(typed) is None
    denied = await judged(typed, {"account": "FR77", "cents": 5})
    assert denied.why.startswith("arguments.account: String should match pattern")
    assert "FR77" not in denied.why


@promise("python:closed")
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return 1 / 0", "broken failed: ZeroDivisionError"),
        ("raise SystemExit(0)", "broken failed: SystemExit"),
        ("return True", "broken returned neither Ask, Deny nor None; correct it"),
    ],
)
async def test_a_check_that_breaks_denies(judged, body, why):
    source = f"@safety_policy('bank.*')\ndef broken(call):\n    {body}\n"
    assert await judged(source) == Deny(why)


@promise("python:closed")
async def test_a_check_that_does_not_come_back_denies(judged, monkeypatch):
    monkeypatch.setattr("toolbox.python_tools.safety._PATIENCE_S", 0.1)
    source = "@safety_policy('bank.*')\nasync def slow(call):\n    await asyncio.sleep(600)\n"
    assert await judged(source) == Deny("slow failed: TimeoutError")


@promise("python:closed")
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "safety.0: 'safe.py' defines no function with @safety_policy; add one"),
        (
            "@safety_policy('pay')\ndef check(call): ...\n",
            "safety.0: domain 'pay': tool: tools are named provider.tool",
        ),
        ("raise OSError('gone')\n", "safety.0: 'safe.py' cannot be loaded: OSError: gone"),
    ],
)
async def test_checks_that_cannot_be_used_keep_the_toolbox_closed(opened, tmp_path, source, said):
    (tmp_path / "safe.py").write_text("from backstay import safety_policy\n" + source)
    with pytest.raises(ToolboxInvalid) as caught:
        async with opened(tmp_path, {"safety": ["safe.py"]}):
            pass
    assert said in str(caught.value)


@promise("python:checks")
def test_a_check_is_a_function_that_can_be_called_and_tested():
    @safety_policy("shell.run")
    def known(call: ProposedCall) -> Deny | None:
        return None if call.arguments["command"].split()[0] in {"ls", "cat"} else Deny("unknown command")

    assert known(ProposedCall(tool="shell.run", arguments={"command": "ls -l"})) is None
    assert known(ProposedCall(tool="shell.run", arguments={"command": "rm x"})) == Deny("unknown command")


@promise("python:types-and-targets")
def test_targets_are_the_arguments_that_say_where_a_call_goes():
    arguments = {"to": ["a@b.c"], "subject": "Hello", "where": {"url": "https://x.y/z"}, "cents": 5, "iban": None}
    call = ProposedCall(tool="bank.pay", arguments=arguments)
    assert call.targets == {"/to/0": "a@b.c", "/where/url": "https://x.y/z"}
