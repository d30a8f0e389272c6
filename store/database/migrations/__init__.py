"""The history of the schema, run by alembic at every opening."""
