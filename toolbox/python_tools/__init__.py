"""Offer Python functions as tools.

May import: backstay, toolbox.configuration, toolbox.providers, toolbox.schema.
"""
