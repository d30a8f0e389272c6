"""A scripted model that reads once per step, as often as the task says, and then finishes."""

from backstay.testing import Conversation, Reply


class Reader:
    """Read the number of steps from the task text."""

    def __call__(self, conversation: Conversation) -> Reply:
        wanted = int("".join(sign for sign in conversation.task if sign.isdigit()))
        if "park" in conversation.task:
            return Reply(calls=[("mail__send_email", {"to": "a@example.com", "subject": "s", "body": "b"})])
        done = len(conversation.answers("mail__list_customers"))
        if done >= wanted - 1:
            return Reply(calls=[("finish", {"summary": "read"})])
        return Reply(calls=[("mail__list_customers", {"offset": 0, "limit": 2})])
