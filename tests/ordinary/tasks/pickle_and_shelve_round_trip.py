# result: {"equal": true, "top": [["l", 2]], "keys": ["state"], "same": true}
import pickle
import shelve
from collections import Counter
from datetime import date

state = {"seen": {1, 2, 3}, "counts": Counter("hello"), "day": date(2024, 5, 17), "nested": [(1, None), b"x"]}
restored = pickle.loads(pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL))
with shelve.open("/tmp/state") as shelf:
    shelf["state"] = state
with shelve.open("/tmp/state") as shelf:
    keys = list(shelf)
    same = shelf["state"] == state
return {"equal": restored == state, "top": restored["counts"].most_common(1), "keys": keys, "same": same}
