"""Write the results to benchmarks/results and docs/performance.md."""

import json
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
RESULTS = Path(__file__).resolve().parent / "results"


def publish(name: str, result: dict[str, Any], text: str) -> None:
    """Write the figures as JSON, and the table between its two marks in docs/performance.md."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    begin, end = (f"<!-- {name}: {mark} -->" for mark in ("begin", "end"))
    before, found, rest = PAGE.read_text(encoding="utf-8").partition(begin)
    _, found_end, after = rest.partition(end)
    if not found or not found_end:
        raise SystemExit(f"{PAGE} has lost its marks {begin} and {end}")
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
    print(text)
