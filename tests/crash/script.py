"""The model of the crash runs: what it does next depends on the answers in the conversation alone."""

import asyncio
from pathlib import Path

from backstay.testing import Conversation, Reply

MAILS = [
    {"to": f"{name}@example.com", "subject": f"Reminder for {name}", "body": "Please pay."}
    for name in ("ana", "bo", "cy")
]
SEND = "mail__send_email"


class Script:
    """Read twice, look into a result, send three mails, finish; `success=False` makes the run undo them."""

    def __init__(self, witness: Path, *, during: int = 0, success: bool = True) -> None:
        self.witness = witness
        self.during = during
        self.success = success
        self.asked = 0

    async def __call__(self, talk: Conversation) -> Reply:
        self.asked += 1
        if self.asked == self.during:
            # The worker dies when it sees this; the answer is billed, and there is nobody to hear it.
            await asyncio.to_thread(self.witness.touch)
            return self.next(talk).model_copy(update={"delay_s": 5})
        return self.next(talk)

    def next(self, talk: Conversation) -> Reply:
        if not talk.tools:
            return Reply(text="It was cut short.")
        if not talk.calls("mail__list_customers"):
            # So many that there is more to read than is told.
            page = {"offset": 0, "limit": 100}
            return Reply(calls=[("mail__list_customers", page), ("mail__list_invoices", page)])
        if not talk.calls("read_result"):
            ref = talk.answers("mail__list_invoices")[0]["storage_ref"]
            return Reply(calls=[("read_result", {"ref": ref, "path": "invoices", "offset": 0, "limit": 2})])
        if not talk.calls(SEND):
            return Reply(text="I remind them.", calls=[(SEND, mail) for mail in MAILS])
        return Reply(calls=[("finish", {"summary": "reminded", "outputs": {}, "success": self.success})])


def plan() -> dict:
    """Return the same errand as a plan."""
    read = {"tool": "mail.list_customers", "arguments": {"limit": 5}, "summary": "read", "timeout_s": 3}
    sends = [{"tool": "mail.send_email", "arguments": mail, "timeout_s": 3} for mail in MAILS]
    return {"title": "Remind", "steps": [read, *sends]}
