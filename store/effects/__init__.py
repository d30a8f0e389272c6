"""Record each effect before it is sent, and settle it once. Only one attempt may send.

May import: backstay, store.blobs, store.database, store.ledger, store.runs.
"""
