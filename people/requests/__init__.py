"""What can be entered about a request, and how that is read as a decision.

May import: backstay.
"""
