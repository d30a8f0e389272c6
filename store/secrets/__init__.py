"""Encrypt what must not be read at rest, and keep the values behind secret handles."""
