"""Let people and other programs in: the command line, the page, Slack, mail and webhooks.

May import: backstay, people, store, system.
"""
