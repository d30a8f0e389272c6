"""Record each effect before it is sent, and settle it once: the ledger that decides whether a retry may send."""
