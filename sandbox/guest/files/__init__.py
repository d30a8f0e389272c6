"""The file tools, as they run inside a jail, on one workspace.

May import: no other room.
"""
