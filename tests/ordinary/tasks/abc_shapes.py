# result: {"abstract": true, "areas": [1, 3.1416, 9], "deck": [true, 4, "3H", 1], "kinds": [true, false]}
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence


class Shape(ABC):
    @property
    @abstractmethod
    def area(self): ...

    def __lt__(self, other):
        return self.area < other.area


class Circle(Shape):
    def __init__(self, r):
        self.r = r

    @property
    def area(self):
        return math.pi * self.r**2


class Square(Shape):
    def __init__(self, side):
        self.side = side

    @property
    def area(self):
        return self.side**2


class Deck(Sequence):
    def __init__(self):
        self.cards = [r + s for s in "SH" for r in "A23"]

    def __getitem__(self, i):
        return self.cards[i]

    def __len__(self):
        return len(self.cards)


async def main():
    try:
        Shape()
        abstract = False
    except TypeError:
        abstract = True
    shapes = sorted([Square(3), Circle(1), Square(1)])
    deck = Deck()
    return {
        "abstract": abstract,
        "areas": [round(s.area, 4) for s in shapes],
        "deck": ["AH" in deck, deck.index("2H"), list(reversed(deck))[0], deck.count("AS")],
        "kinds": [isinstance({}, Mapping), isinstance(5, Iterable)],
    }
