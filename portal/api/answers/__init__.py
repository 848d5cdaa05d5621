"""JSON of conversations and answers."""
