"""Let commands reach the hosts that their call names, and no other: a proxy outside of the jail.

May import: backstay, system.
"""
