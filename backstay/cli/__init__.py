"""The command line: start runs, follow them, decide requests, and start the processes that serve them.

May import: backstay.approvals, backstay.authority, backstay.budgets, backstay.canonical, backstay.cli.asking,
backstay.cli.gateways, backstay.cli.local, backstay.cli.plans, backstay.client, backstay.effects, backstay.errors,
backstay.frozen, backstay.logs, backstay.policies, backstay.redaction, backstay.rooms, backstay.settings,
backstay.shown, backstay.task, backstay.tools, backstay.trust, backstay.version, backstay.yaml_text.
"""

from backstay.cli.app import main

__all__ = ["main"]
