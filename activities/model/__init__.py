"""Ask a model what to do next: render the request, send it, price it, parse the answer.

May import: activities.offloading, activities.programs, activities.records, activities.resources, activities.retrying,
activities.tools, backstay, store, system, toolbox.
"""
