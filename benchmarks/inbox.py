"""Measure the page over HTTP: its lists with 500 open requests beside 10,000 decided ones.

python -m benchmarks.inbox [--rounds 100]
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2

from backstay.approvals.approval import ApprovalRequest, RequestedCall, RequestKind
from backstay.approvals.notice import DecisionNotice, NoticeDraft, NoticeKind
from backstay.tools.tool import Safety
from benchmarks import stage
from benchmarks.page import publish
from benchmarks.processes import cpu_seconds, process
from store.opening import open_store
from store.store import Store

OPEN, DECIDED, A_RUN = 500, 10_000, 100
"""How many requests there are, and how many each run asked."""
TARGET_MS = 300
TOOLS = ("mail.send_email", "crm.update_customer", "files.write", "shop.refund")
SECRET = "the-secret-of-the-proxy-of-a-benchmark"
PLACES = {
    "inbox": "/",
    "inbox, a search": "/?q=customer1",
    "decided": "/decided",
    "decided, a search that finds few": "/decided?q=customer9998",
    "decided, the last rows": "/decided?before=60",
}


def asked(number: int) -> ApprovalRequest:
    """Return a request of about the size that real ones have; a third names who may decide."""
    letter = {"to": f"customer{number}@example.com", "subject": f"Invoice {number}", "body": "Dear customer, " * 40}
    call = RequestedCall(
        index=0,
        tool=TOOLS[number % 4],
        arguments=letter,
        safety=Safety.WRITE_SAFE,
        undoable=number % 2 == 0,
        undo_how="recall_email(message_id=result.message_id)",
        args_digest=f"digest-{number % 100}",
        diff="\n".join(f"+line {line}" for line in range(20)),
    )
    return ApprovalRequest(
        id=f"r{number}",
        kind=RequestKind.CALL,
        question=f"May the run make one call of {call.tool}?",
        task=f"Remind customer {number} of the invoice",
        user_id=f"user{number % 50}",
        calls=(call,),
        options=("approve", "modify", "reject"),
        reason="The invoice is overdue.",
        approvers=("ana@example.com", "bo@example.com") if number % 3 == 0 else (),
    )


def told(numbers: range, *, closed: bool) -> Iterator[NoticeDraft]:
    """Yield what the worker of a run tells of its requests."""
    decision = DecisionNotice.model_validate({"verdict": "approve", "by": "ana@example.com", "verified": True})
    for at, number in enumerate(numbers):
        said = {"at": "2026-01-01T00:00:00"}
        yield NoticeDraft(sequence=2 * at, event=NoticeKind.ASKED, request=asked(number), **said)
        if closed:
            yield NoticeDraft(
                sequence=2 * at + 1, event=NoticeKind.DECIDED, request_id=f"r{number}", decision=decision, **said
            )


async def fill(store: Store, *, opened: int = OPEN, decided: int = DECIDED) -> None:
    """Fill a store as workers do: with decided requests, then with open ones."""
    for first in range(0, opened + decided, A_RUN):
        name, closed = f"run-{first}", first < decided
        await store.outbox.write(f"{name}/first", name, "first", list(told(range(first, first + A_RUN), closed=closed)))


async def timed(client: httpx2.AsyncClient, place: str, rounds: int) -> list[float]:
    took: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        answer = await client.get(place)
        took.append(1000 * (time.perf_counter() - began))
        answer.raise_for_status()
    return took


async def together(client: httpx2.AsyncClient, people: int, rounds: int) -> list[float]:
    """Return how long the inbox takes while several people open it at the same time."""
    return [
        took for some in await asyncio.gather(*(timed(client, "/", rounds) for _ in range(people))) for took in some
    ]


async def measure(rounds: int) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        _, address, _ = await stack.enter_async_context(stage.temporal())
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        async with open_store(database_url=None, home=home) as store:
            await fill(store)
        command = [sys.executable, "-m", "backstay", "web", "--port", "0"]
        settings = {"TEMPORAL_ADDRESS": address, "BACKSTAY_HOME": str(home), "BACKSTAY_POLICY": str(home / "none.yaml")}
        settings |= {"BACKSTAY_WEB_IDENTITY": "header", "BACKSTAY_WEB_PROXY_SECRET": SECRET}
        started, line = stack.enter_context(process(command, "backstay web ready: ", **settings))
        known = {"X-Forwarded-Email": "ana@example.com", "X-Backstay-Proxy": SECRET}
        client = httpx2.AsyncClient(base_url=line.rpartition(" ")[2], headers=known, timeout=60)
        await stack.enter_async_context(client)
        await timed(client, "/", 5)
        rows: list[dict[str, Any]] = []
        for what, place in PLACES.items():
            before = cpu_seconds(started.pid)
            took = await timed(client, place, rounds)
            rows.append(row(what, took, cpu_seconds(started.pid) - before))
        before = cpu_seconds(started.pid)
        took = await together(client, 3, rounds)
        rows.append(row("inbox, three people at once", took, cpu_seconds(started.pid) - before))
        return {"rows": rows, "open": OPEN, "decided": DECIDED, "target_ms": TARGET_MS}


def row(what: str, took: list[float], cpu: float) -> dict[str, Any]:
    ordered = sorted(took)
    return {
        "what": what,
        "samples": len(took),
        "median_ms": round(statistics.median(took), 1),
        "p95_ms": round(ordered[int(len(ordered) * 0.95)], 1),
        "cpu_ms": round(1000 * cpu / len(took), 1),
    }


def render(result: dict[str, Any]) -> str:
    lines = [
        "| page | samples | median, ms | p95, ms | processor time, ms | target, p95 |",
        "|---|---|---|---|---|---|",
    ]
    for each in result["rows"]:
        target = result["target_ms"] if each["what"].startswith("inbox") else ""
        numbers = f"{each['samples']} | {each['median_ms']} | {each['p95_ms']} | {each['cpu_ms']}"
        lines.append(f"| {each['what']} | {numbers} | {target} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    measured = asyncio.run(measure(parser.parse_args().rounds))
    publish("inbox", measured, render(measured))
