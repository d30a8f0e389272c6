"""Keep a chain of rows for each run, in the transactions that act, and verify it.

May import: backstay, store.database, system.
"""
