"""SQL of conversations, messages and citations."""
