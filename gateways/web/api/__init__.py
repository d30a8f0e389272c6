"""Tell programs what they can ask for below /api, and give them what people have no page for.

May import: backstay, gateways.web, people.
"""
