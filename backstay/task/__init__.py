"""A run from outside: its task, plan, decisions, events, status and result.

May import: backstay.approvals, backstay.authority, backstay.bounds, backstay.budgets, backstay.canonical,
backstay.effects, backstay.errors, backstay.frozen, backstay.policies, backstay.provenance, backstay.shown,
backstay.stored_texts, backstay.tools.
"""
