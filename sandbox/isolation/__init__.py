"""Start nsjail with a profile, and prove that the profile confines."""
