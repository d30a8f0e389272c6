"""Show people in Slack what runs ask, and send their decisions, signed in their names.

May import: backstay, gateways.listening, gateways.slack.drawing, gateways.slack.forms, people, store, system.
"""
