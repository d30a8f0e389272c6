# result: {"fib": 2880067194370816120, "hits": 88, "shown": "list of int 1, object 'a'", "doubled": 42, "wrapped": ["double", "Return twice x.", ["double"]], "newest": [1, 10, 2], "reduced": 123, "power": 1024}
import functools


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@functools.singledispatch
def show(value):
    return f"object {value!r}"


@show.register
def _(value: int):
    return f"int {value}"


@show.register(list)
def _(value):
    return "list of " + ", ".join(show(v) for v in value)


def logged(func):
    @functools.wraps(func)
    def wrapper(*args):
        calls.append(func.__name__)
        return func(*args)

    return wrapper


calls = []


@logged
def double(x):
    """Return twice x."""
    return 2 * x


@functools.total_ordering
class Version:
    def __init__(self, text):
        self.parts = tuple(map(int, text.split(".")))

    def __eq__(self, other):
        return self.parts == other.parts

    def __lt__(self, other):
        return self.parts < other.parts


async def main():
    power = functools.partial(pow, 2)
    return {
        "fib": fib(90),
        "hits": fib.cache_info().hits,
        "shown": show([1, "a"]),
        "doubled": double(21),
        "wrapped": [double.__name__, double.__doc__, calls],
        "newest": max(map(Version, ["1.9.0", "1.10.2", "1.2"])).parts,
        "reduced": functools.reduce(lambda a, b: a * 10 + b, [1, 2, 3]),
        "power": power(10),
    }
