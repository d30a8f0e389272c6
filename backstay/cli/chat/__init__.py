"""Talk with an agent at the terminal: each turn is a run that goes on from the one before.

May import: backstay.approvals, backstay.budgets, backstay.canonical, backstay.cli, backstay.cli.asking,
backstay.cli.local, backstay.cli.plans, backstay.client, backstay.errors, backstay.rooms, backstay.settings,
backstay.shown, backstay.task.
"""
