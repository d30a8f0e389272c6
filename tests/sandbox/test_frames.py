"""Frames from a jail: whatever bytes come, the host gets calls of the declared set, an end, or one clear refusal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.limits import Limits
from sandbox.programs.crash import ProgramCrashed
from sandbox.programs.frames import ProgramCall, ProgramEnd, read_frame, strict_json
from tests.requirements import promise

TOOLS = frozenset({"mail.send", "mail.find"})


def read(frame: bytes, *, first_call: int = 0):
    return read_frame(frame, tools=TOOLS, first_call=first_call, limits=Limits())


@promise("sandbox:frames")
def test_calls_are_read_with_their_numbers():
    frame = b'{"calls":[{"i":3,"tool":"mail.send","args":{"a":1}},{"i":4,"tool":"engine.result","args":{"ref":"x"}}]}'
    assert read(frame, first_call=3) == (
        ProgramCall(3, "mail.send", {"a": 1}),
        ProgramCall(4, "engine.result", {"ref": "x"}),
    )


@promise("sandbox:frames")
def test_an_end_is_a_result_or_an_error_in_one_line():
    assert read(b'{"done":{"ok":[null,1]}}') == ProgramEnd(result=[None, 1])
    assert read(b'{"done":{"ok":null}}') == ProgramEnd()
    error = b'{"done":{"error":{"type":"E","message":"a\\n b","line":7}}}'
    assert read(error) == ProgramEnd(error={"type": "E", "message": "a b (line 7)"})
    assert read(error.replace(b"7", b"null")) == ProgramEnd(error={"type": "E", "message": "a b"})


@promise("sandbox:frames")
def test_a_long_error_is_cut():
    frame = json.dumps({"done": {"error": {"type": "E" * 999, "message": "m" * 9999, "line": None}}}).encode()
    done = read(frame)
    assert isinstance(done, ProgramEnd)
    assert done.error is not None
    assert len(done.error["type"]) == 100
    assert len(done.error["message"]) == 1000


CALL = '{"i":0,"tool":"mail.send","args":{}}'


@promise("sandbox:frames-refused")
@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"null",
        b"[]",
        b"1",
        b'"calls"',
        b"{}",
        b'{"ready":1}',
        b'{"calls":[]}',
        b'{"calls":{}}',
        b'{"calls":null}',
        b'{"done":{}}',
        b'{"done":null}',
        b'{"done":{"ok":1,"error":{"type":"E","message":"","line":null}}}',
        b'{"done":{"ok":1},"calls":[]}',
        b'{"done":{"error":"E"}}',
        b'{"done":{"error":{"type":"E","message":1,"line":null}}}',
        b'{"done":{"error":{"type":"E","message":"m","line":"1"}}}',
        b'{"done":{"error":{"type":"E","message":"m"}}}',
        f'{{"calls":[{CALL}],"more":1}}'.encode(),
        f'{{"calls":[{CALL}]}} x'.encode(),
        f'{{"calls":[{CALL},{CALL}]}}'.encode(),
        f'{{"calls":[{CALL}'.encode(),
        CALL.encode(),
        *(
            f'{{"calls":[{call}]}}'.encode()
            for call in (
                "1",
                "[]",
                "null",
                "{}",
                '{"i":1,"tool":"mail.send","args":{}}',
                '{"i":-1,"tool":"mail.send","args":{}}',
                '{"i":0.0,"tool":"mail.send","args":{}}',
                '{"i":false,"tool":"mail.send","args":{}}',
                '{"i":"0","tool":"mail.send","args":{}}',
                '{"i":0,"tool":null,"args":{}}',
                '{"i":0,"tool":["mail.send"],"args":{}}',
                '{"i":0,"tool":"mail.send","args":[]}',
                '{"i":0,"tool":"mail.send","args":null}',
                '{"i":0,"tool":"mail.send"}',
                '{"i":0,"tool":"mail.send","args":{},"h":1}',
                '{"i":0,"tool":"engine.result","args":{}}',
                '{"i":0,"tool":"engine.result","args":{"ref":1}}',
                '{"i":0,"tool":"engine.result","args":{"ref":"a","more":1}}',
                '{"i":0,"tool":"mail.send","args":{"a":NaN}}',
                '{"i":0,"tool":"mail.send","args":{"a":-Infinity}}',
                '{"i":0,"tool":"mail.send","args":{"a":1e999}}',
                '{"i":0,"tool":"mail.send","args":{"a":-1E+400}}',
                '{"i":0,"tool":"mail.send","args":{"a":"\\ud800"}}',
                '{"i":0,"tool":"mail.send","args":{"\\udfff":1}}',
                f'{{"i":0,"tool":"mail.send","args":{{"a":{"9" * 400}.0}}}}',
                f'{{"i":0,"tool":"mail.send","args":{{"a":{"9" * 300}e99}}}}',
                f'{{"i":0,"tool":"mail.send","args":{{"a":-{"9" * 210}.5E+99}}}}',
            )
        ),
        b'{"calls":[{"i":0,"tool":"mail.send","args":{"a":"\xff"}}]}',
        b'{"calls":[{"i":0,"tool":"mail.send","args":{"a":"\xed\xa0\x80"}}]}',
        f'{{"calls":[{CALL}]}}'.encode("utf-16"),
        f'\ufeff{{"calls":[{CALL}]}}'.encode(),
    ],
)
def test_a_frame_that_no_honest_runner_sends_is_refused(frame):
    with pytest.raises(ProgramCrashed) as refused:
        read(frame)
    assert refused.value.kind == "ProtocolBroken"
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 300


@promise("sandbox:frames-refused")
@pytest.mark.parametrize("digits", [301, 5000])
def test_a_whole_number_that_others_could_not_read_is_refused_by_name(digits):
    with pytest.raises(ProgramCrashed) as refused:
        read(f'{{"done":{{"ok":{"9" * digits}}}}}'.encode())
    assert refused.value.kind == "NumberLimit"
    assert f"{digits} digits" in refused.value.message
    assert "pass it as text" in refused.value.message


@promise("sandbox:frames-refused")
@pytest.mark.parametrize("depth", [100, 200, 90_000])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_what_is_nested_too_deeply_is_refused_by_name(depth, opening, closing):
    with pytest.raises(ProgramCrashed) as refused:
        read(f'{{"done":{{"ok":{opening * depth}1{closing * depth}}}}}'.encode())
    assert refused.value.kind == "DepthLimit"
    assert refused.value.message.startswith("depth: ")


@promise("sandbox:frames-refused")
def test_a_tool_outside_the_declared_set_is_refused_by_name():
    with pytest.raises(ProgramCrashed) as refused:
        read(b'{"calls":[{"i":0,"tool":"bank.pay","args":{}}]}')
    assert (refused.value.kind, refused.value.message) == (
        "ToolNotFound",
        "tools: 'bank.pay' is not one of the program's tools",
    )


@promise("sandbox:frames-refused")
def test_too_many_calls_at_once_are_refused_by_the_name_of_the_cap():
    calls = [{"i": i, "tool": "mail.send", "args": {}} for i in range(129)]
    with pytest.raises(ProgramCrashed) as refused:
        read(json.dumps({"calls": calls}).encode())
    assert refused.value.kind == "CallLimit"
    assert "calls per batch: 129 calls at once, at most 128" in refused.value.message
    assert len(read(json.dumps({"calls": calls[:128]}).encode())) == 128


@promise("sandbox:frames")
def test_numbers_and_nesting_up_to_the_bound_are_taken():
    assert strict_json(b"9" * 300) == int("9" * 300)
    assert strict_json(b"1e308") == 1e308
    assert strict_json(b"9" * 199 + b"e99") == float("9" * 199 + "e99")
    assert strict_json(b"0." + b"3" * 900) == float("0." + "3" * 900)
    assert strict_json(b'"' + b"9" * 5000 + b'"') == "9" * 5000
    assert strict_json(b"[" * 99 + b"1" + b"]" * 99)
    assert strict_json(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert strict_json(b'["' + b"[" * 500 + b'"]') == ["[" * 500]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@promise("sandbox:frames")
@pytest.mark.thorough
@given(JSON)
def test_every_plain_json_value_comes_through_as_it_is(value):
    text = json.dumps({"done": {"ok": value}})
    assert read(text.encode()) == ProgramEnd(result=value)


@promise("sandbox:frames")
@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_calls_of_the_declared_set_an_end_or_a_refusal(frame):
    try:
        told = read(frame)
    except ProgramCrashed:
        return
    assert isinstance(told, ProgramEnd) or {call.tool for call in told} <= TOOLS | {"engine.result"}


CALLS = st.fixed_dictionaries(
    {
        "i": st.integers(-1, 3) | st.none() | st.booleans(),
        "tool": st.sampled_from(["mail.send", "x", "", 1]),
        "args": JSON,
    }
)


@promise("sandbox:frames")
@given(st.lists(CALLS, max_size=4), st.dictionaries(st.text(max_size=3), JSON, max_size=1))
def test_near_misses_are_read_only_when_every_call_is_in_order_and_known(calls, more):
    frame = json.dumps({"calls": calls, **more}).encode()
    good = (
        bool(calls)
        and not more
        and all(
            type(call["i"]) is int
            and call["i"] == place
            and call["tool"] == "mail.send"
            and isinstance(call["args"], dict)
            for place, call in enumerate(calls)
        )
    )
    if good:
        assert [call.i for call in read(frame)] == list(range(len(calls)))
    else:
        with pytest.raises(ProgramCrashed):
            read(frame)
