"""Say where in a text a secret stands."""

Span = tuple[int, int, str]
"""Where a secret begins and ends, and of which kind it is."""
