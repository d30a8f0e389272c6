"""What endpoints refuse of messages, as public reports tell it: missing or empty contents, and orders of roles.

Each row enforces the rule of one report with its own words and status. A run has to get through, whether what it sends
holds the rule from the start or after a refusal.
"""

import json
from itertools import pairwise

import pytest
import pytest_asyncio

from backstay.testing import Reply
from tests.e2e.labelled import Labelled
from tests.e2e.loop.taking import answers, ran, refused, says, steps
from tests.e2e.scripted_server import ScriptedServer, reads, toolbox_of_servers
from tests.engine import PRICES, engine
from tests.requirements import promise
from tests.sizes import spread

FAR = "Failed to deserialize the JSON body into the target type: messages"
JINJA = "\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n...% 2 == 0) -%}\nError: "
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
PRECEDING = "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'"


def plain(text, status=400):
    return Reply(status=status, body=text.encode())


def as_json(status=400, **body):
    return Reply(status=status, body=json.dumps(body).encode())


def said(body):
    return [(place, each) for place, each in enumerate(body["messages"]) if each["role"] == "assistant"]


def nulls(body):
    return [place for place, each in enumerate(body["messages"]) if each.get("content", "") is None]


def without(body):
    return [place for place, each in enumerate(body["messages"]) if "content" not in each]


def roles(body):
    return [each["role"] for each in body["messages"]]


def ollama(body):
    # pydantic/pydantic-ai#5206, QwenLM/qwen-code#3421, SAIL-Research-Lab/cheetahclaws#71
    return refused("invalid message content type: <nil>", kind="invalid_request_error") if nulls(body) else None


def mlxcel(body):
    # lablup/mlxcel#89, huggingface/text-generation-inference#3021, sashabaranov/go-openai#1029
    for place in without(body):
        return plain(f"{FAR}[{place}]: missing field `content` at line 1 column 1615", 422)
    # the same reader where there is a null: Usagi-org/ai-goofish-monitor#57
    for place in nulls(body):
        return plain(f"{FAR}[{place}]: data did not match any variant of untagged enum MessageContent at line 1", 422)
    return None


def openrouter(body):
    # graniet/llm#111
    text = (
        "Every message in the conversation, including those with tool_calls, must include a content field, even if "
        'it\'s an empty string ("").'
    )
    return refused(text) if nulls(body) or without(body) else None


def bedrock(body):
    # Portkey-AI/gateway#995, aws-samples/bedrock-engineer#8
    for place, each in said(body):
        if not each.get("content"):
            text = f"bedrock error: The content field in the Message object at messages.{place} is empty. "
            return refused(f"{text}Add a ContentBlock object to the content field and try again.")
        if not each["content"].strip():
            text = f"The text field in the ContentBlock object at messages.{place}.content.0 is blank. "
            return refused(f"{text}Add text to the text field, and try again.")
    return None


def cerebras(body):
    # livekit/agents#2403
    text = "'NoneType' object is not iterable"
    found = as_json(message=text, type="invalid_request_error", param="messages", code="wrong_api_format")
    return found if nulls(body) else None


def openai(body):
    # docker/docker-agent#63, run-llama/llama_index#17555, langchain-ai/langchainjs#4153
    for place in nulls(body):
        text = "Invalid value for 'content': expected a string, got null."
        return refused(text, type="invalid_request_error", param=f"messages.[{place}].content")
    return None


def dropping(body):
    # cubist38/mlx-openai-server#205: a message without words is dropped, and its calls with it
    text = "Message has tool role, but there was no previous assistant message with a tool call!"
    return refused(text, status=500) if nulls(body) or without(body) else None


def sap(body):
    # SAP/ai-sdk-js#2188; ag-ui-protocol/ag-ui#2023, zed-industries/zed#27130: nor an answer that is empty
    for each in answers(body):
        if not isinstance(each["content"], str):
            return refused(f"Request Body: {json.dumps(each['content'])} is not of type 'string'")
        if not each["content"].strip():
            text = f'Tool result for toolUseId "{each["tool_call_id"]}" has empty content.'
            return refused(f"{text} OpenAI requires tool messages to have non-empty content.")
    return None


def nothing_said(body):
    # OpenHands/OpenHands#8685, UKGovernmentBEIS/inspect_ai#2842, MoonshotAI/kimi-code#1985
    if any(not each.get("content") and not each.get("tool_calls") for _, each in said(body)):
        return refused("Assistant message must have either content or tool_calls, but not none.", "3240")
    return None


def bare(body):
    # ggml-org/llama.cpp as langchain4j/langchain4j#1958 met it: the field has to be there
    return refused("Missing 'content' field in message", status=500) if without(body) else None


CONTENTS = {
    "ollama": ollama,
    "mlxcel": mlxcel,
    "openrouter": openrouter,
    "bedrock": bedrock,
    "cerebras": cerebras,
    "openai": openai,
    "dropping": dropping,
    "sap": sap,
    "bare": bare,
}


def late_system(body):
    return any(role in {"system", "developer"} for role in roles(body)[1:])


def qwen(body):
    # vllm-project/vllm#41114, raullenchai/Rapid-MLX#1543, gptme/gptme#3779
    text = "Chat template error: System message must be at the beginning."
    return refused(text, type="invalid_request_error") if late_system(body) else None


def qwen_at_ollama(body):
    # ollama/ollama#17774
    return as_json(500, error="system message must be at the beginning") if late_system(body) else None


def qwen_at_llama(body):
    # ggml-org/llama.cpp#27367, QwenLM/Qwen3.8#244
    text = f"{JINJA}Jinja Exception: System message must be at the beginning."
    return refused(text, 500, status=500, type="server_error") if late_system(body) else None


def minimax(body):
    # BigPizzaV3/CodexPlusPlus#267 and #410, codexu/note-gen#918
    text = "invalid params, chat content has invalid message role: system (2013)"
    return as_json(error={"message": text, "type": "bad_request_error", "param": ""}) if late_system(body) else None


def strictly(body):
    """Return whether roles take turns as Gemma's template counts them: calls and answers of tools too."""
    found = roles(body)
    found = found[1:] if found[:1] == ["system"] else found
    return all((role == "user") == (place % 2 == 0) for place, role in enumerate(found))


def gemma_at_vllm(body):
    # suitenumerique/conversations#197
    text = f"{ALTERNATE} {ALTERNATE}"
    return None if strictly(body) else refused(text, 400, type="BadRequestError")


def gemma_at_llama(body):
    # ggml-org/llama.cpp#21879, idiap/sdialog#122, janhq/jan#6254
    text = f"{JINJA}Jinja Exception: {ALTERNATE}"
    return None if strictly(body) else refused(text, 500, status=500, type="server_error")


def messages_api(body):
    # Maol-1997/cursor-claude-connector#3, ianarawjo/ChainForge#271
    text = (
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as '
        "an input message role."
    )
    wrong = {"system", "developer"} & {*roles(body)}
    return as_json(type="error", error={"type": "invalid_request_error", "message": text}) if wrong else None


def plano(body):
    # katanemo/plano#967
    for role in roles(body):
        if role not in {"user", "assistant"}:
            reason = f"Failed to parse request: unknown variant `{role}`, expected `user` or `assistant` at line 1"
            found = {"code": "InvalidRequest", "message": "Invalid request", "details": {"reason": reason}}
            return as_json(error=found)
    return None


def mistral(body):
    # 0xPlaygrounds/rig#708, livekit/agents#7030, decolua/9router#2129
    text = "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant"
    found = as_json(object="error", message=text, type="invalid_request_message_order", code="3230")
    return found if roles(body)[-1] not in {"user", "tool"} else None


def gemini(body):
    # continuedev/continue#11164, google-gemini/gemini-cli#11814 and #26956
    text = (
        "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
    )
    inner = json.dumps({"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}})
    pairs = pairwise([{"role": ""}, *body["messages"]])
    odd = any(each.get("tool_calls") and before["role"] not in {"user", "tool"} for before, each in pairs)
    return as_json(error={"message": inner, "code": 400, "status": "Bad Request"}) if odd else None


def is_paired(body):
    waiting = set()
    for each in body["messages"]:
        if each["role"] == "tool" and each["tool_call_id"] not in waiting:
            return False
        if each["role"] != "tool" and waiting:
            return False
        waiting.discard(each.get("tool_call_id"))
        waiting |= {made["id"] for made in each.get("tool_calls", ())}
    return not waiting


def deepseek(body):
    # itmisx/deepx-code#94, qwersyk/Newelle#425, miurla/morphic#136, posit-dev/positron#7770
    return None if is_paired(body) else refused(PRECEDING, "invalid_request_error", type="invalid_request_error")


def minimax_pairs(body):
    # MiniMax-AI/MiniMax-M2#69 and #76
    text = "invalid params, tool result's tool id(call_function_g094w5htkglv_1) not found (2013)"
    return None if is_paired(body) else refused(text, 400)


def claude_at_bedrock(body):
    # langchain4j/langchain4j#1864
    found = [role for role in roles(body) if role != "system"]
    return refused('messages: first message must use the "user" role') if found[0] != "user" else None


ORDERS = {
    "qwen": qwen,
    "qwen500": qwen_at_ollama,
    "qwenjinja": qwen_at_llama,
    "minimax": minimax,
    "gemma": gemma_at_vllm,
    "gemmajinja": gemma_at_llama,
    "messagesapi": messages_api,
    "plano": plano,
    "mistral": mistral,
    "gemini": gemini,
    "deepseek": deepseek,
    "minimaxpairs": minimax_pairs,
    "claude": claude_at_bedrock,
    "nothing": nothing_said,
}
NO_FUNCTIONS = {"qwen", "qwen500", "qwenjinja", "minimax"}
"""Those that are asked for JSON, for which a second system message stands in the conversation."""
TALKING = {"mistral": "Let me see.", "gemini": "Let me see.", "nothing": ""}
"""Those whose model first says something, or has only thoughts, and calls nothing."""


def in_json(body):
    """The same steps as JSON."""
    done = json.dumps(body["messages"]).count("Answer to ")
    made = ("desk__look", {}) if done < 2 else ("finish", {"summary": "seen"})
    return says(json.dumps({"reason": "", "calls": [{"name": made[0], "arguments": json.dumps(made[1])}]}))


def taking(label, fault):
    def script(conversation):
        body = conversation.body
        if label in NO_FUNCTIONS and "tools" in body:
            return refused("desk-model does not support tools")
        if (found := fault(body)) is not None:
            return found
        if "tools" not in body:
            return in_json(body)
        if label in TALKING and not said(body):
            return says(TALKING[label], reasoning="Hm.")
        return steps(body)

    return script


RULES = {**CONTENTS, **ORDERS}
SCRIPTS = Labelled(**{label: taking(label, rule) for label, rule in RULES.items()})
MODELS = {f"{label}-model": PRICES["scripted"] for label in RULES}


@pytest_asyncio.fixture(scope="module")
async def opened(temporal, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reported")
    desk = ScriptedServer(folder / "desk.json", [reads("look")], {"look": {"data": ""}})
    toolbox = toolbox_of_servers(folder, desk=desk)
    async with engine(temporal, folder, SCRIPTS, toolbox=toolbox, prices=PRICES | MODELS) as made:
        yield made


@promise("models:reported-forms")
@pytest.mark.parametrize("label", spread(list(RULES), 3))
async def test_a_run_gets_through_whatever_of_its_messages_an_endpoint_refuses(opened, label):
    result = await ran(opened, label)
    assert (result["outcome"], result["final_summary"]) == ("completed", "seen"), result["error"]
    asked = SCRIPTS.asked[label]
    again = await ran(opened, label)
    assert again["outcome"] == "completed"
    # What was refused once is known: each request is answered.
    answered = len([event for event in again["events"] if event["name"] == "model.asked"])
    assert SCRIPTS.asked[label] - asked == answered
