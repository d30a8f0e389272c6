"""Decisions as runs leave them in a store."""

from backstay.approvals.approval import ApprovalRequest, RecordedDecision, RequestedCall, RequestKind
from backstay.canonical import digest_of
from backstay.task.ledger.chain import time_of
from backstay.tools.tool import Safety
from store.ledger.noting import note
from tests.ledger.recorded import NOON


def call(index, arguments, *, real=None, **more):
    known = {"tool": "mail.send", "safety": Safety.WRITE_SAFE, "undoable": False}
    return RequestedCall(
        index=index, arguments=arguments, args_digest=digest_of(real or arguments), **{**known, **more}
    )


def asked(number, *calls, **more):
    known = {"question": "Send?", "created_at": time_of(NOON), "may_remember": ("run", "always", "never")}
    known["kind"] = RequestKind.BATCH if len(calls) > 1 else RequestKind.CALL
    return ApprovalRequest(id=f"r{number}", calls=calls, **{**known, **more})


def decided(number, verdict="approve", **more):
    known = {"update": "decide", "by": "ana", "verified": True, "state": "decided", "request_id": f"r{number}"}
    return RecordedDecision(n=number, at=time_of(NOON + 9), verdict=verdict, **{**known, **more})


async def record(store, run, requests, decisions, **opened):
    await store.runs.opened(
        run=run, workflow_id=run, workflow_run_id="1", user_id="zoe", text="t", opened={"model": "m", **opened}
    )

    def ask(connection):
        for request in requests:
            note(connection, run, "request", "request.asked", request.plain())

    await store.write(ask)
    await store.decisions.append(run, decisions)
