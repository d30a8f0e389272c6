"""One module per migration. Never edit a released one.

May import: no other room.
"""
