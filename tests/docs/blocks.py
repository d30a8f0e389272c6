"""The code blocks of the documents."""

import re
from dataclasses import dataclass
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[2]
PAGES = (HOUSE / "README.md", HOUSE / "CONTRIBUTING.md", HOUSE / "SECURITY.md", *sorted((HOUSE / "docs").glob("*.md")))
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: `info` is what stands behind the fence, such as `json Task`."""

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
            found.append(Block(f"{page.relative_to(HOUSE)}:{line}", match[1].strip(), match[2]))
    return [block for block in found if not languages or block.language in languages]


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
