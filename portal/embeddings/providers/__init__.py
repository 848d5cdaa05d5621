"""Providers of embedding models, one a file."""
