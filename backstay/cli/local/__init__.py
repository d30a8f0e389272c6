"""Run the parts on one machine.

May import: backstay.cli, backstay.errors, backstay.rooms, backstay.settings.
"""
