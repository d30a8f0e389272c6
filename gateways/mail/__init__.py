"""Tell people by mail that something is asked of them.

May import: backstay, people, store.
"""
