"""What the model says in each column of the matrix, and what makes a run of it right."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tests.vendors.chat import Chat
from tests.vendors.wire import Heard, Seen, Turn, Vendor, spent

COLUMNS = (
    "ten steps",
    "parallel calls",
    "streaming",
    "typed output",
    "thinking",
    "refusal",
    "cut answer",
    "error in a stream",
)
NOTE = "desk__note"
SAID = "All of the three were noted just now, one after the other."
SEARCH = Turn(calls=(("search_tools", {"query": "note a number"}),))
WANTED = {
    "type": "object",
    "properties": {"total": {"type": "integer"}, "names": {"type": "array", "items": {"type": "string"}}},
    "required": ["total"],
}
OUTPUT = {"total": 7, "names": ["Ada", "Bo"]}
REFUSED = "I cannot help with that."
PRICE = {"input": 1, "cached": 1, "output": 4}
_LABEL = re.compile(r"<(run [^>]+)>")


def note(*numbers: int, **turn: Any) -> Turn:
    """Return a turn that notes numbers, side by side."""
    return Turn(calls=tuple((NOTE, {"number": each}) for each in numbers), **turn)


def done(outputs: Any = None, **turn: Any) -> Turn:
    """Return a turn that ends the run."""
    given = {"summary": "It is done.", "success": True} | ({"outputs": outputs} if outputs is not None else {})
    return Turn(calls=(("finish", given),), **turn)


@dataclass(frozen=True)
class Script:
    """One run of a cell."""

    column: str
    turns: tuple[Turn, ...]
    notes: tuple[int, ...] = ()
    """What is noted by its end, each once."""
    streamed: bool = False
    refuses: bool = False
    task: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.column}, {'streamed' if self.streamed else 'whole'}"


@dataclass(frozen=True)
class Ran:
    """What became of a run."""

    outcome: str
    told: str
    """What people are told of it: of its end, or when they are asked."""
    said: str
    """What they could read while it went on."""
    notes: list[int]
    result: dict[str, Any] = field(default_factory=dict)


def scripts_for(vendor: Vendor) -> Iterator[Script]:
    """Return the runs of a vendor's cells."""
    yield Script("ten steps", (SEARCH, *(note(place) for place in range(8)), done()), tuple(range(8)))
    yield Script("thinking", tuple(_thinking(SEARCH, note(1, 2), note(3), done())), (1, 2, 3))
    yield Script("thinking", tuple(_thinking(SEARCH, note(1), done())), (1,), streamed=True)
    for streamed in (False, True):
        yield Script("parallel calls", (SEARCH, note(1, 2, 3), done()), (1, 2, 3), streamed)
        cut = (SEARCH, Turn(text="Of the three", end="length"), note(1, end="length"), note(2), done())
        yield Script("cut answer", cut, (2,), streamed)
    yield Script("typed output", (SEARCH, done({"total": "seven"}), done(OUTPUT)), task={"output_schema": WANTED})
    for end in vendor.refusals:
        refused = Turn(text=REFUSED, end=end)
        yield Script("refusal", (SEARCH, *[refused] * 5), streamed=end == vendor.refusals[0], refuses=True)
    if vendor.functions:
        yield Script("streaming", (SEARCH, note(1, text=SAID), done(text=SAID)), (1,), streamed=True)
        yield Script("error in a stream", (SEARCH, Turn(text=SAID, end="broken"), note(1), done()), (1,), streamed=True)


def _thinking(*turns: Turn) -> Iterator[Turn]:
    return (replace(turn, thought="I weigh this.") for turn in turns)


class Play:
    """Say what the script of a run has next; nothing is said before somebody reads along, where it is streamed."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.watched: dict[str, asyncio.Event] = {}
        self.asked: Counter[str] = Counter()

    def add(self, label: str, script: Script) -> None:
        """Play a script for the run whose task holds this label."""
        self.scripts[label] = script
        self.watched[label] = asyncio.Event()

    async def __call__(self, _: str, heard: Heard) -> Turn:
        label = _LABEL.findall(heard.told)[0]
        script = self.scripts[label]
        if script.streamed:
            await self.watched[label].wait()
        in_json = not heard.functions and '"calls"' in json.dumps(heard.schema or "") + heard.told
        if not heard.functions and not in_json:
            return Turn(text="What was done was noted.")
        self.asked[label] += 1
        turn = script.turns[min(self.asked[label], len(script.turns)) - 1]
        signed = tuple(
            (name, given | {"run": label, "title": "whole"} if name == NOTE else given) for name, given in turn.calls
        )
        turn = replace(turn, calls=signed)
        return _as_json(turn) if in_json else turn


def _as_json(turn: Turn) -> Turn:
    """Return the calls of a turn as a model writes them that cannot call."""
    if not turn.calls:
        return turn
    made = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in turn.calls]
    return replace(turn, text=json.dumps({"reason": turn.text, "calls": made}), calls=())


def fault_of(vendor: Vendor, script: Script, ran: Ran, seen: list[Seen]) -> str:
    """Return what is wrong with a run, or nothing."""
    if script.refuses:
        return _fault_of_refusal(script, ran, sum(each.turn is not None for each in seen))
    if ran.outcome != "completed":
        return f"{ran.outcome}: {ran.told}"
    if sorted(ran.notes) != sorted(script.notes):
        return f"noted {ran.notes}"
    if script.column == "ten steps" and ran.result["usage"]["steps"] != 10:
        return f"{ran.result['usage']['steps']} steps"
    if script.column == "typed output" and ran.result["output"] != OUTPUT:
        return f"the output is {ran.result['output']}"
    if script.column == "streaming" and SAID not in ran.said:
        return f"people read {ran.said!r}"
    if script.column == "thinking" and isinstance(vendor, Chat) and vendor.functions and not _is_returned(vendor, seen):
        return "thoughts did not come back"
    if script.column == "error in a stream":
        return _fault_of_charge(ran, seen)
    return ""


def _fault_of_refusal(script: Script, ran: Ran, answers: int) -> str:
    if script.turns[1].end == "blocked":
        # A request that is not taken is not sent again, and a person reads why.
        told = ran.outcome == "asks" and "filter" in ran.told and 'it says: "' in ran.told
        return "" if told and answers == 2 else f"{ran.outcome} after {answers} answers: {ran.told}"
    told = ran.outcome == "failed" and re.search("refuse|filter", ran.told)
    return "" if told and answers == 5 else f"{ran.outcome} after {answers} answers: {ran.told}"


def _fault_of_charge(ran: Ran, seen: list[Seen]) -> str:
    """Say so where the answer that broke was not charged, or others more than they cost."""
    whole = [spent(each.turn, each.asked) for each in seen if each.turn and each.turn.end != "broken"]
    broken = [spent(each.turn, each.asked) for each in seen if each.turn and each.turn.end == "broken"]
    billed = sum(each.read * PRICE["input"] + each.written * PRICE["output"] for each in whole)
    least = billed + sum(each.read * PRICE["input"] for each in broken)
    charged = round(ran.result["usage"]["llm_cost_usd"] * 1e6)
    return "" if len(broken) == 1 and least < charged else f"charged {charged}, {billed} for answers that came"


def _is_returned(vendor: Chat, seen: list[Seen]) -> bool:
    """Return whether what stood beside the model's messages came back with the last request, unchanged."""
    said = [each for each in seen[-1].asked.body["messages"] if each.get("tool_calls")]
    return bool(said) and all(
        message.get(name) == value
        for message in said
        for name, value in vendor.beside_message([call["id"] for call in message["tool_calls"]]).items()
    )


__all__ = ["COLUMNS", "PRICE", "Play", "Ran", "Script", "fault_of", "scripts_for"]
