"""Write a catalog to disk as plain files, describe its tools, and document them.

May import: backstay, system, toolbox.bindings, toolbox.catalog, toolbox.configuration, toolbox.schema, toolbox.toolbox.
"""
