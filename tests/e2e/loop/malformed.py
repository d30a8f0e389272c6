"""Malformed answers of a model that is to give a value: 200 in 11 kinds, each with what has to be said of it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from backstay.testing import Reply

ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
    "required": ["name", "price"],
    "additionalProperties": False,
}
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "items": {"type": "array", "items": {"$ref": "#/$defs/Item"}}},
    "required": ["id", "items"],
    "additionalProperties": False,
    "$defs": {"Item": ITEM},
}
TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
    "additionalProperties": False,
}
GOOD_ORDER = {"id": 7, "items": [{"name": "rope", "price": 2.5}]}
GOOD_TREE = {"name": "mast", "parts": [{"name": "stay", "parts": []}]}
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Malformed:
    """Hold one answer and what has to become of it."""

    kind: str
    reply: Reply
    why: str = ""
    """What the run says when the model keeps to it, or `|` between several; empty when the value is taken."""
    schema: Any = None
    good: Any = None
    """What a model that mends its answer gives."""

    @property
    def wanted(self) -> Any:
        return self.schema or ORDER

    @property
    def mended(self) -> Reply:
        return finish(self.good or GOOD_ORDER)


def finish(output: Any, summary: str = "done") -> Reply:
    return Reply(calls=[("finish", {"summary": summary, "output": output})])


def written(output: str, **more: Any) -> Reply:
    """Return a finish whose arguments are written by hand."""
    return Reply(calls=[("finish", f'{{"summary": "done", "output": {output}}}')], **more)


def order(**changes: Any) -> dict[str, Any]:
    return {**GOOD_ORDER, **changes}


def all_of_them() -> list[Malformed]:
    return [
        *_nested(),
        *_missing(),
        *_extra(),
        *_not_a_number(),
        *_named_twice(),
        *_recursive(),
        *_truncated(),
        *_fenced(),
        *_prose(),
        *_two(),
        *_megabyte(),
    ]


def _nested() -> Iterator[Malformed]:
    odd: tuple[Any, ...] = ("2.5", None, [2.5], {"usd": 2.5}, True, "")
    for place in (0, 1, 4):
        for price in odd:
            items = [{"name": f"n{at}", "price": price if at == place else 1} for at in range(5)]
            yield Malformed("nested wrong type", finish(order(items=items)), f"output.items[{place}].price")
    yield Malformed("nested wrong type", finish(order(items={"0": GOOD_ORDER["items"]})), "output.items")


def _missing() -> Iterator[Malformed]:
    for at in range(8):
        items = [{"name": "n", "price": 1}] * at + [{"price": 1}]
        yield Malformed("missing", finish(order(items=items)), f"output.items[{at}]: 'name' is required")
    for given in ({}, {"id": 7}, {"items": []}):
        yield Malformed("missing", finish(given), "is required")
    for value in (None, [], "", 0, False, "seven"):
        yield Malformed("missing", finish(value), "output: must be object")
    yield Malformed("missing", Reply(calls=[("finish", {"summary": "done"})]), "output: required")


def _extra() -> Iterator[Malformed]:
    for name in ("note", "Id", "id ", "items_", "", "$ref", "__proto__", "\u202eid", "n" * 300):
        yield Malformed("extra", finish(order(**{name: 1})), "output: unknown field")
    for at in range(9):
        items = [{"name": "n", "price": 1}] * at + [{"name": "n", "price": 1, "vat": 0}]
        yield Malformed("extra", finish(order(items=items)), f"output.items[{at}]: unknown field 'vat'")


def _not_a_number() -> Iterator[Malformed]:
    for number in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "nan", "0x10", "01", "1_000", "+1", ".5", "5."):
        yield Malformed("NaN", written(f'{{"id": 7, "items": [{{"name": "n", "price": {number}}}]}}'), "not valid JSON")
    for number in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000):
        yield Malformed("NaN", written(f'{{"id": {number}, "items": []}}'), "not valid JSON")


def _named_twice() -> Iterator[Malformed]:
    for first, second in (("1", "2"), ("2", "1"), ("7", "7"), ("0", '"x"'), ('"x"', "0"), ("null", "7")):
        yield Malformed(
            "duplicate keys", written(f'{{"id": {first}, "id": {second}, "items": []}}'), "'id' stands twice"
        )
        item = f'{{"name": "n", "price": {first}, "price": {second}}}'
        yield Malformed("duplicate keys", written(f'{{"id": 7, "items": [{item}]}}'), "'price' stands twice")
        arguments = f'{{"summary": "done", "output": {first}, "output": {json.dumps(GOOD_ORDER)}}}'
        yield Malformed("duplicate keys", Reply(calls=[("finish", arguments)]), "'output' stands twice")


def _recursive() -> Iterator[Malformed]:
    for depth in (1, 2, 3, 5, 8, 13, 16, 18, 20):
        for wrong in ({"name": 1}, {"parts": []}, {"name": "x", "parts": {}}):
            value: Any = wrong
            for _ in range(depth):
                value = {"name": "part", "parts": [value]}
            where = f"output{'.parts[0]' * depth}"
            yield Malformed("recursive", finish(value), where, TREE, GOOD_TREE)
    endless: Any = {"name": "part"}
    for _ in range(100):
        endless = {"name": "part", "parts": [endless]}
    yield Malformed("recursive", finish(endless), "nested more than", TREE, GOOD_TREE)


def _truncated() -> Iterator[Malformed]:
    whole = json.dumps({"summary": "done", "output": GOOD_ORDER})
    for cut in range(5, len(whole), 6):
        reply = Reply(calls=[("finish", whole[:cut])], finish_reason="length")
        yield Malformed("truncated", reply, "cut off at the limit")
    text = json.dumps(GOOD_ORDER)
    for cut in range(4, len(text), 12):
        yield Malformed("truncated", Reply(text=text[:cut], finish_reason="length"), "cut off at the limit")


def _fenced() -> Iterator[Malformed]:
    good, wrong = json.dumps(GOOD_ORDER, indent=1), json.dumps(order(id="seven"))
    for fence in ("```json\n{}\n```", "```\n{}\n```", "Here it is:\n\n```json\n{}\n```\nIs that right?", "  {}  "):
        yield Malformed("fenced", Reply(text=fence.format(good)))
        yield Malformed("fenced", Reply(text=fence.format(wrong)), "output.id: must be integer")
        yield Malformed("fenced", Reply(calls=[("finish", f"!{fence.format(good)}")]), "not valid JSON")
    both = f"```json\n{good}\n```\nor\n```json\n{good}\n```"
    yield Malformed("fenced", Reply(text=both), "text without the value")
    yield Malformed("fenced", Reply(text=f"```json\n{good}"), "text without the value")
    yield Malformed("fenced", finish(f"```json\n{good}\n```"), "output: must be object, not string")
    yield Malformed("fenced", finish(good), "output: must be object, not string")


def _prose() -> Iterator[Malformed]:
    texts = (
        "Order 7 holds one rope.",
        "id: 7",
        "I am done!",
        "{id: 7}",
        "null and void",
        "",
        "\ufeff",
        "<order/>",
        "7;",
        "{}{}",
        "[7",
    )
    for text in texts:
        yield Malformed("prose", Reply(text=text), "text without the value")
        yield Malformed("prose", finish(text or "nothing"), "output: must be object, not string")


def _two() -> Iterator[Malformed]:
    good, wrong = {"summary": "a", "output": GOOD_ORDER}, {"summary": "b", "output": order(id="x")}
    pairs = ((good, good), (good, wrong), (wrong, good), (wrong, wrong))
    for pair in pairs:
        for extra in ((), ("{",), (wrong,), (good,)):
            given = [("finish", arguments) for arguments in (*pair, *extra)]
            yield Malformed("two finishes", Reply(calls=given), "called twice|output.id: must be|not valid JSON")


def _megabyte() -> Iterator[Malformed]:
    long = "x" * MEGABYTE
    yield Malformed("megabyte", finish(order(items=[{"name": long, "price": 1}])))
    yield Malformed("megabyte", Reply(text=json.dumps(order(items=[{"name": long, "price": 1}]))))
    yield Malformed("megabyte", finish(order(items=[{"name": "n", "price": 1}] * 30_000)))
    yield Malformed("megabyte", finish(order(items=[{"name": "n", "price": "1"}] * 30_000)), "output.items[")
    yield Malformed("megabyte", finish(order(id=long)), "output.id: must be integer")
    yield Malformed("megabyte", finish(long), "output: must be object")
    yield Malformed("megabyte", finish(order(**{long: 1})), "output: unknown field")
    yield Malformed("megabyte", Reply(text=long), "text without the value")
    yield Malformed("megabyte", Reply(calls=[("finish", "[" * MEGABYTE)]), "not valid JSON")
    yield Malformed("megabyte", Reply(calls=[("finish", "1" * MEGABYTE)]), "not valid JSON")
