"""A server of examples/office that ends once without an answer, after it has sent something: python dying.py gmail."""

import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from examples.office import gmail, slack
from examples.office.book import Book
from examples.office.serving import file_of

SERVERS = {"gmail": gmail.server, "slack": slack.server}


class Dying(Book):
    def write(self, data):
        sends = self.path.exists() and len(data["messages"]) > len(self.read()["messages"])
        super().write(data)
        mark = self.path.with_suffix(".died")
        if sends and not mark.exists():
            mark.touch()
            os._exit(9)


if __name__ == "__main__":
    name = sys.argv[1]
    book = Dying(file_of(f"{name.upper()}_FILE", f"{name}.json"))
    asyncio.run(SERVERS[name](book).run_stdio_async())
