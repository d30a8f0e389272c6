"""The wordings that pages, comments and docstrings do without (`rules.toml`), and the check that finds them."""
