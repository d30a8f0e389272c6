"""One promise: its name, where it was asked for, what holds, and what proves it.

A row names every test that proves it, and a test stands in exactly one row.
A row without a test says for which later feature it is kept (`deferred`).
A row whose tests prove only a part says what is run to see the rest (`by_hand`).
"""

from dataclasses import dataclass

CONNECTIONS = "connections: OAuth and Composio"
MEMORY = "memory and learning"
AUDIT = "audit ledger"
PLUGINS = "newline-JSON daemon of plugins"
DOORS = "the engine as an MCP server, and agents that check each other"
PRODUCTION = "what several hosts need: object storage, collection, encrypted payloads, a user per server"
REPLACED = "replaced: "


@dataclass(frozen=True)
class Requirement:
    """One promise."""

    id: str
    source: str
    """Where it was asked for; several places are parted by `; `."""
    behaviour: str
    tests: tuple[str, ...] = ()
    deferred: str | None = None
    by_hand: str | None = None

    @property
    def sources(self) -> list[str]:
        return self.source.split("; ")


def row(
    name: str,
    source: str,
    behaviour: str,
    *tests: tuple[str, ...],
    deferred: str | None = None,
    by_hand: str | None = None,
) -> Requirement:
    """Return one promise with the tests of all files that prove it."""
    return Requirement(name, source, behaviour, tuple(test for some in tests for test in some), deferred, by_hand)


def in_file(path: str, *names: str) -> tuple[str, ...]:
    """Name tests of one file, whose path begins in `tests/`."""
    return tuple(f"tests/{path}::{name}" for name in names)
