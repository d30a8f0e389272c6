"""Choose one-line mutants of code by the text of their lines, so that each can be made in two commits."""

import ast
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import NamedTuple

_OPPOSITES = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_REMOVABLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Delete)

KINDS = ("comparison", "constant", "removal")

Code = Mapping[str, Mapping[str, str]]
"""The modules of each room: their text by their path."""


class Mutant(NamedTuple):
    """One line of a room, and what is to stand there instead; both without the space around them."""

    room: str
    kind: str
    line: str
    mutated: str


def choose(base: Code, tree: Code, *, count: int, seed: int) -> list[Mutant]:
    """Return as many mutants of each room and kind, of lines that both commits have exactly once in that room."""
    queues = []
    for room in sorted(base.keys() & tree.keys()):
        lines = _once(base[room]) & _once(tree[room])
        found = {mutant for text in base[room].values() for mutant in mutants_of(room, text) if mutant.line in lines}
        kinds = [sorted(mutant for mutant in found if mutant.kind == kind) for kind in KINDS]
        for mutants in kinds:
            random.Random(f"{seed} {room}").shuffle(mutants)
        queues.append(_in_turn(kinds))
    return _in_turn(queues)[:count]


def _in_turn(queues: list[list[Mutant]]) -> list[Mutant]:
    """Return the first of each, then the second of each, and so on."""
    return [mutant for row in zip_longest(*queues) for mutant in row if mutant is not None]


def place_of(mutant: Mutant, modules: Mapping[str, str]) -> tuple[str, str]:
    """Return which module of its room has the line of a mutant, and the module's text with the mutant in it."""
    for path, text in modules.items():
        lines = text.splitlines(keepends=True)
        for at, line in enumerate(lines):
            if line.strip() == mutant.line:
                lines[at] = line.replace(mutant.line, mutant.mutated)
                return path, "".join(lines)
    raise LookupError(mutant.line)


def mutants_of(room: str, text: str) -> Iterator[Mutant]:
    """Yield the mutants of one module: turned comparisons, other constants, statements that are left out."""
    lines = text.splitlines()
    whole = ast.parse(text)
    # The places of what stands in an f-string are not known in Python 3.11.
    unplaced = {id(inner) for node in ast.walk(whole) if isinstance(node, ast.JoinedStr) for inner in ast.walk(node)}
    inside = {id(inner) for node in ast.walk(whole) if isinstance(node, _FUNCTIONS) for inner in ast.walk(node)}
    for node in ast.walk(whole):
        if id(node) in unplaced or not isinstance(node, ast.expr | ast.stmt) or node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1]
        kind, mutated = _mutated(node, line, removable=id(node) in inside)
        if kind:
            yield Mutant(room, kind, line.strip(), mutated.strip())


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _once(modules: Mapping[str, str]) -> set[str]:
    counts = Counter(line.strip() for text in modules.values() for line in text.splitlines())
    return {line for line, count in counts.items() if count == 1}


def _mutated(node: ast.AST, line: str, *, removable: bool) -> tuple[str, str]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            sign, opposite = _OPPOSITES[type(operator)]
            between = _cut(line, left.end_col_offset or 0, right.col_offset)
            return "comparison", _put(line, left.end_col_offset or 0, right.col_offset, between.replace(sign, opposite))
        case ast.Constant(value=bool(value)):
            return "constant", _put(line, node.col_offset, node.end_col_offset or 0, str(not value))
        case ast.Constant(value=int(value)):
            return "constant", _put(line, node.col_offset, node.end_col_offset or 0, str(value + 1))
        case ast.Expr(value=ast.Constant()):
            return "", ""
        case ast.stmt() if removable and isinstance(node, _REMOVABLE):
            # What stands behind it on the line, such as a comment, goes too.
            return "removal", _put(line, node.col_offset, len(line.encode()), "pass")
        case _:
            return "", ""


def _cut(line: str, start: int, end: int) -> str:
    return line.encode()[start:end].decode()


def _put(line: str, start: int, end: int, text: str) -> str:
    data = line.encode()
    return data[:start].decode() + text + data[end:].decode()
