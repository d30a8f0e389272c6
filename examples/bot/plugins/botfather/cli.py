"""Talk with a bot over HTTP, as one account whose session is kept in a file beside this one.

BOT_URL is the address of the service. Only one process may use the session at a time.
"""

import argparse
import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SESSION = Path(__file__).with_name("botfather.session")


def main() -> int:
    """Carry out one command, print its answer as JSON, and return the exit code."""
    parser = argparse.ArgumentParser(description="Talk with a bot.")
    commands = parser.add_subparsers(dest="command", required=True)
    send = commands.add_parser("send-message", help="send a message to the bot")
    send.add_argument("--msg", required=True)
    replies = commands.add_parser("get-replies", help="read the last replies of the bot")
    replies.add_argument("--limit", type=int, default=5)
    click = commands.add_parser("click-button", help="click a button under the last reply")
    click.add_argument("--button-text", required=True)
    given = parser.parse_args()
    try:
        print(json.dumps(carry_out(given, session())))
    except (OSError, KeyError, ValueError) as error:
        print(json.dumps({"error": f"the bot cannot be reached: {error}"}))
        return 1
    return 0


def carry_out(given: argparse.Namespace, key: str) -> Any:
    """Return what the service answers to a command."""
    match given.command:
        case "send-message":
            return ask("messages", {"text": given.msg}, key)
        case "click-button":
            return ask("buttons", {"text": given.button_text}, key)
        case _:
            return ask("replies", {"limit": given.limit}, key)


def session() -> str:
    """Return the key of the session; the first command logs in and keeps it."""
    if SESSION.exists():
        return SESSION.read_text(encoding="utf-8")
    key = str(ask("log-in", {}, "")["key"])
    SESSION.touch(mode=0o600)
    SESSION.write_text(key, encoding="utf-8")
    return key


def ask(path: str, data: dict[str, Any], key: str) -> Any:
    """Send one request to the service and return its answer."""
    address = f"{os.environ['BOT_URL']}/{path}"  # noqa: TID251 - a program of its own, which backstay gives this variable
    headers = {"Authorization": key, "Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(data).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


if __name__ == "__main__":
    sys.exit(main())
