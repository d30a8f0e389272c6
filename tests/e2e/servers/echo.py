"""An MCP server over standard streams that issues tokens and says back what it is given; argv: where it writes what.

`issue` returns `{"reset_token": ...}`; `say` returns its argument in a spelling, as data, or as an error, as a refusal
or as progress. What it said is written to the file, one JSON text per line.
"""

import json
import sys
from pathlib import Path

from spellings import SPELLINGS, token_of

SAID = Path(sys.argv[1])
TEXT = {"type": "string"}
TOOLS = [
    ("issue", {"n": {"type": "integer"}}, True),
    ("say", {"text": TEXT, "spelling": TEXT, "way": TEXT}, True),
    ("keep", {"note": TEXT}, False),
    ("login", {"user": TEXT, "credential": TEXT}, False),
]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def note(said):
    with SAID.open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")


def data(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def called(request):
    params = request["params"]
    given = params.get("arguments") or {}
    match params["name"]:
        case "issue":
            return {"result": data({"reset_token": token_of(given["n"])})}
        case "say":
            said = SPELLINGS[given["spelling"]](given["text"])
            note(said)
            return spoken(params, said, given.get("way", "data"))
        case _:
            note(given)
            return {"result": data({"done": True})}


def spoken(params, said, way):
    text = said if isinstance(said, str) else json.dumps(said)
    match way:
        case "error":
            return {"result": {"content": [{"type": "text", "text": f"wrong: {text}"}], "isError": True}}
        case "refusal":
            return {"error": {"code": -32603, "message": f"refused {text}"}}
        case "progress":
            told = {
                "progressToken": (params.get("_meta") or {}).get("progressToken", 0),
                "progress": 1,
                "message": text,
            }
            say({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
    return {"result": data({"echo": said})}


def answered(request):
    name = {"id": request["id"], "jsonrpc": "2.0"}
    match request["method"]:
        case "initialize":
            shape = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "echo", "version": "1"}}
            return name | {"result": shape | {"capabilities": {"tools": {}}}}
        case "tools/list":
            return name | {"result": {"tools": [shape_of(*tool) for tool in TOOLS]}}
        case "tools/call":
            return name | called(request)
        case _:
            return name | {"error": {"code": -32601, "message": "no such method"}}


def shape_of(name, properties, reads):
    schema = {"type": "object", "properties": properties}
    return {"name": name, "inputSchema": schema, "description": name, "annotations": {"readOnlyHint": reads}}


for line in sys.stdin:
    if "id" in (request := json.loads(line)):
        say(answered(request))
