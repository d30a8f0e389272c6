"""What the engine remembers: effects, events, secrets, runs and blobs."""
