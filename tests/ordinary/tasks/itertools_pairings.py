# result: {"matches": [["red", "green"], ["red", "blue"], ["green", "blue"]], "runs": [["A", 3], ["B", 2], ["C", 1], ["A", 2]], "running": [1, 2, 6, 24], "first_even": 8, "chunks": ["ABC", "DEF", "G--"], "pairs": [["a", "b"], ["b", "c"], ["c", "d"]], "product": ["aa", "ab", "ba", "bb"], "sliced": [1, 2, 1, 2, 1]}
import itertools as it
import operator


async def main():
    teams = ["red", "green", "blue"]
    matches = list(it.combinations(teams, 2))
    runs = [(key, len(list(group))) for key, group in it.groupby("AAABBCAA")]
    running = list(it.accumulate([1, 2, 3, 4], operator.mul))
    first_even = next(filter(lambda n: n % 2 == 0, it.count(7)))
    chunks = list(it.zip_longest(*[iter("ABCDEFG")] * 3, fillvalue="-"))
    return {
        "matches": matches,
        "runs": runs,
        "running": running,
        "first_even": first_even,
        "chunks": ["".join(c) for c in chunks],
        "pairs": list(it.pairwise("abcd")),
        "product": ["".join(p) for p in it.product("ab", repeat=2)],
        "sliced": list(it.islice(it.cycle([1, 2]), 5)),
    }
