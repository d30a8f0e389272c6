"""Code that runs inside a jail, on nothing but the standard library of the jail.

May import: no other room.
"""
