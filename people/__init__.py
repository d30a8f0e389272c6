"""Everything that a person sees of a run, and says to it, at whatever door; no screen is in it.

May import: backstay, store, system.
"""
