"""Run programs that a model wrote, and keep their journals.

May import: activities.offloading, activities.payloads, activities.resources, activities.retrying, backstay, sandbox,
store, toolbox.
"""
