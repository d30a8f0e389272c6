"""Summarize large payloads without a model: schema, sample and aggregates.

May import: backstay.canonical, backstay.clean, backstay.shown.
"""
