"""Measure redaction and digests on large payloads.

python -m benchmarks.payloads
"""

import json
import random
import time
from collections.abc import Callable
from typing import Any

from backstay.digests.digest import summarize_payload
from backstay.redaction.redactor import Redactor
from benchmarks.page import publish

BYTES = 20_000_000
RUNS = 3
KNOWN = (0, 10, 300)
"""How many secrets a run knows."""
WORDS = [
    "the",
    "invoice",
    "was",
    "paid",
    "by",
    "a",
    "customer",
    "with",
    "path",
    "parameter",
    "token_count",
    "request",
    "id",
    "update",
    "issue",
    "1/2",
    "SKU",
    "task",
]


def table(size: int) -> list[dict[str, Any]]:
    dice = random.Random(1)
    return [
        {
            "id": number,
            "customer": {"id": dice.randrange(999), "name": f"customer {dice.randrange(9999)}"},
            "when": f"2026-{dice.randrange(1, 13):02d}-{dice.randrange(1, 28):02d}T10:00:00Z",
            "amount": dice.random() * 1000,
            "note": " ".join(dice.choices(WORDS, k=6)),
            "tags": ["a", "b"],
        }
        for number in range(size // 190)
    ]


def log(size: int) -> str:
    dice = random.Random(2)
    levels = dice.choices(["INFO", "WARN", "ERROR"], k=size // 57)
    return "\n".join(
        f"2026-11-22T10:{number % 60:02d}:00Z {level} desk request {number} took {dice.randrange(999)} ms"
        for number, level in enumerate(levels)
    )


def prose(size: int) -> str:
    dice = random.Random(3)
    return "\n".join(" ".join(dice.choices(WORDS, k=30)) for _ in range(size // 172))


def nested(size: int) -> dict[str, Any]:
    return {"a": {"b": [{"c": {"d": [number] * 20}} for number in range(size // 158)]}}


def least(work: Callable[[], Any]) -> float:
    """Return the seconds of processor time of the fastest run."""
    took: list[float] = []
    for _ in range(RUNS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


PAYLOADS: dict[str, Callable[[int], Any]] = {
    "table": table,
    "JSON text": lambda size: json.dumps(table(size)),
    "log": log,
    "prose": prose,
    "nested lists": nested,
    "bytes": lambda size: log(size).encode(),
}


def secrets(count: int) -> list[str]:
    dice = random.Random(4)
    signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
    return ["".join(dice.choices(signs, k=dice.choice((20, 32, 40)))) for _ in range(count)]


def megabytes_of(payload: Any) -> float:
    return len(payload if isinstance(payload, str | bytes) else json.dumps(payload)) / 1e6


def measure(size: int = BYTES) -> dict[str, Any]:
    redactors = {count: Redactor(secrets(count)) for count in KNOWN}
    rows: list[dict[str, Any]] = []
    for name, made in PAYLOADS.items():
        large, small = made(size), made(size // 20)
        digest_s = least(lambda payload=large: summarize_payload("payload", payload))
        row = {"payload": name, "megabytes": round(megabytes_of(large), 1), "digest_s": round(digest_s, 4)}
        # Of bytes only size and hash are shown, so nothing is redacted.
        if not isinstance(small, bytes):
            for count, redactor in redactors.items():
                redact_s = least(lambda payload=small, redactor=redactor: redactor.redact(payload))
                row[f"redact_{count}_s_per_mb"] = round(redact_s / megabytes_of(small), 4)
        rows.append(row)
    return {"rows": rows}


def render(result: dict[str, Any]) -> str:
    known = " | ".join(f"{count} secrets known" for count in KNOWN)
    lines = [f"| payload | MB | digest, s | redaction, s per MB: {known} |", "|---|---|---|---|---|---|"]
    for row in result["rows"]:
        redaction = [row.get(f"redact_{count}_s_per_mb") for count in KNOWN]
        cells = " | ".join("-" if figure is None else f"{figure:.2f}" for figure in redaction)
        lines.append(f"| {row['payload']} | {row['megabytes']} | {row['digest_s']:.2f} | {cells} |")
    return "\n".join(lines)


if __name__ == "__main__":
    found = measure()
    publish("payloads", found, render(found))
