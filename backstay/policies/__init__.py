"""Which calls are allowed, which need a person, and which are denied: pure rules on plain data."""
