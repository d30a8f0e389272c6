"""A server that says exactly what its script says; argv: a JSON file, read again for every request.

{"garbage": "printed first", "exit": false, "silent": false, "stubborn": false, "tools": [...], "answers": {...},
"handshake": {...}, "discover": {...}, "listing": {...}, "changes_while_listed": 0, "unread": "indent",
"speaks": [revisions], "refusal": {...}, "discover_refusal": {...}}: with `speaks`, a handshake that offers another
revision gets the refusal, in which OFFERED stands for that one.
`unread`: answers are of several lines (`indent`), without their version (`bare`), or behind a header (`header`).
An answer, by tool, is {"result": ...}, {"error": ...} or {"line": "..."}, each also with {"notify": method};
{"endless": "text", "pause": seconds} is one line without an end; and {"rounds": {state: answer}} is chosen by the state
that comes back with a call, as JSON if it is no text; it is "" at first.
"methods" are further ones: for each, results by what is asked for (a `uri`, a `name` or a `cursor`, else "").
"""

import json
import signal
import sys
import time
from pathlib import Path

script = Path(sys.argv[1])


def say(message):
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def written(said, how):
    match how:
        case "indent":
            return json.dumps(said, indent=2)
        case "bare":
            return {name: value for name, value in said.items() if name != "jsonrpc"}
        case "header":
            return f"Content-Length: {len(json.dumps(said))}\r\n\r\n{json.dumps(said)}Content-Length: 9"
        case _:
            return said


def other(told, request):
    results, params = told.get("methods", {}).get(request["method"]), request.get("params") or {}
    if results is None:
        return {"error": {"code": -32601, "message": "no such method"}}
    asked = next((params[key] for key in ("uri", "name", "cursor") if key in params), "")
    if asked not in results:
        return {"error": {"code": -32002, "message": f"there is no {asked!r} here"}}
    return {"result": results[asked]}


def reply_to(params, answers):
    reply = answers[params["name"]]
    state = params.get("requestState", "")
    return reply["rounds"][state if isinstance(state, str) else json.dumps(state)] if "rounds" in reply else reply


def answer(request):
    told = json.loads(script.read_text(encoding="utf-8"))
    name = {"id": request["id"], "jsonrpc": "2.0"}
    match request["method"]:
        case "initialize" if request["params"]["protocolVersion"] not in told.get(
            "speaks", [request["params"]["protocolVersion"]]
        ):
            refusal = json.dumps(told["refusal"]).replace("OFFERED", request["params"]["protocolVersion"])
            return name | {"error": json.loads(refusal)}
        case "initialize" if "speaks" in told:
            shape = {
                "protocolVersion": request["params"]["protocolVersion"],
                "serverInfo": {"name": "raw", "version": "1"},
            }
            return name | {"result": shape | {"capabilities": {"tools": {}}}}
        case "initialize":
            shape = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "raw", "version": "1"}}
            shape |= {"capabilities": {"tools": {"listChanged": True}}}
            return name | {"result": shape | told.get("handshake", {})}
        case "server/discover" if "discover_refusal" in told:
            return name | {"error": told["discover_refusal"]}
        case "server/discover" if "discover" in told:
            return name | {"result": told["discover"]}
        case "tools/list":
            for _ in range(told.get("changes_while_listed", 0)):
                say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            return name | {"result": {"tools": told.get("tools", []), **told.get("listing", {})}}
        case "tools/call":
            reply = reply_to(request["params"], told["answers"])
            if "notify" in reply:
                say({"jsonrpc": "2.0", "method": reply["notify"]})
            while "endless" in reply:
                sys.stdout.write(reply["endless"])
                sys.stdout.flush()
                time.sleep(reply["pause"])
            if "line" in reply:
                return reply["line"].replace("ID", str(request["id"]))
            return name | {key: value for key, value in reply.items() if key in {"result", "error"}}
        case _:
            return name | other(told, request)


told = json.loads(script.read_text(encoding="utf-8"))
if told.get("exit"):
    sys.stderr.write("cannot start: no licence\n")
    raise SystemExit(3)
if told.get("stubborn"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if told.get("garbage"):
    say(told["garbage"])
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and not told.get("silent"):
        say(written(answer(request), told.get("unread")))
while told.get("stubborn"):
    time.sleep(0.1)
