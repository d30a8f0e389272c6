# result: {"common": [["the", 4], ["fox", 2]], "lengths": {"3": ["and", "dog", "fox", "the"], "5": ["barks", "brown", "jumps", "quick"], "4": ["lazy", "over"], "6": ["sleeps"]}, "last": ["sleeps", "the", "dog"], "settings": {"color": "red", "size": "m"}, "point": {"x": 3, "y": 0}, "recent": ["b", "c", "a"], "minus": {"the": 2, "quick": 1, "brown": 1, "fox": 2, "jumps": 1, "over": 1, "lazy": 1, "dog": 2, "barks": 1, "and": 1, "sleeps": 1}}
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

TEXT = """the quick brown fox jumps over the lazy dog the fox barks and the dog sleeps"""


async def main():
    words = Counter(TEXT.split())
    by_length = defaultdict(list)
    for word in sorted(words):
        by_length[len(word)].append(word)
    last = deque(maxlen=3)
    for word in TEXT.split():
        last.append(word)
    last.rotate(1)
    settings = ChainMap({"color": "red"}, {"color": "blue", "size": "m"})
    Point = namedtuple("Point", "x y", defaults=[0])
    recent = OrderedDict.fromkeys("abc")
    recent.move_to_end("a")
    return {
        "common": words.most_common(2),
        "lengths": {str(k): v for k, v in by_length.items()},
        "last": list(last),
        "settings": dict(settings),
        "point": Point(3)._asdict(),
        "recent": list(recent),
        "minus": dict(words - Counter({"the": 2})),
    }
