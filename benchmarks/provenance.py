"""What it costs to know where arguments came from: indexing an answer, and looking a call up.

python -m benchmarks.provenance [--calls 2000]

The first rows index an answer of one megabyte; the others look up calls of 20 arguments against the index of a run of
2,000 steps that has also read an answer of 20 MB.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

from backstay.provenance.index import Index, texts_in
from backstay.provenance.lookup import Lookup

MEGABYTE = 1_000_000
TEXT = (
    "invoice order customer please thanks regards payment delivery address number meeting quote budget "
    "report release ticket answer question shipping warehouse supplier contract review change update "
    "status week month account "
)
WORDS = TEXT.split()


def prose(chance: random.Random, size: int) -> Any:
    """Return mail-like text."""
    parts: list[str] = []
    while size > 0:
        words = chance.choices(WORDS, k=12)
        words[chance.randrange(12)] = f"{chance.choice(WORDS)}{chance.randrange(10_000)}"
        line = " ".join(words) + ".\n"
        parts.append(line)
        size -= len(line)
    return {"text": "".join(parts)}


def rows(chance: random.Random, size: int) -> Any:
    """Return the rows of a customer list."""
    found: list[dict[str, Any]] = []
    while size > 0:
        n = chance.randrange(10**9)
        name = f"{chance.choice(WORDS)}{n % 997}"
        row = {"id": n, "email": f"{name}@{chance.choice(WORDS)}{n % 89}.example", "amount": n / 100, "city": name[:3]}
        found.append(row)
        size -= len(json.dumps(row))
    return {"rows": found}


def codes(chance: random.Random, size: int) -> Any:
    """Return identifiers, each a new word: the worst that an answer can be."""
    return {"ids": [f"{chance.getrandbits(48):012x}" for _ in range(size // 16)]}


def timed(work: Callable[[], object], times: int = 5) -> float:
    """Return the least CPU time of several, in milliseconds: what is more is another process's."""
    least = float("inf")
    for _ in range(times):
        begun = time.process_time()
        work()
        least = min(least, time.process_time() - begun)
    return least * 1000


def call(chance: random.Random) -> dict[str, Any]:
    """Return a call of 20 arguments as models write them."""
    known, n = chance.choice(WORDS), chance.randrange(10**6)
    texts = {f"line{i}": " ".join(chance.choices(WORDS, k=8)) for i in range(8)}
    return texts | {
        "to": f"{known}{n % 997}@{chance.choice(WORDS)}{n % 89}.example",
        "cc": [f"{chance.choice(WORDS)}{i}@nowhere{n}.example" for i in range(3)],
        "url": f"https://{known}.example/{n}/list?page=2",
        "path": f"/srv/{known}/{n}.txt",
        "iban": f"DE{n:020d}",
        "amount": n / 100,
        "count": n % 50,
        "urgent": True,
        "body": " ".join(chance.choices(WORDS, k=120)),
        "note": f"{known} {n}",
    }


def main() -> None:
    """Print one row per figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    wanted = parser.parse_args()
    chance = random.Random(12)
    for make in (prose, rows, codes):
        payload = make(chance, MEGABYTE)
        taken = timed(lambda payload=payload: Index().add("!a.b", texts_in(payload)))
        print(f"index 1 MB of {make.__name__:<6} {taken:8.1f} ms")
    index = Index()
    for step in range(2000):
        index.add("task" if not step else f"!mail.read {step:040d}", texts_in(prose(chance, 500)))
    large = rows(chance, 20 * MEGABYTE)
    begun = time.process_time()
    index.add("!big.list", texts_in(large))
    print(f"index 20 MB of rows   {(time.process_time() - begun) * 1000:8.1f} ms")
    taken_each: list[float] = []
    for _ in range(wanted.calls):
        arguments = call(chance)
        begun = time.process_time()
        Lookup(index).sources_of(arguments)
        taken_each.append((time.process_time() - begun) * 1000)
    taken_each.sort()
    for share in (0.5, 0.95, 0.99):
        print(f"look up 20 arguments, p{share * 100:g} {taken_each[int(len(taken_each) * share)]:8.2f} ms")
    print(f"memory of the index   {index.size / MEGABYTE:8.1f} MB")


if __name__ == "__main__":
    main()
