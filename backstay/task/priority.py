"""How soon the work of a run is served, and whose work it takes turns with: Temporal's priority and fairness keys."""

import hashlib

URGENT = 2
"""What a person waits for or has decided: carrying out a decision, an undo, a page of what a run has stored."""
USUAL = 3
"""What the server takes for no priority at all."""
_MOST_BYTES = 64
"""The server refuses longer fairness keys."""


def fairness_key(user_id: str) -> str:
    """Return the key under which the runs of a user take turns with those of others."""
    data = user_id.encode("utf-8", "surrogatepass")
    return user_id if len(data) <= _MOST_BYTES else hashlib.sha256(data).hexdigest()
