"""Reach SQLite or Postgres: place, schema, migrations, identity, transactions."""
