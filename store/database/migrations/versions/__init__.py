"""One module per step; a released one is never edited."""
