"""Read SQL statements from .sql files."""

from pathlib import Path

_HEADING = "-- name: "


def statements(file: str) -> dict[str, str]:
    """Return the statements of a .sql file beside this module, by the names in their comments."""
    found: dict[str, str] = {}
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    for section in text.split(_HEADING)[1:]:
        name, _, statement = section.partition("\n")
        found[name.strip()] = statement.strip().rstrip(";")
    return found
