# result: {"total": 14, "described": ["diagonal click at 2", "click with ['at']", "list of 3 from 1", "text 'hi'", "nothing", "unknown"]}
# output: "6 events\n"
from dataclasses import dataclass


@dataclass
class Num:
    value: float


@dataclass
class Op:
    sign: str
    left: object
    right: object


def evaluate(node):
    match node:
        case Num(value):
            return value
        case Op("+", left, right):
            return evaluate(left) + evaluate(right)
        case Op("*", left, right):
            return evaluate(left) * evaluate(right)
        case _:
            raise TypeError(node)


def describe(event):
    match event:
        case {"type": "click", "at": [x, y]} if x == y:
            return f"diagonal click at {x}"
        case {"type": "click", **rest}:
            return f"click with {sorted(rest)}"
        case [first, *others]:
            return f"list of {1 + len(others)} from {first}"
        case str() | bytes() as text:
            return f"text {text!r}"
        case None:
            return "nothing"
    return "unknown"


async def main():
    total = evaluate(Op("+", Num(2), Op("*", Num(3), Num(4))))
    events = [{"type": "click", "at": [2, 2]}, {"type": "click", "at": [1, 2]}, [1, 2, 3], "hi", None, 3.5]
    if (n := len(events)) > 5:
        print(f"{n} events")
    return {"total": total, "described": [describe(e) for e in events]}
