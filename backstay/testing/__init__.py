"""Test an agent without an account: a scripted model, served over a real socket.

May import: no other room.
"""

from backstay.testing.conversation import Call, Conversation, payload_of
from backstay.testing.reply import Bill, Reply, Tokens
from backstay.testing.scripted_model import Rules, ScriptedModel

__all__ = ["Bill", "Call", "Conversation", "Reply", "Rules", "ScriptedModel", "Tokens", "payload_of"]
