"""Write the first migration from the schema: `python -m tests.store.first_migration`.

Until the first release it is written anew with each change of the schema; from then on changes are migrations.
"""

from pathlib import Path

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from store.database.connection_tables import metadata

SCHEMA = Path(__file__).parents[2] / "store/database"
VERSIONS = SCHEMA / "migrations/versions"
DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}


def statements(dialect: str) -> str:
    """Return what creates the tables of the schema in a database of this kind."""
    made = [
        str(element.compile(dialect=DIALECTS[dialect])).replace("\t", "    ")
        for table in metadata.sorted_tables
        for element in (
            CreateTable(table),
            *map(CreateIndex, sorted(table.indexes, key=lambda index: str(index.name))),
        )
    ]
    lines = (line.rstrip() for statement in made for line in f"{statement.strip()};\n".splitlines())
    full_text = (SCHEMA / f"full_text_{dialect}.sql").read_text(encoding="utf-8")
    return "-- Written by tests/store/first_migration.py.\n" + "\n".join(lines) + f"\n{full_text}"


def file_of(dialect: str) -> Path:
    return VERSIONS / f"v1_{dialect}.sql"


if __name__ == "__main__":
    for name in DIALECTS:
        file_of(name).write_text(statements(name), encoding="utf-8")
