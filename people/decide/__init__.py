"""The rules of who may see and decide a request, whether it is the one shown, and how a decision is proven and sent.

May import: backstay, people.requests, store.
"""
