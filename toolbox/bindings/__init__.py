"""Write the Python functions through which a program calls tools.

May import: backstay, toolbox.catalog.
"""
