"""Measure the search of tools: what it finds on the lists of real servers, and how fast.

python -m benchmarks.search
"""

import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from benchmarks.page import publish
from benchmarks.tool_lists import Asked, filled, queries, real, real_definitions
from toolbox.catalog.catalog import build
from toolbox.catalog.definition import Definition
from toolbox.catalog.index import ToolIndex
from toolbox.catalog.naming import words_of

SIZES = (1_000, 10_000)
DEPTH = 100
ROUNDS = 2
Find = Callable[[str], list[str]]


class PlainBM25:
    """Rank by textbook BM25 over one text per tool."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        counts = {name: Counter(words_of(text)) for name, text in texts}
        mean = sum(count.total() for count in counts.values()) / len(counts)
        found: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)
        for name, count in counts.items():
            for word, n in count.items():
                found[word].append((name, n * 2.2 / (n + 1.2 * (0.25 + 0.75 * count.total() / mean))))
        self.found = {
            word: [
                (name, part * math.log(1 + (len(counts) - len(have) + 0.5) / (len(have) + 0.5))) for name, part in have
            ]
            for word, have in found.items()
        }

    def find(self, query: str) -> list[str]:
        scores: defaultdict[str, float] = defaultdict(float)
        for word in dict.fromkeys(words_of(query)):
            for name, part in self.found.get(word, ()):
                scores[name] += part
        return sorted(scores, key=lambda name: (-scores[name], name))[:DEPTH]


def name_and_description(tools: list[Definition]) -> Find:
    return PlainBM25((tool.name, f"{tool.mcp_name} {tool.description}") for tool in tools).find


def full_name_and_description(tools: list[Definition]) -> Find:
    return PlainBM25((tool.name, f"{tool.name} {tool.description}") for tool in tools).find


def by_words(tools: list[Definition]) -> Find:
    index = ToolIndex(tools, by_meaning=False)
    return lambda query: index.find(query, DEPTH)


def by_words_and_meaning(tools: list[Definition]) -> Find:
    index = ToolIndex(tools)
    return lambda query: index.find(query, DEPTH)


WAYS: dict[str, Callable[[list[Definition]], Find]] = {
    "BM25, name + description": name_and_description,
    "BM25, provider + name + description": full_name_and_description,
    "search, words alone": by_words,
    "search": by_words_and_meaning,
}


def scored(find: Find, asked: Sequence[tuple[str, Collection[str]]]) -> dict[str, float]:
    """Score what is found for each query, of which any of some tools is right."""
    places = []
    for query, right in asked:
        found = (place for place, tool in enumerate(find(query), 1) if tool in right)
        places.append(next(found, math.inf))
    return {
        "recall_at_10": round(100 * sum(place <= 10 for place in places) / len(places), 1),
        "mrr": round(100 * sum(1 / place for place in places) / len(places), 1),
    }


def quality() -> list[dict[str, Any]]:
    rows = []
    for tools in (real_definitions(), *(filled(size) for size in SIZES)):
        for way, made in WAYS.items():
            find = made(tools)
            for half, asked in queries().items():
                row = {"tools": len(tools), "way": way, "half": half, "queries": len(asked)}
                rows.append(row | {kind: scored(find, asked_as(asked, kind)) for kind in ("short", "sentence")})
    return rows


def asked_as(asked: list[Asked], kind: str) -> list[tuple[str, list[str]]]:
    return [(getattr(query, kind), [query.tool]) for query in asked]


def exact(tools: list[Definition]) -> float:
    """Return the percentage of full names that come first when searched for."""
    catalog = build(tools, [], {})
    return 100 * sum(catalog.search(tool.name, limit=1)[0].tool == tool.name for tool in tools) / len(tools)


def timed(find: Callable[[str], Any], asked: list[str]) -> list[float]:
    took = []
    for _ in range(ROUNDS):
        for text in asked:
            began = time.thread_time()
            find(text)
            took.append(1000 * (time.thread_time() - began))
    return took


def speed(size: int) -> list[dict[str, Any]]:
    tools = filled(size)
    asked = [getattr(query, kind) for half in queries().values() for query in half for kind in ("short", "sentence")]
    rows = []
    for way, made in WAYS.items():
        made(tools[:10])
        began = time.process_time()
        find = made(tools)
        built = time.process_time() - began
        took = sorted(timed(find, asked))
        p99 = took[int(len(took) * 0.99)]
        rows.append({"tools": size, "way": way, "build_s": built, "p50_ms": statistics.median(took), "p99_ms": p99})
    plain = rows[0]
    for row in rows:
        row |= {key: round(row[key], 3) for key in ("build_s", "p50_ms", "p99_ms")}
        row["p50_to_plain"] = round(row["p50_ms"] / plain["p50_ms"], 2)
    return rows


def measure() -> dict[str, Any]:
    return {
        "quality": quality(),
        "speed": [row for size in SIZES for row in speed(size)],
        "exact_names_first": round(exact(filled(SIZES[-1])), 2),
    }


def render(result: dict[str, Any]) -> str:
    lines = [
        "| tools | queries | way | short: recall@10 | MRR | sentence: recall@10 | MRR |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in result["quality"]:
        cells = [row["tools"], f"{row['half']} ({row['queries']})", row["way"]]
        cells += [row[kind][key] for kind in ("short", "sentence") for key in ("recall_at_10", "mrr")]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    lines += ["", "| tools | way | build, s | p50, ms | p99, ms | p50 to plain BM25 |", "|---|---|---|---|---|---|"]
    for row in result["speed"]:
        keys = ("tools", "way", "build_s", "p50_ms", "p99_ms", "p50_to_plain")
        lines.append("| " + " | ".join(str(row[key]) for key in keys) + " |")
    lines += ["", f"Full names that lead when asked for: {result['exact_names_first']} %."]
    servers = [
        f"{server} ({found['package']} {found['version']}, {found['licence']})" for server, found in real().items()
    ]
    return "\n".join([*lines, "", f"The servers: {', '.join(servers)}."])


if __name__ == "__main__":
    measured = measure()
    publish("search", measured, render(measured))
