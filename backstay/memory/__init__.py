"""Say what is remembered of runs, whose it is, and by which words it is found. Pure functions on plain data.

May import: backstay.data_files, backstay.frozen, backstay.provenance, backstay.shown.
"""
