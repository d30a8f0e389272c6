"""All tools that one user may see: definitions, search, and their names for the model.

May import: backstay, toolbox.configuration, toolbox.providers, toolbox.schema.
"""
