"""Requests to people, their decisions, who may decide, and signed proof of who decided.

May import: backstay.authority, backstay.bounds, backstay.canonical, backstay.errors, backstay.frozen,
backstay.policies, backstay.provenance, backstay.quoting, backstay.redaction, backstay.shown, backstay.stored_texts,
backstay.tools.
"""
