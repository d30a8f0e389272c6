"""What the answer to a write means, by its declaration and by what it looks like."""

import json
import time
from pathlib import Path

import pytest

from tests.requirements import promise
from toolbox.configuration.meaning import judge, reports_error, why_failed
from toolbox.configuration.template import holds
from toolbox.providers.answer import Answer, answer_of, refused
from toolbox.providers.declaration import Check, Declaration

SHAPES = json.loads((Path(__file__).parent / "error_answers.json").read_text(encoding="utf-8"))
VERIFY = Check(tool="find", applied_if="{{ true }}")
GONE = Answer(success=True, data={"error": "File exists"})
MADE = Answer(success=True, data={"id": 1})


@promise("effects:doubtful-noticed")
@pytest.mark.parametrize("shape", SHAPES["errors"])
def test_an_answer_that_only_reports_an_error_is_noticed(shape):
    assert reports_error(SHAPES["errors"][shape])


@promise("effects:doubtful-noticed")
@pytest.mark.parametrize("shape", SHAPES["answers"])
def test_an_answer_that_is_none_is_taken_as_it_is(shape):
    assert not reports_error(SHAPES["answers"][shape])


@promise("effects:doubtful-noticed")
@pytest.mark.parametrize("structured", [{"result": False}, False])
@pytest.mark.parametrize("words", ["false", "False"])
def test_a_write_that_answers_only_that_it_is_false_is_doubtful(structured, words):
    content = [{"type": "text", "text": words}]
    for said in ({"structuredContent": structured, "content": content}, {"content": content}):
        judged = judge(answer_of(said), Declaration(), {"arguments": {}, "effect": {"id": "e"}})
        assert (judged.meaning, judged.why) == ("doubtful", "the answer reports an error")


def deep(levels):
    value = {"error": "no"}
    for _ in range(levels):
        value = {"result": value}
    return value


@promise("effects:doubtful-hostile")
@pytest.mark.parametrize("data", [deep(900), ["x"] * 100_000, "error " * 1_000_000, {"a" * 100_000: 1}, [[]], [[[]]]])
def test_a_hostile_answer_costs_little_and_raises_nothing(data):
    reports_error(data)


@promise("effects:declared")
@pytest.mark.parametrize(
    ("answer", "declared", "meaning"),
    [
        (MADE, {}, "applied"),
        (GONE, {}, "doubtful"),
        (refused("no"), {}, "failed"),
        (refused("no"), {"verify": VERIFY}, "doubtful"),
        (Answer(success=False, error="no", left_nothing=True), {"verify": VERIFY}, "failed"),
        (Answer(success=False, error="internal", may_have_acted=True), {}, "doubtful"),
        (GONE, {"failed_if": "{{ result.error is defined }}"}, "failed"),
        (MADE, {"failed_if": "{{ result.error is defined }}"}, "applied"),
        (GONE, {"failed_if": "{{ false }}"}, "applied"),
        (MADE, {"failed_if": "{{ result.error.code > 3 }}"}, "doubtful"),
        (MADE, {"succeeded_if": "{{ result.id is defined }}"}, "applied"),
        (GONE, {"succeeded_if": "{{ result.id is defined }}"}, "failed"),
        (GONE, {"succeeded_if": "{{ result.id > 0 }}"}, "doubtful"),
        (MADE, {"succeeded_if": "{{ false }}", "failed_if": "{{ false }}"}, "doubtful"),
        (MADE, {"succeeded_if": "{{ arguments.a == 1 and effect.id == 'e' }}"}, "applied"),
        (refused("it exists"), {"failed_if": "{{ 'exists' in error }}", "verify": VERIFY}, "failed"),
        (refused("no"), {"succeeded_if": "{{ true }}"}, "failed"),
    ],
)
def test_a_declaration_decides_before_the_looks_of_an_answer(answer, declared, meaning):
    judged = judge(answer, Declaration(**declared), {"arguments": {"a": 1}, "effect": {"id": "e"}})

    assert judged.meaning == meaning


@promise("demo:failed-read")
@pytest.mark.parametrize(
    ("data", "declared", "why"),
    [
        ({"successful": False, "error": "not found", "data": {}}, {}, "not found"),
        ({"ok": False, "error": "channel_not_found"}, {}, "channel_not_found"),
        ({"error": "no"}, {"succeeded_if": "{{ result.error is not defined }}"}, "succeeded_if does not say"),
        ({"state": "gone"}, {"failed_if": "{{ result.state == 'gone' }}"}, "failed_if says that it failed"),
        # What a read finds may be the error of something else.
        ({"id": 5, "status": "failed", "error": "no stock"}, {}, None),
        ({"ok": False, "error": None}, {}, None),
        ({"successful": False, "error": "x"}, {"failed_if": "{{ false }}"}, None),
        ({"items": []}, {"succeeded_if": "{{ result.nothing.there }}"}, None),
        ("Error: no such file", {}, None),
        (None, {}, None),
    ],
)
def test_a_read_failed_where_it_says_so_itself_or_where_that_is_declared(data, declared, why):
    told = why_failed(Answer(success=True, data=data), Declaration(**declared), {"arguments": {}, "effect": {"id": ""}})
    assert (told or "").startswith(why) if why else told is None


LOST = [
    "upstream tool failed: timeout after 10s",
    "MCP error -32001: Request timed out",
    "Timed out while waiting for response to ClientRequest. Waited 5.0 seconds.",
    "Error executing tool send: timeout",
    "MCP error -32000: Connection closed",
    "The connection to the server was lost",
    "Remote end closed connection without response",
    "read ECONNRESET",
    "socket hang up",
    "context deadline exceeded",
    'Post "http://crm/mcp": EOF',
    "upstream connect error or disconnect/reset before headers. reset reason: connection termination",
    "Request failed with status code 504",
    "Error POSTing to endpoint (HTTP 524): <html>",
    "502 Bad Gateway",
    "Failed to parse JSON response",
    "Did not observe any item or terminal signal within 20000ms in 'map'",
    "Request timed out; reconnect failed: connect ECONNREFUSED 127.0.0.1:80",
    'failed to resolve review thread: Post "https://api.example.com/graphql": context deadline exceeded',
    "Unable to resolve the thread: socket hang up",
    "failed to resolve name of the author: request timed out",
    "Cannot connect account: request timed out",
    "timed out while connecting accounts",
    "Failed to connect to upstream: read ECONNRESET",
    "504 Gateway Time-out",
    "504 Gateway Timeout: cannot get an answer from upstream",
    "upstream_timeout",
    "Response timeout - required service is slow",
    "<html><head><title>504 Gateway Time-out</title></head></html>",
    "The operation was aborted due to timeout",
    "page.click: Timeout 30000ms exceeded.",
    "timeout of 30000ms exceeded",
    "Request failed: Request Timeout",
    "408 Request Timeout",
    "upstream request timeout",
    "Tool execution timeout",
    "Failed to fetch: 504",
    "httpx.ReadTimeout",
    "UND_ERR_HEADERS_TIMEOUT",
    "Traceback (most recent call last):\n" + "  File\n" * 5000 + "httpx.ReadTimeout",
    "Traceback (most recent call last):\n" + "  File\n" * 5000 + "Output validation error: 5 is not of type 'string'",
]
"""What a gateway says that has lost the answer of the server behind it."""
NOT_SENT = [
    "connect ECONNREFUSED 127.0.0.1:80",
    "connection refused",
    "Failed to connect to upstream: request timed out after 10s",
    "could not resolve host: crm.example.com",
    "connect ETIMEDOUT 192.0.2.1:443",
    "httpx.ConnectTimeout",
    "Connection to crm.example.com timed out. (connect timeout=5)",
    'Post "http://crm/mcp": dial tcp 192.0.2.1:80: i/o timeout',
    "Input validation error: Invalid arguments for tool send: timeout: Required",
    "unknown argument: timeout",
    "Failed to connect to upstream (request timed out)",
    "timed out while connecting to crm.example.com",
    "failed to resolve host crm: request timed out",
    "UND_ERR_CONNECT_TIMEOUT",
    "Input validation error: 'read timeout' is a required property",
    "MCP error -32602: Input validation error: Invalid arguments for tool send: expected 'timed out' | 'broken pipe'",
    "Error executing tool send: 1 validation error for sendArguments state Input should be 'connection closed'",
    "Error calling tool 'send': 1 validation error for call[send] state Input should be 'connection closed'",
    "path: ['socket_timeout']",
    "readTimeout: Required",
    "READ_TIMEOUT must be set",
    "request timeout must be at most 600",
    "Expected number, received 504",
    "code 502 is not valid",
    "Request failed with status code 404",
    "the mailbox is full",
]
"""What it says where nothing was sent, and what else says nothing of a lost answer."""


@promise("effects:lost-behind")
@pytest.mark.parametrize(
    ("said", "meaning"), [*((said, "doubtful") for said in LOST), *((said, "failed") for said in NOT_SENT)]
)
def test_an_error_in_the_words_of_a_lost_answer_is_doubtful(said, meaning):
    answer = answer_of({"isError": True, "content": [{"type": "text", "text": said}]})
    assert judge(answer, Declaration(), {"arguments": {}, "effect": {"id": "e"}}).meaning == meaning


@promise("effects:doubtful-hostile")
@pytest.mark.parametrize("said", ["fail", "timeout ", "failed to connect ", "connection to ", "error:", "a", "1", "ly"])
def test_a_hostile_refusal_costs_little(said):
    for before in ("", "timeout of ", "connection "):
        text, began = before + said * 1_000_000, time.thread_time()
        assert not answer_of({"isError": True, "content": [{"type": "text", "text": text}]}).may_have_acted
        assert time.thread_time() - began < 0.2


def text(said):
    return answer_of({"content": [{"type": "text", "text": said}]})


@promise("effects:scalar-text")
@pytest.mark.parametrize(
    ("said", "condition", "true"),
    [
        ("null", "{{ result is not none }}", False),
        ("true", "{{ result == true }}", True),
        ("false", "{{ not result }}", True),
        ("3", "{{ result > 0 }}", True),
        ("0", "{{ result > 0 }}", False),
        (" 0.5 ", "{{ result < 1 }}", True),
        ('"done"', "{{ result == 'done' }}", True),
        ("3.10", "{{ result == '3.10' }}", True),
        ("007", "{{ result == '007' }}", True),
        ("12e4567", "{{ result == '12e4567' }}", True),
        ("1e400", "{{ result == '1e400' }}", True),
    ],
)
def test_an_operators_condition_sees_the_value_that_a_text_stands_for(said, condition, true):
    answer = text(said)
    assert answer.data == said
    assert holds(condition, {"result": answer.meant}) is true
    judged = judge(answer, Declaration(succeeded_if=condition), {"arguments": {}, "effect": {"id": "e"}})
    assert judged.meaning == ("applied" if true else "failed")
    assert (why_failed(answer, Declaration(succeeded_if=condition), {}) is None) is true


@promise("effects:scalar-text")
def test_a_text_of_a_python_tool_or_in_a_value_stays_text_for_a_condition():
    assert Answer(success=True, data="null").meant == "null"
    assert answer_of({"structuredContent": "null"}).meant == "null"
