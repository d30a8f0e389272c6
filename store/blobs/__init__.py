"""Keep payloads by their content, sealed or shown."""
