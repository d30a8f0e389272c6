"""A plugin without subcommands."""

import argparse
import json

parser = argparse.ArgumentParser(description="Add numbers.")
parser.add_argument("--left", type=int, required=True)
parser.add_argument("--right", type=float, default=0.5)
given = parser.parse_args()
print(json.dumps(given.left + given.right))
