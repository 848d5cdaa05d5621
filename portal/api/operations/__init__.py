"""The JSON API for operators and administrators."""
