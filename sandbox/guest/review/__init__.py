"""The checks of Python code, as they run inside a jail, on one workspace.

May import: no other room.
"""
