# result: {"text": "{'alpha': {'nested': {'deep': {...}}},\n 'mid': ('a', 'b'),\n 'zeta': [0,\n          1,\n          2,\n          3,\n          4,\n          5,\n          6,\n          7,\n          8,\n          9,\n          10,\n          11,\n          12,\n          13,\n          14,\n          15,\n          16,\n          17,\n          18,\n          19,\n          20,\n          21,\n          22,\n          23,\n          24,\n          25,\n          26,\n          27,\n          28,\n          29]}", "short": "[0, 1, 2, 3, 4, 5, ...]"}
# output: "{'zeta': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9,\n          10, 11, 12, 13, 14, 15, 16,\n          17, 18, 19, 20, 21, 22, 23,\n          24, 25, 26, 27, 28, 29],\n 'alpha': {'nested': {'deep': {'deeper': 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'}}},\n 'mid': ('a', 'b')}\n"
import pprint
import reprlib

report = {"zeta": list(range(30)), "alpha": {"nested": {"deep": {"deeper": "x" * 30}}}, "mid": ("a", "b")}
text = pprint.pformat(report, width=60, depth=3)
pprint.pp(report, width=40, sort_dicts=False, compact=True)
return {"text": text, "short": reprlib.repr(list(range(1000)))}
