"""Who may see and decide a request, whether it is still the one that was shown, and how a decision is proven and sent.

May import: backstay, people.requests, store.
"""
