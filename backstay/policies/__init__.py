"""Rule on a call: allow it, ask a person, or deny it. Pure functions on plain data.

May import: backstay.authority, backstay.canonical, backstay.errors, backstay.frozen, backstay.provenance,
backstay.quoting, backstay.redaction, backstay.shown, backstay.stored_texts, backstay.tools.
"""
