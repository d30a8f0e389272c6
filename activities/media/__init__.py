"""Pictures and PDFs in a run: how they are made to fit, and how a model is shown them.

May import: activities.endpoints, backstay, system.
"""
