"""Run programs in jails: start, pause, replay and resume them, and check what they send."""
