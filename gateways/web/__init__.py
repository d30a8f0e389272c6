"""Let people decide in a browser: the page.

May import: backstay, gateways.links, gateways.listening, gateways.published_keys, gateways.served, gateways.signatures,
gateways.web.api, gateways.web.runs, people, store, system.
"""
