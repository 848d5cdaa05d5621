"""Stores and protocols for other programs. Within the portal only some commands import them, so
that serving does not need the libraries of those programs."""
