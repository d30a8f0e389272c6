"""The builtin tools for files and shell commands in a run's workspace."""
