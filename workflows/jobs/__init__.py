"""Carry out the jobs of plugins in order.

May import: backstay, workflows.dispatch.
"""
