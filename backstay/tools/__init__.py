"""Tools and calls as a run knows them: name, safety class, arguments, result.

May import: backstay.canonical, backstay.data_files, backstay.frozen, backstay.provenance, backstay.shown.
"""
