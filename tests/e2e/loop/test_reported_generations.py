"""What endpoints say where their model wrote so badly that they could not read it, as public reports tell it.

Each row is refused with the words, the status and the form of one report: after a first call, twice. A run asks again,
learns nothing of how the endpoint is spoken to, and nobody is asked.
"""

import json

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import DONE, Labelled
from tests.e2e.loop.taking import answers, call, ran, refused, says
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import PRICES, engine
from tests.requirements import promise
from tests.sizes import spread


def as_json(status=400, **body):
    return Reply(status=status, body=json.dumps(body).encode(), bill=False)


def vllm(message, status=400, code=400, kind="BadRequestError"):
    return as_json(status, error={"message": message, "type": kind, "param": None, "code": code})


REPORTED = {
    # ggml-org/llama.cpp#23838, agentscope-ai/QwenPaw#3560
    "lfm": vllm(
        "Failed to parse input at pos 395: <|tool_call_start|>[web_search_exa(query='temperature in Mexico City', "
        "numResults=5)]<|tool_call_end|>",
        500,
        500,
        "server_error",
    ),
    # HunorLaczko/ha-groq-cloud-api#20, laravel/ai#239, OpenHands/OpenHands#10048
    "groqschema": refused(
        "tool call validation failed: parameters for tool HassTurnOff did not match schema: errors: [`/domain`: "
        "expected array, but got string]",
        "tool_use_failed",
        type="invalid_request_error",
        param="",
    ),
    # anomalyco/opencode#1197: the same behind a gateway that keeps the words alone
    "groqwords": as_json(
        message="tool call validation failed: parameters for tool bash did not match schema: errors: [missing "
        "properties: 'description']"
    ),
    # vybestack/llxprt-code#221, Cerebras/cerebras-cloud-sdk-node#4
    "cerebras": refused(
        "Failed to generate tool_calls. Exception: Failed to generate tool call. Tool is not present in the tools list."
    ),
    # strands-agents/harness-sdk#649, langchain-ai/langchain-aws#567: a status of its own
    "nova": as_json(
        424,
        message="Model produced invalid sequence as part of ToolUse. Please refer to the model tool use "
        "troubleshooting guide.",
    ),
    # cohere-ai/notebooks#237
    "cohere": as_json(422, data=None, message="No valid tool call or response generated"),
    # vllm-project/vllm#18874
    "vllmjson": as_json(
        object="error",
        message="1 validation error for list[function-wrap[__log_extra_fields__()]]\n  Invalid JSON: EOF while parsing "
        "a string at line 1 column 3 [type=json_invalid, input_value='[{\"', input_type=str]",
        type="BadRequestError",
        param=None,
        code=400,
    ),
    # sgl-project/sglang#4300: the words stand where others have a kind
    "sglang": as_json(
        object="error", message="400", type="Failed to parse fc related info to json format!", param=None, code=400
    ),
    # sgl-project/sglang#3277
    "extradata": as_json(object="error", message="Extra data: line 1 column 41 (char 40)", code=400),
    # vm0-ai/vm0#30943
    "unterminated": vllm("Unterminated string starting at: line 1 column 9 (char 8)"),
    # vllm-project/vllm#51977, openai/harmony#38
    "harmony": vllm('unexpected tokens remaining in message header: Some("to=functions.web-browsing")', 500, 500),
    # vllm-project/vllm#50690 and #46464, openai/harmony#60
    "starttoken": vllm("Unexpected token 200002 while expecting start token 200006", 500, 500, "InternalServerError"),
    # tenstorrent/vllm#386: an error of status 400 in HTTP 200
    "harmonyrole": vllm("Unknown role: <|start|>assistant", 200),
    "harmonychannel": vllm("channel marker present but no channel value found in header", 200),
    # ollama/ollama#12380 and #17276
    "ollamaxml": as_json(200, error="XML syntax error on line 7: element <parameter> closed by </function>"),
    # continuedev/continue#10896
    "ollamaelement": as_json(500, error="expected element type <function> but have <parameter>"),
    # ollama/ollama#17647: what the reader of calls says, without a word of what it read
    "ollamajson": as_json(500, error="invalid character ']' after object key:value pair"),
    # lidge-jun/opencodex#1473: a gateway that reads answers more strictly than it should
    "opencodex": as_json(502, error={"message": "upstream response contained invalid tool calls"}),
    # lbjlaq/Antigravity-Manager#1559, googleapis/python-genai#1120: an answer whose end says it
    "gemini": as_json(
        200,
        choices=[
            {
                "index": 0,
                "message": {"role": "assistant", "content": ""},
                "finish_reason": "MALFORMED_FUNCTION_CALL",
            }
        ],
        usage={"prompt_tokens": 419, "completion_tokens": 0, "total_tokens": 419},
    ),
}


def is_object(text):
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def replaying(conversation):
    """Refuse any history with a call whose arguments are no JSON object, as each later request would hold it.

    justrach/codegraff#752, local-inference-lab/vllm#684, am17an/llama.cpp#43, unslothai/unsloth#9338
    """
    for place, message in enumerate(conversation.body["messages"]):
        for at, made in enumerate(message.get("tool_calls", ())):
            if not is_object(made["function"]["arguments"]):
                where = f"messages.{place}.tool_calls.{at}.function.arguments"
                return refused(f"Invalid request: {where}: arguments must be a valid JSON object string")
    if not answers(conversation.body):
        made = call("desk__look", "c1")
        made["function"]["arguments"] = '{"value": '
        return says(None, made)
    return DONE


LOOK = says(None, call("desk__look", "c1"))
SCRIPTS = Labelled(**{label: [LOOK, reply, reply, DONE] for label, reply in REPORTED.items()}, replaying=replaying)
MODELS = {f"{label}-model": PRICES["scripted"] for label in SCRIPTS.scripts}


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("generations")
    desk = ScriptedServer(folder / "desk.json", [reads("look")], {"look": {"data": {"seen": True}}})
    toolbox = toolbox_of_servers(folder, desk=desk)
    async with engine(temporal, folder, SCRIPTS, toolbox=toolbox, prices=PRICES | MODELS) as made:
        yield made


@promise("models:bad-generation")
@pytest.mark.parametrize("label", spread(list(REPORTED), 3))
async def test_what_a_model_wrote_too_badly_to_be_read_is_asked_for_again_in_whatever_words_that_is_told(opened, label):
    result = await ran(opened, label)
    assert (result["outcome"], result["final_summary"]) == ("completed", "done"), result["error"]
    # Nothing was sent in another form, or as if the endpoint were away.
    assert SCRIPTS.asked[label] == 4
    assert "could not be read as a call" in SCRIPTS.heard[label]
    assert not [event for event in result["events"] if event["name"] in {"model.failed", "model.retried"}]
    assert all("tools" in body for body in opened.model.requests if body["model"] == f"{label}-model")


@promise("models:bad-generation")
async def test_a_call_that_could_not_be_read_stands_in_no_later_request_as_it_was_written(opened):
    result = await ran(opened, "replaying")
    assert (result["outcome"], result["final_summary"]) == ("completed", "done"), result["error"]
    assert SCRIPTS.asked["replaying"] == 2
    assert "not valid JSON" in SCRIPTS.heard["replaying"]
