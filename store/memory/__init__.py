"""Find by words what is remembered of runs; it holds where text is, and no text.

May import: backstay, store.database.
"""
