"""Run these tests on both databases."""

from tests.databases import (
    another_database_url,
    database_url,
    empty_database_url,
    empty_postgres_url,
    postgres_url,
    second_postgres_url,
)

__all__ = [
    "another_database_url",
    "database_url",
    "empty_database_url",
    "empty_postgres_url",
    "postgres_url",
    "second_postgres_url",
]
