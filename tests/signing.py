"""Sign as a gateway without this package would, from the written rule alone."""

import hashlib
import hmac
import json
import secrets
import time

from tests.engine import through_switches


async def signed(handle, payload, *, update="decide", key, life=600, **changed):
    """Return the payload with a proof, bound to the run and to the request as they are shown now."""
    bound = await binding(handle, update, str(payload.get("request_id", "")))
    return {**payload, "proof": proof_of(payload, {**bound, **changed}, key=key, life=life)}


async def binding(handle, update, request_id=""):
    """Return what a proof for a run names, from its status."""
    status = await through_switches(lambda: handle.query("status"))
    shown = {request["id"]: request["digest"] for request in status["pending"]}
    return {
        "namespace": status["namespace"],
        "workflow_id": status["workflow_id"],
        "run_id": status["run_id"],
        "update": update,
        "request_id": request_id,
        "digest": shown.get(request_id, ""),
    }


def proof_of(payload, bound, *, key, life=600):
    """Return the proof of a payload; `bound` has the fields of a binding, in their order."""
    expires, nonce = int(time.time()) + life, secrets.token_hex(16)
    said = [*bound.values(), expires, nonce, payload]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    mac = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    return f"2.{expires}.{nonce}.{mac}"


def proof_of_format_1(payload, workflow_id, update, *, key):
    """Return a proof as it was signed before proofs were bound to a run."""
    expires = int(time.time()) + 600
    said = [workflow_id, update, expires, payload]
    text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"{expires}.{hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()}"


def signed_start(client, workflow_id, task, *, key):
    """Return a task whose `by` is proven."""
    bound = {
        "namespace": client.namespace,
        "workflow_id": workflow_id,
        "run_id": "",
        "update": "start",
        "request_id": "",
        "digest": "",
    }
    return {**task, "proof": proof_of(task, bound, key=key)}
