"""The code blocks, tables and prose of the documents."""

import re
import shlex
import textwrap
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
PAGES = (HOUSE / "README.md", HOUSE / "CONTRIBUTING.md", HOUSE / "SECURITY.md", *sorted((HOUSE / "docs").glob("*.md")))
_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block; `info` is the rest of its first line, such as `json Task`."""

    place: str
    info: str
    text: str

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def noun(self) -> str:
        return self.info.partition(" ")[2]


def blocks(*languages: str) -> list[Block]:
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(Block(f"{page.relative_to(HOUSE)}:{line}", match[2].strip(), textwrap.dedent(match[3])))
    return [block for block in found if not languages or block.language in languages]


def prose(page: Path) -> str:
    """The text of a page without its code blocks."""
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def table(page: str, heading: str) -> list[list[str]]:
    """The rows of the first table after a heading, cell by cell, without backticks."""
    text = (HOUSE / page).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    rows = []
    for line in text.partition("\n|")[2].splitlines():
        if line and not line.startswith("|") and rows:
            break
        if not line and rows:
            break
        rows.append([cell.strip() for cell in line.strip().strip("|").split("|")])
    return rows[2:]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def newcomers_commands() -> list[list[str]]:
    """The commands of the README that lead to a first run, and those of the plan after it, word by word."""
    text = (HOUSE / "README.md").read_text(encoding="utf-8")
    sections = [
        text.partition(f"## {title}\n")[2].partition("\n## ")[0] for title in ("Install and start", "Run a plan")
    ]
    return [
        shlex.split(line)
        for section in sections
        for block in section.split("```bash\n")[1:]
        for line in block.partition("```")[0].split("\n")
        if line
    ]


def newcomers_plan() -> str:
    """The plan of the README, which its last command runs."""
    return (HOUSE / "README.md").read_text(encoding="utf-8").partition("```yaml plan\n")[2].partition("```")[0]
