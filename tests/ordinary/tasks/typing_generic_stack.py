# result: {"popped": 2, "movie": {"title": "Metropolis", "year": 1927}, "employee": {"name": "Guido", "id": 3}, "closeable": [true, false], "hints": ["return", "shape", "size"], "area": 9.0}
from __future__ import annotations

from typing import Annotated, Generic, Literal, NamedTuple, Protocol, TypedDict, TypeVar, get_type_hints, runtime_checkable

T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self._items: list[T] = []

    def push(self, item: T) -> Stack[T]:
        self._items.append(item)
        return self

    def pop(self) -> T:
        return self._items.pop()


class Movie(TypedDict, total=False):
    title: str
    year: int


class Employee(NamedTuple):
    name: str
    id: int = 3


@runtime_checkable
class Closeable(Protocol):
    def close(self) -> None: ...


def area(shape: Literal["square"], size: Annotated[int, "cm"]) -> float:
    return float(size**2)


async def main() -> dict:
    movie: Movie = {"title": "Metropolis", "year": 1927}
    hints = get_type_hints(area, include_extras=True)
    return {
        "popped": Stack[int]().push(1).push(2).pop(),
        "movie": movie,
        "employee": Employee("Guido")._asdict(),
        "closeable": [isinstance(open("/tmp/t.txt", "w"), Closeable), isinstance(3, Closeable)],
        "hints": sorted(hints),
        "area": area("square", 3),
    }
