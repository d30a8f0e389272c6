"""A run of several models: one says what the task is about, the next one refuses, and the last one is asked instead."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from backstay.testing import Conversation, Reply, ScriptedModel
from tests.engine import Engine
from tests.replay.steps import FINISH, READ, Handle, Play, ended

PROFILES = """
looking: {perception: true}
remembering: {memory: {read: true, write: true}}
delegating: {delegation: true}
reviewed:
  review:
    checks: [{name: custom, tool: mail.list_customers, arguments: {limit: 1}, range: {path: result.total, max: 0}}]
"""
PRICE = {"input": 1.0, "cached": 0.1, "output": 4.0}
PERCEIVED = {
    "intent": "to read customers",
    "entities": [],
    "tool_hint": "list customers",
    "tags": [],
    "selected_servers": ["mail"],
}


def options(folder: Path) -> dict[str, Any]:
    """Return what an engine must be told for that; the models answer only while the shape is played."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names: dict[str, list[str]] = {"small": [], "first": ["spare"], "spare": []}
    entries = {
        name: {"endpoint": "here", "model": name, "price": PRICE, "fallback": others} for name, others in names.items()
    }
    said = {"endpoints": {"here": {"base_url": f"http://127.0.0.1:{port}/v1"}}, "models": entries}
    path = folder / "models.yaml"
    path.write_text(yaml.safe_dump(said | {"use": {"perception": "small"}}), encoding="utf-8")
    return {"models": path, "profiles": PROFILES}


def _rules(talk: Conversation) -> Reply:
    match talk.model:
        case "small":
            return Reply(text=json.dumps(PERCEIVED))
        case "first":
            return Reply(status=401)
        case _:
            return Reply(calls=[FINISH if talk.calls() else READ])


async def fallback(engine: Engine) -> Handle:
    said = yaml.safe_load(engine.settings.models.read_text(encoding="utf-8"))
    port = urlsplit(said["endpoints"]["here"]["base_url"]).port or 0
    async with ScriptedModel(_rules, port):
        task = {"text": "fallback", "model": "first", "profile": "looking"}
        handle = await engine.start(task, "golden-fallback")
        await ended(handle)
    return handle


SHAPES: dict[str, Play] = {"fallback": fallback}
