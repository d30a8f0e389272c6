"""Open and close runs, write their events, and tell people about open requests."""
