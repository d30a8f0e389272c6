"""Ask the person at the terminal: to decide a request, to change arguments, to fill in a form.

May import: backstay.approvals, backstay.canonical, backstay.cli, backstay.client, backstay.errors, backstay.policies,
backstay.rooms, backstay.settings, backstay.shown.
"""
