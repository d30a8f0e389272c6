"""Learn lines for a policy from what people decided. Pure functions on plain data; nothing here accepts a line.

May import: backstay.authority, backstay.canonical, backstay.data_files, backstay.errors, backstay.policies,
backstay.provenance.
"""
