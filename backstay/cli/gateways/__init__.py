"""The commands that serve gateways: ways in for people.

May import: backstay.cli, backstay.client, backstay.errors, backstay.logs, backstay.redaction, backstay.rooms,
backstay.settings.
"""
