"""Python functions as tools, for those who write them: nothing of the engine is needed to import or to test one.

May import: backstay.errors, backstay.provenance, backstay.tools.
"""
