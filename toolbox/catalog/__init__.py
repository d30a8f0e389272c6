"""Know every tool of a user: its definition, its safety, its name for the model."""
