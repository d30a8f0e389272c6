"""The commands `plan show`, `plan diff` and `plan export`: what became of the plans of a run.

May import: backstay.approvals, backstay.cli, backstay.client, backstay.errors, backstay.plans, backstay.settings,
backstay.shown, backstay.task.
"""
