"""Jails, the program protocol and root images: what runs here can harm nothing."""
