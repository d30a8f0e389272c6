"""Ask a model what to do next: render the request, send it, price it, parse the answer.

May import: activities.definitions, activities.endpoints, activities.media, activities.model.native,
activities.offloading, activities.payloads, activities.programs, activities.records, activities.resources,
activities.retrying, activities.tools, backstay, sandbox, store, system, toolbox.
"""
