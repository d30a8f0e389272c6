"""Keep tasks that are started again and again, and each of their starts.

May import: backstay.budgets, backstay.canonical, backstay.errors, backstay.frozen, backstay.task, store.database,
store.secrets.
"""
