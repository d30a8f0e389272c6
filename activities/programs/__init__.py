"""Check, run and resume programs written by the model."""
