"""Keep runs and their events."""
