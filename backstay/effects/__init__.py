"""Calls that may change the world, and the calls that undo them.

May import: backstay.authority, backstay.canonical, backstay.errors, backstay.frozen, backstay.tools.
"""
