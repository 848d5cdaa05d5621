"""Folders synchronised with external sources: one module per kind, and a registry."""
