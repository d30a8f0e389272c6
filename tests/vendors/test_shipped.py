"""What is shipped for the hosts of vendors is such that the first request is taken, and each after it."""

from copy import deepcopy

import pytest

from activities.endpoints.dialect import shipped
from activities.model.functions import BUILT_IN
from activities.model.shaping import LIMIT, shaped
from activities.model.streaming import STREAMED
from tests.requirements import promise
from tests.vendors.chat import NOTE
from tests.vendors.gemini import GeminiCompatible
from tests.vendors.hosted import DeepSeek, Groq, Kimi, Mistral, OpenRouter
from tests.vendors.local import LMStudio, Ollama
from tests.vendors.openai import Azure, OpenAI
from tests.vendors.wire import Asked

HOSTS = {
    "https://api.openai.com/v1": OpenAI(),
    "https://some.openai.azure.com/openai/v1": Azure(),
    "https://api.mistral.ai/v1": Mistral(),
    "https://api.deepseek.com": DeepSeek(),
    "https://api.moonshot.ai/v1": Kimi(),
    "https://api.groq.com/openai/v1": Groq(),
    "https://openrouter.ai/api/v1": OpenRouter(),
    "https://generativelanguage.googleapis.com/v1beta/openai": GeminiCompatible(),
    "http://127.0.0.1:11434/v1": Ollama(),
    "http://127.0.0.1:1234/v1": LMStudio(),
}


def in_the_engines_form(vendor):
    """Return a request of a second step: what the vendor said comes back as it was, with what stood beside it."""
    theirs = vendor.correct()
    system, user, said, *answers = theirs.body["messages"]
    beside = vendor.beside_message([call["id"] for call in said["tool_calls"]])
    left = {"role": "user", "content": "Left: 3 steps."}
    note = {"type": "function", "function": {"name": "note", "description": "Note.", "parameters": deepcopy(NOTE)}}
    body = {"model": vendor.model, "messages": [system, user, {**said, "content": None} | beside, *answers, left]}
    return Asked(theirs.path, body | {"tools": [*BUILT_IN, note], LIMIT: 900}, headers=theirs.headers)


@promise("models:dialects")
@pytest.mark.parametrize(("address", "vendor"), HOSTS.items(), ids=lambda given: getattr(given, "name", ""))
def test_what_is_shipped_for_a_vendor_is_taken_by_it_at_once(address, vendor):
    dialect, asked = shipped(address), in_the_engines_form(vendor)
    for streamed in ({}, STREAMED):
        fields = {name: value for name, value in streamed.items() if name not in dialect.without}
        sent = Asked(asked.path, shaped(asked.body, dialect) | fields, headers=asked.headers)
        assert vendor.refusal(sent) is None


@promise("models:dialects")
def test_calls_of_another_model_come_with_ids_that_a_vendor_takes():
    asked, mistral = in_the_engines_form(OpenAI()), Mistral()
    sent = shaped(asked.body | {"model": mistral.model}, shipped("https://api.mistral.ai/v1"))
    assert mistral.refusal(Asked(mistral.correct().path, sent)) is None
