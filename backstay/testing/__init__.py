"""Test an agent without an account: a scripted model, served over a real socket; and its tools without an engine.

May import: backstay.digests, backstay.errors, backstay.python_tools, backstay.tools.
"""

from backstay.testing.conversation import Call, Conversation, payload_of
from backstay.testing.reply import Bill, Reply, Tokens
from backstay.testing.scripted_model import Rules, ScriptedModel
from backstay.testing.tools import TestContext, ToolRun, run_tool

__all__ = [
    "Bill",
    "Call",
    "Conversation",
    "Reply",
    "Rules",
    "ScriptedModel",
    "TestContext",
    "Tokens",
    "ToolRun",
    "payload_of",
    "run_tool",
]
