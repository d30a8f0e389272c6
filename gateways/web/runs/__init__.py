"""Show runs, and do to them what people ask for.

May import: backstay, gateways.links, gateways.web, people, store.
"""
