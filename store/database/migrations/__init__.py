"""The migrations of the schema; alembic runs them whenever a store is opened.

May import: store.database.
"""
