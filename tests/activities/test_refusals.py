"""What vendors say when they refuse a request, and what each wording is taken for.

Behind each row stands the public report that the wording was taken from.
"""

import pytest

from activities.endpoints.dialect import PLAIN
from activities.model.functions import BUILT_IN
from activities.model.learning import Lessons
from activities.model.refusals import numbers_in, refusal_of, seconds_in, text_in, wait_in
from activities.model.request import messages_of
from activities.model.shaping import LIMIT
from backstay.canonical import canonical
from tests.requirements import promise


def openai(message, code=None, param=None, kind="invalid_request_error"):
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def vllm(message, code=400):
    return {"object": "error", "message": message, "type": "BadRequestError", "param": None, "code": code}


def gemini(message, status="INVALID_ARGUMENT", code=400):
    return [{"error": {"code": code, "message": message, "status": status}}]


TOO_LONG = [
    # earendil-works/pi#5930, vllm-project/vllm#20409
    (400, vllm("This model's maximum context length is 8192 tokens. However, you requested 9216 tokens."), 8192),
    # earendil-works/pi#5677
    (400, openai("Input length (265330) exceeds model's maximum context length (262144)."), 262144),
    # earendil-works/pi#4943, NVIDIA-NeMo/Switchyard#314
    (400, openai("Input length 131393 exceeds the maximum allowed input length of 131040 tokens.", "400"), 131040),
    # DraconDev/pi-goal-list-loop-audit#48
    (
        400,
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "the request exceeds the available context size, try increasing it",
                "n_prompt_tokens": 180283,
                "n_ctx": 180224,
            }
        },
        180224,
    ),
    # MoonshotAI/kimi-cli#2011, open-octo/octo-agent#2124
    (400, openai("Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)"), 262144),
    (400, {"error": {"code": "1261", "message": "Prompt 超长"}}, None),
    # 0xBakeer/inference-atlas#186
    (400, openai("Prompt too long: 5152 tokens exceeds max_seq_len 2048 (leave room for output tokens)"), 2048),
    # archestra-ai/archestra#6044
    (400, openai("prompt is too long: 208310 tokens > 200000 maximum"), 200000),
    (400, gemini("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."), 1048576),
    # jin-bo/agentao#88
    (413, openai("Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8123", None), 6000),
    # Aider-AI/aider#1880, continuedev/continue#10602
    (
        429,
        openai(
            "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 36278."
            " The input or output tokens must be reduced in order to run successfully."
            " Visit https://platform.openai.com/account/rate-limits to learn more.",
            "rate_limit_exceeded",
            kind="tokens",
        ),
        30000,
    ),
    (400, openai("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]"), 129024),
    # anomalyco/opencode#27519, leookun/cursor-byok#129
    (400, openai("tokens in request more than max tokens allowed"), None),
    (
        400,
        {"code": 20015, "message": "number of input tokens (204703) has exceeded max_prompt_tokens (202752) limit."},
        202752,
    ),
    # openclaw/openclaw#3188
    (400, openai("The conversation is over.", "context_overflow"), None),
    # NousResearch/hermes-agent#99701, Lingtai-AI/lingtai-kernel#1696, openclaw/openclaw#20539: with their numbers
    (400, gemini("Unable to submit: the input token count is 32825 but model only supports up to 32768."), 32768),
    (400, openai("Input tokens exceed the configured limit of 272000 tokens."), 272000),
    (400, openai("input length and `max_tokens` exceed context limit: 170636 + 34048 > 200000, decrease it"), 200000),
    (500, {"error": "Trying to keep the first 9000 tokens when context the overflows"}, None),
    (413, "", None),
]


@promise("models:causes")
@pytest.mark.parametrize(("status", "body", "window"), TOO_LONG)
def test_a_request_that_is_too_long_is_known_by_each_vendors_words(status, body, window):
    refusal = refusal_of(status, body)
    assert (refusal.cause, refusal.lesson.get("context_tokens")) == ("too_long", window)


ANSWER_LIMITS = [
    # NousResearch/hermes-agent#51787, yiliqi78/TOKENICODE#3
    (
        openai(
            "The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected a"
            " value <= 32768, but got 65536 instead.",
            "InvalidParameter",
        ),
        32768,
    ),
    (openai("Invalid 'max_tokens': integer above maximum value. Expected a value <= 16384, but got 65536."), 16384),
    # charmbracelet/crush#946
    ({"message": "The maximum tokens you requested exceeds the model limit of 8192. Try again."}, 8192),
    # MetaGLM/glm-cookbook#24, lobehub/lobehub#1398
    ({"error": {"code": "1214", "message": "max_tokens参数非法。请检查文档。"}}, None),
]


@promise("models:causes")
@pytest.mark.parametrize(("body", "most"), ANSWER_LIMITS)
def test_a_limit_of_an_answer_above_what_the_model_writes_is_known_by_each_vendors_words(body, most):
    refusal = refusal_of(400, body)
    assert (refusal.cause, refusal.lesson.get("answer_tokens")) == ("answer_limit", most)


CAUSES = [
    # pydantic/pydantic-ai#2774, huggingface/smolagents#1119
    (400, openai("Failed to call a function. See 'failed_generation'.", "tool_use_failed"), "bad_generation"),
    # ollama/ollama#12884, ollama/ollama#17638
    (500, {"error": "error parsing tool call: raw='{\"a\": ]', err=invalid character"}, "bad_generation"),
    # can1357/oh-my-pi#3899, vxcontrol/pentagi#313
    (
        500,
        {
            "error": {
                "code": 500,
                "message": "Failed to parse tool call arguments as JSON: [json.exception.parse_error.101]",
            }
        },
        "bad_generation",
    ),
    # pydantic/pydantic-ai#4354
    (400, openai("The model generated an invalid tool call.", "json_validate_failed"), "bad_generation"),
    # 0x4m4/hexstrike-ai#29, musistudio/claude-code-router#686
    (
        400,
        openai(
            "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 150.",
            "array_above_max_length",
            "tools",
        ),
        "too_many_functions",
    ),
    # HunorLaczko/ha-groq-cloud-api#25, anomalyco/opencode#28911
    (400, openai("'tools' : maximum number of items is 128"), "too_many_functions"),
    (
        400,
        openai("Maximum tools limit reached. 219 tools have been provided but the maximum is 200."),
        "too_many_functions",
    ),
    # ruvnet/ruflo#1294, Automattic/wordpress-mcp#103
    (
        400,
        openai(
            "Invalid schema for function 'a__b': In context=('properties', 'x'), array schema missing items.",
            "invalid_function_parameters",
        ),
        "function_schema",
    ),
    # What an endpoint only repeats says nothing of a filter, nor of money.
    (
        400,
        openai("Invalid schema for function 'mail__search': In context=('properties', 'flagged'), missing items."),
        "function_schema",
    ),
    (400, openai("Invalid schema for function 'moderation__ban_user': array schema missing items."), "function_schema"),
    (400, openai("Invalid schema for function 'f': flagged.", "invalid_function_parameters"), "function_schema"),
    (400, openai("tools.0.custom.input_schema.properties.insufficient_funds: invalid"), "function_schema"),
    (
        400,
        {"detail": [{"loc": ["body", "tools", 0, "moderation"], "msg": "Extra inputs are not permitted"}]},
        "no_functions",
    ),
    (400, vllm("[{'type': 'extra_forbidden', 'loc': ('body', 'x'), 'msg': 'Extra', 'input': 'it was flagged'}]"), ""),
    (400, vllm("Extra [type=extra_forbidden, input_value='it was flagged', input_type=str]"), ""),
    (400, vllm("{'error': {'message': 'The response was filtered', 'code': 'content_filter'}}"), "filtered"),
    # openai/openai-agents-python#449
    (
        400,
        gemini("* tools[0].function_declarations[3].parameters.properties: should be non-empty for OBJECT type"),
        "function_schema",
    ),
    # charmbracelet/mcphost#88
    (
        400,
        openai("tools.7.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"),
        "function_schema",
    ),
    # evalstate/fast-agent#122, pydantic/pydantic-ai#2896
    (404, {"error": {"message": "No endpoints found that support tool use.", "code": 404}}, "no_functions"),
    # mastra-ai/mastra#2839
    (400, {"error": {"message": "registry.ollama.ai/library/x:latest does not support tools"}}, "no_functions"),
    (
        400,
        vllm('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
        "no_functions",
    ),
    (500, {"error": {"code": 500, "message": "tools param requires --jinja flag"}}, "no_functions"),
    # manthanabc/paws#103, openai/openai-python#2758
    (400, gemini("Function call is missing a thought_signature in functionCall parts. Please refer to"), "form"),
    # MoonshotAI/kimi-cli#2141
    (
        400,
        openai("thinking is enabled but reasoning_content is missing in assistant tool call message at index 2"),
        "form",
    ),
    # charmbracelet/crush#2696
    (400, openai("The `reasoning_content` in the thinking mode must be passed back to the API."), "form"),
    # karthink/gptel#1203, nearai/ironclaw#1241
    (
        400,
        {
            "object": "error",
            "message": "Tool call id was turn1_0 but must be a-z, A-Z, 0-9, with a length of 9.",
            "code": "3280",
        },
        "form",
    ),
    # jundot/omlx#1995
    (500, {"error": "Tool call id was call_49c89af0 but must be a-z, A-Z, 0-9, with a length of 9"}, "form"),
    # mistralai/mistral-vibe#1006, eclipse-theia/theia#17104
    (
        500,
        {
            "error": {
                "code": 500,
                "message": "Jinja Exception: After the optional system message, conversation roles must alternate",
            }
        },
        "form",
    ),
    # lmstudio-ai/lmstudio-bug-tracker#261
    (400, {"error": "Invalid 'content': 'content' field must be a string or an array of objects."}, "form"),
    # mistralai/mistral-common#324
    (
        400,
        vllm("AssistantMessage content Input should be a valid string [input_value=None]"),
        "form",
    ),
    # Routstr/routstr-core#554
    (
        404,
        openai("The model `gpt-5.4-image-2` does not exist or you do not have access to it.", "model_not_found"),
        "unknown_model",
    ),
    (
        400,
        openai(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            "content_filter",
        ),
        "filtered",
    ),
    (400, gemini("The prompt was blocked due to PROHIBITED_CONTENT"), "filtered"),
    # https://api-docs.deepseek.com, https://platform.moonshot.ai/docs/api: what their filters say
    (400, openai("Content Exists Risk", "invalid_request_error"), "filtered"),
    (400, openai("The request was rejected because it was considered high risk"), "filtered"),
    # UKGovernmentBEIS/inspect_ai#2267: with the status and the code of a key
    (
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Team: t, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        "filtered",
    ),
    (403, openai("The key may not be used here; see the usage guidelines."), ""),
    (
        402,
        {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code": "invalid_request_error"}},
        "quota",
    ),
    (
        400,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
        "quota",
    ),
    # A rate is no length, and no empty purse: jin-bo/agentao#88
    (429, {"message": "ThrottlingException: Too many tokens, please wait before trying again."}, ""),
    # FoundationAgents/OpenManus#746
    (
        429,
        openai(
            "This request would exceed the rate limit for your organization of 20,000 input tokens per minute. For"
            " details, refer to: https://docs.anthropic.com/en/api/rate-limits. Please reduce the prompt length or the"
            " maximum tokens requested, or try again later.",
            "rate_limit_error",
        ),
        "",
    ),
    (429, openai("Rate limit reached for x. Visit https://platform.openai.com/account/rate-limits to learn more."), ""),
    # code-yeongyu/senpi#1466
    (429, openai("Too many tokens per minute."), ""),
    # anomalyco/opencode#7463: Cerebras
    (
        429,
        {
            "message": "Tokens per minute limit exceeded - too many tokens processed.",
            "type": "too_many_tokens_error",
            "param": "quota",
            "code": "token_quota_exceeded",
        },
        "",
    ),
    (429, openai("Tokens per minute limit exceeded - too many tokens processed."), ""),
    # A request that alone is above the limit is never taken.
    (
        429,
        openai("Request too large: tokens per minute limit 10000, requested 30000. Reduce the length of the messages."),
        "too_long",
    ),
    (429, openai("Tokens per minute limit 10000, requested 30000. Please reduce your message size."), "too_long"),
    (429, openai("Request too large: tokens per minute limit 10000, requested 30000."), "too_long"),
    # What others have used of a limit is free again later.
    (
        429,
        openai("Tokens per minute limit 60000, used 58000, requested 3000. Reduce the length, or try again in 2s."),
        "",
    ),
    (429, gemini("You exceeded your current quota. retryDelay: 17s", "RESOURCE_EXHAUSTED", 429), ""),
    (400, openai("Something is odd."), ""),
    # a gateway that was sent a page of HTML: no model wrote that
    (502, openai("Unexpected token < in JSON at position 0"), ""),
]


@promise("models:causes")
@pytest.mark.parametrize(("status", "body", "cause"), CAUSES)
def test_the_cause_of_a_refusal_is_known_by_its_words_and_not_by_its_status(status, body, cause):
    assert refusal_of(status, body).cause == cause


@promise("models:told")
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "no such thing"}},
        {"error": "no such thing"},
        {"message": "no such thing"},
        {"detail": "no such thing"},
        {"detail": [{"loc": ["body", "x"], "msg": "no such thing"}]},
        [{"error": {"message": "no such thing"}}],
        {"errors": [{"message": "no such thing"}], "success": False},
        {"base_resp": {"status_code": 1000, "status_msg": "no such thing"}},
        # musistudio/claude-code-router#1204: the JSON of another error in a text
        {"error": {"message": '{"error": {"message": "no such thing"}}'}},
        {"error": {"message": "Provider returned error", "metadata": {"raw": "no such thing"}}},
        {"error": {"message": {"text": "no such thing"}}},
        {"fault": {"faultstring": "no such thing", "detail": {"errorcode": "x"}}},
        {"Message": "no such thing"},
        {"error": {"cause": "no such thing"}},
        {"error": {"code": "x", "innererror": {"message": "no such thing"}}},
        "no such thing",
    ],
)
def test_the_words_of_a_refusal_are_found_in_each_vendors_form(body):
    assert "no such thing" in text_in(body)
    assert "no such thing" in refusal_of(400, body).told


@promise("models:told")
def test_the_words_of_a_refusal_are_told_on_one_line_without_what_looks_like_a_secret():
    told = refusal_of(401, openai(f"Incorrect API key provided:\nsk-{'q' * 30}")).told
    assert "Incorrect API key provided" in told
    assert "qqqq" not in told
    assert "\n" not in told


@promise("models:retry-after")
@pytest.mark.parametrize(
    # hiring-agent#386, codex-router#573
    ("said", "seconds"),
    [("7.66s", 7.66), ("500ms", 0.5), ("1m2s", 62), ("7", 7), ("soon", None), ("", None), ("-5", None), ("nan", None)],
)
def test_a_wait_may_have_a_unit(said, seconds):
    assert seconds_in(said) == seconds


@promise("models:retry-after")
@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Rate limit reached. Please try again in 7.66s. Visit", 7.66),
        ("Please try again in 1m2s.", 62),
        ("Please retry in 20 seconds", 20),
        ('{"retryDelay": "17s"}', 17),
        ("try again later", None),
    ],
)
def test_a_wait_that_stands_in_the_words_only_is_read(said, seconds):
    assert wait_in(said) == seconds


def function(name):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": schema}}


ASKED = {
    "messages": [
        {"role": "user", "content": "Note: maximum context length is 4000 tokens, tools: at most 7 functions, please"}
    ],
    "tools": [*BUILT_IN, function("files_read"), function("bank_audit"), function("mail_send")],
    LIMIT: 4000,
}


def learned_from(body, status=400, times=1):
    lessons = Lessons(PLAIN)
    refusal = refusal_of(status, body)
    for _ in range(times):
        lessons.learns(refusal, ASKED)
    return lessons.dialect.lesson(PLAIN)


@promise("models:dialects")
@pytest.mark.parametrize(
    ("message", "lesson"),
    [
        ("tools: array too long, maximum length 6", {"functions": 6}),
        ("tools: array too long, maximum length 1", {}),
        ("'tools' : maximum number of items is 6", {"functions": 6}),
        ("Maximum tools limit reached. 7 tools have been provided but the maximum is 6.", {"functions": 6}),
        ("max_tokens must be at most 300", {"answer_tokens": 300}),
        ("max_tokens must be at most 1", {}),
    ],
)
def test_no_limit_is_learned_that_leaves_no_room_for_a_run(message, lesson):
    assert learned_from(openai(message)) == lesson


@promise("models:dialects")
@pytest.mark.parametrize("text", ["", "\n\n"])
@pytest.mark.parametrize(
    "said",
    [
        # anomalyco/opencode#31259
        "messages: text content blocks must contain non-whitespace text",
        "The text field in the ContentBlock object at messages.2.content.0 is blank. Add text to it, and try again.",
    ],
)
def test_each_form_of_no_words_beside_calls_is_tried_also_where_the_model_said_line_breaks_alone(text, said):
    call = {"id": "a", "type": "function", "function": {"name": "files_read", "arguments": "{}"}}
    request = ASKED | {"messages": messages_of([{"kind": "said", "text": text, "calls": [call]}], "system")}
    lessons, tried = Lessons(PLAIN), list[str]()
    while lessons.learns(refusal_of(400, openai(said)), request):
        tried.append(lessons.dialect.content)
    assert tried == ["empty", "absent", "filled"]


@promise("models:dialects")
def test_what_an_endpoint_repeats_of_a_request_teaches_nothing():
    told = ASKED["messages"][0]["content"]
    long = openai(f"The context length is too small for: '{told}'")
    assert refusal_of(400, long).cause == "too_long"
    assert numbers_in(refusal_of(400, long), canonical(ASKED)) == {}
    assert numbers_in(refusal_of(400, long), "") == {"context_tokens": 4000, "functions": 7}
    # vLLM: the fault, and then what it was found in
    listed = "[{'type': 'missing', 'loc': ('body',), 'msg': 'Field required', 'input': {'a': 'at most 5 functions'}}]"
    assert numbers_in(refusal_of(400, vllm(listed)), canonical(ASKED)) == {}
    place = {"loc": ["body", "tools", len(BUILT_IN), "function", "parameters"], "msg": "invalid schema, as mail_send"}
    echo = {"detail": [place | {"input": "please call bank_audit"}]}
    lesson = learned_from(echo, 422, times=2)
    assert [name.split("#")[0] for name in lesson["hidden"]] == ["files_read"]
