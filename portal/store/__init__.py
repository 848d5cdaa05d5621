"""Repositories: SQL on the portal's tables. Their functions take a session and never commit."""
