"""The tools that come with backstay. Beside each module lie the server shapes it fits.

May import: backstay.
"""
