"""Folders that are kept in step with sources outside: one module a kind, and a registry."""
