"""Show runs, and do to them what people ask for.

May import: backstay, gateways.web, people, store.
"""
