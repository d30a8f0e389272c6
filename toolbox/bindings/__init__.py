"""Write the Python functions through which a program calls tools.

May import: toolbox.catalog.
"""
