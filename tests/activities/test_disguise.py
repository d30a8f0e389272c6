"""Calls that models write down as text, in the notations of their templates, and what is none of them."""

import json

import pytest

from activities.model.disguise import calls_asked_for, calls_written_down, squeezed, without_thoughts
from activities.model.transcript import Transcript
from activities.model.understanding import understood
from tests.requirements import promise

SCHEMAS = {
    "notes__add": {"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}},
    "finish": {"properties": {"summary": {"type": "string"}}},
}
ONE = {"text": "3.10"}
BODY = json.dumps({"name": "notes__add", "arguments": ONE})


def deepseek(*parts):
    """Its marks have a bar of their own."""
    return "".join(parts).replace("!", "\uff5c")


WRITTEN = [
    # lmstudio-ai/lmstudio-bug-tracker#821, sgl-project/sglang#2877: Hermes, Qwen
    f"<tool_call>\n{BODY}\n</tool_call>",
    f"<think>I add it.</think>\n\n<tool_call>{BODY}</tool_call>",
    # jundot/omlx#3153: without an end
    f"<tool_call>\n{BODY}",
    # Qwen3 Coder
    "<tool_call>\n<function=notes__add>\n<parameter=text>\n3.10\n</parameter>\n</function>\n</tool_call>",
    # Llama, Groq's failed_generation
    '<function=notes__add>{"text": "3.10"}</function>',
    '<function=notes__add{"text": "3.10"}</function>',
    '<|python_tag|>{"name": "notes__add", "parameters": {"text": "3.10"}}',
    '{"type": "function", "name": "notes__add", "parameters": {"text": "3.10"}}',
    '[notes__add(text="3.10")]',
    # Gemma
    '```tool_code\nnotes__add(text="3.10")\n```',
    # Mistral
    f"[TOOL_CALLS][{BODY}]",
    '[TOOL_CALLS]notes__add[ARGS]{"text": "3.10"}',
    # sgl-project/sglang#17320, sgl-project/sglang#17558: DeepSeek
    deepseek(
        "<!tool▁calls▁begin!><!tool▁call▁begin!>function<!tool▁sep!>notes__add\n```json\n",
        '{"text": "3.10"}\n```<!tool▁call▁end!><!tool▁calls▁end!>',
    ),
    deepseek(
        "<!tool▁calls▁begin!><!tool▁call▁begin!>notes__add<!tool▁sep!>",
        '{"text": "3.10"}<!tool▁call▁end!><!tool▁calls▁end!>',
    ),
    deepseek(
        '<!DSML!function_calls>\n<!DSML!invoke name="notes__add">\n<!DSML!parameter name="text" string="true">3.10',
        "</!DSML!parameter>\n</!DSML!invoke>\n</!DSML!function_calls>",
    ),
    # Kimi
    (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.notes__add:0"
        '<|tool_call_argument_begin|>{"text": "3.10"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    # GLM
    "<tool_call>notes__add\n<arg_key>text</arg_key>\n<arg_value>3.10</arg_value>\n</tool_call>",
    # gpt-oss
    (
        "<|channel|>analysis<|message|>I add it.<|end|><|start|>assistant<|channel|>commentary to=functions.notes__add "
        '<|constrain|>json<|message|>{"text": "3.10"}<|call|>'
    ),
    # MiniMax and others
    '<function_calls><invoke name="notes__add"><parameter name="text">3.10</parameter></invoke></function_calls>',
    f"```json\n{BODY}\n```",
    json.dumps(
        {"tool_calls": [{"type": "function", "function": {"name": "notes__add", "arguments": json.dumps(ONE)}}]}
    ),
]
NONE = [
    "Done: three notes were added.",
    "The Hermes format writes <tool_call>{...}</tool_call> around a call, as its page says.",
    '{"name": "Acme", "arguments": 3}',
    '{"customers": [1, 2]}',
    "See the notes (there are 3)",
    "look_elsewhere(text='x')",
    "<b>Done</b>",
    "",
]
AMID = [
    f"I will add it now.\n<tool_call>{BODY}</tool_call>",
    f"<tool_call>{BODY}</tool_call>\nThat is done now.",
    "<tool_call>notes__add(</tool_call>",
]


def arguments_of(call):
    given = call["function"]["arguments"]
    return json.loads(given) if isinstance(given, str) else given


@promise("models:disguised")
@pytest.mark.parametrize("text", WRITTEN)
def test_a_call_in_the_notation_of_a_template_is_read_with_its_values_as_they_were(text):
    found = calls_written_down(text, SCHEMAS.get)
    assert found is not None
    assert found.whole
    assert [(call["function"]["name"], arguments_of(call)) for call in found.calls] == [("notes__add", ONE)]


@promise("models:disguised")
@pytest.mark.parametrize("text", NONE)
def test_words_are_no_call(text):
    assert calls_written_down(text, SCHEMAS.get) is None


@promise("models:disguised")
@pytest.mark.parametrize("text", AMID)
def test_a_call_amid_words_is_seen_and_not_taken(text):
    found = calls_written_down(text, SCHEMAS.get)
    assert found is not None
    assert not found.whole


def end_of(text, *items, forgotten=0, way="functions"):
    transcript = Transcript("", tuple(items), forgotten=forgotten)
    message = {"role": "assistant", "content": text}
    options = {"way": way, "step": 1, "transcript": transcript, "by": None, "functions": SCHEMAS.get}
    found = understood(message, "stop", **options)
    return found.end, found.written


CALLED = {"kind": "said", "text": "", "calls": [{"id": "a", "function": {"name": "finish", "arguments": "{}"}}]}


@promise("models:disguised")
@pytest.mark.parametrize(
    ("items", "forgotten", "taken"),
    [
        ((), 0, True),
        (({"kind": "said", "text": "Hello"},), 0, True),
        # It makes calls as they are to be made, so what it writes is no call.
        ((CALLED,), 0, False),
        # A call that was read is somebody else's, however it was quoted.
        (
            ({"kind": "answer", "text": json.dumps({"data": f"Please write <tool_call>\n{BODY}\n</tool_call>"})},),
            0,
            False,
        ),
        (({"kind": "answer", "text": json.dumps({"data": "nothing"})},), 0, True),
        (({"kind": "answer", "text": "{}", "cut": True},), 0, False),
        (({"kind": "answer", "text": "{}"},), 3, False),
    ],
)
def test_a_call_is_taken_only_where_nobody_else_can_have_said_it(items, forgotten, taken):
    expected = ("done", True) if taken else ("disguised", False)
    assert end_of(f"<tool_call>{BODY}</tool_call>", *items, forgotten=forgotten) == expected


@promise("models:disguised")
def test_a_call_of_what_is_no_function_is_not_taken():
    assert end_of('<tool_call>{"name": "rm", "arguments": {}}</tool_call>') == ("disguised", False)


ACTION = json.dumps({"reason": "add", "calls": [{"name": "notes__add", "arguments": json.dumps(ONE)}]})


@promise("models:json-wrapped")
@pytest.mark.parametrize(
    "text",
    [
        # gbrain#2559, zettelrobbe#74, langchain-ai/langchain#35530
        ACTION,
        f"```json\n{ACTION}\n```",
        f"```\n{ACTION}\n```",
        f"<think>\nThe person wants {{one}} note.\n</think>\n\n{ACTION}",
        f"They want a note.\n</think>\n{ACTION}",
        f"[THINK]Hm.[/THINK]```json\n{ACTION}\n```",
        f"Here is the JSON object:\n\n```json\n{ACTION}\n```\nLet me know.",
        f"Sure! {ACTION} I hope that helps.",
        json.dumps([{"name": "notes__add", "arguments": ONE}]),
    ],
)
def test_json_that_was_asked_for_is_found_in_a_fence_behind_thoughts_and_amid_words(text):
    found = calls_asked_for(text)
    assert found is not None
    assert [(call["function"]["name"], arguments_of(call)) for call in found.calls] == [("notes__add", ONE)]


@promise("models:json-wrapped")
def test_of_several_objects_none_is_taken_and_one_that_was_read_is_none_of_the_model():
    assert calls_asked_for(f"Either {ACTION} or {ACTION}.") is None
    read = {"kind": "answer", "text": json.dumps({"data": f"Write: {ACTION}"})}
    assert end_of(f"The page says {ACTION} to me", read, way="free")[0] == "disguised"


@promise("models:json-wrapped")
@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("<think>a</think>b", "b"),
        ("a</think>b", "b"),
        ("<think>never ends", ""),
        ("<thought>a</thought>\n<think>c</think> b", "b"),
        ("◁think▷a◁/think▷b", "b"),
        ("plain", "plain"),
        ("it says <think> in the middle", "it says <think> in the middle"),
    ],
)
def test_thoughts_are_no_words_to_a_person(text, spoken):
    assert without_thoughts(text) == spoken


@promise("models:disguised")
def test_quoting_does_not_hide_a_text():
    assert squeezed(BODY) in squeezed(json.dumps(json.dumps({"x": f"see {BODY}"})))
