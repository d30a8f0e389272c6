import asyncio
import inspect
import sys
import types

import pytest

from sandbox.guest.programs.source import FILENAME, prepare
from tests.requirements import promise


async def run(source):
    """Run a program as the jail does: execute its code as a module, call its entry, await what can be awaited."""
    prepared = prepare(source)
    module = types.ModuleType("program")
    sys.modules["program"] = module
    try:
        exec(prepared.code, vars(module))
        result = getattr(module, prepared.entry)()
        async with asyncio.timeout(10):
            return await result if inspect.isawaitable(result) else result
    finally:
        del sys.modules["program"]


@promise("programs:source")
@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("", None),
        ("# nothing", None),
        ("return 1 + 1", 2),
        ("import asyncio\nreturn await asyncio.sleep(0, 3)", 3),
        ("'says what it does'\nreturn 4", 4),
        ("async def main():\n    return 5", 5),
        ("def main():\n    return 6", 6),
        ("async def solve():\n    return 7", 7),
        ("async def main(limit=8):\n    return limit", 8),
        ("def solve():\n    return 0\ndef main():\n    return 9", 9),
        ("def helper():\n    return 10\nreturn helper()", 10),
        ("class main: pass\nreturn 11", 11),
        ("def solve(x):\n    return x\nreturn solve(12)", 12),
        ("def main(x):\n    return x\ndef solve():\n    return main(13)", 13),
        ("def main(*, x):\n    return x\nvalue = main(x=14)\nreturn value", 14),
        ("def solve(x):\n    return x", None),
        ("def main():\n    yield 15\nreturn [*main()][0]", 15),
        ("async def main():\n    return 16\nimport asyncio\nawait asyncio.sleep(0)", 16),
    ],
)
async def test_a_program_is_the_body_of_main_or_defines_main_or_solve(source, result):
    assert await run(source) == result


MAIN = "import asyncio\nran = []\nasync def main():\n    ran.append(1)\n    return len(ran)\n"


@promise("programs:starts")
@pytest.mark.parametrize(
    "start",
    [
        "",
        "await main()",
        "main()",
        "return await main()",
        "asyncio.run(main())",
        "if __name__ == '__main__':\n    asyncio.run(main())",
        "await asyncio.sleep(0)\nawait main()",
        "await asyncio.sleep(0)\nasyncio.run(main())",
        "import sys\nsys.exit(asyncio.run(main()))",
        "raise SystemExit(asyncio.run(main()))",
        "await asyncio.sleep(0)\nraise SystemExit(await main())",
    ],
)
async def test_however_a_program_starts_its_main_it_runs_once_and_its_result_is_kept(start):
    assert await run(MAIN + start) == 1


SAME_AS_A_MODULE = """
x: int = 1
y: str
def bump():
    global x
    x += 1
bump()
for number in range(3):
    inside: float = number
try:
    1 / 0
except ZeroDivisionError as error:
    said = str(error)
with open("/dev/null") as handle:
    pass
match [1, 2, {"a": 1, "b": 2}]:
    case [first, *others]:
        pass
match {"a": 1, "b": 2}:
    case {"a": one, **more}:
        pass
if (walrus := 5): pass
squares = [(last := value) ** 2 for value in range(4)]
import os.path, json as loads
from math import floor as down, pi
(a, [b, *c]), d = (1, [2, 3, 4]), 5
global late
late = 6
del d
class Thing:
    size = x
    def get(self): return Thing, number
found = Thing().get()
x += 1
"""


@promise("programs:source")
async def test_what_a_body_binds_it_binds_as_a_module_would():
    prepared, body, module = prepare(SAME_AS_A_MODULE), {"__name__": "program"}, {"__name__": "program"}
    exec(prepared.code, body)
    main = body.pop("main")
    await main()
    exec(compile(SAME_AS_A_MODULE, "<module>", "exec"), module)
    left = [{name: value for name, value in names.items() if not name.startswith("__")} for names in (body, module)]
    assert left[0].keys() == left[1].keys()
    plain = [{n: v for n, v in names.items() if isinstance(v, int | str | float | list | dict)} for names in left]
    assert plain[0] == plain[1]
    assert body["Thing"].__qualname__ == "Thing"
    assert body["found"] == (body["Thing"], 2)


@promise("programs:source")
async def test_nested_functions_may_say_nonlocal_as_in_a_function():
    assert await run("total = 1\ndef add():\n    nonlocal total\n    total += 1\nadd()\nreturn total") == 2


@promise("programs:source")
async def test_classes_of_a_program_can_be_pickled_and_their_hints_be_read():
    source = """
from __future__ import annotations
import pickle, typing
from dataclasses import dataclass
@dataclass
class Point:
    x: int
    next: Point | None = None
return pickle.loads(pickle.dumps(Point(1, Point(2)))).next.x, list(typing.get_type_hints(Point))
"""
    assert await run(source) == (2, ["x", "next"])


@promise("programs:source")
async def test_everything_may_be_imported_from_a_module():
    assert await run("'doc'\nfrom math import *\nvalue = floor(2.5)\nreturn value") == 2


@promise("programs:source")
@pytest.mark.parametrize("head", ["", "async def main():\n    ", "from math import *\n"])
async def test_errors_tell_the_line_of_the_source(head):
    with pytest.raises(ZeroDivisionError) as caught:
        await run(f"{head}1 / 0")
    lines = [entry.lineno for entry in caught.traceback if str(entry.path) == FILENAME or FILENAME in str(entry.path)]
    assert lines[-1] == head.count("\n")
