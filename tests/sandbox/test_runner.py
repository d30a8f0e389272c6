"""Programs in the jail: ordinary Python with tools, one batch per pause, a clear word about whatever ends it."""

from inspect import cleandoc

import pytest
import pytest_asyncio

from tests.requirements import promise
from tests.sandbox.playing import NOW, Failed, body, opened, play
from tests.sizes import spread


@pytest_asyncio.fixture(scope="module")
async def sandbox(tmp_path_factory):
    async with opened(tmp_path_factory.mktemp("jails")) as made:
        yield made


@promise("programs:output")
async def test_what_main_returns_is_the_result_and_what_it_prints_is_the_output(sandbox):
    played = await play(sandbox, body('print("one")\nprint("two")\nreturn {"a": [1, 2.5, None, True, "é"]}'))
    assert played.result == {"a": [1, 2.5, None, True, "é"]}
    assert played.halted.output == "one\ntwo\n"
    assert played.batches == []


@promise("programs:starts")
@pytest.mark.parametrize(
    "source",
    [
        "async def main():\n    return await mail.send(to='a')",
        "async def solve():\n    return await mail.send(to='a')",
        "def main():\n    import asyncio\n    return asyncio.run(mail.send(to='a'))",
        "return await mail.send(to='a')",
        "x = await mail.send(to='a')\nreturn x",
        "async def main():\n    return await mail.send(to='a')\nasyncio.run(main())",
        "async def main():\n    return await mail.send(to='a')\nkept = asyncio.run(main())\nprint(kept)",
        "async def main():\n    return await mail.send(to='a')\nif __name__ == '__main__':\n    asyncio.run(main())",
        "async def go():\n    return await mail.send(to='a')\nreturn asyncio.run(go())",
        "async def go():\n    return await mail.send(to='a')\nreturn asyncio.new_event_loop().run_until_complete(go())",
    ],
    ids=str,
)
async def test_every_common_way_to_write_a_program_runs_it_once(sandbox, source):
    played = await play(sandbox, source)
    assert played.result == {"to": "a"}
    assert played.batches == [[(0, "mail.send", {"to": "a"})]]


ASYNC = "async def main():\n    return await mail.send()\n"
SYNC = "def main():\n    return asyncio.run(mail.send())\n"


@promise("programs:starts")
@pytest.mark.parametrize(
    ("source", "result"),
    [
        (f"{ASYNC}x = asyncio.run(main())\nprint(x)", {}),
        (f"{ASYNC}x = [asyncio.run(m()) for m in [main]]", {}),
        (f"{ASYNC}async def go():\n    await main()\nasyncio.run(go())\nx = 1", None),
        (f"{ASYNC}async def other():\n    pass\nasyncio.run(other())\nx = 1", {}),
        (f"{SYNC}x = main()\nprint(x)", {}),
        (f"{SYNC}def go():\n    return main()\nx = go()\nprint(x)", {}),
        (f"{SYNC}def other():\n    pass\nx = other()\nprint(x)", {}),
        (f"{ASYNC}asyncio.ensure_future(main())", {}),
        (f"{ASYNC}asyncio.create_task(main())\nprint(1)", {}),
        (f"{ASYNC}tasks = [asyncio.create_task(main())]\nawait asyncio.sleep(1)", {}),
        (f"{ASYNC}asyncio.get_event_loop().run_until_complete(main())\nprint(1)", {}),
        (f"{ASYNC}async def go():\n    return asyncio.run(main())\nreturn await go()", {}),
        (f"{ASYNC}await asyncio.sleep(1)", {}),
        (f"{ASYNC}await asyncio.sleep(1)\nx = asyncio.run(main())\nprint(x)", {}),
    ],
)
async def test_a_program_that_starts_itself_is_not_started_again(sandbox, source, result):
    played = await play(sandbox, source)
    assert [len(batch) for batch in played.batches] == [1]
    assert played.result == result


@promise("programs:shapes")
async def test_an_entry_that_was_started_and_failed_unseen_is_the_end_of_the_program(sandbox):
    failing = "async def main():\n    raise ValueError('enough')\ntask = asyncio.ensure_future(main())\n"
    run = "asyncio.get_event_loop().run_until_complete(asyncio.sleep(1))"
    assert (await play(sandbox, f"{failing}{run}")).error["type"] == "ValueError"
    seen = f"{failing}{run}\nprint(task.exception())"
    assert (await play(sandbox, seen)).result is None


@promise("programs:shapes")
async def test_a_run_amid_a_run_makes_the_calls_of_both_and_gives_the_results_to_each(sandbox):
    source = body(
        """
async def outer(n):
    first = await mail.find(n=n)
    return [first["n"], asyncio.run(inner(n))]
async def inner(n):
    return (await crm.find(n=n * 10))["n"]
return await asyncio.gather(outer(1), outer(2))
"""
    )
    played = await play(sandbox, source)
    assert played.result == [[1, 10], [2, 20]]
    assert sum(map(len, played.batches)) == 4


@promise("programs:batch")
async def test_calls_that_run_together_are_one_batch_numbered_in_the_order_they_were_made(sandbox):
    source = body(
        """
first = await mail.send(n=0)
second, third = await asyncio.gather(mail.send(n=1), crm.find(n=2))
async with asyncio.TaskGroup() as group:
    tasks = [group.create_task(mail.find(n=n)) for n in (3, 4)]
return [first, second, third, *(task.result() for task in tasks)]
"""
    )
    played = await play(sandbox, source)
    assert played.batches == [
        [(0, "mail.send", {"n": 0})],
        [(1, "mail.send", {"n": 1}), (2, "crm.find", {"n": 2})],
        [(3, "mail.find", {"n": 3}), (4, "mail.find", {"n": 4})],
    ]
    assert played.result == [{"n": n} for n in range(5)]


@promise("programs:modules")
async def test_bindings_are_importable_by_every_name_and_unknown_functions_name_the_known_ones(sandbox):
    source = """
import sandbox_py.servers.crm as other
from sandbox_py.client import ToolError as Error, call
from sandbox_py.servers import mail as post
from sandbox_py.servers.mail import find, send

async def main():
    try:
        mail.remove
    except AttributeError as error:
        told = str(error)
    same = post is mail and send is mail.send and other is crm and Error is ToolError
    return [await find(a=1), await call("mail.send", {"b": 2}), same, told, dir(mail)]
"""
    played = await play(sandbox, source)
    told = "mail has no function 'remove'; it has find, send"
    assert played.result == [{"a": 1}, {"b": 2}, True, told, ["find", "send"]]


@promise("programs:errors")
async def test_a_tool_error_is_raised_with_its_type_and_text_and_can_be_handled(sandbox):
    def answer(tool, arguments):
        raise Failed("NotFound", f"no {arguments['name']}")

    source = body(
        """
try:
    await crm.find(name="Ana")
except ToolError as error:
    return [error.error_type, str(error), error.tool]
"""
    )
    assert (await play(sandbox, source, answer)).result == ["NotFound", "no Ana", "crm.find"]
    crash = await play(sandbox, "x = 1\nawait crm.find(name='Ana')", answer)
    assert crash.error == {"type": "ToolError", "message": "crm.find: NotFound: no Ana (line 2)"}


@promise("programs:results")
async def test_an_earlier_result_is_read_by_its_ref(sandbox):
    played = await play(sandbox, "return await result('abc')", lambda _tool, arguments: ["whole", arguments])
    assert played.batches == [[(0, "engine.result", {"ref": "abc"})]]
    assert played.result == ["whole", {"ref": "abc"}]


@promise("programs:batch")
async def test_arguments_are_taken_as_they_were_when_the_call_was_made(sandbox):
    source = body(
        """
data = [1]
task = asyncio.create_task(mail.send(n=data))
await asyncio.sleep(0)
data.append(2)
return await task
"""
    )
    assert (await play(sandbox, source)).result == {"n": [1]}


@promise("programs:errors-no-json")
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("{1, 2}", "is of type set, which is not JSON; make it str, int, float, bool, None, list or dict"),
        ("{'a': [object()]}", "['a'][0] is of type object"),
        ("float('nan')", "is nan, which is not JSON; use None or a number"),
        ("[float('inf')]", "[0] is inf"),
        ("{(1, 2): 3}", "has a key of type tuple"),
        ("'\\ud800'", "holds lone surrogates"),
        ("__import__('datetime').date(2024, 1, 1)", "is of type date"),
        ("(lambda a: a.append(a) or a)([])", "is nested too deeply, or contains itself"),
        ("10 ** 5000", "is not JSON"),
    ],
)
async def test_what_is_no_json_is_refused_by_type_and_place_in_results_and_arguments(sandbox, value, told):
    returned = await play(sandbox, f"return {value}")
    assert told in returned.error["message"]
    assert "the result" in returned.error["message"]
    passed = await play(
        sandbox,
        body(f"try:\n    await mail.send(x={value})\nexcept (TypeError, ValueError) as error:\n    return str(error)"),
    )
    assert "mail.send: arguments['x']" in passed.result or "mail.send: arguments is not JSON" in passed.result
    assert passed.batches == []


UNSPEAKABLE = "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E"
IN_A_GROUP = "async with asyncio.TaskGroup() as g:\n    g.create_task(mail.send(x={1}))"


@promise("programs:errors-one-line")
@pytest.mark.parametrize(
    ("source", "kind", "told"),
    spread(
        [
            ("x = 1\ny = x / 0", "ZeroDivisionError", "division by zero (line 2)"),
            ("def f():\n    return {}['a']\n\nf()", "KeyError", "key 'a' is not there (line 2)"),
            ("import json\njson.loads('{')", "JSONDecodeError", "(line 2)"),
            ("x = = 1", "SyntaxError", "invalid syntax (line 1)"),
            ("import nothing_like_it", "ModuleNotFoundError", "No module named 'nothing_like_it' (line 1)"),
            ("raise ValueError('one\\ntwo')", "ValueError", "one two (line 1)"),
            ("raise ValueError('\\ud800')", "ValueError", "\\ud800 (line 1)"),
            ("raise SystemExit('enough')", "SystemExit", "enough (line 1)"),
            ("raise KeyboardInterrupt", "KeyboardInterrupt", "(line 1)"),
            (UNSPEAKABLE, "E", "its text cannot be shown: RuntimeError (line 3)"),
            ("def f(): f()\nf()", "RecursionError", "maximum recursion depth exceeded"),
            ("await asyncio.Event().wait()", "Deadlock", "awaits something that nothing will complete. (line 1)"),
            ("await asyncio.get_running_loop().create_future()", "Deadlock", "(line 1)"),
            ("async def main():\n    yield 1", "SyntaxError", "main must return its result, not yield it"),
            ("input()", "EOFError", "(line 1)"),
            (
                "import threading\nthreading.Thread(target=print).start()",
                "RuntimeError",
                "can't start new thread (line 2)",
            ),
            ("import os\nos.fork()", "PermissionError", "(line 2)"),
            ("x = [bytearray(1 << 28) for _ in range(9)]", "MemoryLimit", "memory: the program needs more than 512 MB"),
            (IN_A_GROUP, "ExceptionGroup", "TypeError: mail.send: arguments['x'] is of type set"),
        ],
        10,
    ),
)
async def test_an_error_is_told_in_one_line_with_its_type_and_the_programs_own_line(sandbox, source, kind, told):
    error = (await play(sandbox, source)).error
    assert error["type"] == kind
    assert told in error["message"]
    assert "\n" not in error["message"]


AT_THE_END = """
async def late():
    try:
        await asyncio.sleep(9)
    finally:
        await mail.send(n=1)

asyncio.create_task(late())
await asyncio.sleep(0)
"""


@promise("programs:never-awaited")
@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("mail.send(n=1)", "mail.send was called, but never awaited (line 1)"),
        ("kept = [mail.send(n=1)]", "mail.send was called, but never awaited (line 1)"),
        ("asyncio.create_task(mail.send(n=1))\nawait asyncio.sleep(0)", "mail.send was started, but nothing awaits it"),
        ("asyncio.create_task(mail.send(n=1))\nreturn\nawait x", "mail.send was started as a task, but the program"),
        ("async def go(): await mail.send(n=1)\ngo()", "go was called, but never awaited (line 2)"),
        ("mail.send(n=1)\nawait mail.find(n=2)", "mail.send was called, but never awaited (line 1)"),
        (AT_THE_END, "mail.send was started while the program ended"),
        ("import sys\nasyncio.create_task(mail.send(n=1))\nsys.exit()", "mail.send was started as a task, but the"),
        (
            "import sys\nasyncio.create_task(mail.send(n=1))\nawait asyncio.sleep(0)\nsys.exit(0)",
            "mail.send was started",
        ),
        ("import sys\nmail.send(n=1)\nsys.exit()", "mail.send was called, but never awaited (line 2)"),
    ],
)
async def test_a_call_that_would_silently_not_be_made_is_an_error_by_name(sandbox, source, told):
    played = await play(sandbox, source)
    assert played.error["type"] == "NeverAwaited"
    assert told in played.error["message"]
    assert played.batches == []


@promise("programs:asyncio-waiting")
async def test_tasks_that_only_wait_are_cancelled_when_the_program_returns(sandbox):
    source = cleandoc(
        """
        async def ticker():
            try:
                while True:
                    await asyncio.sleep(1)
            finally:
                print("cancelled")

        async def main():
            asyncio.create_task(ticker())
            await asyncio.sleep(2.5)
            return "done"
        """
    )
    played = await play(sandbox, source)
    assert (played.result, played.halted.output) == ("done", "cancelled\n")


@promise("programs:asyncio")
async def test_every_construct_of_asyncio_works_on_coroutines_and_on_calls(sandbox):
    source = cleandoc(
        """
        import asyncio

        async def slow(seconds, value):
            await asyncio.sleep(seconds)
            return value

        async def main():
            seen = []
            tasks = [asyncio.create_task(slow(s, s)) for s in (3, 1)]
            done, pending = await asyncio.wait(tasks, return_when="FIRST_COMPLETED")
            seen.append([len(done), len(pending)])
            for task in pending:
                task.cancel()
            try:
                await asyncio.wait_for(slow(9, 0), 2)
            except TimeoutError:
                seen.append("late")
            seen.append([await one for one in asyncio.as_completed([slow(2, "b"), slow(1, "a")])])
            queue, lock, event, semaphore = asyncio.Queue(2), asyncio.Lock(), asyncio.Event(), asyncio.Semaphore(1)
            async def producer():
                for n in range(4):
                    async with lock, semaphore:
                        await queue.put(await mail.find(n=n))
                event.set()
            task = asyncio.create_task(producer())
            seen.append([(await queue.get())["n"] for _ in range(4)])
            await event.wait()
            await task
            async with asyncio.timeout(5):
                seen.append(await asyncio.shield(mail.find(n=9)))
            seen.append(await asyncio.to_thread(sum, [1, 2]))
            condition = asyncio.Condition()
            async def waker():
                async with condition:
                    condition.notify_all()
            async with condition:
                waking = asyncio.create_task(waker())
                await condition.wait()
            await waking
            seen.append(await asyncio.gather(mail.find(n=1), slow(1, 2), return_exceptions=True))
            return seen
        """
    )
    played = await play(sandbox, source)
    assert played.result == [
        [1, 1],
        "late",
        ["a", "b"],
        [0, 1, 2, 3],
        {"n": 9},
        3,
        [{"n": 1}, 2],
    ]


@promise("programs:racing")
async def test_racing_calls_follow_the_order_in_which_their_answers_are_recorded(sandbox):
    source = body(
        """
order = []
for task in asyncio.as_completed([mail.find(n=0), mail.find(n=1), mail.find(n=2)]):
    order.append((await task)["n"])
done, pending = await asyncio.wait([asyncio.create_task(mail.find(n=n)) for n in (3, 4)], return_when="FIRST_COMPLETED")
return [order, len(done), len(pending)]
"""
    )
    assert (await play(sandbox, source)).result == [[0, 1, 2], 2, 0]


@promise("programs:asyncio-timeout")
async def test_a_call_once_made_is_never_abandoned_by_a_timeout_but_the_next_one_is_not_made(sandbox):
    source = body(
        """
seen = [await asyncio.wait_for(mail.send(n=1), 1)]
try:
    async with asyncio.timeout(15):
        seen.append(await mail.send(n=2))
        seen.append(await mail.send(n=3))
        seen.append(await mail.send(n=4))
except TimeoutError:
    seen.append("late")
return seen
"""
    )
    played = await play(sandbox, source, step_s=10)
    assert played.result == [{"n": 1}, {"n": 2}, {"n": 3}, "late"]
    assert [len(batch) for batch in played.batches] == [1, 1, 1]


@promise("programs:asyncio-yields")
async def test_a_program_that_only_yields_still_gets_its_calls_made_and_its_timers_run(sandbox):
    source = body(
        """
task = asyncio.create_task(mail.send(n=1))
while not task.done():
    await asyncio.sleep(0)
spun = 0
try:
    async with asyncio.timeout(0.01):
        while True:
            spun += 1
            await asyncio.sleep(0)
except TimeoutError:
    return [task.result(), spun > 10]
"""
    )
    assert (await play(sandbox, source)).result == [{"n": 1}, True]


@promise("programs:clock")
async def test_time_moves_with_the_journal_and_with_sleep_and_never_stands_still(sandbox):
    source = cleandoc(
        """
        import datetime, time
        from time import monotonic, time as now

        async def main():
            looks = [time.time(), now(), time.time_ns() / 1e9, datetime.datetime.now().timestamp(), time.time()]
            start = monotonic()
            await mail.send()
            waited = monotonic() - start
            time.sleep(3600)
            await asyncio.sleep(3600)
            slept = time.perf_counter() - start - waited
            return [
                looks == sorted(set(looks)), looks[0], round(waited, 3), round(slept, 3),
                str(datetime.date.today()), datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
                datetime.datetime.utcnow().year, time.strftime("%Y-%m-%d"), time.gmtime().tm_year, time.ctime()[-4:],
                type(datetime.datetime.now()) is datetime.datetime, repr(datetime.datetime.now())[:24],
            ]
        """
    )
    ordered, first, waited, slept, *rest = (await play(sandbox, source, step_s=86400)).result
    assert (ordered, round(first, 3), waited, slept) == (True, NOW, 86400.0, 7200.0)
    day = "2023-11-16"
    assert rest == [day, "2023-11-16T00:13:20+00:00", 2023, day, 2023, "2023", True, "datetime.datetime(2023, "]


@promise("programs:modules")
async def test_pickles_dataclasses_and_tracebacks_find_the_program_as_their_module(sandbox):
    source = cleandoc(
        """
        import copy, inspect, pickle, traceback
        from dataclasses import dataclass, field
        from enum import Enum

        class Colour(Enum):
            RED = 1

        @dataclass
        class Item:
            name: str
            tags: list[str] = field(default_factory=list)

        async def main():
            item = pickle.loads(pickle.dumps(Item("a", [Colour.RED])))
            try:
                raise ValueError("x")
            except ValueError:
                told = traceback.format_exc()
            lines = 'raise ValueError("x")' in told, inspect.getsource(Item)[:10]
            return [item == Item("a", [Colour.RED]), __name__, *lines]
        """
    )
    assert (await play(sandbox, source)).result == [True, "__main__", True, "@dataclass"]


@promise("programs:output")
@pytest.mark.parametrize(
    "source",
    [
        "import sys\nsys.exit()",
        "import sys\nsys.exit(0)",
        "async def main():\n    raise SystemExit",
    ],
)
async def test_leaving_by_exit_zero_is_an_end_without_a_result(sandbox, source):
    assert (await play(sandbox, source)).result is None


@promise("programs:starts")
@pytest.mark.parametrize(
    "start",
    [
        "raise SystemExit(asyncio.run(main()))",
        "from sys import exit as leave\nleave(asyncio.run(main()))",
        "await asyncio.sleep(0)\nfrom sys import exit\nexit(asyncio.run(main()))",
        "exit(asyncio.run(main()))",
        "import sys\ncode = asyncio.run(main())\ntry:\n    sys.exit(code)\nfinally:\n    print('done')",
        "def solve():\n    return {'n': 2}\nquit(solve())",
    ],
)
async def test_a_program_that_exits_with_what_its_main_returned_has_not_failed(sandbox, start):
    main = "" if "solve" in start else "async def main():\n    return {'n': 2}\n"
    assert (await play(sandbox, main + start)).result == {"n": 2}


@promise("programs:starts")
async def test_a_program_that_exits_with_anything_else_has_failed(sandbox):
    failed = "import sys\nasync def main():\n    return {'n': 2}\nasyncio.run(main())\nsys.exit('not so')"
    assert (await play(sandbox, failed)).error["type"] == "SystemExit"


STEP = """
import sys

async def step(n):
    await mail.find(n=n)
    if n == 1:
        sys.exit(0)
    return n

"""
IN_TASKS = "async with asyncio.TaskGroup() as g:\n    g.create_task(step(1))\n    g.create_task(step(2))"
LATE = """
async def late():
    try:
        await asyncio.sleep(9)
    finally:
        sys.exit()

asyncio.create_task(late())
await mail.find(n=3)
return 3
"""


@promise("programs:exit-in-task")
@pytest.mark.parametrize(
    ("end", "result"),
    [
        ("await asyncio.wait_for(step(1), 5)", None),
        ("await asyncio.gather(step(1), step(2))", None),
        ("await asyncio.gather(asyncio.wait_for(asyncio.gather(step(1)), 5), step(2))", None),
        (IN_TASKS, None),
        (LATE, 3),
    ],
)
async def test_a_task_that_leaves_by_exit_zero_makes_no_failure_of_those_that_wait_for_it(sandbox, end, result):
    assert (await play(sandbox, STEP + end)).result == result


@promise("programs:exit-in-task")
async def test_a_failure_while_a_program_leaves_by_exit_zero_is_still_told(sandbox):
    ends = "try:\n    await asyncio.gather(step(1))\nfinally:\n    sys.exit('not so')"
    assert (await play(sandbox, STEP + ends)).error["type"] == "SystemExit"


@promise("programs:output")
async def test_what_is_printed_in_any_way_is_output_in_order(sandbox):
    source = cleandoc(
        r"""
        import os, sys
        print("a", end="")
        sys.stdout.write("b\n")
        sys.stderr.write("c\n")
        os.write(1, b"d\n")
        os.write(2, b"e\xff\n")
        sys.__stdout__.write("f")
        await mail.send()
        print("g", end="")
        """
    )
    played = await play(sandbox, source, batches=1)
    assert played.halted.output == "ab\nc\nd\ne\ufffd\nf"
    assert (await play(sandbox, source)).halted.output == "ab\nc\nd\ne\ufffd\nfg"


@promise("programs:asyncio-comprehension")
@pytest.mark.parametrize("kept", ["[p async for p in pages()]", "list({p['n']: p async for p in pages()}.values())"])
async def test_a_body_that_waits_only_in_a_comprehension_can_call_tools(sandbox, kept):
    source = f"async def pages():\n    for n in (0, 20):\n        yield await mail.find(n=n)\nreturn {kept}"
    assert (await play(sandbox, source)).result == [{"n": 0}, {"n": 20}]


@promise("programs:asyncio-closed")
async def test_async_generators_are_closed_and_context_variables_kept(sandbox):
    source = cleandoc(
        """
        import contextvars
        user = contextvars.ContextVar("user", default="nobody")

        async def numbers():
            try:
                for n in range(9):
                    yield await mail.find(n=n)
            finally:
                print("closed")

        async def task(name):
            user.set(name)
            await mail.find(n=0)
            return user.get()

        async def main():
            async for one in numbers():
                break
            await asyncio.sleep(0)
            return [one, await asyncio.gather(task("a"), task("b")), user.get()]
        """
    )
    played = await play(sandbox, source)
    assert played.result == [{"n": 0}, ["a", "b"], "nobody"]
    assert played.halted.output == "closed\n"


@promise("programs:asyncio-rest")
async def test_the_rest_of_asyncio_and_what_it_needs_come_when_they_are_asked_for(sandbox):
    source = cleandoc(
        """
        import asyncio, concurrent.futures, inspect, linecache, logging, socket, sys, traceback

        async def main():
            early = [name for name in ("logging", "inspect") if not getattr(sys.modules[name], "__file__", None)]
            task = asyncio.create_task(asyncio.sleep(0))
            parts = [
                asyncio.iscoroutinefunction(main), asyncio.StreamReader.__name__, asyncio.Protocol.__module__,
                asyncio.coroutines.inspect.isfunction(main), concurrent.futures.Future.__name__,
                "run" in asyncio.__all__,
                isinstance(asyncio.get_running_loop(), asyncio.AbstractEventLoop), inspect.isawaitable(task),
                socket.AF_INET.name, await asyncio.to_thread(lambda: 3), logging.getLogger("asyncio").name,
            ]
            await task
            try:
                asyncio.nothing
            except AttributeError as error:
                parts.append(str(error))
            parts.append(asyncio.run(asyncio.sleep(0, 4)))
            logging.warning("to the output")
            return [early, *parts]
        """
    )
    played = await play(sandbox, source)
    assert played.result == [
        [],
        True,
        "StreamReader",
        "asyncio.protocols",
        True,
        "Future",
        True,
        True,
        True,
        "AF_INET",
        3,
        "asyncio",
        "module 'asyncio' has no attribute 'nothing'",
        4,
    ]
    assert played.halted.output == "WARNING:root:to the output\n"
