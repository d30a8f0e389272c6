"""The interface of a provider: what it lists, how it answers, what it may ask.

May import: backstay, toolbox.schema.
"""
