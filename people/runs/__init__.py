"""Find a run that a person may see, look at it in the store and in the run itself, and say in words how it stands.

May import: backstay, people.decide, store.
"""
