"""Keep what people are asked and told, and who has been told.

May import: backstay, store.database, store.ledger.
"""
