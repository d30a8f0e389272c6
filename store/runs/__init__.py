"""Keep runs and their events.

May import: backstay, store.database.
"""
