"""A server over stdio that minds how a connection begins; argv: how, and a file that it writes a line to for each act.

`ends`: it ends at any first message but `initialize`. `wants`: it says that it
speaks the newest revision, lists its tools, and takes no call before the handshake. `acts`: it refuses each call in the
same words, and does what it was asked before it does. `names`: it has a tool that is called like the handshake, and
refuses its arguments. `own`: its tools refuse their calls in words like those for want of a handshake.
"""

import json
import sys
from pathlib import Path

how, log = sys.argv[1], Path(sys.argv[2])
REFUSAL = {"error": {"code": -32600, "message": "initialize is required"}}
NEWEST = {"resultType": "complete", "supportedVersions": ["2025-11-25", "2026-07-28"], "capabilities": {"tools": {}}}
NEWEST |= {"ttlMs": 0, "cacheScope": "private", "serverInfo": {"name": "greetings", "version": "1"}}
greeted: list[str] = []


def note(line):
    with log.open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def call(name):
    known = name in {"look", "change"}
    if how == "own":
        said = 'workspace "prod" is not initialized; run init_workspace' if known else f"Unknown tool: {name}"
        return {"error": {"code": -32602, "message": said}}
    if how == "names":
        return {"error": {"code": -32602, "message": f"{name} is required to have a name"}}
    if not greeted:
        if how == "acts" and known:
            note(name)
        return REFUSAL
    if not known:
        return {"error": {"code": -32602, "message": f"Unknown tool: {name}"}}
    note(name)
    return {"result": {"content": [{"type": "text", "text": "the answer"}]}}


def answer(request):
    match request["method"]:
        case "initialize":
            greeted.append(request["method"])
            shape = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "greetings", "version": "1"}}
            return {"result": shape | {"capabilities": {"tools": {}}}}
        case "server/discover" if how in {"wants", "acts", "names", "own"}:
            return {"result": NEWEST}
        case "tools/list":
            schema = {"type": "object"}
            return {
                "result": {
                    "tools": [{"name": name, "inputSchema": schema} for name in ("look", "change", "initialize")]
                }
            }
        case "tools/call":
            return call(request["params"]["name"])
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


note("started")
for line in sys.stdin:
    request = json.loads(line)
    if how == "ends" and not greeted and request["method"] != "initialize":
        sys.stderr.write(f"Error: expect initialized request, but received: {request['method']}\n")
        raise SystemExit(1)
    if "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer(request)}) + "\n")
        sys.stdout.flush()
