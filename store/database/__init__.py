"""Connect to SQLite or Postgres: location, schema, migrations, identity, transactions.

May import: backstay, store.faults, system.
"""
