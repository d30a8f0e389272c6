"""Find secrets in payloads, texts and logs, and replace each by a handle or a mask."""
