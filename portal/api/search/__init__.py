"""The JSON API for search."""
