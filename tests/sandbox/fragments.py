"""What random programs are put together from: preamble, values, conditions, statements, ends.

In capitals stands what is filled in: a value, a condition, a digit, a call, a call that may fail, a block; a name that
ends in `_N` gets a number of its own.
"""

from inspect import cleandoc

PREAMBLE = cleandoc(
    """
    seen = []
    marks = []

    class Thing:
        pass

    class Cycle:
        def __init__(self):
            self.own = self

        def __del__(self):
            marks.append(len(seen))

    async def ask(function, **arguments):
        try:
            return await function(**arguments)
        except ToolError as error:
            return [error.error_type, str(error)]

    def deep(n):
        try:
            return deep(n + 1)
        except RecursionError:
            return n

    def numbers(n):
        for k in range(n):
            yield k * k
    """
)

MODULES = (
    "asyncio collections contextlib dataclasses datetime functools gc itertools json os random secrets sqlite3"
    " string sys tempfile time traceback uuid weakref"
)
VALUES = (
    "random.random()",
    "random.randrange(1000)",
    "random.sample(range(50), 3)",
    "random.gauss(0, 1)",
    "random.choice(string.ascii_letters)",
    "random.Random().random()",
    "random.Random(DIGIT).random()",
    "random.SystemRandom().randrange(99)",
    "str(uuid.uuid4())",
    "str(uuid.uuid1())",
    "str(uuid.uuid5(uuid.NAMESPACE_DNS, str(seen[-1:])))",
    "secrets.token_hex(4)",
    "os.urandom(DIGIT).hex()",
    "time.time()",
    "time.time_ns() % 1000",
    "time.monotonic_ns()",
    "time.perf_counter()",
    "time.process_time()",
    "time.strftime('%H:%M:%S')",
    "str(datetime.datetime.now())",
    "datetime.datetime.now(datetime.timezone.utc).isoformat()",
    "datetime.date.today().isoformat()",
    "asyncio.get_running_loop().time()",
    "hash('word DIGIT')",
    "hash((b'DIGIT', 1.5, None, 'x'))",
    "hash(Thing())",
    "hash(dataclasses.make_dataclass('Pair', 'ab', frozen=True)('a', frozenset('bcd')))",
    "id(object())",
    "id(seen)",
    "repr(Thing())",
    "repr(ask)",
    "list({f'{n}-DIGIT' for n in range(9)})",
    "list(set('the quick brown fox') - set('DIGIT dogs'))",
    "[repr(x) for x in {Thing() for _ in range(DIGIT)}]",
    "list({Thing(): n for n in range(DIGIT)}.values())",
    "sorted((str(x) for x in seen[-3:]), key=hash)",
    "sorted([Thing() for _ in range(DIGIT)], key=id)[0].__class__.__name__",
    "{w: len(w) for w in {'a', 'bb', 'ccc', str(DIGIT)}}",
    "list(frozenset([DIGIT, 'x', None, 2.5, (1, 2)]) & {'x', None, 2.5})",
    "{'p', 'q', 'r', 's'}.pop()",
    "[x * y for x in numbers(DIGIT) for y in (1, DIGIT) if x % 2]",
    "list(itertools.islice(itertools.cycle(set('abc')), DIGIT))",
    "collections.Counter(str(seen[-1:])).most_common(2)",
    "functools.reduce(lambda a, b: a + b, numbers(DIGIT), 0)",
    "json.dumps(seen[-1:], sort_keys=True)[:60]",
    "f'{len(seen):>DIGIT}|{str(seen[-2:])[:40]!r}'",
    "seen[-1:]",
    "marks[-DIGIT:]",
    "len(gc.get_objects())",
    "list(gc.get_count())",
    "sys.getsizeof(seen)",
    "sys.getrefcount(Thing)",
    "deep(0)",
    "tempfile.mktemp()",
    "sqlite3.connect(':memory:').execute(\"SELECT random(), hex(randomblob(3)), datetime('now')\").fetchall()",
    "sqlite3.connect(':memory:').execute('SELECT current_timestamp, julianday()').fetchone()",
    "os.path.getmtime('/tmp')",
    "os.stat('/usr/lib').st_mtime_ns",
    "list(os.times())",
    "os.getpid()",
    "[dict(zip(set('ab'), [DIGIT, 'ö\\u2028\\U0001f600']))]",
)
CONDITIONS = (
    "random.random() < 0.5",
    "hash(str(seen[-1:])) % 2",
    "time.time_ns() // 1000 % 2",
    "len(seen) % 3 == 0",
    "id(object()) // 16 % 2",
    "any(isinstance(one, dict) for one in seen[-3:])",
    "next(iter({'a', 'b', 'c'})) > 'a'",
    "str(uuid.uuid4()) > '8'",
)
ENDS = (
    *("return seen[-20:]",) * 6,
    "return {'seen': len(seen), 'marks': marks, 'last': seen[-1:]}",
    "raise ValueError(str(seen[-2:]))",
    "sys.exit(str(seen[-1:]))",
    "return set(map(str, seen))",
    "asyncio.create_task(ask(mail.send, late=len(seen)))\nreturn len(seen)",
    "return await asyncio.gather(*(ask(crm.find, n=n) for n in range(3)))",
    "1 / (len(seen) - len(seen))",
)
SIMPLE = (
    *("seen.append(VALUE)",) * 3,
    *("seen.append(await CALL)",) * 4,
    "print(VALUE, VALUE)",
    "print(VALUE, end='', file=sys.stderr)",
    "sys.stdout.write(str(VALUE))",
    "found_N = await CALL\nseen.append(await ask(crm.find, after=found_N, v=VALUE))",
    "found_N = await asyncio.gather(CALL, CALL)\nfound_N.reverse()\nseen.append(found_N)",
    "await asyncio.sleep(DIGIT / 7)",
    "await asyncio.sleep(86_400 * random.random())",
    "time.sleep(DIGIT)",
    "Cycle()\nseen.append(gc.collect())",
    "junk = [Cycle() for _ in range(300)]\ndel junk\nseen.append(len(marks))",
    "junk = [[] for _ in range(900)], bytearray(70_000)",
    "thing_N = Thing()\nweakref.finalize(thing_N, seen.append, VALUE)\ndel thing_N",
    "seen.append(max(map(str, seen[-4:]), key=hash, default=None))",
    "seen.sort(key=str)",
    "with open('/tmp/file_N', 'w') as file:\n    print(VALUE, file=file)\nseen.append(open('/tmp/file_N').read())",
    "seen.append(sorted(os.listdir('/tmp'))[-3:])",
)
COMPOUND = (
    (1, "if COND:\n    BLOCK\nelse:\n    BLOCK"),
    (1, "if COND:\n    BLOCK"),
    (2, "for each_N in range(2):\n    BLOCK\n    seen.append(each_N)"),
    (2, "for each_N in {'x', 'y'}:\n    BLOCK\n    print(each_N)\nelse:\n    seen.append(VALUE)"),
    (2, "for each_N in {Thing(): 1, Thing(): 2}.values():\n    if COND:\n        continue\n    BLOCK"),
    (3, "left_N = 3\nwhile left_N:\n    left_N -= 1\n    BLOCK\n    if COND:\n        break"),
    (1, "seen.append([str(one)[:80] for one in await asyncio.gather(CALL, RISKY, RISKY, return_exceptions=True)])"),
    (1, "seen.append(await asyncio.gather(CALL, CALL, CALL))"),
    (2, "seen.append(await asyncio.gather(*(CALL for each_N in range(2))))"),
    (2, "seen.append([await CALL for each_N in {'p', 'q'} if COND])"),
    (
        1,
        """
        try:
            async with asyncio.TaskGroup() as group_N:
                one_N = group_N.create_task(RISKY)
                two_N = group_N.create_task(CALL)
                BLOCK
            seen.append([one_N.result(), two_N.result()])
        except* ToolError as faults:
            seen.append([str(one) for one in faults.exceptions])
            BLOCK
        """,
    ),
    (
        1,
        """
        try:
            seen.append(await RISKY)
            BLOCK
            if COND:
                raise KeyError(VALUE)
        except ToolError as error:
            seen.append([error.error_type, error.tool, str(error)])
        except KeyError as error:
            seen.append(traceback.format_exc())
            BLOCK
        else:
            BLOCK
        finally:
            seen.append(await CALL)
        """,
    ),
    (
        1,
        """
        try:
            try:
                BLOCK
                raise ValueError(VALUE)
            except ValueError as error:
                raise LookupError('again') from error
            finally:
                print('finally', VALUE)
        except LookupError as error:
            seen.append([repr(error), repr(error.__cause__)])
        """,
    ),
    (1, "with contextlib.suppress(ToolError, ZeroDivisionError):\n    BLOCK\n    seen.append(await RISKY)\n    1 / 0"),
    (
        2,
        """
        async def inner_N(a, *, b=0):
            nonlocal_N = [VALUE]
            async def innermost():
                nonlocal_N.append(await CALL)
                BLOCK
                return nonlocal_N
            return [a, b, await innermost()]
        seen.append(await inner_N(DIGIT))
        seen.append(await asyncio.gather(inner_N(1), inner_N(2, b=VALUE)))
        """,
    ),
    (
        2,
        """
        async def stream_N():
            try:
                for each in range(2):
                    yield await CALL
            finally:
                seen.append('closed')
        async for one_N in stream_N():
            seen.append(one_N)
            if COND:
                break
        """,
    ),
    (
        1,
        """
        @contextlib.asynccontextmanager
        async def around_N():
            seen.append(await CALL)
            try:
                yield VALUE
            finally:
                seen.append(await CALL)
        async with around_N() as given_N:
            seen.append(given_N)
            BLOCK
        """,
    ),
    (
        1,
        """
        try:
            async with asyncio.timeout(DIGIT / 3):
                await asyncio.sleep(DIGIT / 3)
                seen.append(await CALL)
                await asyncio.sleep(random.random())
        except TimeoutError:
            seen.append(VALUE)
        """,
    ),
    (
        1,
        """
        try:
            seen.append(await asyncio.wait_for(CALL, DIGIT))
        except TimeoutError:
            seen.append('late')
        """,
    ),
    (
        1,
        """
        tasks_N = [asyncio.ensure_future(CALL), asyncio.ensure_future(CALL), asyncio.create_task(asyncio.sleep(5))]
        done_N, left_N = await asyncio.wait(tasks_N, return_when=asyncio.FIRST_COMPLETED)
        seen.append([sorted(str(one.result()) for one in done_N), len(left_N)])
        for one_N in left_N:
            one_N.cancel()
        """,
    ),
    (
        1,
        "for one_N in asyncio.as_completed([CALL, CALL, asyncio.sleep(DIGIT, 'slept')]):\n    seen.append(await one_N)",
    ),
    (
        1,
        """
        queue_N = asyncio.Queue(1)
        async def fill_N():
            for one in (VALUE, await CALL, None):
                await queue_N.put(one)
        filling_N = asyncio.create_task(fill_N())
        while (one_N := await queue_N.get()) is not None:
            seen.append(one_N)
        await filling_N
        """,
    ),
    (
        3,
        """
        gate_N, order_N = asyncio.Semaphore(2), []
        async def pass_N(k):
            async with gate_N:
                await asyncio.sleep(k % 2)
                order_N.append([k, await CALL])
        await asyncio.gather(*(pass_N(k) for k in range(3)))
        seen.append(order_N)
        """,
    ),
    (
        1,
        """
        match seen[-1:]:
            case [dict() as found_N]:
                seen.append(sorted(found_N))
                BLOCK
            case [str() | int() as plain_N]:
                seen.append([plain_N])
            case _:
                BLOCK
        """,
    ),
    (
        1,
        """
        class Local_N(Thing):
            size = DIGIT
            def __eq__(self, other):
                return self.size == other.size
            def __hash__(self):
                return hash(f'{self.size}')
            async def act(self):
                seen.append(await CALL)
                BLOCK
                return repr(self)
        seen.append([await Local_N().act(), len({Local_N(), Local_N()})])
        """,
    ),
)
