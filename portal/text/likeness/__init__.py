"""Likeness of texts: differences, copies."""
