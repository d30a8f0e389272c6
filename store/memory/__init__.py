"""Find by words what is remembered of runs; it holds where a text stands, and no text.

May import: backstay, store.database.
"""
