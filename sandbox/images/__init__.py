"""Build the read-only root file systems that jails run in.

May import: backstay, system.
"""
