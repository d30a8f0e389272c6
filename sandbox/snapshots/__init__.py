"""Record what a workspace holds, compare two snapshots, and restore one.

May import: backstay, system.
"""
