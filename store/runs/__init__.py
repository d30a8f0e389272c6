"""Keep runs and their events.

May import: backstay, store.blobs, store.database, store.faults, store.ledger, store.memory, store.secrets.
"""
