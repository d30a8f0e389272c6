"""The life of a plan: its states, how it went, and how it is reviewed.

May import: backstay.approvals, backstay.canonical, backstay.frozen, backstay.provenance, backstay.shown, backstay.task.
"""
