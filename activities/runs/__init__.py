"""Open and close runs, write their events, and announce open requests.

May import: activities.definitions, activities.endpoints, activities.model, activities.payloads, activities.records,
activities.resources, activities.retrying, activities.tools, backstay, store, toolbox.
"""
