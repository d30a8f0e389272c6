"""Keep tasks that are started again and again, and each of their starts.

May import: backstay, store.database, store.secrets.
"""
