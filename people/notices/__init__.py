"""Deliver what people and other programs are told of runs, and close what ended unseen.

May import: backstay, store, system.
"""
