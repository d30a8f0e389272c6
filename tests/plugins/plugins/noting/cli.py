"""Write the number of each job into a file, in the order in which they run."""

import argparse
import os
from pathlib import Path

parser = argparse.ArgumentParser(description="Note a number.")
parser.add_argument("--number", type=int, required=True)
given = parser.parse_args()
with Path(os.environ["NOTED"]).open("a", encoding="utf-8") as file:
    file.write(f"{given.number}\n")
print(given.number)
