"""A table of shapes in which models write programs: every way to lay out and start a script, with every kind of work.

A script is a piece of work in a layout. `WORKS` says what is computed, and what comes out; `LAYOUTS` says where it
stands and how it is started.
"""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import Parameter, Signature
from textwrap import dedent, indent
from typing import Any, NamedTuple

from sandbox.images.image import importable
from sandbox.programs.check import check_program
from sandbox.programs.sandbox import Sandbox
from tests.sandbox.playing import BINDINGS, Failed, play

NOTHING = object()
EACH = 5
"""How many scripts of the sample each layout is in."""
LANES = 3
ANYTHING = Signature([Parameter("others", Parameter.VAR_KEYWORD)])
FUNCTIONS = {provider: dict.fromkeys(functions, ANYTHING) for provider, functions in BINDINGS.items()}


@dataclass(frozen=True)
class Work:
    """What a script computes: `helpers` stand at the top, `work` ends with an `answer`."""

    name: str
    helpers: str
    work: str
    result: Any
    calls: int = 0
    """How many calls it makes."""

    @property
    def waits(self) -> bool:
        return "await " in self.work or "async " in self.work


class Layout(NamedTuple):
    """Where the work stands; HELPERS and WORK are filled in, the latter at its own depth."""

    name: str
    source: str
    waits: bool = True
    """Whether the work may await there."""
    result: Any = NOTHING
    """What comes out instead of the answer."""


def _work(name: str, helpers: str, work: str, result: Any, calls: int = 0) -> Work:
    return Work(name, dedent(helpers).strip(), dedent(work).strip(), result, calls)


WORKS = (
    _work("arithmetic", "", "answer = (17 // 5) * 2 ** 3 % 7 - -1", 4),
    _work("nothing", "", "answer = None", None),
    _work("truth", "", "answer = all(n > 0 for n in (1, 2)) and not any([])", True),
    _work("text", "", "answer = ' '.join(reversed('a b c'.split())).title()", "C B A"),
    _work("number", "import math", "answer = round(math.pi, 4)", 3.1416),
    _work(
        "nested_values",
        "",
        "answer = {'a': [1, 2.5, None, {'b': [True, 'é']}], 'empty': [{}, []]}",
        {"a": [1, 2.5, None, {"b": [True, "é"]}], "empty": [{}, []]},
    ),
    _work(
        "closest_pair",
        """
        from typing import List

        def has_close(numbers: List[float], threshold: float) -> bool:
            \"\"\"Say whether two numbers are closer than the threshold.

            >>> has_close([1.0, 5.0], 0.5)
            False
            \"\"\"
            for i, first in enumerate(numbers):
                for j, second in enumerate(numbers):
                    if i != j and abs(first - second) < threshold:
                        return True
            return False

        assert has_close([1.0, 1.2], 0.5)
        """,
        "answer = [has_close([1, 2, 3.9], 0.3), has_close([1, 2, 1.1], 0.3)]",
        [False, True],
    ),
    _work(
        "recursion",
        """
        def depth(tree):
            return 1 + max(map(depth, tree), default=0)

        def fibonacci(n: int) -> int:
            return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
        """,
        "answer = [depth([[[]], []]), fibonacci(12)]",
        [3, 144],
    ),
    _work(
        "generator",
        """
        def windows(items, size):
            for start in range(len(items) - size + 1):
                yield items[start:start + size]

        def flat(groups):
            for group in groups:
                yield from group
        """,
        "answer = list(flat(windows('abcd', 2)))",
        ["a", "b", "b", "c", "c", "d"],
    ),
    _work(
        "dataclass",
        """
        from dataclasses import asdict, dataclass, field

        @dataclass(order=True)
        class Item:
            price: float
            name: str = field(compare=False)
            tags: list = field(default_factory=list, compare=False)
        """,
        "answer = asdict(min(Item(3.0, 'b'), Item(2.5, 'a', ['new'])))",
        {"price": 2.5, "name": "a", "tags": ["new"]},
    ),
    _work(
        "inheritance",
        """
        from abc import ABC, abstractmethod

        class Shape(ABC):
            count = 0

            def __init__(self):
                type(self).count += 1

            @property
            @abstractmethod
            def area(self): ...

            def __lt__(self, other):
                return self.area < other.area

        class Square(Shape):
            __slots__ = ("side",)

            def __init__(self, side):
                super().__init__()
                self.side = side

            @property
            def area(self):
                return self.side ** 2

            @classmethod
            def of(cls, *sides):
                return [cls(side) for side in sides]
        """,
        "answer = [sorted(Square.of(3, 1))[0].area, Square.count]",
        [1, 2],
    ),
    _work(
        "enum_and_tuple",
        """
        from collections import namedtuple
        from enum import Enum, auto

        class Colour(Enum):
            RED = auto()
            BLUE = auto()

        Point = namedtuple("Point", "x y")
        """,
        "answer = [Colour['BLUE'].value, [*Point(1, y=2)], Point(1, 2)._asdict()]",
        [2, [1, 2], {"x": 1, "y": 2}],
    ),
    _work(
        "decorator",
        """
        import functools

        def counted(function):
            @functools.wraps(function)
            def wrapper(*arguments, **named):
                wrapper.calls += 1
                return function(*arguments, **named)
            wrapper.calls = 0
            return wrapper

        @counted
        def add(a, b=1, *more, scale=1):
            return (a + b + sum(more)) * scale

        @functools.lru_cache(maxsize=None)
        def ways(n):
            return 1 if n < 2 else ways(n - 1) + ways(n - 2)
        """,
        "answer = [add(1), add(1, 2, 3, scale=2), add.calls, add.__name__, ways(50)]",
        [2, 12, 2, "add", 20365011074],
    ),
    _work(
        "comprehensions",
        "",
        """
        matrix = [[1, 2, 3], [4, 5, 6]]
        answer = [
            [list(row) for row in zip(*matrix)],
            {n: n * n for row in matrix for n in row if n % 2},
            sorted({n % 3 for row in matrix for n in row}),
            sum(n for row in matrix for n in row),
        ]
        """,
        [[[1, 4], [2, 5], [3, 6]], {"1": 1, "3": 9, "5": 25}, [0, 1, 2], 21],
    ),
    _work(
        "match",
        """
        def kind(value):
            match value:
                case {"type": str(name), **rest} if rest:
                    return f"{name}+{len(rest)}"
                case [first, *others]:
                    return f"list of {1 + len(others)}"
                case int() | float():
                    return "number"
                case None:
                    return "none"
                case _:
                    return "other"
        """,
        "answer = [kind(v) for v in ({'type': 'a', 'x': 1}, [1, 2], 2.5, None, 'x')]",
        ["a+1", "list of 2", "number", "none", "other"],
    ),
    _work(
        "walrus",
        "import re",
        """
        answer = []
        lines = iter(["a=1", "?", "b=22", ""])
        while line := next(lines):
            if (found := re.match(r"(\\w)=(\\d+)", line)) is not None:
                answer.append([found[1], int(found[2])])
        """,
        [["a", 1], ["b", 22]],
    ),
    _work(
        "format",
        "",
        """
        name, value = "total", 1234.5
        answer = f"{name!r:>10}|{value:,.2f}|{value:08.1f}|{'%s-%d' % (name, 7)}|{'{:>4}'.format(3)}|{value=}"
        """,
        "   'total'|1,234.50|001234.5|total-7|   3|value=1234.5",
    ),
    _work(
        "exceptions",
        """
        class Refused(ValueError):
            def __init__(self, why, code=0):
                super().__init__(why)
                self.code = code

        def risky(n):
            try:
                if n == 0:
                    raise Refused("zero", code=7)
                return 10 // (n - 1)
            except ZeroDivisionError as error:
                raise Refused("one") from error
            finally:
                seen.append(n)

        seen = []
        """,
        """
        answer = []
        for n in range(3):
            try:
                answer.append(risky(n))
            except Refused as error:
                answer.append([str(error), error.code, type(error.__cause__).__name__])
            else:
                answer.append("fine")
        answer.append(seen)
        """,
        [["zero", 7, "NoneType"], ["one", 0, "ZeroDivisionError"], 10, "fine", [0, 1, 2]],
    ),
    _work(
        "closures",
        """
        def counter(start=0):
            count = start

            def step(by=1):
                nonlocal count
                count += by
                return count

            return step

        total = 0

        def add(n):
            global total
            total += n
        """,
        """
        step = counter(5)
        step()
        for n in range(3):
            add(n)
        answer = [step(10), total, [f(2) for f in (lambda x, k=k: x * k for k in range(3))]]
        """,
        [16, 3, [0, 2, 4]],
    ),
    _work(
        "sorting",
        "from operator import itemgetter",
        """
        people = [{"name": "bo", "age": 30}, {"name": "al", "age": 30}, {"name": "cy", "age": 25}]
        by_age = sorted(people, key=lambda one: (-one["age"], one["name"]))
        answer = [[one["name"] for one in by_age], max(people, key=itemgetter("name"))["name"]]
        """,
        [["al", "bo", "cy"], "cy"],
    ),
    _work(
        "collections",
        "from collections import Counter, OrderedDict, defaultdict, deque",
        """
        groups = defaultdict(list)
        for word in "tea eat tan ate nat bat".split():
            groups["".join(sorted(word))].append(word)
        recent = deque(range(10), maxlen=3)
        recent.rotate(1)
        answer = [max(groups.values(), key=len), Counter("hello").most_common(1), list(recent), list(OrderedDict(a=1))]
        """,
        [["tea", "eat", "ate"], [["l", 2]], [9, 7, 8], ["a"]],
    ),
    _work(
        "heap_and_bisect",
        """
        import bisect
        import heapq

        def shortest(graph, start):
            best, queue = {}, [(0, start)]
            while queue:
                cost, node = heapq.heappop(queue)
                if node in best:
                    continue
                best[node] = cost
                for other, weight in graph.get(node, {}).items():
                    heapq.heappush(queue, (cost + weight, other))
            return best
        """,
        """
        marks = [10, 20, 30]
        bisect.insort(marks, 25)
        answer = [shortest({"a": {"b": 5, "c": 1}, "c": {"b": 2}}, "a"), marks, bisect.bisect_left(marks, 25)]
        """,
        [{"a": 0, "c": 1, "b": 3}, [10, 20, 25, 30], 2],
    ),
    _work(
        "itertools",
        "from itertools import accumulate, chain, combinations, groupby, islice, permutations, product",
        """
        answer = [
            list(accumulate([1, 2, 3])),
            [[key, len(list(group))] for key, group in groupby("aabccc")],
            len(list(permutations("abc"))),
            ["".join(pair) for pair in combinations("abc", 2)],
            list(islice(chain.from_iterable(product([0, 1], repeat=2)), 5)),
        ]
        """,
        [[1, 3, 6], [["a", 2], ["b", 1], ["c", 3]], 6, ["ab", "ac", "bc"], [0, 0, 0, 1, 1]],
    ),
    _work(
        "dates",
        "from datetime import date, datetime, timedelta, timezone",
        """
        start = date(2024, 2, 28)
        days = [(start + timedelta(days=n)).isoformat() for n in range(3)]
        answer = [days, datetime(2024, 1, 1, 12, tzinfo=timezone.utc).strftime("%Y-%m-%d %H:%M %z"), start.weekday()]
        """,
        [["2024-02-28", "2024-02-29", "2024-03-01"], "2024-01-01 12:00 +0000", 2],
    ),
    _work(
        "encodings",
        "import base64\nimport hashlib\nimport json",
        """
        packed = base64.b64encode(json.dumps({"b": 1, "a": [None]}, sort_keys=True).encode()).decode()
        answer = [json.loads(base64.b64decode(packed)), hashlib.sha256(b"x").hexdigest()[:8]]
        """,
        [{"a": [None], "b": 1}, "2d711642"],
    ),
    _work(
        "exact_numbers",
        "from decimal import Decimal\nfrom fractions import Fraction\nimport statistics",
        """
        answer = [
            str(Decimal("0.1") + Decimal("0.2")),
            str(Fraction(1, 3) + Fraction(1, 6)),
            statistics.median([3, 1, 2]),
            int("ff", 16),
            bin(10),
            divmod(17, 5),
            sum(int(digit) for digit in str(2 ** 64)),
        ]
        """,
        ["0.3", "1/2", 2, 255, "0b1010", [3, 2], 88],
    ),
    _work(
        "loops",
        "",
        """
        primes = []
        for n in range(2, 20):
            for divisor in primes:
                if n % divisor == 0:
                    break
            else:
                primes.append(n)
        n, steps = 6, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        else:
            steps += 100
        answer = [primes, steps]
        """,
        [[2, 3, 5, 7, 11, 13, 17, 19], 108],
    ),
    _work(
        "unpacking",
        "",
        """
        first, *middle, last = range(6)
        (a, b), c = [1, 2], 3
        merged = {**{"x": 1}, "y": 2} | {"x": 9}
        swapped = [*middle[::-1], *{"k": 0}]
        a, b = b, a
        del last
        answer = [first, middle, [a, b, c], merged, swapped, "abcdef"[1:-1:2]]
        """,
        [0, [1, 2, 3, 4], [2, 1, 3], {"x": 9, "y": 2}, [4, 3, 2, 1, "k"], "bd"],
    ),
    _work(
        "context_manager",
        """
        from contextlib import contextmanager, suppress

        log = []

        @contextmanager
        def noted(name):
            log.append(f"+{name}")
            try:
                yield name.upper()
            finally:
                log.append(f"-{name}")

        class Open:
            def __enter__(self):
                return self

            def __exit__(self, kind, error, traceback):
                log.append(kind.__name__ if kind else None)
                return True
        """,
        """
        with noted("a") as upper, suppress(KeyError):
            {}["missing"]
        with Open():
            raise IndexError
        answer = [upper, log]
        """,
        ["A", ["+a", "-a", "IndexError"]],
    ),
    _work(
        "typed",
        """
        from typing import Any, Callable, Generic, Iterable, Optional, Protocol, TypedDict, TypeVar, Union

        T = TypeVar("T")
        Number = Union[int, float]

        class Row(TypedDict, total=False):
            name: str
            score: Number

        class Sized(Protocol):
            def size(self) -> int: ...

        class Stack(Generic[T]):
            def __init__(self, items: Optional[Iterable[T]] = None) -> None:
                self._items: list[T] = list(items or [])

            def pop(self) -> T | None:
                return self._items.pop() if self._items else None

            def size(self) -> int:
                return len(self._items)

        def apply(function: Callable[[Any], T], value: Any) -> T:
            return function(value)

        limit: int = 3
        """,
        """
        row: Row = {"name": "a", "score": 1.5}
        stack: Stack[int] = Stack([1, 2])
        answer = [row, stack.pop(), stack.size(), apply(str, limit)]
        """,
        [{"name": "a", "score": 1.5}, 2, 1, "3"],
    ),
    _work(
        "text_work",
        "import string\nimport textwrap",
        """
        text = "Never odd or even"
        letters = [c for c in text.lower() if c in string.ascii_lowercase]
        table = str.maketrans("aeiou", "*****")
        answer = [
            letters == letters[::-1],
            text.translate(table),
            textwrap.wrap("one two three", 7),
            text.partition(" ")[2].count("e"),
            "a,b,,c".split(","),
            ord("a"),
            chr(98),
        ]
        """,
        [True, "N*v*r *dd *r *v*n", ["one two", "three"], 2, ["a", "b", "", "c"], 97, "b"],
    ),
    _work(
        "chance",
        "import random",
        """
        dice = random.Random(7)
        rolls = [dice.randint(1, 6) for _ in range(100)]
        random.shuffle(rolls)
        answer = [len(rolls), set(rolls) <= set(range(1, 7)), 0 <= random.random() < 1]
        """,
        [100, True, True],
    ),
    _work(
        "iterator_class",
        """
        class Countdown:
            def __init__(self, start):
                self.left = start

            def __iter__(self):
                return self

            def __next__(self):
                if self.left <= 0:
                    raise StopIteration
                self.left -= 1
                return self.left

            def __len__(self):
                return self.left

            def __getitem__(self, index):
                return index * 2

            def __call__(self, more):
                self.left += more
                return self
        """,
        "counting = Countdown(3)\nanswer = [len(counting), counting[5], list(counting(1)), bool(counting)]",
        [3, 10, [3, 2, 1, 0], False],
    ),
    _work(
        "files",
        "import csv\nimport io\nimport os\nimport tempfile\nfrom pathlib import Path",
        """
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "rows.csv"
            with open(path, "w", newline="") as file:
                csv.writer(file).writerows([["a", "b"], [1, 2]])
            rows = list(csv.DictReader(io.StringIO(path.read_text())))
            answer = [rows, sorted(os.listdir(folder))]
        """,
        [[{"a": "1", "b": "2"}], ["rows.csv"]],
    ),
    _work("call", "", "answer = await mail.find(n=1)", {"n": 1}, 1),
    _work(
        "calls_in_a_loop",
        "def wanted(n: int) -> bool:\n    return n % 2 == 1",
        """
        answer = []
        for n in filter(wanted, range(5)):
            page = await mail.find(n=n)
            answer.append(page["n"] * 10)
        """,
        [10, 30],
        2,
    ),
    _work(
        "calls_together",
        "import asyncio\nfrom asyncio import gather",
        """
        found = await gather(*[mail.find(n=n) for n in range(3)])
        answer = [sum(one["n"] for one in found), len(await asyncio.gather(crm.find(a=1), mail.send(b=2)))]
        """,
        [3, 2],
        5,
    ),
    _work(
        "calls_by_helpers",
        """
        async def fetch(n):
            return (await mail.find(n=n))["n"]

        async def pages(most):
            for n in range(most):
                yield await fetch(n)

        class Client:
            async def __aenter__(self):
                return self

            async def __aexit__(self, *_):
                return False

            async def both(self):
                return await fetch(7), await fetch(8)
        """,
        """
        async with Client() as client:
            answer = [[n async for n in pages(2)], list(await client.both())]
        """,
        [[0, 1], [7, 8]],
        4,
    ),
    _work(
        "calls_in_a_group",
        "import asyncio",
        """
        gate = asyncio.Semaphore(1)
        async def limited(n):
            async with gate:
                return (await mail.find(n=n))["n"]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(limited(n)) for n in range(2)]
        answer = [task.result() for task in tasks]
        """,
        [0, 1],
        2,
    ),
    _work(
        "calls_retried",
        """
        from sandbox_py.client import ToolError

        async def tried(times):
            for attempt in range(times):
                try:
                    return [attempt, await crm.find(fail=attempt == 0)]
                except ToolError as error:
                    last = error
            raise last
        """,
        "answer = await tried(3)",
        [1, {"fail": False}],
        2,
    ),
)

LAYOUTS = (
    Layout("body", "HELPERS\nWORK\nreturn answer"),
    Layout("body_prints", "HELPERS\nWORK\nprint(answer)", result=None),
    Layout("body_with_inner_function", "HELPERS\nasync def run():\n    WORK\n    return answer\nreturn await run()"),
    Layout("body_runs_inner_function", "import asyncio\nHELPERS\nasync def run():\n    WORK\n    return answer\nreturn asyncio.run(run())"),
    Layout("body_waits_then_runs", "import asyncio\nHELPERS\nasync def run():\n    WORK\n    return answer\nawait asyncio.sleep(1)\nvalue = asyncio.run(run())\nreturn value"),
    Layout("async_main", "HELPERS\nasync def main():\n    WORK\n    return answer"),
    Layout("async_solve", "HELPERS\nasync def solve():\n    WORK\n    return answer"),
    Layout("typed_main", "'''Say what it does.'''\nfrom __future__ import annotations\nHELPERS\nasync def main() -> 'dict[str, object] | None':\n    '''Do it.'''\n    WORK\n    return answer"),
    Layout("main_with_defaults", "HELPERS\nasync def main(argv=None, *, verbose: bool = False):\n    WORK\n    return answer"),
    Layout("sync_main", "HELPERS\ndef main():\n    WORK\n    return answer", waits=False),
    Layout("sync_solve", "HELPERS\ndef solve():\n    WORK\n    return answer\n\nsolve()", waits=False),
    Layout("main_that_runs", "import asyncio\nHELPERS\ndef main():\n    async def inner():\n        WORK\n        return answer\n    return asyncio.run(inner())"),
    Layout("run_main", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nasyncio.run(main())"),
    Layout("await_main", "HELPERS\nasync def main():\n    WORK\n    return answer\nawait main()"),
    Layout("call_main", "HELPERS\nasync def main():\n    WORK\n    return answer\nmain()"),
    Layout("return_await_main", "HELPERS\nasync def main():\n    WORK\n    return answer\nreturn await main()"),
    Layout("guarded", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\n\nif __name__ == '__main__':\n    asyncio.run(main())"),
    Layout("guarded_print", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\n\nif __name__ == '__main__':\n    outcome = asyncio.run(main())\n    print(outcome)"),
    Layout("guarded_exit", "import asyncio\nimport sys\nHELPERS\nasync def main():\n    WORK\n    return answer\n\nif __name__ == '__main__':\n    sys.exit(asyncio.run(main()))"),
    Layout("guarded_sync", "HELPERS\ndef main():\n    WORK\n    return answer\n\nif __name__ == \"__main__\":\n    print(main())", waits=False),
    Layout("ensure_future", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nasyncio.ensure_future(main())"),
    Layout("create_task", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\ntask = asyncio.create_task(main())"),
    Layout("create_task_and_wait", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\ntask = asyncio.create_task(main())\nawait asyncio.sleep(0)\nprint('started')"),
    Layout("get_event_loop", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nasyncio.get_event_loop().run_until_complete(main())"),
    Layout("loop_and_task", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nloop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\ntry:\n    loop.run_until_complete(loop.create_task(main()))\nfinally:\n    loop.close()"),
    Layout("runner", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nwith asyncio.Runner() as runner:\n    print(runner.run(main()))"),
    Layout("command", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\n\ndef cli():\n    return asyncio.run(main())\n\ncli()"),
    Layout("caught", "import asyncio\nimport traceback\nHELPERS\nasync def main():\n    WORK\n    return answer\ntry:\n    asyncio.run(main())\nexcept Exception:\n    traceback.print_exc()"),
    Layout("started_in_a_group", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nasync with asyncio.TaskGroup() as group:\n    task = group.create_task(main())\nreturn task.result()"),
    Layout("decorated_main", "import functools\nHELPERS\ndef timed(function):\n    @functools.wraps(function)\n    async def wrapper(*given, **named):\n        return await function(*given, **named)\n    return wrapper\n\n@timed\nasync def main():\n    WORK\n    return answer"),
    Layout("helper_called_solve", "HELPERS\nasync def solve(problem):\n    WORK\n    return answer\nreturn await solve(1)"),
    Layout("helper_called_main", "import asyncio\nHELPERS\nasync def main(user, limit=3):\n    WORK\n    return answer\nreturn asyncio.run(main('ana'))"),
    Layout("helper_solve_beside_main", "HELPERS\nasync def solve(problem, /, *, deep):\n    WORK\n    return answer\n\nasync def main():\n    return await solve(1, deep=True)"),
    Layout("helper_main_beside_solve", "HELPERS\nasync def main(name):\n    WORK\n    return answer\n\nasync def solve():\n    return await main('x')\n"),
    Layout("function_only", "HELPERS\nasync def solve(problem):\n    WORK\n    return answer", result=None),
    Layout("function_with_checks", "HELPERS\ndef solve(problem):\n    WORK\n    return answer\n\ndef check(candidate):\n    candidate(1)\n\ncheck(solve)", waits=False, result=None),
    Layout("method_called_solve", "HELPERS\nclass Solution:\n    async def solve(self):\n        WORK\n        return answer\n\nreturn await Solution().solve()"),
    Layout("method_called_main", "HELPERS\nclass App:\n    def __init__(self):\n        self.value = None\n\n    async def main(self):\n        WORK\n        self.value = answer\n\napp = App()\nawait app.main()\nreturn app.value"),
    Layout("main_as_value", "import asyncio\nHELPERS\nasync def work():\n    WORK\n    return answer\nmain = work\nreturn await main()"),
    Layout("conditional", "HELPERS\nif True:\n    async def step():\n        WORK\n        return answer\n    value = await step()\nelse:\n    value = None\nreturn value"),
    Layout("main_never_named_beside_waiting", "import asyncio\nHELPERS\nasync def main():\n    WORK\n    return answer\nawait asyncio.sleep(1)"),
)  # fmt: skip


class Script(NamedTuple):
    """One script and what comes out of it."""

    name: str
    source: str
    result: Any
    calls: int


def script(work: Work, layout: Layout) -> Script:
    """Return a piece of work in a layout."""
    lines: list[str] = []
    for line in layout.source.splitlines():
        depth = line[: len(line) - len(line.lstrip())]
        match line.strip():
            case "HELPERS":
                lines.append(work.helpers)
            case "WORK":
                lines.append(indent(work.work, depth))
            case _:
                lines.append(line)
    result = work.result if layout.result is NOTHING else layout.result
    return Script(f"{layout.name}-{work.name}", "\n".join(lines) + "\n", result, _calls(work, layout))


def scripts() -> Iterator[Script]:
    """Yield every piece of work in every layout in which it can stand."""
    yield from (script(work, layout) for work in WORKS for layout in LAYOUTS if layout.waits or not work.waits)


def sample() -> list[Script]:
    """Return some scripts, among which is every piece of work and every layout."""
    chosen = (
        (WORKS[(place * 7 + number * 8) % len(WORKS)], layout)
        for place, layout in enumerate(LAYOUTS)
        for number in range(EACH)
    )
    return [script(work, layout) for work, layout in chosen if layout.waits or not work.waits]


async def fault_of(sandbox: Sandbox, script: Script) -> str | None:
    """Run a script in a jail; return what is wrong with what comes out, or None."""
    if faults := check_program(script.source, functions=FUNCTIONS, importable=importable("python")):
        return f"refused: {faults}"
    played = await play(sandbox, script.source, _answer)
    if played.halted.kind != "finished":
        return f"{played.halted.kind}: {played.halted.error}"
    if played.halted.result != script.result:
        return f"returned {played.halted.result!r} instead of {script.result!r}"
    made = sum(map(len, played.batches))
    return None if made == script.calls else f"made {made} calls instead of {script.calls}"


async def faults_of(sandbox: Sandbox, scripts: Iterable[Script]) -> dict[str, str]:
    """Run scripts, several at once; return what is wrong, by name."""
    found: dict[str, str] = {}
    left = iter(scripts)

    async def lane() -> None:
        for each in left:
            if (fault := await fault_of(sandbox, each)) is not None:
                found[each.name] = fault

    await asyncio.gather(*(lane() for _ in range(LANES)))
    return found


def _answer(tool: str, arguments: dict[str, Any]) -> Any:
    if arguments.get("fail"):
        raise Failed("Busy", "try again")
    return arguments


def _calls(work: Work, layout: Layout) -> int:
    return 0 if layout.name == "function_only" else work.calls
