"""The Python client: connect to Temporal, start runs, follow them, decide requests.

May import: backstay.approvals, backstay.authority, backstay.effects, backstay.errors, backstay.frozen,
backstay.redaction, backstay.rooms, backstay.settings, backstay.shown, backstay.stored_texts, backstay.task,
backstay.tools.
"""

from backstay.client.backstay import Backstay
from backstay.client.connecting import connect
from backstay.client.run import Run

__all__ = ["Backstay", "Run", "connect"]
