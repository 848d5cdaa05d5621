"""The JSON API for conversations and answers."""
