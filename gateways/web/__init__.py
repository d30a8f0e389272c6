"""Let people decide in a browser: the page.

May import: backstay, gateways.web.runs, store.
"""
