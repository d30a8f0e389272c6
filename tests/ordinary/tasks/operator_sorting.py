# result: {"by_count": [["apple", 3, 1.0], ["pear", 3, 0.5], ["fig", 9, 0.1]], "cities": ["Mo", "Li"], "upper": ["aPPle", "fig"], "added": [11, 22]}
from operator import add, attrgetter, itemgetter, methodcaller
from types import SimpleNamespace

rows = [("pear", 3, 0.5), ("apple", 3, 1.0), ("fig", 9, 0.1)]
people = [SimpleNamespace(name="Li", home=SimpleNamespace(city="Oslo")), SimpleNamespace(name="Mo", home=SimpleNamespace(city="Bonn"))]
by_count = sorted(rows, key=itemgetter(1, 0))
cities = sorted(people, key=attrgetter("home.city"))
return {
    "by_count": by_count,
    "cities": [p.name for p in cities],
    "upper": list(map(methodcaller("replace", "p", "P"), ["apple", "fig"])),
    "added": list(map(add, [1, 2], [10, 20])),
}
