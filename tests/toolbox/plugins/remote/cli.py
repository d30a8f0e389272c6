"""A plugin with subcommands, which end in every way a program can."""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description="Look after remotes.")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--config", help="which settings")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", aliases=["a"], help="add a remote", description="Add one remote.")
    add.add_argument("name")
    add.add_argument("--config", help="of this remote")
    keys = commands.add_parser("key", help="keys").add_subparsers(dest="sub")
    keys.add_parser("rotate", help="make a new key")
    keys.add_parser("dump", aliases=["d"], help=argparse.SUPPRESS)
    end = commands.add_parser("end", help="end in some way")
    end.add_argument(
        "how", choices=["error", "json-error", "killed", "hang", "text", "nothing", "environment", "twice"]
    )
    end.add_argument("rest", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.command != "end":
        print(json.dumps({**vars(given), "argv": sys.argv[1:]}))
        return
    match given.how:
        case "error":
            sys.exit("first line\nthe disk is full")
        case "json-error":
            print(json.dumps({"error": "quota reached", "left": 0}))
            sys.exit(4)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            time.sleep(600)
        case "text":
            print("only words")
        case "environment":
            print(json.dumps({"environment": dict(os.environ), "folder": str(Path.cwd())}))
        case "twice":
            with Path("running").open("x", encoding="utf-8"):
                time.sleep(0.5)
            Path("running").unlink()


if __name__ == "__main__":
    main()
