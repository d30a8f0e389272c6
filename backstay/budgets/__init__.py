"""What a run may spend and what it has spent: reserved before, charged after.

May import: backstay.errors, backstay.frozen.
"""
