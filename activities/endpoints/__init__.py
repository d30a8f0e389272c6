"""Know the model endpoints: what models.yaml says, a client for each, and what models cost.

May import: backstay, store, system.
"""
