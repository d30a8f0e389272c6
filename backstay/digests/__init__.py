"""Summarize large payloads without a model: schema, sample and aggregates.

May import: backstay.canonical, backstay.data_files, backstay.redaction, backstay.shown, backstay.strict_json.
"""
