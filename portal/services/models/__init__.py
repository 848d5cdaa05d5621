"""Embedding models: register, build, compare, switch."""
