# result: {"sorted": ["pen", "lamp", "desk"], "cheapest": {"sort_index": 15.0, "name": "pen", "price": 1.5, "quantity": 10, "tags": []}, "point": {"x": 1, "y": 5}, "repr": "Item(name='pen', price=1.5, quantity=10, tags=[])", "frozen": true}
from dataclasses import asdict, dataclass, field, replace


@dataclass(order=True)
class Item:
    sort_index: float = field(init=False, repr=False)
    name: str
    price: float
    quantity: int = 0
    tags: list[str] = field(default_factory=list)

    def __post_init__(self):
        self.sort_index = self.total

    @property
    def total(self) -> float:
        return self.price * self.quantity


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


async def main():
    items = [Item("pen", 1.5, 10), Item("desk", 200.0, 1, ["wood"]), Item("lamp", 30.0, 2)]
    cheapest = min(items)
    moved = replace(Point(1, 2), y=5)
    try:
        moved.x = 3
        frozen = False
    except AttributeError:
        frozen = True
    return {
        "sorted": [i.name for i in sorted(items)],
        "cheapest": asdict(cheapest),
        "point": asdict(moved),
        "repr": repr(items[0]),
        "frozen": frozen,
    }
