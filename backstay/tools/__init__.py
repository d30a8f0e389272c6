"""Tools and calls as a run knows them: name, safety class, arguments, result.

May import: backstay.frozen, backstay.provenance, backstay.shown.
"""
