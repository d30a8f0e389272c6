"""Search, check, preview and call tools; record each effect and settle its outcome.

May import: activities.offloading, activities.owners, activities.payloads, activities.records, activities.resources,
activities.retrying, backstay, store, system, toolbox.
"""
