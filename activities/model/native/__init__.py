"""Speak the native APIs of vendors, where models.yaml says so; it needs the extra `native`.

May import: activities.endpoints, activities.model, backstay.
"""
