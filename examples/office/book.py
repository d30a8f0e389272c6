"""What a service remembers: one JSON file, which only its server writes."""

import json
from pathlib import Path
from typing import Any


class Refused(Exception):
    """Say why a service does not do what it was asked."""


class Book:
    """Read and write one file; a write replaces it whole, so that a server that dies leaves it as it was."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def read(self) -> dict[str, Any]:
        """Return all that is written."""
        return json.loads(self.path.read_text(encoding="utf-8"))

    def write(self, data: dict[str, Any]) -> None:
        """Write all of it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(data, indent=1), encoding="utf-8")
        fresh.replace(self.path)

    def begin(self, data: dict[str, Any]) -> None:
        """Write this unless something is written already."""
        if not self.path.exists():
            self.write(data)


def page(rows: list[Any], size: int, token: str | None, what: str) -> tuple[list[Any], str | None]:
    """Return a page of rows and the token of the next one; raises Refused for a token that is none of ours."""
    start = 0
    if token:
        kind, _, number = token.partition("-page-token-")
        if kind != what or not number.isdecimal():
            raise Refused("Invalid page token")
        start = int(number)
    end = start + size
    return rows[start:end], f"{what}-page-token-{end:08}" if end < len(rows) else None


def answered(**data: Any) -> dict[str, Any]:
    """Return an answer in the envelope that Composio puts around what a service answers."""
    return {"data": data, "error": None, "successful": True}


def refused(error: Refused) -> dict[str, Any]:
    """Return a refusal in that envelope; for MCP it is an ordinary result."""
    return {"data": {}, "error": str(error), "successful": False}
