"""Hold what a run remembers from one workflow task, and from one execution, to the next.

May import: backstay.
"""
