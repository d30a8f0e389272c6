"""Run all parts on one machine: Temporal, a worker, the page.

May import: backstay.cli, backstay.errors, backstay.rooms, backstay.settings.
"""
