"""Read what an answer says that it used, wherever vendors put that and whatever they call it."""

from collections.abc import Iterator, Mapping
from typing import Any

from backstay.budgets.usage import ModelUsage

MOST_TOKENS = 10**9
_LONGEST_COUNT = 20


def _usages(data: Any) -> Iterator[dict[str, Any]]:
    """Yield what an answer says of what was used, wherever that stands."""
    holder = _dict(data[0] if isinstance(data, list) and data else data)
    for about in (holder, _dict(holder.get("x_groq")), _dict(holder.get("error"))):
        for name in ("usage", "usageMetadata"):
            if usage := _dict(about.get(name)):
                yield usage


def has_counts(data: Any) -> bool:
    """Return whether an answer says that anything was used, in whatever words."""
    counts = (value for usage in _usages(data) for value in usage.values())
    return any(isinstance(value, int | float) and value > 0 for value in counts)


def counts_words(usage: ModelUsage, message: Mapping[str, Any]) -> bool:
    """Return whether words and calls are counted: an endpoint that counts none for them has not said what it used."""
    return usage.output_tokens > 0 or not any(message.get(name) for name in ("content", "refusal", "tool_calls"))


def usage_in(data: Any) -> tuple[ModelUsage, bool]:
    """Return what an answer used, and whether it says so."""
    usage = next(_usages(data), {})
    details, thought = (next(filter(None, map(_dict, map(usage.get, names))), {}) for names in _DETAILS)
    read, kept = _count(usage, *_READ) or 0, _count(usage, *_KEPT) or 0
    prompt, said = _count(usage, *_PROMPT), _count(usage, *_OUTPUT)
    if prompt is not None and (usage.get("prompt_tokens") is None or read + kept > prompt):
        # Claude counts what is cached beside the rest of the prompt, and some gateways pass that on.
        prompt += read + kept
    cached = min(prompt or 0, max(_count(details, *_CACHED) or _count(usage, *_CACHED) or 0, read))
    new = (prompt or 0) - cached
    reasoning = _count(thought, "reasoning_tokens") or _count(usage, "reasoning_tokens") or 0
    output = _all_output(said or 0, reasoning, prompt or 0, _count(usage, *_TOTAL))
    used = ModelUsage(
        calls=1,
        input_cached_tokens=cached,
        input_new_tokens=new,
        input_written_tokens=min(new, max(kept, *(_count(details, name) or 0 for name in _WRITTEN))),
        output_tokens=output,
        reasoning_tokens=reasoning,
    )
    return used, bool(prompt) and said is not None


def _all_output(said: int, reasoning: int, prompt: int, total: int | None) -> int:
    """Return what was written, thoughts included: some count those only in the total, or only beside the answer."""
    if total is not None and total >= prompt + said:
        return min(total - prompt, MOST_TOKENS)
    return said + reasoning if reasoning > said else said


_PROMPT = ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens")
_OUTPUT = ("completion_tokens", "output_tokens", "completionTokens", "outputTokens")
_TOTAL = ("total_tokens", "totalTokens")
_DETAILS = (
    ("prompt_tokens_details", "prompt_token_details", "input_tokens_details"),
    ("completion_tokens_details", "output_tokens_details"),
)
_CACHED = ("cached_tokens", "prompt_cache_hit_tokens", "num_cached_tokens")
"""What is read from a cache; Kimi, DeepSeek and Mistral say it beside the prompt."""
_READ = ("cache_read_input_tokens", "cacheReadInputTokens", "cacheReadInputTokenCount")
_KEPT = (
    "cache_creation_input_tokens",
    "cache_write_input_tokens",
    "cacheWriteInputTokens",
    "cacheWriteInputTokenCount",
)
"""What Claude and Bedrock count beside the prompt."""
_WRITTEN = ("cache_write_tokens", "cache_creation_tokens")


def _count(usage: dict[str, Any], *names: str) -> int | None:
    """Return a count of tokens, or None when there is none that can be believed."""
    value = next((usage[name] for name in names if usage.get(name) is not None), None)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < _LONGEST_COUNT:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
