"""All stand-ins."""

from tests.vendors.anthropic import Anthropic
from tests.vendors.gemini import Gemini, GeminiCompatible
from tests.vendors.hosted import DeepSeek, Groq, Kimi, Mistral, OpenRouter
from tests.vendors.local import VLLM, LlamaCpp, LMStudio, Ollama, PlainLlamaCpp, PlainVLLM
from tests.vendors.openai import Azure, OpenAI
from tests.vendors.responses import Responses

VENDORS = [
    OpenAI(),
    Responses(),
    Azure(),
    Anthropic(),
    Gemini(),
    GeminiCompatible(),
    Mistral(),
    DeepSeek(),
    Kimi(),
    Groq(),
    OpenRouter(),
    Ollama(),
    VLLM(),
    PlainVLLM(),
    LlamaCpp(),
    PlainLlamaCpp(),
    LMStudio(),
]
