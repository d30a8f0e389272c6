# holds: worker_healthy, in_time
# ends: any
import ast
import json

for attempt in (
    lambda: json.loads("[" * 10**6),
    lambda: json.loads('{"a":' * 10**6),
    lambda: ast.literal_eval("-" * 10**6 + "1"),
    lambda: eval("(" * 10**5 + ")" * 10**5),
    lambda: compile("a" + ".b" * 10**5, "x", "eval"),
):
    try:
        attempt()
    except (RecursionError, MemoryError, SyntaxError, ValueError) as error:
        print(type(error).__name__)
return "tried"
