"""Let people and other programs in: the command line, the page, Slack, mail and webhooks.

May import: activities, backstay, opening, people, sandbox, store, system, toolbox.
"""
