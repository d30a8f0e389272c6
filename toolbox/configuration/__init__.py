"""Read toolbox.json: servers, tool declarations, templates, variables.

May import: backstay, system, toolbox.providers.
"""
