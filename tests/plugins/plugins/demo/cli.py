"""What the tests of the daemon run; it writes a line into the file $RAN for each start, when that is set."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

parser = argparse.ArgumentParser(description="Talk with a bot.")
commands = parser.add_subparsers(dest="command", required=True)
click = commands.add_parser("click-button", help="click a button")
click.add_argument("--button-text", required=True)
click.add_argument("--row", type=int)
click.add_argument("--loud", action="store_true")
wait = commands.add_parser("wait", help="wait until a file is there")
wait.add_argument("path")
pause = commands.add_parser("pause", help="take a while")
pause.add_argument("seconds", type=float)
fail = commands.add_parser("fail", help="fail")
fail.add_argument("--how", choices=["stated", "stderr", "object", "killed"], default="stated")
say = commands.add_parser("say", help="print a text as it is")
say.add_argument("text")
given = parser.parse_args()

if ran := os.environ.get("RAN"):
    with Path(ran).open("a", encoding="utf-8") as file:
        file.write(f"{given.command}\n")
match given.command:
    case "click-button":
        print(json.dumps({"clicked": given.button_text, "row": given.row, "loud": given.loud}))
    case "wait":
        while not Path(given.path).exists():
            time.sleep(0.02)
        print(json.dumps({"found": given.path}))
    case "pause":
        time.sleep(given.seconds)
        print("done")
    case "fail" if given.how == "stated":
        print(json.dumps({"error": "no such bot", "key": os.environ.get("BOT_KEY")}))
        sys.exit(3)
    case "fail" if given.how == "object":
        print(json.dumps({"error": {"code": 7, "retry": True}}))
        sys.exit(3)
    case "fail" if given.how == "killed":
        os.kill(os.getpid(), 9)
    case "fail":
        sys.stderr.write(f"refused for {os.environ.get('BOT_KEY')}\n")
        sys.exit(1)
    case "say":
        print(given.text)
