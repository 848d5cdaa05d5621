"""JSON for operators."""
