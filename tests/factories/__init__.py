"""Builders of what tests need: files, people, conversations and servers that pretend."""
