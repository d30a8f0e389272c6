"""Search, check, preview and call tools; record each effect and settle its outcome."""
