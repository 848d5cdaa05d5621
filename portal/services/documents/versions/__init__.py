"""Versions of a document, and their differences."""
