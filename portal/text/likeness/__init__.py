"""Likeness of texts: differences, copies, repeated input."""
