"""Add schedules and triggers with a proof of whose they are, pause and remove them, and see what they did.

May import: backstay, store.
"""
