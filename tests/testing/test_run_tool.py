"""`run_tool` makes of a tool what the engine would, in a process that has no engine."""

import threading

import pytest

from backstay import CallRefused, Retry, ToolContext, ToolError, tool
from backstay.errors import OutcomeUnknown, ToolboxInvalid, ToolUnavailable
from backstay.testing import TestContext, run_tool
from tests.requirements import promise


def add(left: int, right: int = 1) -> int:
    """Add two numbers."""
    return left + right


@promise("python:anywhere")
def test_a_function_that_is_a_tool_is_called_as_before():
    assert tool(add) is add
    assert tool("plus", safety="read_only")(add)(2, right=3) == 5


@promise("python:run-tool")
async def test_a_blocking_function_runs_in_another_thread_and_an_async_one_in_this_one():
    @tool
    def blocking() -> int:
        return threading.get_ident()

    @tool
    async def waiting() -> int:
        return threading.get_ident()

    here = threading.get_ident()
    assert (await run_tool(waiting)).data == here
    assert (await run_tool(blocking)).data != here


@promise("python:run-tool")
@pytest.mark.parametrize(
    ("raised", "safety", "outcome", "said"),
    [
        (ToolError("no such account"), "write_safe", "failed", "no such account"),
        (Retry("name the month"), "write_safe", "retry", "call it again in another way: name the month"),
        (ValueError("secret 123"), "write_safe", "unknown", "the tool failed: ValueError"),
        (ValueError("secret 123"), "read_only", "failed", "the tool failed: ValueError"),
        (SystemExit(1), "write_safe", "unknown", "the tool failed: SystemExit"),
    ],
)
async def test_what_a_tool_raises_says_how_the_call_ended(raised, safety, outcome, said):
    @tool(safety=safety)
    def breaks() -> None:
        raise raised

    ran = await run_tool(breaks)

    assert (ran.outcome, ran.error) == (outcome, said)


@promise("python:run-tool")
async def test_succeeded_if_judges_what_the_function_returns():
    @tool(succeeded_if=lambda answer: answer["ok"])
    def post(ok: bool) -> dict[str, bool]:
        return {"ok": ok}

    assert (await run_tool(post, {"ok": True})).outcome == "succeeded"
    assert (await run_tool(post, {"ok": False})).outcome == "failed"


@promise("python:run-tool")
async def test_a_read_that_breaks_is_made_again_as_often_as_it_says():
    tries = []

    @tool(safety="read_only", retries=2)
    def flaky() -> int:
        tries.append(1)
        return 3 // (len(tries) == 3)

    @tool(safety="read_only", retries=1)
    def never() -> int:
        return 1 // 0

    assert (await run_tool(flaky)).data == 3
    assert (await run_tool(never)).outcome == "failed"


@promise("python:run-tool")
async def test_a_tool_calls_only_the_tools_that_it_names_and_writes_once():
    @tool(reads=["find"], writes=["send"])
    async def remind(context: ToolContext, how: str) -> object:
        found = await context.read("find", who="ana")
        if how == "undeclared":
            await context.read("send")
        await context.write("send", to=found)
        if how == "twice":
            await context.write("send", to=found)
        return how

    def doubles():
        return TestContext(tools={"find": lambda who: f"{who}@example.com", "send": lambda to: to})

    once = await run_tool(remind, {"how": "once"}, given := doubles())
    assert (once.outcome, given.calls) == ("succeeded", [("find", {"who": "ana"}), ("send", {"to": "ana@example.com"})])
    undeclared = await run_tool(remind, {"how": "undeclared"}, doubles())
    assert undeclared.error == "'send' is not among the `reads` of the tool; add it"
    twice = await run_tool(remind, {"how": "twice"}, doubles())
    assert (twice.outcome, twice.error) == ("succeeded", "a tool writes once; make two tools of it")
    with pytest.raises(CallRefused, match="no tools can be called here"):
        await ToolContext().read("find")


@promise("python:run-tool-writes")
async def test_once_a_tool_has_written_its_write_says_how_the_call_ended_whatever_the_function_makes_of_it():
    @tool(writes=["send"])
    async def remind(context: ToolContext, then: str) -> object:
        try:
            sent = await context.write("send")
        except Exception:
            return "all is well"
        if then == "error":
            raise ToolError("no receipt was found")
        return 1 // 0 if then == "break" else sent

    def breaks(error: Exception):
        def send() -> None:
            raise error

        return TestContext(tools={"send": send})

    sends = TestContext(tools={"send": lambda: {"id": 7}})
    for then in ("error", "break", "return"):
        ran = await run_tool(remind, {"then": then}, sends)
        assert (ran.outcome, ran.data) == ("succeeded", {"id": 7})
    found = [
        await run_tool(remind, {"then": "return"}, breaks(error))
        for error in (ToolError("refused"), ToolUnavailable("nobody is there"), OutcomeUnknown("lost"), OSError("cut"))
    ]
    assert [(ran.outcome, ran.data or ran.error) for ran in found] == [
        ("succeeded", "all is well"),
        ("failed", "nobody is there"),
        ("unknown", "lost"),
        ("unknown", "the write failed: OSError"),
    ]


@promise("python:run-tool")
async def test_answers_are_given_in_the_type_that_was_asked_for():
    @tool
    async def book(context: ToolContext) -> str:
        seats = await context.ask("How many?", int)
        return "!" * seats

    assert (await run_tool(book, {}, TestContext(answers=(3,)))).data == "!!!"
    assert (await run_tool(book, {}, TestContext(answers=("many",)))).error.startswith("the answer does not fit")
    assert (await run_tool(book)).question == "How many?"


@promise("python:options")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"safety": "harmless"}, "safety: 'harmless' is not a valid Safety; use read_only, write_safe"),
        ({"transactional": True}, "transactional: there is no undo"),
        ({"cache": 5}, "cache: only answers of read_only tools are kept"),
        ({"safety": "read_only", "cache": 0}, "cache: 0 is not a number of seconds"),
        ({"timeout": 0}, "timeout: 0 is not a number of seconds"),
        ({"retries": -1}, "retries: -1 is not a number from 0 to 10"),
        ({"retries": 1, "writes": ["send"]}, "retries: a tool that calls another one's write makes that call once"),
        ({"safety": "read_only", "undo": add}, "safety: a read_only tool has no effect to undo"),
        ({"safety": "read_only", "writes": ["send"]}, "writes: a read_only tool writes nothing"),
        ({"reads": "find"}, "reads: give a list of names"),
    ],
)
def test_options_that_do_not_fit_are_refused_where_they_stand(options, said):
    with pytest.raises(ToolboxInvalid) as caught:
        tool(**options)(add)
    assert said in str(caught.value)


@promise("python:options")
@pytest.mark.parametrize(
    ("marked", "said"),
    [(int, "@tool marks a function"), (lambda: (yield), "it yields; return one value"), (5, "@tool marks a function")],
)
def test_only_functions_that_return_are_tools(marked, said):
    with pytest.raises(ToolboxInvalid, match=said):
        tool("odd")(marked)


@promise("python:run-tool")
async def test_an_async_function_behind_a_plain_wrapper_is_awaited():
    async def late() -> int:
        return 5

    @tool
    def wrapped() -> int:
        return late()

    assert (await run_tool(wrapped)).data == 5
