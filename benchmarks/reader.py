"""A scripted model that reads as often as the task says: once per step, or in one program."""

from backstay.testing import Conversation, Reply

SEQUENTIAL = "for _ in range({calls}):\n    await mail.list_customers(offset=0, limit=2)"
GATHERED = "await asyncio.gather(*(mail.list_customers(offset=0, limit=2) for _ in range({calls})))"


class Reader:
    """Read the number of steps from the task text."""

    def __call__(self, conversation: Conversation) -> Reply:
        wanted = int("".join(sign for sign in conversation.task if sign.isdigit()))
        match conversation.task.split()[0]:
            case "park":
                return Reply(calls=[("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})])
            case "program":
                return _program(conversation, SEQUENTIAL.format(calls=wanted))
            case "gather":
                return _program(conversation, GATHERED.format(calls=wanted))
            case _:
                return _read(conversation, wanted)


def _read(conversation: Conversation, wanted: int) -> Reply:
    if len(conversation.answers("mail__list_customers")) >= wanted - 1:
        return Reply(calls=[("finish", {"summary": "read"})])
    return Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 2})])


def _program(conversation: Conversation, source: str) -> Reply:
    if conversation.calls("run_program"):
        return Reply(calls=[("finish", {"summary": "read"})])
    return Reply(calls=[("run_program", {"code": f"import asyncio\n{source}", "reason": "measure"})])
