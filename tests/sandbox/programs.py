"""Write random programs: everything they do follows from a number, and much of it from what a jail must hold still."""

import random
import re
from textwrap import dedent

from tests.sandbox.fragments import COMPOUND, CONDITIONS, ENDS, MODULES, PREAMBLE, SIMPLE, VALUES

FUNCTIONS = ("mail.find", "mail.send", "crm.find")
MOST_CALLS = 24
DEEPEST = 3
_MODULE = re.compile(rf"\b({'|'.join(MODULES.split())})\.")
_BLANK = re.compile(r"\b(VALUE|COND|DIGIT|CALL|RISKY)\b|(?<=_)N\b")


def program(number: int) -> str:
    """Return the program of this number."""
    return _Writer(random.Random(f"program {number}")).whole()


class _Writer:
    """Write one program."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.lines = [PREAMBLE, "", "async def main():"]
        self.named = 0
        self.calls = 0
        """How many calls what is written so far can make at most."""
        self.times = 1
        """How often what is written now may run."""

    def whole(self) -> str:
        for _ in range(self.dice.randint(3, 6)):
            self.statement(1)
        self.write(self.dice.choice(ENDS), 1)
        body = "\n".join(self.lines)
        imported = "".join(f"import {name}\n" for name in sorted(set(_MODULE.findall(body))))
        return f"{imported}\n{body}\n"

    def statement(self, depth: int) -> None:
        if depth > DEEPEST or self.dice.random() < 0.5:
            self.write(self.dice.choice(SIMPLE), depth)
            return
        times, template = self.dice.choice(COMPOUND)
        self.times *= times
        self.write(dedent(template).strip(), depth)
        self.times //= times

    def write(self, template: str, depth: int) -> None:
        self.named += 1
        number = str(self.named)
        for line in template.splitlines():
            text = line.lstrip()
            level = depth + (len(line) - len(text)) // 4
            if text == "BLOCK":
                for _ in range(self.dice.randint(1, 2)):
                    self.statement(level)
            else:
                filled = _BLANK.sub(lambda blank: number if blank[0] == "N" else self.fill(blank[0]), text)
                self.lines.append("    " * level + filled)

    def fill(self, blank: str) -> str:
        match blank:
            case "DIGIT":
                return str(self.dice.randint(1, 7))
            case "VALUE":
                return _BLANK.sub(lambda inner: self.fill(inner[0]), self.dice.choice(VALUES))
            case "COND":
                return self.dice.choice(CONDITIONS)
            case _:
                return self.call(careful=blank == "CALL")

    def call(self, *, careful: bool) -> str:
        """Return what can be awaited; without more calls to spend, it only sleeps."""
        if self.calls + self.times > MOST_CALLS:
            return f"asyncio.sleep({self.fill('DIGIT')}, {self.fill('VALUE')})"
        self.calls += self.times
        if self.dice.random() < 0.1:
            return f"ask(result, ref='ref-{self.fill('DIGIT')}')"
        function, arguments = self.dice.choice(FUNCTIONS), f"n={self.fill('DIGIT')}, v={self.fill('VALUE')}"
        return f"ask({function}, {arguments})" if careful else f"{function}({arguments})"
