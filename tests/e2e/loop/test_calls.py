"""Calls as models and gateways really write them: what one can only mean is made once; the rest is asked for again."""

import asyncio
import json

import pytest
import pytest_asyncio

from activities.model.message import NoObject, arguments_in, named
from activities.model.output import NamedTwice
from tests.e2e.labelled import DONE, Labelled, raw
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import assert_no_task_failure, engine
from tests.requirements import promise
from toolbox.meant import as_meant

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "count": {"type": "integer"},
        "loud": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "place": {"$ref": "#/$defs/Place"},
    },
    "$defs": {"Place": {"type": "object", "properties": {"page": {"type": "number"}}}},
}
ONE = {"text": "3.10"}
TYPED = {"text": "7", "tags": ["a"], "count": 5, "loud": True, "place": {"page": 1.5}}


def once(arguments, name="desk__add"):
    """A message with one call, and what stands as its arguments."""
    function = {"name": name} if arguments is ... else {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}


NOTHING, PLAIN = {}, json.dumps(ONE)
# By label: the message, and the arguments with which the tool is to be called.
MEANT = {
    # vllm-project/vllm#25729 and #54964: Granite writes the arguments as a text of JSON
    "doubled": (once(json.dumps(PLAIN)), ONE),
    # aichat#1217, open-webui#23778, NousResearch/hermes-agent#83937, langchain-ai/langchain#34190: no arguments
    "blank": (once(" \n"), NOTHING),
    "null": (once("null"), NOTHING),
    "missing": (once(...), NOTHING),
    "emptylist": (once("[]"), NOTHING),
    "object": (once(ONE), ONE),
    # vllm-project/vllm#32587, ml-explore/mlx-lm#875: marks of the template behind the name and the arguments
    "channel": (once(PLAIN, "desk__add<|channel|>commentary"), ONE),
    "marks": (once(PLAIN + "<|im_end|>"), ONE),
    "fenced": (once(f"```json\n{PLAIN}\n```"), ONE),
    "broken_line": (once('{"text": "a\nb"}'), {"text": "a\nb"}),
    # sgl-project/sglang#21377, exo-explore/exo#2281: Kimi's own form of a name
    "prefixed": (once(PLAIN, "functions.desk__add:0"), ONE),
    "spaced": (once(PLAIN, " desk__add\n"), ONE),
    # openclaw/openclaw#96916, QwenLM/qwen-code#4966, vllm-project/vllm#46924: values as texts of JSON
    "texts": (
        once(json.dumps({"text": "7", "tags": '["a"]', "count": "5", "loud": "True", "place": '{"page": "1.5"}'})),
        TYPED,
    ),
    # lmstudio-ai/lmstudio-bug-tracker#1626: a text that looks like a number
    "number": (once('{"text": 12}'), {"text": "12"}),
}
SCRIPTS = Labelled(**{label: [raw(message), DONE] for label, (message, _) in MEANT.items()})


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    desk = ScriptedServer(folder / "desk.json", [reads("add", SCHEMA)], {"add": {"data": {"added": True}}})
    async with engine(temporal, folder, SCRIPTS, toolbox=toolbox_of_servers(folder, desk=desk)) as made:
        yield made, desk


@promise("models:calls-as-meant")
@pytest.mark.thorough
async def test_a_call_that_is_written_a_little_off_is_made_once_as_it_is_meant(opened):
    made, desk = opened
    for label, (_, expected) in MEANT.items():
        before = len(desk.calls("add"))
        handle = await made.start({"text": f"<{label}> add a note"})
        result = await asyncio.wait_for(handle.result(), 150)
        assert_no_task_failure(await handle.fetch_history())
        sent = [call["arguments"] for call in desk.calls("add")[before:]]
        assert (sent, result["outcome"], SCRIPTS.asked[label]) == ([expected], "completed", 2), label


@promise("models:calls-as-meant")
@pytest.mark.parametrize("raw", ['{"a": 1}}', '{"a": 1}{"a": 2}', "{'a': 1}", "no", "[1]", "5", '"x"', '{"a": NaN}'])
def test_what_may_mean_several_things_is_no_arguments(raw):
    with pytest.raises(ValueError, match=r".") as caught:
        arguments_in(raw)
    assert isinstance(caught.value, NoObject) == (raw in {"[1]", "5"})
    with pytest.raises(NamedTwice):
        arguments_in('{"a": 1, "a": 2}')


@promise("models:calls-as-meant")
@pytest.mark.parametrize("name", ["desk__ad", "desk__adds", "Desk__Add", "add", "functions.functions.desk__add", ""])
def test_a_name_that_is_not_that_of_a_function_stays_as_it_is(name):
    assert named(name, {"desk__add", "desk__remove"}.__contains__) == name
    # What is the name of a function as it stands is that function.
    assert named("tools.add", {"tools.add", "add"}.__contains__) == "tools.add"


@promise("models:calls-as-meant")
@pytest.mark.parametrize(
    "given",
    [
        {"text": "5"},
        {"text": 3.1},
        {"text": True},
        {"other": 5},
        {"text": '["a"]'},
        {"other": "5"},
        {"count": "5.5"},
        {"count": "five"},
        {"loud": "yes"},
        {"tags": '{"a": 1}'},
        {"place": '{"page": 1, "page": 2}'},
        {"place": '{"page": NaN}'},
    ],
)
def test_a_value_that_does_not_stand_for_what_is_wanted_stays_as_it_is(given):
    assert as_meant(given, SCHEMA) == given
