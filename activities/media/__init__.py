"""Pictures and PDFs in a run: what bytes are, how they are made to fit, and how a model is shown them.

May import: backstay, system.
"""
