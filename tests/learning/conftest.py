"""Run the test of reading on both databases."""

from tests.databases import database_url, postgres_url

__all__ = ["database_url", "postgres_url"]
