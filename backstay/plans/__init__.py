"""The life of a plan: its states, its rehearsal, how it went, how it is reviewed, and how it is kept in a file.

May import: backstay.approvals, backstay.canonical, backstay.errors, backstay.frozen, backstay.policies,
backstay.provenance, backstay.shown, backstay.task, backstay.tools.
"""
