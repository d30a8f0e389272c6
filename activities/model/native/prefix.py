"""Say in a request of Anthropic's Messages what of it is to be kept for the next one, and how long it may be thought.

https://docs.claude.com/en/docs/build-with-claude/prompt-caching
https://docs.claude.com/en/docs/build-with-claude/extended-thinking
"""

from typing import Any

_KEPT: Any = {"type": "ephemeral"}
_LEAST_THINKING = 1024
"""Tokens below which the vendor takes no budget of thoughts."""


def mark_for_cache(body: dict[str, Any]) -> None:
    """Mark where the parts end that the next request begins with: functions, system text, and the messages so far.

    The last message of a request is how much of the budget is left, which is another at each step; the words so far end
    before it. What is asked once, such as a closing summary, is not kept: that would cost more.
    """
    if not body.get("tools"):
        return
    body["tools"][-1]["cache_control"] = _KEPT
    system = body.get("system")
    if isinstance(system, str):
        body["system"] = system = [{"type": "text", "text": system}]
    if system:
        system[-1]["cache_control"] = _KEPT
    content = body["messages"][-1]["content"]
    if not isinstance(content, list):
        return
    answers = [block for block in content if block["type"] == "tool_result"]
    before = answers or content[:-1]
    if before:
        before[-1]["cache_control"] = _KEPT


def within_limit(body: dict[str, Any]) -> None:
    """Keep a budget of thoughts below the limit of the answer, in which it counts; too small a one is left out."""
    thinking = body.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") != "enabled":
        return
    budget = min(thinking["budget_tokens"], body["max_tokens"] // 2)
    if budget < _LEAST_THINKING:
        del body["thinking"]
    else:
        body["thinking"] = {**thinking, "budget_tokens": budget}
