"""An MCP server over standard streams that answers what its script says; argv: the script, read again per request.

{"tools": [...], "later": [tools that are listed too once a call was made],
 "instructions": what it says of itself,
 "starts": name of a file that stands beside the script when the server has started,
 "answers": {tool: answer or [answers, one per call, the last for all further ones]}}
An answer: {"content": parts, perhaps beside "data"}, {"data": any}, {"error": text}, {"refusal": text} (an error of
the protocol), {"garbage": text before it}, {"megabytes": n}, {"die": true}, {"hang": true}, {"notify": true},
{"meta": what stands beside it}, {"until": name of a file} (which stands beside the script when the answer may come).
Every call is written to `<script>.calls` first.
"""

import json
import os
import sys
import time
from pathlib import Path

script = Path(sys.argv[1])
log = script.with_suffix(".calls")


def say(message):
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


def recorded(call):
    with log.open("a", encoding="utf-8") as file:
        file.write(
            json.dumps({"tool": call["name"], "arguments": call.get("arguments"), "meta": call.get("_meta")}) + "\n"
        )
    lines = log.read_text(encoding="utf-8").splitlines()
    return sum(1 for line in lines if json.loads(line)["tool"] == call["name"])


def content(answer):
    if "megabytes" in answer:
        return {"content": [{"type": "text", "text": "x" * (answer["megabytes"] * 1024 * 1024)}]}
    if "content" in answer:
        return {"content": answer["content"], **({"structuredContent": answer["data"]} if "data" in answer else {})}
    if "error" in answer:
        return {"content": [{"type": "text", "text": answer["error"]}], "isError": True}
    data = answer.get("data")
    text = data if isinstance(data, str) else json.dumps(data)
    shape = {"content": [{"type": "text", "text": text}]}
    return shape | ({"structuredContent": data} if isinstance(data, dict) else {})


def called(told, request):
    number = recorded(request["params"])
    answers = told["answers"][request["params"]["name"]]
    answer = answers[min(number, len(answers)) - 1] if isinstance(answers, list) else answers
    if answer.get("die"):
        os._exit(9)
    if answer.get("hang"):
        return None
    while "until" in answer and not script.with_name(answer["until"]).exists():
        time.sleep(0.05)
    if answer.get("notify"):
        say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    if "garbage" in answer:
        say(answer["garbage"])
    if "refusal" in answer:
        return {"error": {"code": -32603, "message": answer["refusal"]}}
    return {"result": content(answer) | ({"_meta": answer["meta"]} if "meta" in answer else {})}


def answered(request):
    told = json.loads(script.read_text(encoding="utf-8"))
    name = {"id": request["id"], "jsonrpc": "2.0"}
    match request["method"]:
        case "initialize":
            while "starts" in told and not script.with_name(told["starts"]).exists():
                time.sleep(0.05)
            shape = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "scripted", "version": "1"}}
            shape |= {"instructions": told["instructions"]} if "instructions" in told else {}
            return name | {"result": shape | {"capabilities": {"tools": {"listChanged": True}}}}
        case "tools/list":
            return name | {"result": {"tools": told["tools"] + (told.get("later", []) if log.exists() else [])}}
        case "tools/call":
            said = called(told, request)
            return None if said is None else name | said
        case _:
            return name | {"error": {"code": -32601, "message": "no such method"}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and (answer := answered(request)) is not None:
        say(answer)
