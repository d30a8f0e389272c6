"""The Python client: start runs, follow them, decide their requests."""

from backstay.client.backstay import Backstay
from backstay.client.connecting import connect
from backstay.client.run import Run

__all__ = ["Backstay", "Run", "connect"]
