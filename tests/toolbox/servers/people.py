"""An MCP server for mail and chat; argv: in which shape its tools are named, `plain` or `composio`.

It speaks the protocol without a library, which would take a second to import.
"""

import json
import os
import sys

TEXT, TRUTH, NUMBER = {"type": "string"}, {"type": "boolean", "default": False}, {"type": "integer"}
TEXTS = {"type": "array", "items": TEXT}


def perhaps(schema):
    return {"anyOf": [schema, {"type": "null"}], "default": None}


def tool(name, description, properties, optional=(), *, reads=False):
    required = [proof for proof in properties if proof not in optional]
    schema = {"type": "object", "properties": properties, "required": required}
    listed = {"name": name, "description": description, "inputSchema": schema}
    return listed | ({"annotations": {"readOnlyHint": True}} if reads else {})


MAIL = {"subject": TEXT, "body": TEXT, "cc": perhaps(TEXTS)}
POST = {"channel": TEXT, "text": TEXT, "thread_ts": perhaps(TEXT)}
PLAIN = [
    tool("send_email", "Send an email.", {"to": TEXTS, **MAIL, "html": TRUTH}, ("cc", "html")),
    tool("search_emails", "Search mail.", {"query": TEXT, "limit": NUMBER}, reads=True),
    tool("post_message", "Post.", POST, ("thread_ts",)),
]
COMPOSIO = [
    tool(
        "GMAIL_SEND_EMAIL",
        "Send an email using Gmail.",
        {"recipient_email": TEXT, **MAIL, "extra_recipients": perhaps(TEXTS), "is_html": TRUTH},
        ("cc", "extra_recipients", "is_html"),
    ),
    tool(
        "GMAIL_FETCH_EMAILS",
        "Fetch emails.",
        {"query": TEXT, "max_results": NUMBER | {"maximum": 500, "default": 1}},
        ("max_results",),
    ),
    tool("SLACK_SEND_MESSAGE", "Send a message.", POST, ("thread_ts",)),
    tool("SLACK_SEARCH_MESSAGES", "Search messages.", {"query": TEXT, "count": NUMBER | {"default": 1}}, ("count",)),
    tool("SLACK_DELETES_A_MESSAGE_FROM_A_CHAT", "Delete a message.", {"channel": TEXT, "ts": TEXT}),
]


class Refused(Exception):
    """Say what the person behind the tool would read."""


def plain(name, given):
    match name:
        case "send_email":
            if given["subject"] == "refuse":
                raise Refused("the mailbox is full")
            if given["subject"] == "die":
                os._exit(1)
            told = {"cc": None, "html": False} | {key: given[key] for key in given if key != "body"}
            return told | {"message_id": "m1"}
        case "search_emails":
            return given
        case "post_message":
            return {"thread_ts": None} | given | {"ts": "1.5"}


def composio(name, given):
    match name:
        case "GMAIL_SEND_EMAIL":
            if given["subject"] == "refuse":
                return {"data": {}, "successful": False, "error": "the mailbox is full"}
            to = [given["recipient_email"], *(given.get("extra_recipients") or [])]
            told = {"to": to, "subject": given["subject"], "cc": given.get("cc"), "html": given.get("is_html", False)}
            data = told | {"id": "m1"}
        case "GMAIL_FETCH_EMAILS":
            data = {"query": given["query"], "limit": given.get("max_results", 1)}
        case "SLACK_SEND_MESSAGE":
            data = {"thread_ts": None} | given | {"ts": "1.5"}
        case "SLACK_SEARCH_MESSAGES":
            data = {"query": given["query"], "limit": given.get("count", 1)}
        case "SLACK_DELETES_A_MESSAGE_FROM_A_CHAT":
            data = {"deleted": [given["channel"], given["ts"]]}
    return {"data": data, "successful": True, "error": None}


LISTED, ANSWER = {"plain": (PLAIN, plain), "composio": (COMPOSIO, composio)}[sys.argv[1]]


def check(name, given):
    """Refuse what the tool's own schema refuses."""
    (schema,) = [tool["inputSchema"] for tool in LISTED if tool["name"] == name]
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list}
    if missing := [name for name in schema["required"] if name not in given]:
        raise Refused(f"{name} needs {', '.join(missing)}")
    for key, value in given.items():
        rule = schema["properties"].get(key)
        if rule is None:
            raise Refused(f"{name} takes no {key}")
        if not isinstance(value, kinds[rule["anyOf"][0]["type"] if "anyOf" in rule else rule["type"]] | None):
            raise Refused(f"{name} takes no such {key}")


def called(request):
    given, meta = request.get("arguments") or {}, request.get("_meta") or {}
    try:
        check(request["name"], given)
        answer = ANSWER(request["name"], given)
    except Refused as refused:
        return {"content": [{"type": "text", "text": str(refused)}], "isError": True}
    (answer["data"] if LISTED is COMPOSIO else answer)["effect"] = meta.get("backstay/effect-id")
    return {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}


def answered(request):
    match request["method"]:
        case "initialize":
            shape = {"protocolVersion": "2025-06-18", "serverInfo": {"name": "people", "version": "1"}}
            return {"result": shape | {"capabilities": {"tools": {}}}}
        case "tools/list":
            return {"result": {"tools": LISTED}}
        case "tools/call":
            return {"result": called(request["params"])}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answered(request)}) + "\n")
        sys.stdout.flush()
