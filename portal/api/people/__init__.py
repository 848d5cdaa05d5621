"""JSON of tokens."""
