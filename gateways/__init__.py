"""Let people and other programs in: the page, Slack, mail and webhooks.

May import: backstay, people, store.
"""
