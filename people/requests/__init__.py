"""The entries that can be made about a request, and how they are read as a decision.

May import: backstay.
"""
