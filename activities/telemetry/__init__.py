"""Tell operators what runs do: metrics and traces.

May import: backstay, store, system.
"""
