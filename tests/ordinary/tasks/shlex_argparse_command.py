# result: {"args": {"source": "my file.png", "size": 42, "verbose": 2, "mode": "fast"}, "quoted": "'a b' c", "problem": "--mode", "usage": "usage: convert [-h] [--size SIZE] [-v] [--mode {fast,good}] source"}
import argparse
import shlex

parser = argparse.ArgumentParser(prog="convert", exit_on_error=False)
parser.add_argument("source")
parser.add_argument("--size", type=int, default=10)
parser.add_argument("-v", "--verbose", action="count", default=0)
parser.add_argument("--mode", choices=["fast", "good"], default="fast")
args = parser.parse_args(shlex.split("'my file.png' --size 42 -vv"))
try:
    parser.parse_args(["x", "--mode", "bad"])
    problem = None
except argparse.ArgumentError as e:
    problem = e.argument_name
return {"args": vars(args), "quoted": shlex.join(["a b", "c"]), "problem": problem, "usage": parser.format_usage().strip()}
