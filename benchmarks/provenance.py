"""Measure what it costs to know where arguments came from: to index an answer, and to look a call up.

python -m benchmarks.provenance
"""

import random
import time
from typing import Any

from backstay.provenance.echo import Echo
from backstay.provenance.index import MarkIndex, texts_in
from backstay.provenance.lookup import Lookup
from benchmarks.page import publish
from benchmarks.payloads import WORDS, least, log, megabytes_of, prose, table

MEGABYTE = 1_000_000
LARGE = 20 * MEGABYTE
REPEATED = 5
ASKED = {"query": "customers of Nordwind", "limit": 100}
"""The arguments of a call, which its answer may repeat: an own record does not vouch for them."""
STEPS, CALLS = 2000, 2000
"""How long the run is whose calls are looked up, and how many of them."""
SMALL_ANSWERS = 300


def codes(size: int) -> dict[str, Any]:
    """Return identifiers, each a new word: the worst that an answer can be."""
    dice = random.Random(4)
    return {"ids": [f"{dice.getrandbits(48):012x}" for _ in range(size // 16)]}


ANSWERS = {"table": table, "log": log, "prose": prose, "identifiers": codes}


def call(dice: random.Random) -> dict[str, Any]:
    """Return a call of 20 arguments, with words of the run and words that nobody said."""
    number = dice.randrange(10**6)
    lines = {f"line{index}": " ".join(dice.choices(WORDS, k=8)) for index in range(8)}
    return lines | {
        "to": f"customer{number % 997}@{dice.choice(WORDS)}{number % 89}.example",
        "cc": [f"{dice.choice(WORDS)}{index}@nowhere{number}.example" for index in range(3)],
        "url": f"https://customer.example/{number}/list?page=2",
        "path": f"/srv/invoice/{number}.txt",
        "iban": f"DE{number:020d}",
        "amount": number / 100,
        "count": number % 50,
        "urgent": True,
        "body": " ".join(dice.choices(WORDS, k=120)),
        "note": f"update {number}",
    }


def measure_index(name: str, size: int) -> dict[str, Any]:
    payload = ANSWERS[name](size)
    text = texts_in(payload)
    index = MarkIndex()
    index.add("!a.b", text)
    rounds = range(1 if size > MEGABYTE else REPEATED)
    taken = min(least(lambda: MarkIndex().add("!a.b", texts_in(payload))) for _ in rounds)
    own = min(least(lambda: MarkIndex().add_answer("a.b", payload, Echo(ASKED))) for _ in rounds)
    megabytes = megabytes_of(payload)
    row = {"answer": name, "megabytes": round(megabytes, 1), "ms_per_mb": round(1000 * taken / megabytes, 1)}
    return row | {"own_ms_per_mb": round(1000 * own / megabytes, 1), "index_mb": round(index.size / MEGABYTE, 1)}


def long_run() -> MarkIndex:
    """Return the index of a run of many steps that has also read two large answers."""
    index = MarkIndex()
    index.add("task", prose(2000))
    for step in range(STEPS):
        index.add(
            f"!mail.read {step:040d}", f"mail {step}: {prose(400)} customer{step % 997}@invoice{step % 89}.example"
        )
    index.add("!crm.all", texts_in(table(LARGE)))
    index.add("!logs.read", texts_in(log(MEGABYTE)))
    return index


def measure_lookups(index: MarkIndex, tool: str) -> dict[str, float]:
    dice = random.Random(5)
    taken: list[float] = []
    for _ in range(CALLS):
        arguments = call(dice)
        begun = time.process_time()
        Lookup(index).sources_of(arguments, tool=tool)
        taken.append(1000 * (time.process_time() - begun))
    taken.sort()
    return {f"p{share}": round(taken[len(taken) * share // 100], 2) for share in (50, 95, 99)}


def mails(number: int, dice: random.Random) -> dict[str, Any]:
    """Return an answer that lists messages, with identifiers, addresses, dates and texts."""
    return {
        "messages": [
            {
                "id": f"m{number}-{place}",
                "from": f"customer{dice.randrange(997)}@invoice{dice.randrange(89)}.example",
                "subject": " ".join(dice.choices(WORDS, k=5)),
                "date": f"2026-{dice.randrange(1, 13):02d}-{dice.randrange(1, 28):02d}T10:00:00Z",
                "labels": ["inbox", "customer"],
                "body": " ".join(dice.choices(WORDS, k=60)),
            }
            for place in range(8)
        ]
    }


def measure_small() -> dict[str, float]:
    """Return what an answer of some 3 kB takes: to be indexed, and to be taken apart for all that it holds."""
    dice = random.Random(6)
    answers = [mails(number, dice) for number in range(SMALL_ANSWERS)]

    def indexed() -> MarkIndex:
        index = MarkIndex()
        for number, answer in enumerate(answers):
            index.add_answer(f"!mail.list {number:040d}", answer, Echo(ASKED))
        return index

    def taken_apart() -> None:
        index = indexed()
        _ = (index.listed(), index.records(), index.contacts, index.initials.find("customer"))

    alone, whole = least(indexed), least(taken_apart)
    each = 1000 / SMALL_ANSWERS
    return {"index_ms": round(each * alone, 2), "apart_ms": round(each * (whole - alone), 2)}


def files(number: int, dice: random.Random) -> list[dict[str, Any]]:
    """Return an answer that lists files."""
    return [
        {"id": f"file-{number}-{place}", "name": f"{WORDS[place]}-{number}.txt", "size": dice.randrange(9999)}
        for place in range(10)
    ]


def contact(number: int, dice: random.Random) -> dict[str, Any]:
    """Return an own record."""
    address = f"customer{number % 997}@invoice{number % 89}.example"
    return {"name": f"Ana {WORDS[number % len(WORDS)]}", "email": address, "note": " ".join(dice.choices(WORDS, k=10))}


def step_of(number: int, dice: random.Random) -> tuple[str, Any, str, dict[str, Any]]:
    """Return the code and the payload of a small answer, and the tool and the arguments of the call after it."""
    ref = f"{number:040d}"
    body = " ".join(dice.choices(WORDS, k=60))
    mail = {"to": [f"customer{number % 997}@invoice{number % 89}.example"], "subject": body[:20], "body": body}
    share = {"file_id": f"file-{max(number - 1, 1)}-3", "email": "ana@nowhere.example"}
    pay = {"iban": f"DE{number:020d}", "amount": number / 100, "reference": f"invoice {number}"}
    match number % 4:
        case 0:
            return f"!mail.list_messages {ref}", mails(number, dice), "mail.send_email", mail
        case 1:
            return f"!files.list_files {ref}", files(number, dice), "bank.pay", pay
        case 2:
            return f"!web.fetch {ref}", prose(3000), "files.share_file", share
        case _:
            return "crm.find", contact(number, dice), "mail.send_email", mail


def measure_run() -> dict[str, float]:
    """Return what an answer takes and the call that follows it, in a run of small answers: the least of some runs."""
    runs: list[tuple[float, float]] = []
    for _ in range(REPEATED):
        dice = random.Random(7)
        index = MarkIndex(whole=True)
        index.add("task", prose(2000))
        spent = [0.0, 0.0]
        for number in range(SMALL_ANSWERS):
            code, payload, tool, arguments = step_of(number, dice)
            begun = time.process_time()
            index.add_answer(code, payload, Echo(ASKED))
            between = time.process_time()
            Lookup(index).sources_of(arguments, tool=tool)
            spent = [spent[0] + between - begun, spent[1] + time.process_time() - between]
        runs.append((spent[0], spent[1]))
    each = 1000 / SMALL_ANSWERS
    indexed, looked_up = min(runs, key=sum)
    return {"answer_ms": round(each * indexed, 2), "call_ms": round(each * looked_up, 2)}


def measure() -> dict[str, Any]:
    sizes = [(name, MEGABYTE) for name in ANSWERS] + [("table", LARGE)]
    rows = [measure_index(name, size) for name, size in sizes]
    index = long_run()
    lookups = {"lookup_ms": measure_lookups(index, ""), "of_a_tool_ms": measure_lookups(index, "mail.send_email")}
    return {"rows": rows, **lookups, "small_answer": measure_small(), "run": measure_run()}


def render(result: dict[str, Any]) -> str:
    lines = [
        "| answer | MB | index, ms per MB | of an own record, ms per MB | index in memory, MB |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| {' | '.join(str(figure) for figure in row.values())} |" for row in result["rows"]]
    for names, what in (("lookup_ms", "A call of 20 arguments"), ("of_a_tool_ms", "The same call, of a known tool")):
        told = ", ".join(f"{name} {taken} ms" for name, taken in result[names].items())
        lines += ["", f"{what}, looked up in a run of {STEPS} steps: {told}."]
    small, run = result["small_answer"], result["run"]
    told = f"{small['index_ms']} ms to index, {small['apart_ms']} ms more to take all of it apart"
    lines += ["", f"An answer of 3 kB: {told}."]
    told = f"{run['answer_ms']} ms for an answer and {run['call_ms']} ms for the call that follows it"
    lines += ["", f"A run of {SMALL_ANSWERS} small answers, with a call after each: {told}."]
    return "\n".join(lines)


if __name__ == "__main__":
    found = measure()
    publish("provenance", found, render(found))
