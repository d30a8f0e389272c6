# result: {"states": ["new", "paid", "shipped"], "lookup": "PAID", "sorted": ["HIGH", "LOW"], "access": true, "ratios": {"EARTH": 0.9371, "MARS": 0.1894}}
from enum import Enum, Flag, IntEnum, StrEnum, auto


class Status(StrEnum):
    NEW = auto()
    PAID = auto()
    SHIPPED = auto()


class Priority(IntEnum):
    LOW = 1
    HIGH = 10


class Access(Flag):
    READ = auto()
    WRITE = auto()
    ALL = READ | WRITE


class Planet(Enum):
    EARTH = (5.97, 6371)
    MARS = (0.642, 3390)

    @property
    def ratio(self):
        mass, radius = self.value
        return round(mass / radius * 1000, 4)


async def main():
    return {
        "states": [s for s in Status],
        "lookup": Status("paid").name,
        "sorted": [p.name for p in sorted(Priority, reverse=True)],
        "access": Access.READ in Access.ALL,
        "ratios": {p.name: p.ratio for p in Planet},
    }
