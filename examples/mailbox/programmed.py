"""A script for the demo's task that lets the model write one program instead of single calls."""

from pathlib import Path
from typing import Any

from backstay.testing import Conversation, Reply, payload_of
from examples.mailbox.listing import reason

PROGRAM = Path(__file__).with_name("remind_program.py")


def by_program(conversation: Conversation, days: int) -> Reply:
    """Return the next reply: the program, a read of its whole answer if that was cut, or the end."""
    runs = conversation.calls("run_program")
    if not runs:
        source = PROGRAM.read_text(encoding="utf-8").replace("DAYS = 60", f"DAYS = {days}")
        why = f"Read what is overdue by more than {days} days, add it up month by month, and remind everybody."
        return Reply(text=why, calls=[("run_program", {"code": source, "reason": why})])
    done = _result(runs[-1].answer)
    if done is None and (ref := _ref(runs[-1].answer)) is not None:
        parts = conversation.answers("read_result")
        if not parts:
            return Reply(calls=[("read_result", {"ref": ref, "path": "result"})])
        done = payload_of(parts[-1])
    if not isinstance(done, dict) or "total" not in done:
        summary = f"The program did not do it: {reason(runs[-1].answer)}"
        return Reply(calls=[("finish", {"summary": summary, "outputs": {}, "success": False})])
    return Reply(calls=[("finish", _finish(done, days))])


def _finish(done: dict[str, Any], days: int) -> dict[str, Any]:
    sent, unsent = done["sent"], done["not_sent"]
    late = len(sent) + len(unsent)
    summary = (
        f"EUR {done['total']:,.2f} is overdue by more than {days} days, on {done['invoices']} invoices of "
        f"{late} customer{'' if late == 1 else 's'}. Reminders sent: {len(sent)}."
    )
    outputs: dict[str, Any] = {"total": done["total"], "recipients": sent, "by_month": done["by_month"]}
    if unsent:
        summary += f" Not sent: {len(unsent)} ({'; '.join(unsent)})."
        outputs["not_reminded"] = [fault.partition(":")[0] for fault in unsent]
    return {"summary": summary, "outputs": outputs, "success": True}


def _result(answer: Any) -> Any:
    payload = payload_of(answer)
    return payload.get("result") if isinstance(payload, dict) else None


def _ref(answer: Any) -> str | None:
    ref = answer.get("storage_ref") if isinstance(answer, dict) else None
    return ref if isinstance(ref, str) else None
