"""Providers of embedding models, one per file."""
