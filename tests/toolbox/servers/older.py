"""An MCP server of an older revision; argv: the revision, and a file that gets one line per thing that happens.

It lists one tool per page. Its tools ask over the open connection, tell how far they are, and hear of cancellation;
`later` asks when the tools are listed next, and `now` answers without asking; what `crowd` and `survey`
ask is long.
"""

import json
import sys
from pathlib import Path

REVISION, LOG = sys.argv[1], Path(sys.argv[2])
FORM = {
    "type": "object",
    "properties": {"day": {"type": "string", "enum": ["monday", "friday"]}},
    "required": ["day"],
}
CHOICES = [f"a repository with a name of some length, number {number}" for number in range(600)]
CROWDED = {"type": "object", "properties": {"day": {"type": "string", "enum": CHOICES}}, "required": ["day"]}
TOOLS = ["book", "peek", "strict", "climb", "later", "now", "crowd", "survey"]
READS = {"peek", "climb", "survey"}
asked = {}
waiting = []


def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def note(text):
    with LOG.open("a", encoding="utf-8") as file:
        file.write(text + "\n")


def text(answered, words, *, error=False):
    say(id=answered, result={"content": [{"type": "text", "text": words}], "isError": error})


def listed(cursor):
    position = int(cursor or 0)
    name = TOOLS[position]
    hints = {"readOnlyHint": name in READS}
    tool = {"name": name, "inputSchema": {"type": "object", "properties": {}}, "annotations": hints}
    more = {"nextCursor": str(position + 1)} if position + 1 < len(TOOLS) else {}
    return {"tools": [tool], **more}


def called(request):
    name = request["params"]["name"]
    note(f"called {name}")
    if name == "climb":
        token = request["params"].get("_meta", {}).get("progressToken")
        say(method="notifications/progress", params={"progressToken": token, "progress": 3, "total": 8})
        return
    if name == "now":
        text(request["id"], "done")
    elif name == "later":
        waiting.append(request)
    else:
        ask(request)


def ask(request):
    name = request["params"]["name"]
    asked[f"question-{len(asked)}"] = (request["id"], name)
    say(
        id=f"question-{len(asked) - 1}",
        method="elicitation/create",
        params={"message": "Which day suits?", "requestedSchema": CROWDED if name in {"crowd", "survey"} else FORM},
    )


def answered(message):
    request, name = asked[message["id"]]
    result = message.get("result", {})
    note(f"{name} was told {result.get('action')}")
    if result.get("action") == "accept":
        text(request, json.dumps({"booked": result["content"]["day"]}))
    else:
        text(request, "no day, no booking", error=name == "strict")


for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case None:
            answered(message)
        case "initialize":
            shape = {"protocolVersion": REVISION, "serverInfo": {"name": "older", "version": "1"}}
            say(id=message["id"], result={**shape, "capabilities": {"tools": {}}})
        case "tools/list":
            say(id=message["id"], result=listed(message.get("params", {}).get("cursor")))
            while waiting:
                ask(waiting.pop())
        case "tools/call":
            called(message)
        case "notifications/cancelled":
            note("cancelled")
        case _ if "id" in message:
            say(id=message["id"], error={"code": -32601, "message": "no such method"})
        case _:
            pass
