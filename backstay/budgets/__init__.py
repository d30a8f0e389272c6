"""What a run may spend and what it has spent: reserved before, charged after.

May import: backstay.bounds, backstay.errors, backstay.frozen, backstay.quoting, backstay.shown.
"""
