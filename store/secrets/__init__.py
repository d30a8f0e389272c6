"""Encrypt what must not be readable at rest, and keep the values behind secret handles.

May import: backstay, store.database.
"""
