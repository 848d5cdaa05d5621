"""Builders for tests: files, users, conversations and fake servers."""
