"""The record that can be proven: chains of rows, keys that sign their heads, and what verifies both.

May import: backstay.approvals, backstay.errors, backstay.frozen, backstay.shown.
"""
