"""The script of a model for the two tasks of docs/mail-and-chat.md. It knows nothing but the answers of the tools."""

from pathlib import Path
from typing import Any

from backstay.testing import Conversation, Reply, payload_of

FETCH, READ = "gmail__GMAIL_FETCH_EMAILS", "gmail__GMAIL_FETCH_MESSAGE_BY_MESSAGE_ID"
DRAFT, SEND, LABEL = "gmail__GMAIL_CREATE_EMAIL_DRAFT", "gmail__GMAIL_SEND_DRAFT", "gmail__GMAIL_ADD_LABEL_TO_EMAIL"
CHANNELS, POST = "slack__SLACK_LIST_ALL_CHANNELS", "slack__SLACK_SEND_MESSAGE"
PROGRAM = Path(__file__).with_name("count_program.py")
LETTER = "Hello,\n\nthe contract is right: 60 days. We send you a new invoice 2041.\n\nBest wishes"


def next_reply(conversation: Conversation) -> Reply:
    """Answer a question from the mailbox, or count the unread mails in a program."""
    if "finish" not in conversation.tools:
        return Reply(text="I found the mail and had to stop before the answer.")
    if missing := {FETCH, CHANNELS, POST} - set(conversation.tools):
        return Reply(text="I look for tools.", calls=[("search_tools", {"query": " ".join(sorted(missing))})])
    return _counted(conversation) if "count" in conversation.task.lower() else _answered(conversation)


def _answered(conversation: Conversation) -> Reply:
    if not conversation.calls(FETCH):
        wanted = {"query": "is:unread subject:2041", "max_results": 5}
        return Reply(text="I look for the mail and the channel.", calls=[(FETCH, wanted), (CHANNELS, {})])
    (mail,) = _data(conversation, FETCH)["messages"]
    if not conversation.calls(READ):
        return Reply(text="I read it.", calls=[(READ, {"message_id": mail["messageId"]})])
    if not conversation.calls(DRAFT):
        letter = {"recipient_email": mail["sender"], "subject": f"Re: {mail['subject']}", "body": LETTER}
        return Reply(text="I write a draft.", calls=[(DRAFT, letter | {"thread_id": mail["threadId"]})])
    if not conversation.calls(SEND):
        return _told(conversation, mail)
    sent = [answer.get("error") for name in (SEND, POST) for answer in conversation.answers(name)]
    if any(sent):
        return _finish(f"It was not sent: {next(filter(None, sent))}", success=False)
    return _finish(f"Answered {mail['sender']} and told #billing.", draft=_data(conversation, DRAFT)["id"])


def _told(conversation: Conversation, mail: dict[str, Any]) -> Reply:
    """Send the draft, tell the channel, and take the mail off the list of what is to be read, all at once."""
    channel = next(c["id"] for c in _data(conversation, CHANNELS)["channels"] if c["name"] == "billing")
    calls: list[tuple[str, dict[str, Any] | str]] = [
        (SEND, {"draft_id": _data(conversation, DRAFT)["id"]}),
        (POST, {"channel": channel, "text": f"Answered {mail['sender']} about {mail['subject']}: 60 days."}),
        (LABEL, {"message_id": mail["messageId"], "remove_label_ids": ["UNREAD"]}),
    ]
    return Reply(text="I send it and tell the others.", calls=calls)


def _counted(conversation: Conversation) -> Reply:
    runs = conversation.calls("run_program")
    if not runs:
        why = "I count in a program and keep only the numbers."
        return Reply(text=why, calls=[("run_program", {"code": PROGRAM.read_text(encoding="utf-8")})])
    done = payload_of(runs[-1].answer)
    if not isinstance(done, dict) or not isinstance(done.get("result"), dict):
        return _finish(f"The program did not do it: {runs[-1].answer}", success=False)
    return _finish(f"{done['result']['total']} mails are unread; #support has the list.", **done["result"])


def _data(conversation: Conversation, name: str) -> Any:
    """Return what a service answered last, out of its envelope."""
    return (payload_of(conversation.answers(name)[-1]) or {}).get("data", {})


def _finish(summary: str, *, success: bool = True, **outputs: Any) -> Reply:
    return Reply(calls=[("finish", {"summary": summary, "outputs": outputs, "success": success})])
