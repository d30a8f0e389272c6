"""Migrate the schema; alembic runs these whenever a store is opened.

May import: store.database.
"""
