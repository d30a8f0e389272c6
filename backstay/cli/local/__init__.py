"""Run all parts on one machine: Temporal, a worker, the page.

May import: backstay.cli, backstay.client, backstay.errors, backstay.frozen, backstay.rooms, backstay.settings,
backstay.shown.
"""
