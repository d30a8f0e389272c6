"""Keep what must outlive a process: effects, events, runs, secrets and payloads.

May import: backstay, system.
"""
