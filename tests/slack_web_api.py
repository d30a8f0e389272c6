"""The methods of Slack's Web API that the local server has, each as a function of the workspace."""

import secrets
import time
from typing import Any

from tests.slack_blocks import faults_of, faults_of_view

MOST_TEXT = 40_000
TRIGGER_LIFE_S = 30
"""Slack gives a trigger three seconds; a busy machine needs more to say the same."""


class Refused(Exception):
    """Refuse a call with one of Slack's own error codes."""

    def __init__(self, error, **more):
        super().__init__(error)
        self.answer = {"ok": False, "error": error, **more}


def answer_of(slack, method, arguments) -> dict[str, Any]:
    """Do what a method does and return Slack's answer."""
    found = METHODS.get(method)
    if found is None:
        return {"ok": False, "error": "unknown_method", "req_method": method}
    try:
        return {"ok": True, **(found(slack, arguments) or {})}
    except Refused as refused:
        return refused.answer


def auth_test(slack, given):
    return {
        "url": "https://test.slack.example/",
        "team": "test",
        "user": "backstay",
        "team_id": "T0TEST",
        "user_id": "U0BOT",
        "bot_id": "B0BOT",
        "is_enterprise_install": False,
        **({"enterprise_id": slack.organization} if slack.organization else {}),
    }


def connections_open(slack, given):
    return {"url": f"ws{slack.url.removeprefix('http')}/link?ticket={secrets.token_hex(8)}"}


def _channel(slack, given):
    channel = str(given.get("channel", ""))
    if channel in slack.users:  # a message to a person opens the conversation with them
        channel = _conversation_with(slack, channel)
    if channel not in slack.channels:
        raise Refused("channel_not_found")
    if slack.channels[channel]["is_archived"]:
        raise Refused("is_archived")
    if not slack.channels[channel]["is_member"]:
        raise Refused("not_in_channel")
    return channel


def _said(given):
    blocks, text = given.get("blocks"), given.get("text") or ""
    if not text and not blocks:
        raise Refused("no_text")
    if len(text) > MOST_TEXT:
        raise Refused("msg_too_long")
    if blocks is not None and (faults := faults_of(blocks)):
        raise Refused("invalid_blocks", errors=faults, response_metadata={"messages": faults})
    return given


def post_message(slack, given):
    channel, said = _channel(slack, given), _said(given)
    if said.get("thread_ts") and (channel, said["thread_ts"]) not in slack.messages:
        # What is meant for a thread whose head was deleted Slack posts into the channel.
        said = {**said, "thread_ts": None, "reply_broadcast": False}
    message = slack._say(channel, said)
    return {"channel": channel, "ts": message.ts, "message": slack._as_sent(message)}


def post_ephemeral(slack, given):
    if given.get("user") not in slack.users:
        raise Refused("user_not_in_channel")
    message = slack._say(_channel(slack, given), _said(given), to=given["user"])
    return {"message_ts": message.ts}


def update_message(slack, given):
    channel, ts = _channel(slack, given), given.get("ts")
    if (channel, ts) not in slack.messages or slack.messages[channel, ts].to:
        raise Refused("message_not_found")
    # Without blocks Slack keeps those of the message, and an empty list takes them away.
    before = slack.messages[channel, ts]
    kept = given if "blocks" in given else {**given, "blocks": before.blocks}
    message = slack._say(channel, _said(kept), ts=ts)
    return {"channel": channel, "ts": ts, "text": message.text, "message": slack._as_sent(message)}


def delete_message(slack, given):
    channel = _channel(slack, given)
    if slack.messages.pop((channel, given.get("ts")), None) is None:
        raise Refused("message_not_found")
    return {"channel": channel, "ts": given["ts"]}


def permalink(slack, given):
    channel = _channel(slack, given)
    return {"channel": channel, "permalink": f"{slack.url}/archives/{channel}/p{given['message_ts'].replace('.', '')}"}


def _who(slack, given):
    user, since = slack._triggers.pop(given.get("trigger_id"), (None, 0.0))
    if user is None:
        raise Refused("exchanged_trigger_id" if given.get("trigger_id") else "invalid_arguments")
    if time.monotonic() - since > TRIGGER_LIFE_S:
        raise Refused("expired_trigger_id")
    return user


def _viewed(given):
    view = given.get("view")
    if not isinstance(view, dict) or (faults := faults_of_view(view)):
        faults = faults if isinstance(view, dict) else ["missing required field: view"]
        raise Refused("invalid_arguments", response_metadata={"messages": faults})
    return view


def open_view(slack, given):
    view = _viewed(given)
    return {"view": slack.open_view(view, _who(slack, given))}


def update_view(slack, given):
    view, number = _viewed(given), given.get("view_id")
    known = slack.views.get(number) or next(
        (each for each in slack.views.values() if each.body.get("external_id") == given.get("external_id")), None
    )
    if known is None:
        raise Refused("not_found")
    if given.get("hash") and given["hash"] != known.body["hash"]:
        raise Refused("hash_conflict")
    return {"view": slack.open_view(view, known.user, known.id)}


def publish_view(slack, given):
    return {"view": slack.open_view(_viewed(given), given["user_id"])}


def user_info(slack, given):
    if given.get("user") not in slack.users:
        raise Refused("user_not_found")
    return {"user": slack.users[given["user"]]}


def user_by_email(slack, given):
    found = [each for each in slack.users.values() if each["profile"].get("email") == given.get("email")]
    if not found:
        raise Refused("users_not_found")
    return {"user": found[0]}


def list_users(slack, given):
    return {"members": list(slack.users.values()), "response_metadata": {"next_cursor": ""}}


def _conversation_with(slack, user):
    number = f"D{user}"
    if number not in slack.channels:
        slack.add_channel(number, f"directmessage-{user}", is_im=True, user=user)
    return number


def open_conversation(slack, given):
    people = [each for each in str(given.get("users", "")).split(",") if each]
    if not people or set(people) - slack.users.keys():
        raise Refused("user_not_found")
    return {"channel": slack.channels[_conversation_with(slack, "-".join(people))]}


def conversation_info(slack, given):
    if given.get("channel") not in slack.channels:
        raise Refused("channel_not_found")
    return {"channel": slack.channels[given["channel"]]}


def list_conversations(slack, given):
    return {"channels": list(slack.channels.values()), "response_metadata": {"next_cursor": ""}}


def join_conversation(slack, given):
    if given.get("channel") not in slack.channels:
        raise Refused("channel_not_found")
    slack.channels[given["channel"]]["is_member"] = True
    return {"channel": slack.channels[given["channel"]]}


def conversation_members(slack, given):
    return {"members": list(slack.users), "response_metadata": {"next_cursor": ""}}


def history(slack, given):
    standing = slack.standing(_channel(slack, given), None)
    return _page(slack, given, [message for message in reversed(standing) if message.to is None])


def _page(slack, given, messages):
    """Return a page of messages, and where the next one begins."""
    newer = [
        each for each in messages if float(each.ts) > float(given.get("oldest") or 0) or each.ts == given.get("ts")
    ]
    begin = int(given.get("cursor") or 0)
    end = begin + int(given.get("limit") or 100)
    more = end < len(newer)
    seen = [_seen(slack, message, given) for message in newer[begin:end]]
    return {"messages": seen, "has_more": more, "response_metadata": {"next_cursor": str(end) if more else ""}}


def _seen(slack, message, given):
    """Return a message as an app reads it: with what apps have attached only where it asks for that."""
    sent = slack._as_sent(message)
    if str(given.get("include_all_metadata", "")).lower() not in ("1", "true"):
        sent.pop("metadata", None)
    return sent


def replies(slack, given):
    channel = _channel(slack, given)
    first = slack.messages.get((channel, given.get("ts")))
    if first is None:
        raise Refused("thread_not_found")
    return _page(slack, given, [first, *slack.standing(channel, first.ts)])


def upload_url(slack, given):
    number = f"F{secrets.token_hex(5)}"
    slack.files[number] = {"id": number, "name": given.get("filename"), "length": int(given.get("length", 0))}
    return {"upload_url": f"{slack.url}/upload/{number}", "file_id": number}


def complete_upload(slack, given):
    done = []
    for named in given.get("files", []):
        kept = slack.files.get(named["id"])
        if kept is None or "content" not in kept:
            raise Refused("file_not_found")
        kept |= {"title": named.get("title"), "channel": given.get("channel_id"), "thread_ts": given.get("thread_ts")}
        done.append({"id": kept["id"], "title": kept["title"], "name": kept["name"]})
    return {"files": done}


def file_info(slack, given):
    if given.get("file") not in slack.files:
        raise Refused("file_not_found")
    return {"file": {key: value for key, value in slack.files[given["file"]].items() if key != "content"}}


def delete_file(slack, given):
    if slack.files.pop(given.get("file"), None) is None:
        raise Refused("file_not_found")


METHODS = {
    "api.test": lambda slack, given: {"args": given},
    "auth.test": auth_test,
    "apps.connections.open": connections_open,
    "chat.postMessage": post_message,
    "chat.postEphemeral": post_ephemeral,
    "chat.update": update_message,
    "chat.delete": delete_message,
    "chat.getPermalink": permalink,
    "views.open": open_view,
    "views.push": open_view,
    "views.update": update_view,
    "views.publish": publish_view,
    "users.info": user_info,
    "users.lookupByEmail": user_by_email,
    "users.list": list_users,
    "conversations.open": open_conversation,
    "conversations.info": conversation_info,
    "conversations.list": list_conversations,
    "conversations.join": join_conversation,
    "conversations.members": conversation_members,
    "conversations.history": history,
    "conversations.replies": replies,
    "files.getUploadURLExternal": upload_url,
    "files.completeUploadExternal": complete_upload,
    "files.info": file_info,
    "files.delete": delete_file,
}
