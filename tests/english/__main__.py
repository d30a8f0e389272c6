"""Find wordings in pages, code and templates that `rules.toml` replaces.

python -m tests.english             check this repository
python -m tests.english --in DIR    check the pages and the code in another folder
"""

import argparse
import ast
import itertools
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

RULES = Path(__file__).with_name("rules.toml")
HOUSE = Path(__file__).resolve().parents[2]

QUOTED = re.compile(r"`+[^`]*`+|<!--.*?-->|\]\([^)]*\)", re.DOTALL)
"""Code, and the targets of links."""
BEGINNING = re.compile(
    r"""
    (?: \A | (?<=[.?!:;])\s+ | (?<=[.?!]["')*])\s+ | \n\s*\n | \n[ ]*(?:[-*]|\d+\.)[ ]+ | \| )
    [\s*_"'(]*
    (?=\S)
    """,
    re.VERBOSE,
)
"""Where a sentence begins, or a cell of a table, an item of a list, or what follows a colon."""
FENCE = re.compile(r" *(```+)")
TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"""|\'\'\'(?:\\.|[^\\])*?\'\'\'|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|#[^\n]*''', re.DOTALL
)
"""A string or a comment of Python."""
MARKUP = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}|<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.DOTALL)
"""What of a template is not shown as it is."""
LEAST_WORDS = 3
"""Strings of fewer words are names and keys."""


@dataclass(frozen=True)
class Passage:
    """Words that a person reads: a line of a page or of a template, a comment, or a string of any kind."""

    kind: str
    line: int
    text: str

    def sentences(self) -> Iterator[tuple[int, str]]:
        """Yield each sentence with its line; quoted code in it is blank."""
        text = QUOTED.sub(lambda found: re.sub(r"[^\s`]", "x", found[0]), self.text)
        cuts = list(BEGINNING.finditer(text))
        for cut, after in itertools.zip_longest(cuts, cuts[1:]):
            end = after.start() if after else len(text)
            yield self.line + text.count("\n", 0, cut.end()), text[cut.end() : end].rstrip()


@dataclass(frozen=True)
class Rule:
    """A wording, the one to use instead, and the kinds of passages in which it counts."""

    find: re.Pattern[str]
    write: str
    kinds: frozenset[str]


def page(text: str) -> Iterator[Passage]:
    """Yield the lines of a page that are neither code nor headings."""
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if mark and (not fence or mark[1] == fence):
            fence = "" if fence else mark[1]
        elif not fence and not line.startswith(("#", "<")):
            yield Passage("docs", number, re.sub(r"^ *(?:[-*>]|\d+\.) +", "", line))


def code(text: str) -> Iterator[Passage]:
    """Yield the comments and docstrings of a module."""
    comment: list[str] = []
    line, at, place = 1, 0, (0, 0)
    for token in TOKEN.finditer(text):
        line, at = line + text.count("\n", at, token.start()), token.start()
        before = text[text.rfind("\n", 0, at) + 1 : at]
        if comment and (not token[0].startswith("#") or (line, len(before)) != place):
            yield Passage("comments", place[0] - len(comment), "\n".join(comment))
            comment = []
        if token[0].startswith("#"):
            comment.append(token[0].lstrip("#:").strip())
            place = (line + 1, len(before))
        elif token[0].startswith('"""') and before.strip() in {"", "r"}:
            own = re.search(r"(?:\A|:)(?:\s+#[^\n]*)?\s*\Z", text[max(0, at - len(before) - 200) : at - len(before)])
            yield Passage("docstrings" if own else "labels", line, token[0][3:-3])
    if comment:
        yield Passage("comments", place[0] - len(comment), "\n".join(comment))


def messages(text: str) -> Iterator[Passage]:
    """Yield the strings of a module that are neither docstrings nor labels; values in them are quoted code."""
    tree = ast.parse(text)
    passed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    passed |= {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(words)) if id(node) not in passed:
                pass
            case ast.JoinedStr(values=parts):
                words = "".join(str(part.value) if isinstance(part, ast.Constant) else "`x`" for part in parts)
            case _:
                continue
        if len(words.split()) >= LEAST_WORDS:
            yield Passage("messages", node.lineno, words)


def template(text: str) -> Iterator[Passage]:
    """Yield the lines of a template without its markup."""
    shown = MARKUP.sub(lambda found: "`x`" + "\n" * found[0].count("\n"), text)
    for number, line in enumerate(shown.splitlines(), 1):
        yield Passage("messages", number, line)


def passages(text: str, kind: str) -> Iterator[Passage]:
    """Yield what a person reads of a file."""
    match kind:
        case "docs":
            yield from page(text)
        case "templates":
            yield from template(text)
        case _:
            yield from code(text)
            yield from messages(text)


def faults(file: Path, kind: str, rules: Sequence[Rule]) -> Iterator[tuple[int, str, str]]:
    """Yield each wording that a rule finds in a file: its line, the words, and those to use instead."""
    text = file.read_text(encoding="utf-8")
    for passage in passages(text, kind):
        for line, sentence in passage.sentences():
            for rule in rules:
                if passage.kind in rule.kinds and (found := rule.find.search(" ".join(sentence.split()))):
                    yield line, found[0], rule.write


def main(arguments: Sequence[str]) -> int:
    """Print every wording that a rule finds, and return 1 if there is one."""
    parser = argparse.ArgumentParser(prog="python -m tests.english")
    parser.add_argument("--in", dest="folder", type=Path, default=HOUSE)
    folder = parser.parse_args(arguments).folder
    listed = tomllib.loads(RULES.read_text(encoding="utf-8"))
    rules = [Rule(re.compile(each["find"]), each["write"], frozenset(each["in"])) for each in listed["rule"]]
    lines = [
        f'{file.relative_to(folder)}:{line}: "{found}": write {write}'
        for kind, patterns in listed["paths"].items()
        for file in _files(folder, patterns)
        for line, found, write in sorted(faults(file, kind, rules))
    ]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 1 if lines else 0


def _files(folder: Path, patterns: Sequence[str]) -> Iterator[Path]:
    for pattern in patterns:
        for found in sorted(folder.glob(pattern)):
            yield from sorted(found.rglob("*.py")) if found.is_dir() else [found]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
