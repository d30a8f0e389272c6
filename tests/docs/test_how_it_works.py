"""docs/how-it-works.md: its two drawings are compared with the code; the arrows of the first in test_house.py."""

import importlib
import re
from collections import Counter

from tests.docs.blocks import HOUSE, blocks
from tests.requirements import promise
from tests.test_house import rooms, top

PAGE = "docs/how-it-works.md"
HOUSE_DRAWING, CALL_DRAWING = (block.text for block in blocks("mermaid") if block.place.startswith(PAGE))
FILES = ("opening", "worker", "starter")
_NODE = re.compile(r'^ +(\w+)\["(.*)"\]$', re.MULTILINE)
_CITED = re.compile(r"\b[a-z]+(?:\.\w+)+")


def roots() -> set[str]:
    return {top(room) for room in rooms()}


@promise("docs:house")
def test_the_drawing_of_the_house_has_every_folder_and_the_rooms_inside_it():
    drawn = {
        name: set(re.findall(r"[\w/]+", label.partition("rooms: ")[2].replace("<br/>", " ")))
        for name, label in _NODE.findall(HOUSE_DRAWING)
    }
    built = {
        root: {room.partition(".")[2].replace(".", "/") for room in rooms() if top(room) == root} for root in roots()
    }

    assert drawn == {name: inside - {""} for name, inside in built.items()} | {name: set() for name in FILES}


@promise("docs:call")
def test_the_drawing_of_a_call_names_code_that_exists_each_once():
    cited = Counter(_CITED.findall(CALL_DRAWING))

    assert [name for name in cited if not exists(name)] == []
    assert [name for name, times in cited.items() if times > 1] == []
    assert {top(name) for name in cited} == {"workflows", "activities", "backstay", "store", "toolbox"}


def exists(name: str) -> bool:
    """Say whether a dotted name leads to a module, or to what a module defines."""
    module, _, inner = name, "", ""
    while not (HOUSE.joinpath(*module.split(".")).with_suffix(".py")).is_file():
        module, _, last = module.rpartition(".")
        inner = f"{last}.{inner}".rstrip(".")
        if not module:
            return False
    found = importlib.import_module(module)
    for part in inner.split(".") if inner else ():
        found = getattr(found, part, None)
    return found is not None


@promise("docs:call")
def test_the_stages_in_the_drawing_of_a_call_are_those_of_the_list_below_it():
    drawn = re.findall(r'\["<b>([\w ]+)</b>', CALL_DRAWING)
    text = (HOUSE / PAGE).read_text(encoding="utf-8").partition(CALL_DRAWING)[2].partition("\n## ")[0]
    listed = [stage.lower() for stage in re.findall(r"^- \*\*([\w ]+)\.\*\*$", text, re.MULTILINE)]

    assert drawn == listed
    assert {"decide", "rule", "ask", "reserve", "intent", "call", "settle", "bind undo", "digest", "event"} <= set(
        drawn
    )
