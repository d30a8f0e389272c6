"""Keep payloads under the hash of their content, sealed or shown.

May import: backstay, store.database, store.faults, store.secrets, system.
"""
