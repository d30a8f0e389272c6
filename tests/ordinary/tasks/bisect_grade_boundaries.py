# result: {"grades": ["F", "A", "C", "C", "B", "A", "A"], "ordered": [33, 70, 77, 89, 90, 99, 100], "at": 3, "people": ["a", "c", "b"]}
from bisect import bisect, bisect_left, insort


def grade(score, breakpoints=(60, 70, 80, 90), grades="FDCBA"):
    return grades[bisect(breakpoints, score)]


async def main():
    scores = [33, 99, 77, 70, 89, 90, 100]
    ordered = []
    for s in scores:
        insort(ordered, s)
    position = bisect_left(ordered, 89)
    people = [{"n": "a", "age": 20}, {"n": "b", "age": 30}]
    insort(people, {"n": "c", "age": 25}, key=lambda p: p["age"])
    return {"grades": [grade(s) for s in scores], "ordered": ordered, "at": position, "people": [p["n"] for p in people]}
