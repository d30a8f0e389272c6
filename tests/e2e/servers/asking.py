"""An MCP server that asks people for values, over standard streams; argv: a file that gets a line for each answer.

Its one tool, `ask`, has the form among its arguments: as an object, or as the name of a file that holds it; of several
forms each is a question. It speaks the revision in which a call is answered by a question and made again with what
people said, without a library, which would take a second to import.
"""

import json
import sys
from pathlib import Path

log = Path(sys.argv[1])
SHAPE = {"type": "object", "properties": {"mark": {"type": "string"}, "message": {"type": "string"}, "form": {}}}
TOOL = {"name": "ask", "description": "Ask a person.", "inputSchema": SHAPE, "annotations": {"readOnlyHint": True}}
COMPLETE = {"resultType": "complete"}
KEPT = {"cacheScope": "private", "ttlMs": 0}


def question(message, form):
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": form}}


def called(params):
    given = params["arguments"]
    if "inputResponses" not in params:
        form = (
            json.loads(Path(given["form"]).read_text(encoding="utf-8"))
            if isinstance(given["form"], str)
            else given["form"]
        )
        several = all(isinstance(each, dict) and "properties" in each for each in form.values())
        forms = form if several else {"it": form}
        questions = {key: question(given["message"], form) for key, form in forms.items()}
        return {"resultType": "input_required", "inputRequests": questions, "requestState": "waits"}
    answers = params["inputResponses"]
    said = {"mark": given["mark"], **answers.get("it", answers)}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(said) + "\n")
    return COMPLETE | {"content": [{"type": "text", "text": "thank you"}]}


def answered(request):
    match request["method"]:
        case "server/discover":
            return {"result": COMPLETE | KEPT | {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
        case "tools/list":
            return {"result": COMPLETE | KEPT | {"tools": [TOOL]}}
        case "tools/call":
            return {"result": called(request["params"])}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answered(request)}) + "\n")
        sys.stdout.flush()
